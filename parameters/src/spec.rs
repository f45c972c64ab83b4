//! What a user asks for: something of a registry, with values for its parameters.

use std::fmt;

use crate::{Parameter, Settings, did_you_mean};

/// Something that a registry lists.
pub trait Named: Sized + Sync + 'static {
    /// The kind of thing, for messages: `heuristic`.
    const KIND: &'static str;

    /// All listed ones, in order.
    fn registry() -> &'static [Self];

    /// Those that can be named, but are not listed.
    fn hidden() -> &'static [Self] {
        &[]
    }

    /// The name, as typed.
    fn name(&self) -> &'static str;

    /// Its parameters.
    fn parameters(&self) -> &'static [Parameter];
}

/// One of a registry with its parameters, as a user asks for it: `long:n=4`.
pub struct Spec<T: Named> {
    entry: &'static T,
    /// The values of its parameters.
    pub settings: Settings,
}

/// A name or parameter is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such name.
    #[error("there is no {kind} {name:?}{meant}; there are: {names}")]
    UnknownName {
        /// The kind of thing that was named.
        kind: &'static str,
        /// What was typed.
        name: String,
        /// ` (did you mean minpc?)`, or nothing.
        meant: String,
        /// The names that there are.
        names: String,
    },
    /// No such parameter.
    #[error("{kind} {owner} has no parameter {name:?}{meant}; it has {parameters}")]
    UnknownParameter {
        /// The kind of its owner.
        kind: &'static str,
        /// Whose parameter it would be.
        owner: &'static str,
        /// What was typed.
        name: String,
        /// ` (did you mean placement?)`, or nothing.
        meant: String,
        /// The parameters that there are.
        parameters: String,
    },
    /// The parameter cannot have that value.
    #[error("{kind} {owner}: {name}={value} is not possible: {name} is {allowed}")]
    BadValue {
        /// The kind of its owner.
        kind: &'static str,
        /// Whose parameter it is.
        owner: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was typed.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// A parameter was given twice.
    #[error("{kind} {owner}: parameter {name} is given twice")]
    Twice {
        /// The kind of its owner.
        kind: &'static str,
        /// Whose parameter it is.
        owner: &'static str,
        /// The parameter.
        name: &'static str,
    },
}

/// Stands for all of a registry, in lists.
const ALL: &str = "all";

impl<T: Named> Spec<T> {
    /// Reads one: a name, or `name:parameter=value,parameter=value`.
    ///
    /// # Errors
    /// When there is no such name or parameter, or the value is not possible.
    pub fn parse(text: &str) -> Result<Spec<T>, Error> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let Some(entry) = T::registry().iter().chain(T::hidden()).find(|e| e.name() == name) else {
            return Err(unknown::<T>(name));
        };
        let mut spec = Spec::of(entry);
        for setting in parameters.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            spec.set(name, value)?;
        }
        Ok(spec)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let (kind, owner) = (T::KIND, self.entry.name());
        let Some(index) = self.settings.index(name) else {
            let meant = did_you_mean(name, self.entry.parameters().iter().map(|p| p.name));
            let parameters = parameters_of(self.entry.parameters());
            return Err(Error::UnknownParameter { kind, owner, name: name.to_owned(), meant, parameters });
        };
        let number = self.read(index, value)?;
        match self.settings.give(index, number) {
            Some(_) => Err(Error::Twice { kind, owner, name: self.settings.parameter(index).name }),
            None => Ok(()),
        }
    }

    /// Gives a parameter a value, as typed, where it has none yet and there is such a parameter.
    ///
    /// # Errors
    /// When the value is not possible.
    pub fn set_default(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let Some(index) = self.settings.index(name) else { return Ok(()) };
        let number = self.read(index, value)?;
        self.settings.give_default(index, number);
        Ok(())
    }

    fn read(&self, index: usize, value: &str) -> Result<i64, Error> {
        let parameter = self.settings.parameter(index);
        parameter.values.parse(value).ok_or_else(|| Error::BadValue {
            kind: T::KIND,
            owner: self.entry.name(),
            name: parameter.name,
            value: value.to_owned(),
            allowed: parameter.values.to_string(),
        })
    }

    /// One that need not be in the registry, with the defaults of its parameters.
    #[must_use]
    pub fn of(entry: &'static T) -> Spec<T> {
        Spec { entry, settings: Settings::of(entry.parameters()) }
    }

    /// Reads a list with commas; `all` stands for all of the registry with their default parameters. A piece such as
    /// `threshold=8` belongs to the name before it.
    ///
    /// # Errors
    /// As [`Spec::parse`].
    pub fn parse_list(text: &str) -> Result<Vec<Spec<T>>, Error> {
        let mut specs: Vec<String> = Vec::new();
        for piece in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            match specs.last_mut() {
                Some(last) if piece.contains('=') && !piece.contains(':') => {
                    let separator = if last.contains(':') { ',' } else { ':' };
                    last.push(separator);
                    last.push_str(piece);
                }
                _ if piece == ALL => specs.extend(T::registry().iter().map(|e| e.name().to_owned())),
                _ => specs.push(piece.to_owned()),
            }
        }
        if specs.is_empty() {
            return Err(unknown::<T>(text));
        }
        specs.iter().map(|s| Spec::parse(s)).collect()
    }

    /// As it would be typed, with only the parameters that are not at their defaults: `rd-minsp-pc`.
    #[must_use]
    pub fn brief(&self) -> String {
        let mut text = self.entry.name().to_owned();
        let mut separator = ':';
        for (parameter, value) in self.settings.iter().filter(|(parameter, value)| parameter.default != *value) {
            text += &format!("{separator}{}={}", parameter.name, parameter.values.show(value));
            separator = ',';
        }
        text
    }

    /// Its line of the registry.
    #[must_use]
    pub fn entry(&self) -> &'static T {
        self.entry
    }
}

fn unknown<T: Named>(name: &str) -> Error {
    let names: Vec<&str> = T::registry().iter().map(Named::name).collect();
    let meant = did_you_mean(name, names.iter().copied());
    let names = format!("{}, and {ALL}", names.join(", "));
    Error::UnknownName { kind: T::KIND, name: name.to_owned(), meant, names }
}

fn parameters_of(parameters: &[Parameter]) -> String {
    let list: Vec<String> = parameters.iter().map(|p| format!("{} ({})", p.name, p.values)).collect();
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

impl<T: Named> Clone for Spec<T> {
    fn clone(&self) -> Spec<T> {
        Spec { entry: self.entry, settings: self.settings.clone() }
    }
}

impl<T: Named> fmt::Display for Spec<T> {
    /// As it would be typed, every parameter spelt out: `rd-minsp-pc:hysteresis=4,threshold=0,decrement=no`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name())?;
        for (i, (parameter, value)) in self.settings.iter().enumerate() {
            let separator = if i == 0 { ':' } else { ',' };
            write!(f, "{separator}{}={}", parameter.name, parameter.values.show(value))?;
        }
        Ok(())
    }
}

impl<T: Named> fmt::Debug for Spec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}
