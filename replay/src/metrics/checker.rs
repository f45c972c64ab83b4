//! The checker: judges a replay from outside, knowing neither engine nor model.
//!
//! It reads every lane's stream anew, instruction by instruction, and demands of each step: the mask is not empty, its lanes are live,
//! no two of them have one home, and each instruction is the next one of every active lane. At the end every lane must have come to its end, and the
//! counts must be those of the steps. What it finds wrong is a bug of this program, and its messages say which rule was broken.

use heuristics::{Lane, SegmentTable};
use trace_format::Pc;

use super::{Metric, Step};
use crate::engine::{Counts, End};
use crate::{Batch, Entry, Error, LaneSource, LaneStream, Result};

/// Judges the replay of one warp, or of one block of warps.
pub struct Checker<'a> {
    lanes: Vec<Pcs<'a>>,
    /// By lane: its place in its warp.
    homes: Vec<usize>,
    fetches: u64,
    thread_instructions: u64,
}

/// A lane's instructions, one after another.
struct Pcs<'a> {
    segments: &'a SegmentTable,
    stream: Box<dyn LaneStream + 'a>,
    batch: Batch,
    at: usize,
    within: usize,
}

impl Pcs<'_> {
    fn next(&mut self) -> Result<Option<Pc>> {
        loop {
            let Some(code) = self.batch.codes.get(self.at) else {
                self.at = 0;
                if !self.stream.next_batch(&mut self.batch)? {
                    return Ok(None);
                }
                continue;
            };
            if let Entry::Segment(id) = code.entry()
                && let Some(instruction) = self.segments[id].instructions.get(self.within)
            {
                self.within += 1;
                return Ok(Some(instruction.pc));
            }
            (self.at, self.within) = (self.at + 1, 0);
        }
    }
}

impl<'a> Checker<'a> {
    /// A checker for these warps, each a list of lanes of the source.
    #[must_use]
    pub fn new(source: &'a dyn LaneSource, warps: &[&[usize]]) -> Checker<'a> {
        let pcs = |lane: &usize| Pcs {
            segments: source.segments(),
            stream: source.stream(*lane),
            batch: Batch::default(),
            at: 0,
            within: 0,
        };
        let lanes = warps.iter().flat_map(|warp| warp.iter()).map(pcs).collect();
        let homes = warps.iter().flat_map(|warp| 0..warp.len()).collect();
        Checker { lanes, homes, fetches: 0, thread_instructions: 0 }
    }

    /// The last judgement, after the replay has ended.
    ///
    /// # Errors
    /// When a lane has instructions left, or the counts are not those of the steps.
    pub fn finish(mut self, counts: &Counts, end: &End) -> Result<()> {
        if *end == End::Complete {
            for (lane, pcs) in self.lanes.iter_mut().enumerate() {
                if let Some(pc) = pcs.next()? {
                    return Err(broken(format!("lane {lane} was left before the instruction at {pc}")));
                }
            }
        }
        let counted = (counts.fetches(), counts.thread_instructions());
        if counted != (self.fetches, self.thread_instructions) {
            let seen = (self.fetches, self.thread_instructions);
            return Err(broken(format!(
                "(fetches, thread instructions) were counted as {counted:?} and seen as {seen:?}"
            )));
        }
        Ok(())
    }

    fn expect(&mut self, lane: Lane, pc: Pc) -> Result<()> {
        match self.lanes[lane.index()].next()? {
            Some(next) if next == pc => Ok(()),
            Some(next) => Err(broken(format!("lane {lane} ran {pc} when its next instruction was at {next}"))),
            None => Err(broken(format!("lane {lane} ran {pc} after its end"))),
        }
    }
}

fn broken(rule: String) -> Error {
    Error::Bug(format!("the checker refuses the replay: {rule}"))
}

impl Metric for Checker<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        if step.lanes.is_empty() {
            return Err(broken("a fetch has no active lane".to_owned()));
        }
        if !step.lanes.is_subset(&step.live) {
            return Err(broken(format!("of the active lanes {{{}}} only {{{}}} are live", step.lanes, step.live)));
        }
        let mut homes: Vec<usize> = step.lanes.iter().map(|lane| self.homes[lane.index()]).collect();
        homes.sort_unstable();
        if homes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(broken(format!("of the active lanes {{{}}} two have one home", step.lanes)));
        }
        for instruction in step.instructions {
            for lane in step.lanes {
                self.expect(lane, instruction.pc)?;
            }
        }
        self.fetches += step.instructions.len() as u64;
        self.thread_instructions += (step.instructions.len() * step.lanes.len()) as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use heuristics::{LaneSet, Program, Seats};
    use trace_format::{Instruction, Kind, SpEffect};

    use super::*;
    use crate::in_memory::{Does, InMemory};

    const ONE: Instruction = Instruction { pc: Pc(1), len: 1, kind: Kind::Plain, sp: SpEffect::Add(0), memory: 0 };

    /// What the checker says of one fetch of the instruction at 1, which both lanes run first, for these lanes.
    fn judged(warps: &[&[usize]], lanes: LaneSet, instruction: Instruction) -> String {
        let source = InMemory::new(&[vec![Does::Runs(ONE, Vec::new())], vec![Does::Runs(ONE, Vec::new())]]);
        let taken: Vec<usize> = warps.iter().map(|w| w.len()).collect();
        let (program, seats) = (Program::default(), Seats::new(2, &taken));
        let nobody = (LaneSet::EMPTY, LaneSet::EMPTY);
        let instructions = [instruction];
        let step = Step::new(&instructions, lanes, LaneSet::first(2), nobody, (&[], &[], &[]), (&program, &seats));
        Checker::new(&source, warps).step(&step).err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn two_lanes_of_one_home_are_refused() {
        assert_eq!(judged(&[&[0, 1]], LaneSet::first(2), ONE), "");
        let refused = judged(&[&[0], &[1]], LaneSet::first(2), ONE);
        assert!(refused.contains("two have one home"), "{refused}");
        assert_eq!(judged(&[&[0], &[1]], LaneSet::first(1), ONE), "");
    }

    #[test]
    fn another_instruction_than_the_next_is_refused() {
        let refused = judged(&[&[0, 1]], LaneSet::first(2), Instruction { pc: Pc(2), ..ONE });
        assert!(refused.contains("its next instruction was at"), "{refused}");
        assert!(judged(&[&[0, 1]], LaneSet::EMPTY, ONE).contains("no active lane"));
    }
}
