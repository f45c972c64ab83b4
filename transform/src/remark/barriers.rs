//! What is left of a program's marks after the optimiser.

use std::fmt;

use flowgraph::BarrierAction;

/// An operation on a barrier, where a compiler for GPUs would put it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierPlace {
    /// Which barrier of the function.
    pub barrier: usize,
    /// What it does.
    pub action: BarrierAction,
    /// The first instruction of the piece of a block at whose beginning it does it: its number in the module, from 1.
    pub first: usize,
    /// The last one of that piece, a call or what ends the block.
    pub last: usize,
}

impl BarrierPlace {
    pub(super) fn numbers(self) -> Vec<(&'static str, i64)> {
        vec![("barrier", self.barrier as i64), ("first", self.first as i64), ("last", self.last as i64)]
    }
}

impl fmt::Display for BarrierPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BarrierPlace { barrier, action, first, last } = self;
        write!(f, "b{barrier}: {}", action.name())?;
        if let BarrierAction::WaitFor(lanes) = action {
            write!(f, " ({lanes} lanes)")?;
        }
        write!(f, "; instructions {first} to {last}")
    }
}

/// How lanes take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Where lanes stop besides the predicted place, so that those that are not there yet go first.
    pub stops: usize,
    /// Ways out of the region.
    pub exits: usize,
    /// How many lanes at the place are enough; none: all that can come.
    pub enough: Option<usize>,
}

impl Turns {
    pub(super) fn numbers(self) -> Vec<(&'static str, i64)> {
        let enough = self.enough.map_or(0, |lanes| lanes as i64);
        vec![("stops", self.stops as i64), ("exits", self.exits as i64), ("enough", enough)]
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Turns { stops, exits, enough } = self;
        let who = enough.map_or("all that can come".to_owned(), |lanes| format!("{lanes} lanes, or all that can come"));
        write!(f, "here {who} go on together; {stops} more places to stop at, {exits} ways out")
    }
}

/// Why no lane waits for a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkFault {
    /// There is no `LOCKSTEP_PREDICT` of this name in the function.
    NoPredict,
    /// There is no `LOCKSTEP_RECONVERGE` of this name in the function.
    NoReconverge,
    /// No path leads from where lanes join to where they would wait.
    Unreachable,
    /// The function with the mark calls the function nowhere.
    NoCall,
}

impl MarkFault {
    /// Its name, which stays.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MarkFault::NoPredict => "no-predict",
            MarkFault::NoReconverge => "no-reconverge",
            MarkFault::Unreachable => "unreachable",
            MarkFault::NoCall => "no-call",
        }
    }
}

impl fmt::Display for MarkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MarkFault::NoPredict => {
                "refused: the function has no LOCKSTEP_PREDICT of this name, or the compiler removed it; put both \
                 into one function"
            }
            MarkFault::NoReconverge => {
                "refused: the function has no LOCKSTEP_RECONVERGE of this name, or the compiler removed it; put both \
                 into one function"
            }
            MarkFault::Unreachable => "refused: no path leads from LOCKSTEP_PREDICT to LOCKSTEP_RECONVERGE",
            MarkFault::NoCall => {
                "refused: the function is called nowhere here; where it was inlined, write LOCKSTEP_APART before its \
                 definition"
            }
        })
    }
}
