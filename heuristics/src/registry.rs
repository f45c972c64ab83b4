//! The ordered list of all heuristics, from which help, docs and tests are made, and the parser of their names.

use std::fmt;

use crate::{Heuristic, Program};

/// A parameter of a heuristic.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name, as typed: `n`.
    pub name: &'static str,
    /// What it may be.
    pub values: Values,
    /// Its value when it is not typed.
    pub default: u32,
    /// What it does, in one line.
    pub help: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A number in this range, ends included.
    Number(u32, u32),
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
}

impl Values {
    fn parse(self, text: &str) -> Option<u32> {
        match self {
            Values::Number(least, most) => text.parse().ok().filter(|n| (least..=most).contains(n)),
            Values::YesNo => Values::OneOf(&["no", "yes"]).parse(text),
            Values::OneOf(names) => names.iter().position(|v| *v == text).map(|v| v as u32),
        }
    }

    fn show(self, value: u32) -> String {
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

/// A line of the registry.
pub struct Entry {
    /// The name, as typed.
    pub name: &'static str,
    /// Its rule in one sentence.
    pub rule: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its source file, from the workspace's folder; the file's head explains the model.
    pub file: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether it looks at [`Program::control_flow`].
    pub needs_control_flow: bool,
    /// Whether it runs blocks of warps whose lanes can share fetches; else each warp is on its own.
    pub runs_blocks: bool,
    /// Makes one for a warp, or a block, of so many lanes, with the values of its parameters in order.
    pub build: fn(values: &[u32], lanes: usize, program: &Program) -> Box<dyn Heuristic>,
}

/// All heuristics, in the order in which they are listed everywhere.
pub static REGISTRY: &[Entry] = &[
    crate::min_pc::ENTRY,
    crate::min_sp_pc::ENTRY,
    crate::max_fun_min_pc::ENTRY,
    crate::long::ENTRY,
    crate::long_min_pc::ENTRY,
    crate::long_min_sp_pc::ENTRY,
    crate::long_irb::ENTRY,
    crate::rd_min_sp_pc::ENTRY,
    crate::lee::ENTRY,
    crate::round_robin::ENTRY,
    crate::round_robin_eq::ENTRY,
    crate::ipdom::ENTRY,
    crate::none::ENTRY,
    crate::tf_stack::ENTRY,
    crate::tf_branch::ENTRY,
    crate::dual_path::ENTRY,
    crate::multi_path::ENTRY,
    crate::barrier::ENTRY,
    crate::dws::ENTRY,
    crate::dwf::ENTRY,
    crate::tbc::ENTRY,
    crate::lwm::ENTRY,
    crate::oracle::ENTRY,
    crate::distance::ENTRY,
];

/// A heuristic with its parameters, as a user asks for it: `long:n=4`.
#[derive(Clone)]
pub struct Spec {
    entry: &'static Entry,
    values: Vec<u32>,
}

/// A heuristic's name or parameter is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// No heuristic of that name.
    #[error("there is no heuristic {name:?}; there are: {}, and all", names())]
    UnknownName {
        /// What was typed.
        name: String,
    },
    /// The heuristic has no such parameter.
    #[error("heuristic {heuristic} has no parameter {name:?}; {}", parameters_of(.heuristic))]
    UnknownParameter {
        /// The heuristic.
        heuristic: &'static str,
        /// What was typed.
        name: String,
    },
    /// The parameter cannot have that value.
    #[error("heuristic {heuristic}: {name}={value} is not possible: {name} is {allowed}")]
    BadValue {
        /// The heuristic.
        heuristic: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was typed.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// A parameter was given twice.
    #[error("heuristic {heuristic}: parameter {name} is given twice")]
    Twice {
        /// The heuristic.
        heuristic: &'static str,
        /// The parameter.
        name: &'static str,
    },
}

fn names() -> String {
    REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
}

fn parameters_of(heuristic: &str) -> String {
    let entry = REGISTRY.iter().find(|e| e.name == heuristic);
    let parameters = entry.map_or(&[][..], |e| e.parameters);
    if parameters.is_empty() {
        return "it has none".to_owned();
    }
    let list: Vec<String> = parameters.iter().map(|p| format!("{} ({})", p.name, p.values)).collect();
    format!("it has {}", list.join(", "))
}

impl Spec {
    /// Reads one heuristic: a name, or `name:parameter=value,parameter=value`.
    ///
    /// # Errors
    /// When there is no such heuristic or parameter, or the value is not possible.
    pub fn parse(text: &str) -> Result<Spec, ParseError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let Some(entry) = REGISTRY.iter().find(|e| e.name == name) else {
            return Err(ParseError::UnknownName { name: name.to_owned() });
        };
        let Spec { mut values, .. } = Spec::of(entry);
        let mut given = vec![false; values.len()];
        for setting in parameters.split(',').filter(|s| !s.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let Some(index) = entry.parameters.iter().position(|p| p.name == name) else {
                return Err(ParseError::UnknownParameter { heuristic: entry.name, name: name.to_owned() });
            };
            let parameter = &entry.parameters[index];
            if std::mem::replace(&mut given[index], true) {
                return Err(ParseError::Twice { heuristic: entry.name, name: parameter.name });
            }
            values[index] = parameter.values.parse(value).ok_or_else(|| ParseError::BadValue {
                heuristic: entry.name,
                name: parameter.name,
                value: value.to_owned(),
                allowed: parameter.values.to_string(),
            })?;
        }
        Ok(Spec { entry, values })
    }

    /// One that need not be in the [`REGISTRY`], with the defaults of its parameters.
    #[must_use]
    pub fn of(entry: &'static Entry) -> Spec {
        Spec { entry, values: entry.parameters.iter().map(|p| p.default).collect() }
    }

    /// Reads a list with commas; `all` stands for every heuristic with its default parameters. A piece such as `threshold=8`
    /// belongs to the heuristic before it.
    ///
    /// # Errors
    /// As [`Spec::parse`].
    pub fn parse_list(text: &str) -> Result<Vec<Spec>, ParseError> {
        let mut specs: Vec<String> = Vec::new();
        for piece in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            match specs.last_mut() {
                Some(last) if piece.contains('=') && !piece.contains(':') => {
                    let separator = if last.contains(':') { ',' } else { ':' };
                    last.push(separator);
                    last.push_str(piece);
                }
                _ if piece == "all" => specs.extend(REGISTRY.iter().map(|e| e.name.to_owned())),
                _ => specs.push(piece.to_owned()),
            }
        }
        if specs.is_empty() {
            return Err(ParseError::UnknownName { name: text.to_owned() });
        }
        specs.iter().map(|s| Spec::parse(s)).collect()
    }

    /// Its line of the registry.
    #[must_use]
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// Whether it looks at [`Program::control_flow`].
    #[must_use]
    pub fn needs_control_flow(&self) -> bool {
        self.entry.needs_control_flow
    }

    /// Whether it runs blocks of warps whose lanes can share fetches.
    #[must_use]
    pub fn runs_blocks(&self) -> bool {
        self.entry.runs_blocks
    }

    /// Makes one for a warp, or a block, of so many lanes.
    #[must_use]
    pub fn build(&self, lanes: usize, program: &Program) -> Box<dyn Heuristic> {
        (self.entry.build)(&self.values, lanes, program)
    }
}

impl fmt::Display for Spec {
    /// As it would be typed, every parameter spelt out: `rd-minsp-pc:hysteresis=4,threshold=0,decrement=no`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        for (i, (parameter, value)) in self.entry.parameters.iter().zip(&self.values).enumerate() {
            let separator = if i == 0 { ':' } else { ',' };
            write!(f, "{separator}{}={}", parameter.name, parameter.values.show(*value))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_gets_every_default_spelt_out() {
        assert_eq!(Spec::parse("long").unwrap().to_string(), "long:n=4");
        assert_eq!(Spec::parse("minpc").unwrap().to_string(), "minpc");
        assert_eq!(
            Spec::parse("rd-minsp-pc:threshold=8,decrement=yes").unwrap().to_string(),
            "rd-minsp-pc:hysteresis=4,threshold=8,decrement=yes"
        );
    }

    #[test]
    fn every_spelling_reads_back_as_itself() {
        for spec in Spec::parse_list("all").unwrap() {
            assert_eq!(Spec::parse(&spec.to_string()).unwrap().to_string(), spec.to_string());
        }
    }

    #[test]
    fn commas_separate_heuristics_and_parameters() {
        let specs = Spec::parse_list("minpc,rd-minsp-pc:hysteresis=0,threshold=8,long:n=2,lee").unwrap();
        let shown: Vec<String> = specs.iter().map(Spec::to_string).collect();
        assert_eq!(shown, ["minpc", "rd-minsp-pc:hysteresis=0,threshold=8,decrement=no", "long:n=2", "lee"]);
    }

    #[test]
    fn errors_name_what_is_possible() {
        let message = |text| Spec::parse(text).unwrap_err().to_string();
        assert!(message("minps").contains("minsp-pc"));
        assert_eq!(message("minpc:n=1"), "heuristic minpc has no parameter \"n\"; it has none");
        assert!(message("long:n=0").contains("n is 1 to"));
        assert!(message("long:n=1,n=2").contains("twice"));
        assert!(Spec::parse_list("").is_err());
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = REGISTRY.iter().map(|e| e.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REGISTRY.len());
    }
}
