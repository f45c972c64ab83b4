//! The checker: judges a replay from outside, knowing neither engine nor model.
//!
//! It reads every lane's stream itself and demands of each step: the mask is not empty, its lanes are live, no two of
//! them have one home lane, all are of one generation, and each instruction is the next one of every active lane. At
//! the end every lane must have finished, and the counts must be those of the steps. Any fault is a bug of this
//! program, and the message says which rule was broken.
//!
//! It costs about as much as the replay. Streams that the survey has kept are judged once, by reading the trace again,
//! and then read from memory. If the instructions of a step are in the segments' table, they are the lane's own segment
//! without a look at each. For a run of segments that the engine consumes at once, the segments are compared.

use heuristics::{Lane, LaneSet, SegmentId, SegmentTable};
use trace_format::{Instruction, Pc};

use super::{Ended, Finding, Measure, Metric, Run, Step};
use crate::engine::{Counts, End};
use crate::entry::{self, Switch};
use crate::survey::Survey;
use crate::{Batch, Code, Entry, Error, LaneStream, Result};

/// The measure, whose only result is an error.
pub(crate) static ENTRY: entry::Entry = entry::Entry {
    name: "checker",
    file: "replay/src/metrics/checker.rs",
    switch: Some(&Switch {
        name: "check",
        help: "Check every step with a checker that is independent of the engine, and the trace's code with a second decoder",
        number: None,
    }),
    needs_addresses: false,
    measure: Some(|_| Checker::measure()),
    columns: &[],
    table: None,
};

/// Judges the replay of one warp, or of one block of warps.
pub struct Checker<'a> {
    lanes: Vec<Pcs<'a>>,
    /// By lane: its place in its warp.
    homes: Vec<usize>,
    /// Whether all lanes are of one generation.
    of_one_generation: bool,
    fetches: u64,
    thread_instructions: u64,
    /// The run of segments that is judged.
    run: Vec<Code>,
}

/// A lane's instructions, one after another.
struct Pcs<'a> {
    segments: &'a SegmentTable,
    stream: Box<dyn LaneStream + 'a>,
    batch: Batch,
    at: usize,
    within: usize,
}

impl<'a> Pcs<'a> {
    /// The segment in which the lane's next instruction is, which is not its last when this returns; none at the lane's
    /// end.
    #[inline]
    fn segment(&mut self) -> Result<Option<&'a [Instruction]>> {
        loop {
            match self.batch.codes.get(self.at).map(|code| code.entry()) {
                Some(Entry::Segment(id)) => {
                    let instructions = &self.segments[id].instructions[..];
                    if self.within < instructions.len() {
                        return Ok(Some(instructions));
                    }
                    (self.at, self.within) = (self.at + 1, 0);
                }
                Some(Entry::Control(_)) => self.at += 1,
                None => {
                    self.at = 0;
                    if !self.stream.next_batch(&mut self.batch)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Passes these instructions where they are the very ones, not only equal ones, that the table has as the rest of
    /// the lane's segment, or as a part of it; whether they were.
    #[inline]
    fn passes_in_place(&mut self, instructions: &[Instruction]) -> Result<bool> {
        let Some(segment) = self.segment()? else { return Ok(false) };
        let there = segment.get(self.within..self.within + instructions.len());
        let same = there.is_some_and(|there| std::ptr::eq(there, instructions));
        self.within += if same { instructions.len() } else { 0 };
        Ok(same)
    }

    /// Passes this run of segments where they are the lane's next ones; whether they were.
    fn passes_run(&mut self, run: &[Code]) -> Result<bool> {
        let mut left = run;
        while !left.is_empty() {
            if self.segment()?.is_none() || self.within > 0 {
                return Ok(false);
            }
            let codes = &self.batch.codes[self.at..];
            let here = codes.len().min(left.len());
            if codes[..here] != left[..here] {
                return Ok(false);
            }
            (self.at, left) = (self.at + here, &left[here..]);
        }
        Ok(true)
    }

    fn next(&mut self) -> Result<Option<Pc>> {
        let Some(segment) = self.segment()? else { return Ok(None) };
        self.within += 1;
        Ok(Some(segment[self.within - 1].pc))
    }
}

impl<'a> Checker<'a> {
    /// Asks for it: the replay then fails where a step breaks a rule.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| {
            let segments = &warp.program().segments;
            Some(Box::new(Checker::new(warp.survey(), segments, &warp.unit.warps())))
        })
    }

    /// A checker for these warps, each a list of lanes of the survey, whose segments these are.
    #[must_use]
    pub fn new(survey: &'a Survey<'a>, segments: &'a SegmentTable, warps: &[&[usize]]) -> Checker<'a> {
        let pcs =
            |lane: &usize| Pcs { segments, stream: survey.stream(*lane), batch: Batch::default(), at: 0, within: 0 };
        let lanes = warps.iter().flat_map(|warp| warp.iter()).map(pcs).collect();
        let homes = warps.iter().flat_map(|warp| 0..warp.len()).collect();
        let mut generations = warps.iter().flat_map(|warp| warp.iter()).map(|lane| survey.source().generation(*lane));
        let first = generations.next();
        let of_one_generation = generations.all(|generation| Some(generation) == first);
        Checker { lanes, homes, of_one_generation, fetches: 0, thread_instructions: 0, run: Vec::new() }
    }

    /// The last judgement, after the replay has ended.
    ///
    /// # Errors
    /// When a lane has instructions left, or the counts are not those of the steps.
    fn judge_end(&mut self, counts: &Counts, end: &End) -> Result<()> {
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

    fn judge_generations(&self) -> Result<()> {
        if self.of_one_generation {
            return Ok(());
        }
        Err(broken("lanes are replayed together, though one was joined before another began".to_owned()))
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

impl Checker<'_> {
    /// Lanes can be active together: some are, all are live, and no two have one home.
    fn judge_lanes(&mut self, lanes: LaneSet, live: LaneSet) -> Result<()> {
        if lanes.is_empty() {
            return Err(broken("a fetch has no active lane".to_owned()));
        }
        self.judge_generations()?;
        if !lanes.is_subset(&live) {
            return Err(broken(format!("of the active lanes {{{lanes}}} only {{{live}}} are live")));
        }
        let mut homes = LaneSet::EMPTY;
        for lane in lanes {
            // A home is a number as small as a lane's.
            homes.insert(Lane(self.homes[lane.index()] as u8));
        }
        if homes.len() < lanes.len() {
            return Err(broken(format!("two of the active lanes {{{lanes}}} have one home lane")));
        }
        Ok(())
    }

    /// These segments are the next ones of each of the lanes.
    fn judge_run(&mut self, lanes: LaneSet, run: &[SegmentId]) -> Result<()> {
        self.run.clear();
        self.run.extend(run.iter().map(|id| Code::segment(*id)));
        for lane in lanes {
            if !self.lanes[lane.index()].passes_run(&self.run)? {
                return Err(broken(format!("lane {lane} ran {} segments that are not its next ones", run.len())));
            }
        }
        let Some(first) = lanes.lowest() else { return Err(broken("a run has no active lane".to_owned())) };
        let segments = self.lanes[first.index()].segments;
        let instructions: usize = run.iter().map(|id| segments[*id].len()).sum();
        self.fetches += instructions as u64;
        self.thread_instructions += (instructions * lanes.len()) as u64;
        Ok(())
    }
}

impl Metric for Checker<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        self.judge_lanes(step.lanes, step.live)?;
        for lane in step.lanes {
            if !self.lanes[lane.index()].passes_in_place(step.instructions)? {
                for instruction in step.instructions {
                    self.expect(lane, instruction.pc)?;
                }
            }
        }
        self.fetches += step.instructions.len() as u64;
        self.thread_instructions += (step.instructions.len() * step.lanes.len()) as u64;
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        self.judge_lanes(run.lanes(), run.first.live)?;
        self.judge_run(run.lanes(), run.segments)
    }

    fn finish(mut self: Box<Self>, ended: &Ended) -> Result<Finding> {
        self.judge_end(ended.counts, ended.end)?;
        Ok(Finding::nothing())
    }
}

#[cfg(test)]
mod tests {
    use heuristics::{Program, Seats};
    use trace_format::{Kind, SpEffect};

    use super::super::Standing;
    use super::*;
    use crate::LaneSource;
    use crate::lanes::in_memory::{Does, InMemory};

    const ONE: Instruction = Instruction { pc: Pc(1), len: 1, kind: Kind::Plain, sp: SpEffect::Add(0), memory: 0 };

    /// What the checker says about one fetch of the instruction at 1, which both lanes run first, for these lanes.
    fn judged(warps: &[&[usize]], lanes: LaneSet, instruction: Instruction) -> String {
        let source = InMemory::new(&[vec![Does::Runs(ONE, Vec::new())], vec![Does::Runs(ONE, Vec::new())]]);
        let survey = Survey::new(&source, false).unwrap();
        let taken: Vec<usize> = warps.iter().map(|w| w.len()).collect();
        let (program, seats) = (Program::default(), Seats::new(2, &taken));
        let nobody = LaneSet::EMPTY;
        let standing = Standing {
            cursors: &[],
            offsets: &[],
            states: &[],
            program: &program,
            briefs: &[],
            seats: &seats,
            addresses: 0,
        };
        let instructions = [instruction];
        let live = LaneSet::first(2);
        let step = Step { instructions: &instructions, lanes, live, at_lock: nobody, at_barrier: nobody, standing };
        Checker::new(&survey, source.segments(), warps).step(&step).err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn two_lanes_of_one_home_are_refused() {
        assert_eq!(judged(&[&[0, 1]], LaneSet::first(2), ONE), "");
        let refused = judged(&[&[0], &[1]], LaneSet::first(2), ONE);
        assert!(refused.contains("have one home lane"), "{refused}");
        assert_eq!(judged(&[&[0], &[1]], LaneSet::first(1), ONE), "");
    }

    #[test]
    fn another_instruction_than_the_next_is_refused() {
        let refused = judged(&[&[0, 1]], LaneSet::first(2), Instruction { pc: Pc(2), ..ONE });
        assert!(refused.contains("its next instruction was at"), "{refused}");
        assert!(judged(&[&[0, 1]], LaneSet::EMPTY, ONE).contains("no active lane"));
    }

    #[test]
    fn a_run_that_is_not_the_next_one_is_refused_for_the_lane_that_has_another() {
        let runs = |pc: u64| Does::Runs(Instruction { pc: Pc(pc), kind: Kind::Branch, ..ONE }, Vec::new());
        let source = InMemory::new(&[vec![runs(1), runs(2), runs(3)], vec![runs(1), runs(3), runs(2)]]);
        let segment = |pc: u64| source.segments().iter().find(|(_, s)| s.start() == Pc(pc)).expect("it is there").0;
        let survey = Survey::new(&source, false).unwrap();
        let judge = |run: &[SegmentId], lanes| {
            let mut checker = Checker::new(&survey, source.segments(), &[&[0, 1]]);
            checker.judge_run(lanes, run).err().map_or_else(String::new, |e| e.to_string())
        };
        let both = LaneSet::first(2);
        assert_eq!(judge(&[segment(1)], both), "");
        assert_eq!(judge(&[segment(1), segment(2), segment(3)], LaneSet::first(1)), "");
        assert!(judge(&[segment(1), segment(2)], both).contains("lane 1 ran 2 segments"));
        assert!(judge(&[segment(1), segment(2), segment(3), segment(3)], LaneSet::first(1)).contains("lane 0"));
        assert!(judge(&[segment(1)], LaneSet::EMPTY).contains("no active lane"));
    }
}
