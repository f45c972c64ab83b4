//! The rule for locks: what a view puts into lanes' streams, and what lanes then do there.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// How locks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Locks {
    /// Critical sections leave the streams.
    Drop,
    /// One lane of a warp at a time holds a lock; the others wait, in the order in which they came. A model that would
    /// never run the lane that has it deadlocks: its numbers are those of [`Locks::Simt`], and the outcome says both.
    #[default]
    Serialize,
    /// As [`Locks::Serialize`], and a model that deadlocks has no numbers: for results that stand beside those of
    /// [`Locks::Simt`]. Its name is `serialize`, too.
    Wait,
    /// Lanes that reach a lock together take turns (`engine/turns.rs`). No model deadlocks.
    Simt,
    /// Locks have no effect.
    Ignore,
}

impl Locks {
    /// Every choice of a user, in the order of the help text.
    pub const ALL: [Locks; 4] = [Locks::Serialize, Locks::Simt, Locks::Drop, Locks::Ignore];

    /// Whether lanes take locks and give them back.
    #[must_use]
    pub fn are_taken(self) -> bool {
        matches!(self, Locks::Serialize | Locks::Wait | Locks::Simt)
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Locks::Drop => "drop",
            Locks::Serialize | Locks::Wait => "serialize",
            Locks::Simt => "simt",
            Locks::Ignore => "ignore",
        }
    }
}

impl fmt::Display for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Locks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Locks> {
        let found = Locks::ALL.into_iter().find(|l| l.name() == text);
        found.ok_or_else(|| {
            Error::Request(format!("`{text}` is not a rule for locks: give `serialize`, `simt`, `drop` or `ignore`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_the_rules_they_show_and_an_unknown_one_is_told_the_known_ones() {
        for locks in Locks::ALL {
            assert_eq!(locks.to_string().parse::<Locks>().unwrap(), locks);
        }
        assert!("keep".parse::<Locks>().unwrap_err().to_string().contains("`serialize`"));
    }
}
