//! Lanes regrouped at a chosen place, as shader execution reordering does on NVIDIA's GPUs (`hitObjectReorderThreadNV`
//! of GLSL; NVIDIA, *Shader Execution Reordering*, white paper, 2022).
//!
//! A visit of the place cuts a lane into phases. The phases that lanes of a launch begin with their k-th visit are one
//! launch: its lanes are sorted by a key and make new warps. The key is taken from what the phase does, so the gain is
//! that of a hint which tells exactly that. What lanes do up to the first visit is grouped as ever.

mod visits;

use std::collections::BTreeSet;
use std::ops::Range;

use heuristics::{SegmentId, SegmentTable};
use trace_format::{Pc, Stop};

use crate::GpuCost;
use crate::grouping::{Key, keys};
use crate::replay::Prepared;
use crate::survey::Survey;
use crate::view::Phases;
use crate::{Batch, LaneSource, LaneStream, LockId, Locks, Result, SortKey};

/// Lanes that were cut at a place, regrouped at each visit of it: what is one lane here is a phase of a lane.
pub struct Reordered<'a> {
    source: &'a dyn LaneSource,
    phases: Phases,
    /// The phases in the order in which they make warps: those of a launch in a row.
    order: Vec<usize>,
    /// By that order: the launch.
    launches: Vec<u32>,
    visits: u64,
    regroupings: u64,
}

impl<'a> Reordered<'a> {
    /// Cuts the lanes where they visit the code at these addresses (a line's, or one), and sorts those that visit it
    /// together. None where no lane visits it.
    ///
    /// # Errors
    /// When the trace cannot be read, or lanes would wait for each other across a visit: they have a lock there, or
    /// come to a barrier after different numbers of visits.
    pub fn new(whole: &Prepared<'a>, at: &BTreeSet<Pc>, key: SortKey) -> Result<Option<Reordered<'a>>> {
        let source = whole.survey().source();
        let heads = visits::heads(&whole.program().control_flow, source.segments(), at);
        let phases = Phases::cut(whole.survey(), &heads)?;
        let visits = phases.all().iter().filter(|phase| phase.visit > 0).count() as u64;
        if visits == 0 {
            return Ok(None);
        }
        let order = (0..phases.all().len()).collect();
        let mut made = Reordered { source, phases, order, launches: Vec::new(), visits, regroupings: 0 };
        made.number();
        let keys = keys::of(&Survey::new(&made, false)?, key)?;
        made.sort(&keys);
        Ok(Some(made))
    }

    /// The launch of a phase: that of its lane, and the visits before it.
    fn launch(&self, phase: usize) -> (u32, u32) {
        let phase = &self.phases.all()[phase];
        (self.source.generation(phase.lane), phase.visit)
    }

    /// Puts the phases of each launch in a row, and numbers launches.
    fn number(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_key(|phase| self.launch(*phase));
        let (mut launches, mut regroupings) = (Vec::with_capacity(order.len()), 0);
        for (number, of_one) in order.chunk_by(|a, b| self.launch(*a) == self.launch(*b)).enumerate() {
            launches.resize(launches.len() + of_one.len(), number as u32);
            regroupings += u64::from(self.phases.all()[of_one[0]].visit > 0);
        }
        (self.order, self.launches, self.regroupings) = (order, launches, regroupings);
    }

    /// Sorts those that begin with a visit by these keys, which stand in order.
    fn sort(&mut self, keys: &[Key]) {
        let mut keyed: Vec<(usize, Key)> = self.order.iter().copied().zip(keys.iter().copied()).collect();
        let key = |(phase, key): &(usize, Key)| match self.phases.all()[*phase].visit {
            0 => Key::default(),
            _ => *key,
        };
        keyed.sort_by_key(|of| (self.launch(of.0), key(of)));
        self.order = keyed.into_iter().map(|(phase, _)| phase).collect();
    }

    /// How often a lane was regrouped.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.visits
    }

    /// How often the lanes of a launch were regrouped.
    #[must_use]
    pub fn regroupings(&self) -> u64 {
        self.regroupings
    }

    /// Ready to be replayed, with what is known of the whole lanes: a branch reconverges where it does without the cut.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn prepared<'r>(&'r self, whole: &Prepared<'_>) -> Result<Prepared<'r>> {
        Prepared::with_program(self, whole.program().clone())
    }
}

/// The segments that lanes run.
///
/// # Errors
/// When the trace cannot be read.
pub fn segments_ran(whole: &Prepared) -> Result<Vec<SegmentId>> {
    let survey = whole.survey();
    let mut ran = vec![false; survey.source().segments().len()];
    let mut batch = Batch::default();
    for lane in 0..survey.source().lanes() {
        let mut stream = survey.stream(lane);
        while stream.next_batch(&mut batch)? {
            batch.codes.iter().filter_map(|code| code.as_segment()).for_each(|id| ran[id.0 as usize] = true);
        }
    }
    Ok((0..ran.len() as u32).map(SegmentId).filter(|id| ran[id.0 as usize]).collect())
}

impl LaneSource for Reordered<'_> {
    fn lanes(&self) -> usize {
        self.order.len()
    }

    fn segments(&self) -> &SegmentTable {
        self.source.segments()
    }

    fn gpu_cost(&self, id: SegmentId) -> GpuCost {
        self.source.gpu_cost(id)
    }

    fn constants(&self) -> Vec<Range<u64>> {
        self.source.constants()
    }

    fn stack_end(&self) -> u64 {
        self.source.stack_end()
    }

    fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_> {
        self.phases.stream(&self.phases.all()[self.order[lane]])
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn stop(&self) -> Stop {
        self.source.stop()
    }

    fn locks(&self) -> Locks {
        self.source.locks()
    }

    fn lock_name(&self, lock: LockId) -> String {
        self.source.lock_name(lock)
    }

    fn generation(&self, lane: usize) -> u32 {
        self.launches[lane]
    }
}
