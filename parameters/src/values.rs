//! Parameters, and what they may be.

use std::fmt;

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name, as typed: `n`.
    pub name: &'static str,
    /// What it may be.
    pub values: Values,
    /// Its value when it is not typed.
    pub default: i64,
    /// What it does, in one line.
    pub help: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A number in this range, ends included.
    Number(i64, i64),
    /// `no` (0) or `yes` (1).
    YesNo,
    /// One of these names, each standing for its place in the list.
    OneOf(&'static [&'static str]),
}

impl Parameter {
    /// Its default as it would be typed.
    #[must_use]
    pub fn default_text(&self) -> String {
        self.values.show(self.default)
    }

    /// A line that describes it: `n=4: how many positions are kept (1 to 16)`.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{}={}: {} ({})", self.name, self.default_text(), self.help, self.values)
    }
}

impl Values {
    /// The value that a text stands for.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<i64> {
        match self {
            Values::Number(least, most) => text.parse().ok().filter(|n| (least..=most).contains(n)),
            Values::YesNo => Values::OneOf(&["no", "yes"]).parse(text),
            Values::OneOf(names) => names.iter().position(|v| *v == text).map(|v| v as i64),
        }
    }

    /// A value as it would be typed.
    #[must_use]
    pub fn show(self, value: i64) -> String {
        match self {
            Values::Number(..) => value.to_string(),
            Values::YesNo => Values::OneOf(&["no", "yes"]).show(value),
            Values::OneOf(names) => names[value as usize].to_owned(),
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Number(least, most) => write!(f, "{least} to {most}"),
            Values::YesNo => write!(f, "no or yes"),
            Values::OneOf(names) => f.write_str(&names.join(", ")),
        }
    }
}

/// Values of some parameters, by name.
#[derive(Clone, Debug)]
pub struct Settings {
    parameters: &'static [Parameter],
    /// In the order of the parameters; `None` where the default holds.
    given: Vec<Option<i64>>,
}

impl Settings {
    /// The defaults of some parameters.
    #[must_use]
    pub fn of(parameters: &'static [Parameter]) -> Settings {
        Settings { parameters, given: vec![None; parameters.len()] }
    }

    /// A number, or the place of a name in its list; 1 for `yes`.
    ///
    /// # Panics
    /// When there is no such parameter.
    #[must_use]
    pub fn number(&self, name: &str) -> i64 {
        let index = self.index(name).unwrap_or_else(|| panic!("no parameter {name:?}"));
        self.value(index)
    }

    /// A number whose range lies in that of `u32`.
    ///
    /// # Panics
    /// When there is no such parameter, or its range is wider.
    #[must_use]
    pub fn count(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).expect("the range of the parameter")
    }

    /// The place of a name in its list.
    ///
    /// # Panics
    /// When there is no such parameter.
    #[must_use]
    pub fn choice(&self, name: &str) -> usize {
        self.count(name) as usize
    }

    /// Whether a parameter is `yes`.
    ///
    /// # Panics
    /// When there is no such parameter.
    #[must_use]
    pub fn is_yes(&self, name: &str) -> bool {
        self.number(name) == 1
    }

    /// The parameters with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, i64)> {
        self.parameters.iter().enumerate().map(|(i, parameter)| (parameter, self.value(i)))
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|p| p.name == name)
    }

    pub(crate) fn parameter(&self, index: usize) -> &'static Parameter {
        &self.parameters[index]
    }

    /// Gives a value; what was given before, if anything.
    pub(crate) fn give(&mut self, index: usize, value: i64) -> Option<i64> {
        self.given[index].replace(value)
    }

    /// Gives a value where none was given.
    pub(crate) fn give_default(&mut self, index: usize, value: i64) {
        self.given[index].get_or_insert(value);
    }

    fn value(&self, index: usize) -> i64 {
        self.given[index].unwrap_or(self.parameters[index].default)
    }
}
