//! Placements: where lanes that part at a branch wait for each other.
//!
//! | placement | a branch's lanes wait |
//! |---|---|
//! | `binary` | at its immediate post-dominator in the graph of the machine code |
//! | `structured` | where compilers for GPUs let them: see [`flowgraph::StructuredJoins`] |
//!
//! Compilers for processors double the end of a loop's turn, with the exit behind it: then all branches in the loop
//! have their post-dominators behind the loop, and `binary` runs the loop lane by lane. Under `structured` the lanes
//! that go on wait for each other at the end of each turn, whatever edge ends it; those that leave the loop wait behind
//! it, and are no longer waited for inside.

use parameters::{Parameter, Settings, Values};

/// A placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Placement {
    /// At immediate post-dominators.
    #[default]
    Binary,
    /// At structured joins.
    Structured,
}

impl Placement {
    /// The parameter by which models are told.
    pub const PARAMETER: Parameter = Parameter {
        name: "placement",
        values: Values::OneOf(&["binary", "structured"]),
        default: 0,
        help: "where lanes that part wait for each other: at post-dominators in the machine code, or where compilers for GPUs let them",
    };

    /// What the settings of a model say.
    #[must_use]
    pub fn of(settings: &Settings) -> Placement {
        match settings.choice(Placement::PARAMETER.name) {
            0 => Placement::Binary,
            _ => Placement::Structured,
        }
    }
}
