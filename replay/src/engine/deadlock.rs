//! Deadlocks: why a model would never run on.

use std::fmt;

use heuristics::LaneSet;
use trace_format::Pc;

use crate::LockId;

/// Where a model deadlocks: hardware that follows its rule would hang there, with the program as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The model, as it would be typed.
    pub model: String,
    /// The lanes that it would have to run.
    pub lanes: LaneSet,
    /// The locks that they wait for; none where they wait at a barrier.
    pub waits: Vec<LockWait>,
}

/// Lanes that wait for one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The lock.
    pub lock: LockId,
    /// What a user would call it.
    pub name: String,
    /// Who waits for it.
    pub waiting: LaneSet,
    /// Who has it.
    pub holders: LaneSet,
    /// Where they wait, each place once: the instructions that they would run next. The call that takes the lock ends
    /// there, as a rule.
    pub at: Vec<Pc>,
    /// The same as a user would call it, once somebody has found that out.
    pub place: Option<String>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} deadlocks: ", self.model)?;
        if self.waits.is_empty() {
            write!(f, "lanes {{{}}} wait at a barrier", self.lanes)?;
        }
        for (i, wait) in self.waits.iter().enumerate() {
            let between = if i == 0 { "" } else { "; " };
            let at = wait.place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
            write!(f, "{between}lanes {{{}}} wait for {}{at}, held by {{{}}}", wait.waiting, wait.name, wait.holders)?;
        }
        f.write_str(", which it can't run before them")
    }
}
