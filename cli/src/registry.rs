//! What a program has that is built on lockstep: all that lockstep has, and models and measures of its own.

use replay::registry::{columns, measures};

/// Models and measures that a program brings, besides those of lockstep.
///
/// ```no_run
/// # use cli as lockstep;
/// # const ENTRY: lockstep::heuristics::Entry = lockstep::heuristics::REGISTRY[0];
/// lockstep::run(lockstep::Registry::standard().with(ENTRY));
/// ```
#[derive(Default)]
pub struct Registry {
    models: Vec<heuristics::Entry>,
    measures: Vec<&'static replay::registry::Entry>,
}

/// One of them.
pub enum Brought {
    /// A reconvergence model.
    Model(heuristics::Entry),
    /// A measure of replays, with its option and columns.
    Measure(&'static replay::registry::Entry),
}

impl From<heuristics::Entry> for Brought {
    fn from(model: heuristics::Entry) -> Brought {
        Brought::Model(model)
    }
}

impl From<&'static replay::registry::Entry> for Brought {
    fn from(measure: &'static replay::registry::Entry) -> Brought {
        Brought::Measure(measure)
    }
}

impl Registry {
    /// What lockstep has.
    #[must_use]
    pub fn standard() -> Registry {
        Registry::default()
    }

    /// The same and this, behind all others of its kind.
    #[must_use]
    pub fn with(mut self, brought: impl Into<Brought>) -> Registry {
        match brought.into() {
            Brought::Model(model) => self.models.push(model),
            Brought::Measure(measure) => self.measures.push(measure),
        }
        self
    }

    /// Makes all of lockstep see them.
    pub(crate) fn install(&self) -> replay::Result<()> {
        let twice = |kind: &str, name: &str| {
            replay::Error::Request(format!("there are two {kind} of the name {name}: give this program's another name"))
        };
        if !heuristics::bring(&self.models) || !replay::registry::add(&self.measures) {
            return Err(replay::Error::Bug("models were asked for before the program's own were known".into()));
        }
        let models = heuristics::all().iter().map(|entry| entry.name);
        repeated(models).map_or(Ok(()), |name| Err(twice("models", name)))?;
        repeated(measures().map(|entry| entry.name)).map_or(Ok(()), |name| Err(twice("measures", name)))?;
        repeated(columns().map(|column| column.name)).map_or(Ok(()), |name| Err(twice("columns", name)))
    }
}

/// A name that stands there twice.
fn repeated(names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|two| two[0] == two[1]).map(|two| two[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_there_twice_is_found() {
        assert_eq!(repeated(["a", "c", "b", "a"].into_iter()), Some("a"));
        assert_eq!(repeated(["a", "c", "b"].into_iter()), None);
    }
}
