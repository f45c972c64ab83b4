//! Placements: where lanes that part at a branch wait for each other.
//!
//! | placement | a branch's lanes wait |
//! |---|---|
//! | `binary` | at its immediate post-dominator in the graph of the machine code |
//! | `structured` | where compilers for GPUs let them: see [`flowgraph::StructuredJoins`] and [`flowgraph::PartialJoins`] |
//! | `nak` | where Mesa's compiler for NVIDIA lets them: as `structured`, but see [`flowgraph::IfJoins`] |
//!
//! Compilers for processors double the end of a loop's iteration, with the exit behind it: then all branches in the
//! loop have their post-dominators behind the loop, and `binary` runs the loop lane by lane. Under `structured` the
//! lanes that go on wait for each other at the end of each iteration, whatever edge ends it; those that leave the loop
//! wait behind it, and are no longer waited for inside. Before that, those of several branches that reach one block can
//! run it together, as NVIDIA's ptxas has it for the arm of `if (a || b)`: where a branch follows, or at least three
//! instructions, before all lanes wait for each other. An inner loop that begins where the outer one does is a loop of
//! its own.
//!
//! Mesa's NAK knows the nesting of the source: it puts a barrier around each `if`, one around each loop, which `break`
//! leaves, and one around each iteration, at whose end those that `continue` wait. So under `nak` the arms of an `if`
//! meet behind it also where some lanes `continue` or return inside: those are no longer waited for there, but at the
//! end of the iteration or of the function. Where control flow is not nested, lanes wait as under `structured`.

use parameters::{Parameter, Settings, Values};
use trace_format::Pc;

use crate::{ControlFlow, PlaceId};

/// A placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Placement {
    /// At immediate post-dominators.
    #[default]
    Binary,
    /// At structured joins.
    Structured,
    /// At structured joins, and behind the arms of each `if`.
    Nak,
}

impl Placement {
    /// The parameter by which models are told.
    pub const PARAMETER: Parameter = Parameter {
        name: "placement",
        values: Values::OneOf(&["binary", "structured", "nak"]),
        default: 0,
        help: "where lanes that part wait for each other: at post-dominators in the machine code, where compilers for GPUs let them, or where Mesa's for NVIDIA does",
    };

    /// The same, of models whose machine has compilers for GPUs.
    pub const STRUCTURED_BY_DEFAULT: Parameter = Parameter { default: 1, ..Placement::PARAMETER };

    /// All, in the order of the parameter's values.
    pub const ALL: [Placement; 3] = [Placement::Binary, Placement::Structured, Placement::Nak];

    /// Its name, as a value of the parameter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Placement::Binary => "binary",
            Placement::Structured => "structured",
            Placement::Nak => "nak",
        }
    }

    /// The pcs at which lanes that part behind a place wait for each other, the innermost first; none stands for the
    /// end of the place's function. At least one.
    #[must_use]
    pub fn joins(self, control_flow: &ControlFlow, place: PlaceId) -> Vec<Option<Pc>> {
        match self {
            Placement::Binary => vec![control_flow.immediate_post_dominator(place)],
            Placement::Structured => control_flow.structured_joins(place).to_vec(),
            Placement::Nak => control_flow.nested_joins(place).to_vec(),
        }
    }

    /// What the settings of a model say.
    #[must_use]
    pub fn of(settings: &Settings) -> Placement {
        match settings.choice(Placement::PARAMETER.name) {
            0 => Placement::Binary,
            1 => Placement::Structured,
            _ => Placement::Nak,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_values_of_the_parameter() {
        let Values::OneOf(values) = Placement::PARAMETER.values else { panic!("it has names") };
        assert_eq!(Placement::ALL.map(Placement::name), values);
    }
}
