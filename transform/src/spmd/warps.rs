//! What is the same for the lanes of a warp, though not for all threads: by what callers pass, too.

use divergence::{Fact, InWarp, Op, ValueId};
use rustc_hash::FxHashMap;

use super::{FunctionFacts, Machine, Program};
use crate::llvm::{Block, Function};

/// Of parameters that are passed something at more places nothing is said.
const MOST_CALLS: usize = 8;

/// What is looked up for that.
pub(super) struct Warps<'m> {
    /// Whether threads are numbered in one dimension.
    in_a_row: bool,
    /// By function: the functions that call it, by number, and the calls.
    calls: FxHashMap<Function<'m>, Vec<(usize, ValueId)>>,
}

impl<'m> Warps<'m> {
    fn of(functions: &[FunctionFacts<'m>]) -> Warps<'m> {
        let mut calls: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (number, facts) in functions.iter().enumerate() {
            for site in &facts.body.sites {
                calls.entry(site.callee).or_default().push((number, site.value));
            }
        }
        Warps { in_a_row: functions.iter().all(is_row), calls }
    }
}

impl<'m> Program<'m> {
    /// Whether the lanes of each warp that come to the end of a block together all take the same way, where warps are
    /// runs of threads as wide as the machine's: 32, and 64 for AMD's. Threads that are numbered in several dimensions
    /// are in warps by the sizes of their group, which nobody knows: then it is never said.
    #[must_use]
    pub(crate) fn agree_in_warps(&self, block: Block<'m>, function: Function<'m>) -> bool {
        let known = || {
            let facts = self.function(function)?;
            let node = facts.flow().find(block)?;
            let given = |value, steps| self.passed(facts, value, steps);
            Some(self.warps().in_a_row && facts.analysis.agree_in_warps(node, self.width(), &given))
        };
        known().unwrap_or(false)
    }

    fn warps(&self) -> &Warps<'m> {
        self.warps.get_or_init(|| Warps::of(&self.functions))
    }

    fn width(&self) -> u32 {
        if self.machine == Machine::Amd { 64 } else { 32 }
    }

    /// What is known of a parameter, by all calls of its function.
    fn passed(&self, facts: &FunctionFacts<'m>, value: ValueId, steps: u32) -> InWarp {
        let place = value.index();
        let calls = self.warps().calls.get(&facts.function()).map_or(&[][..], Vec::as_slice);
        if !facts.is_only_called || place >= facts.function().parameters().len() || calls.len() > MOST_CALLS {
            return InWarp::Unknown;
        }
        let given = calls.iter().map(|&(caller, call)| {
            let caller = &self.functions[caller];
            let Op::Call(_, arguments) = caller.analysis.gated().op(call) else { return InWarp::Unknown };
            let Some(argument) = arguments.get(place) else { return InWarp::Unknown };
            let above = |value, steps| self.passed(caller, value, steps);
            caller.analysis.in_warp(*argument, self.width(), &above, steps)
        });
        given.reduce(InWarp::or).unwrap_or(InWarp::Unknown)
    }
}

/// Whether nothing in a function has a thread's number in another dimension than the first.
fn is_row(facts: &FunctionFacts<'_>) -> bool {
    let analysis = &facts.analysis;
    let values = (0..analysis.gated().count() as u32).map(ValueId);
    values.map(|value| analysis.fact(value)).all(|fact| match fact {
        Fact::Affine(affine) => affine.strides[1..].iter().all(|stride| stride.is_zero()),
        Fact::Top | Fact::Divergent => true,
    })
}
