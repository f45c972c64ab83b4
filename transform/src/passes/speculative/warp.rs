//! What the lanes of a warp ask each other, in the words of a GPU.

use crate::llvm::{Builder, Comparison, Function, Module, Value};
use crate::spmd::Machine;

/// A GPU on which lanes can ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Warp {
    /// The lanes that take part are those of a mask, and each question waits for all of them.
    Nvidia,
    /// The lanes that take part are those that run.
    Amd,
}

/// The first version of PTX in which lanes can ask which of them run.
const LEAST_PTX: u32 = 62;

impl Warp {
    /// That of a module; none on a processor.
    pub(super) fn of(module: &Module) -> Option<Warp> {
        match Machine::of(module) {
            Machine::Nvidia => Some(Warp::Nvidia),
            Machine::Amd => Some(Warp::Amd),
            _ => None,
        }
    }

    /// Whether a function is compiled for a version of PTX that is too old. One that says nothing is not.
    pub(super) fn is_too_old_for(self, function: Function<'_>) -> bool {
        let features = function.text_attribute("target-features").unwrap_or_default();
        let mut versions = features.split(',').filter_map(|feature| feature.strip_prefix("+ptx")?.parse().ok());
        self == Warp::Nvidia && versions.any(|version: u32| version < LEAST_PTX)
    }

    /// Whether lanes that ask must have come together by the control flow alone: where they have no program counters of
    /// their own (before sm_70, and on AMD's).
    pub(super) fn needs_reducible(self, function: Function<'_>) -> bool {
        self == Warp::Amd || self.is_before(function, 70)
    }

    /// Whether a function is compiled for one of NVIDIA's processors below a number. One that says nothing is not.
    pub(super) fn is_before(self, function: Function<'_>, number: u32) -> bool {
        let processor = function.text_attribute("target-cpu").unwrap_or_default();
        let own = processor.strip_prefix("sm_").and_then(|rest| rest.trim_end_matches('a').parse::<u32>().ok());
        self == Warp::Nvidia && own.is_some_and(|own| own < number)
    }

    /// The lanes that come here together: who takes part in what follows.
    pub(super) fn who<'m>(self, at: Builder<'m>) -> Option<Value<'m>> {
        (self == Warp::Nvidia).then(|| at.intrinsic("llvm.nvvm.activemask", &[], &[]).as_value())
    }

    /// Whether a condition holds for any of the lanes.
    pub(super) fn any<'m>(self, at: Builder<'m>, who: Option<Value<'m>>, condition: Value<'m>) -> Value<'m> {
        match who {
            Some(who) => at.intrinsic("llvm.nvvm.vote.any.sync", &[], &[who, condition]).as_value(),
            None => {
                let ballot = self.ballot(at, who, condition);
                at.compare(Comparison::NotEqual, ballot, ballot.type_of().number(0))
            }
        }
    }

    /// For how many of the lanes it holds.
    pub(super) fn count<'m>(self, at: Builder<'m>, who: Option<Value<'m>>, condition: Value<'m>) -> Value<'m> {
        let ballot = self.ballot(at, who, condition);
        at.intrinsic("llvm.ctpop", &[ballot.type_of()], &[ballot]).as_value()
    }

    /// For which of the lanes it holds, as a mask.
    pub(super) fn ballot<'m>(self, at: Builder<'m>, who: Option<Value<'m>>, condition: Value<'m>) -> Value<'m> {
        let wide = at.function().integer_type(64);
        let question = match who {
            Some(who) => at.intrinsic("llvm.nvvm.vote.ballot.sync", &[], &[who, condition]),
            None => at.intrinsic("llvm.amdgcn.ballot", &[wide], &[condition]),
        };
        question.as_value()
    }
}
