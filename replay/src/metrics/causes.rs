//! Causes: who or what each lost lane-slot is lost to.
//!
//! Formula: a fetch of a warp of W seats with k active lanes loses W - k lane-slots, one for each seat without an
//! active lane; summed over fetches that is fetches x W - thread instructions. Each is charged to one [`Cause`], to the
//! instruction after which the lane of the seat parted from the active lanes (the last one that it ran in a fetch with
//! any of them), and to the instruction that was fetched without it. A lane that waits or has finished is charged to
//! what it waits for or to its end, any other to the way in which it parted from the active lanes.
//!
//! Worked number: W = 4, three lanes. All three run a branch; lanes 0 and 1 take it and run 2 instructions, lane 2 does
//! not and runs 3; then all run 1. Of the 1 + 2 + 3 + 1 = 7 fetches each loses one slot to the empty seat: 7. The 2
//! lose one each to the branch (lane 2), the 3 lose two each (lanes 0 and 1): 2 + 6 = 8. Together 15 = 7 x 4 - 13.

use flowgraph::{Loops, NodeId};
use heuristics::{Lane, LaneSet, Program, Seats};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc};

use super::call_paths::{CallPaths, Frames, PathId};
use super::counter::{Counter, Stretch, Stretches};
use super::partings::{Parting, Partings, Site, Why};
use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::registry::{Entry, of};
use crate::{Column, Result};

/// The measure; `--by` and `--annotate` imply it.
pub(crate) static ENTRY: Entry = Entry {
    name: "causes",
    file: "replay/src/metrics/causes.rs",
    switch: None,
    needs_addresses: false,
    measure: Some(|_| Causes::measure()),
    columns: &[
        Column::counted("lost_to_branch", "Of lost_slots, with --by: the lane went another way at a branch.", |o| {
            of(o, |found: &Causes| found.lost_to(Cause::Branch))
        }),
        Column::counted("lost_to_loop", "The lane runs a loop more often, or less, than the active lanes.", |o| {
            of(o, |found: &Causes| found.lost_to(Cause::LoopTripCount))
        }),
        Column::counted(
            "lost_to_call_target",
            "The lane called another function, or returned to another caller.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::CallTarget)),
        ),
        Column::counted(
            "lost_to_lock",
            "The lane waits for a lock, or has come apart from the active lanes at one.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::Lock)),
        ),
        Column::counted(
            "lost_to_barrier",
            "The lane waits at a barrier, or has come apart from the active lanes at one.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::Barrier)),
        ),
        Column::counted(
            "lost_to_schedule",
            "The lane stood where the active lanes did, and the model ran them apart.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::Schedule)),
        ),
        Column::counted("lost_to_finished", "The lane has come to its end.", |o| {
            of(o, |found: &Causes| found.lost_to(Cause::Finished))
        }),
        Column::counted("lost_to_empty_seat", "The warp has fewer lanes than seats.", |o| {
            of(o, |found: &Causes| found.lost_to(Cause::EmptySeat))
        }),
    ],
    table: None,
};

/// What a lane-slot is lost to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The lane and the active ones went different ways at a branch or a jump through a table.
    Branch,
    /// They went different ways at a branch of a natural loop that can leave the loop: one of them runs it more often.
    LoopTripCount,
    /// They called different functions, or returned to different callers.
    CallTarget,
    /// The lane waits for a lock, or has fallen behind or run ahead since one of them waited for it.
    Lock,
    /// The lane waits at a barrier, or they came apart at one.
    Barrier,
    /// They stood at one pc, and the model ran them apart; or they began at different pcs and have never met.
    Schedule,
    /// The lane has come to its end.
    Finished,
    /// The seat has no lane: there are fewer lanes than seats.
    EmptySeat,
}

impl Cause {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Cause; 8] = [
        Cause::Branch,
        Cause::LoopTripCount,
        Cause::CallTarget,
        Cause::Lock,
        Cause::Barrier,
        Cause::Schedule,
        Cause::Finished,
        Cause::EmptySeat,
    ];

    /// Its name for people, and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Branch => "branch",
            Cause::LoopTripCount => "loop trip count",
            Cause::CallTarget => "call target",
            Cause::Lock => "lock",
            Cause::Barrier => "barrier",
            Cause::Schedule => "schedule",
            Cause::Finished => "finished",
            Cause::EmptySeat => "empty seat",
        }
    }
}

/// Lost lane-slots of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Charge {
    /// What they are lost to.
    pub cause: Cause,
    /// The instruction after which the lanes parted: the last that ran in one fetch for both. None for an empty seat,
    /// and for lanes that never shared a fetch.
    pub parted_at: Option<Pc>,
    /// The instruction that was fetched without them.
    pub issued: Pc,
    /// The call path at which it was fetched: that of the lowest active lane.
    pub path: PathId,
}

/// What was fetched of an instruction at a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Issued {
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
}

/// The lost lane-slots of a replay, and what they are lost to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Causes {
    /// Lost lane-slots, in the order of their charges; each charge once, none of 0.
    pub charges: Vec<(Charge, u64)>,
    /// What was fetched, by instruction and call path, in that order.
    pub issued: Vec<((Pc, PathId), Issued)>,
    /// The call paths.
    pub paths: CallPaths,
}

impl Causes {
    /// Asks for them.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| Some(Box::new(LostSlots::new(warp.lanes().len(), warp.seats()))))
            .with_control_flow()
    }

    /// All lost lane-slots.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.charges.iter().map(|(_, slots)| slots).sum()
    }

    /// The lane-slots lost to one cause.
    #[must_use]
    pub fn lost_to(&self, cause: Cause) -> u64 {
        self.charges.iter().filter(|(charge, _)| charge.cause == cause).map(|(_, slots)| slots).sum()
    }
}

impl Measured for Causes {
    fn merge(&mut self, other: &Causes) {
        let names = self.paths.add(&other.paths);
        let name = |path: PathId| names[path.0 as usize];
        let mut charges: FxHashMap<Charge, u64> = self.charges.drain(..).collect();
        for (charge, slots) in &other.charges {
            *charges.entry(Charge { path: name(charge.path), ..*charge }).or_default() += slots;
        }
        let mut issued: FxHashMap<(Pc, PathId), Issued> = self.issued.drain(..).collect();
        for ((pc, path), more) in &other.issued {
            issued.entry((*pc, name(*path))).or_default().add(more.fetches, more.thread_instructions);
        }
        (self.charges, self.issued) = (sorted(charges), sorted(issued));
    }
}

impl Issued {
    fn add(&mut self, fetches: u64, thread_instructions: u64) {
        self.fetches += fetches;
        self.thread_instructions += thread_instructions;
    }
}

fn sorted<K: Copy + Ord, V>(map: FxHashMap<K, V>) -> Vec<(K, V)> {
    let mut all: Vec<(K, V)> = map.into_iter().collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    all
}

/// What a seat does in which no lane is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Seat {
    Empty,
    Finished(Option<Site>),
    AtLock(Option<Site>),
    AtBarrier(Option<Site>),
    Elsewhere(Parting),
}

impl Seat {
    /// In a block of warps several lanes could have taken a seat; the slot is charged to the one with the least of
    /// this, the lowest among equals.
    fn how_far_from_running(&self) -> u8 {
        match self {
            Seat::Elsewhere(_) => 0,
            Seat::AtLock(_) => 1,
            Seat::AtBarrier(_) => 2,
            Seat::Finished(_) => 3,
            Seat::Empty => 4,
        }
    }
}

/// What the seats without an active lane do: equal ones counted, in the order of the seats.
type Idle = Vec<(Seat, u64)>;

/// Numbers of what idle seats do beside so many active lanes.
type ClassId = u32;

/// The class of a formation, and what else it depends on.
#[derive(Clone, Copy)]
struct Known {
    formation: u64,
    live: LaneSet,
    at_lock: LaneSet,
    at_barrier: LaneSet,
    class: ClassId,
}

/// Charges the lost lane-slots of one warp's replay.
///
/// Steps are counted by what was fetched, at which call path, and by the class of what idle seats do, which stays the
/// same while the active lanes keep together and no other lane begins to wait or ends: so a step is one look into one
/// table. The counts are charged to seats where there are many of them, and in the end.
pub struct LostSlots {
    empty_seats: u64,
    partings: Partings,
    frames: Vec<Frames>,
    paths: CallPaths,
    /// By the lowest lane of a formation.
    known: Vec<Option<Known>>,
    ids: FxHashMap<(Idle, u64), ClassId>,
    /// By their numbers, with the active lanes.
    classes: Vec<(Idle, u64)>,
    /// Numbers of call paths and classes that came together, and what they are.
    circumstances: FxHashMap<(PathId, ClassId), u32>,
    by_circumstances: Vec<(PathId, ClassId)>,
    stretches: Stretches,
    steps: Counter,
    /// Seats, by what was fetched without them.
    lost: FxHashMap<(Stretch, PathId, Seat), u64>,
    issued: FxHashMap<(Stretch, PathId), Issued>,
}

impl LostSlots {
    /// So many counts and classes at most are kept before they are charged.
    const KEPT: usize = 1 << 16;

    /// For so many lanes, which sit here.
    #[must_use]
    pub fn new(lanes: usize, seats: &Seats) -> LostSlots {
        LostSlots {
            empty_seats: seats.width().saturating_sub(seats.columns().len()) as u64,
            partings: Partings::new(lanes),
            frames: vec![Frames::default(); lanes],
            paths: CallPaths::default(),
            known: vec![None; lanes],
            ids: FxHashMap::default(),
            classes: Vec::new(),
            circumstances: FxHashMap::default(),
            by_circumstances: Vec::new(),
            stretches: Stretches::default(),
            steps: Counter::default(),
            lost: FxHashMap::default(),
            issued: FxHashMap::default(),
        }
    }

    /// The path of the lowest active lane, after all active lanes have come to theirs.
    fn path(&mut self, step: &Step) -> PathId {
        let pc = step.instructions[0].pc;
        let mut paths =
            step.lanes.iter().map(|lane| self.frames[lane.index()].at(step.state(lane).level, pc, &mut self.paths));
        let lowest = paths.next().expect("a step has an active lane");
        paths.for_each(drop);
        lowest
    }

    /// What the idle seats do during this step, and those of its run.
    fn class(&mut self, step: &Step, run: Option<&Run>) -> ClassId {
        let (formation, parted) = match run {
            Some(run) => self.partings.ran(run),
            None => self.partings.step(step),
        };
        let lowest = step.lanes.lowest().expect("a step has an active lane").index();
        let holds = |known: &&Known| {
            let alike = known.live == step.live && known.at_lock == step.at_lock;
            known.formation == formation && alike && known.at_barrier == step.at_barrier
        };
        if let Some(known) = self.known[lowest].as_ref().filter(holds) {
            return known.class;
        }
        let idle = idle(step, parted, self.empty_seats);
        let next = self.classes.len() as ClassId;
        let class = *self.ids.entry((idle, step.lanes.len() as u64)).or_insert_with_key(|key| {
            self.classes.push(key.clone());
            next
        });
        let Step { live, at_lock, at_barrier, .. } = *step;
        self.known[lowest] = Some(Known { formation, live, at_lock, at_barrier, class });
        class
    }

    fn circumstances(&mut self, path: PathId, class: ClassId) -> u32 {
        let next = self.by_circumstances.len() as u32;
        *self.circumstances.entry((path, class)).or_insert_with(|| {
            self.by_circumstances.push((path, class));
            next
        })
    }

    /// Counts the segments of a run, whose first is at this path; the frames of the lanes move on.
    fn count_run(&mut self, run: &Run, path: PathId, class: ClassId) {
        let lowest = run.lanes().lowest().expect("a run has an active lane");
        let begun = run.first.state(lowest).level;
        let mut circumstances = self.circumstances(path, class);
        // As they would be if no lane left its outermost function.
        let (mut change, mut dip, mut rise) = (0, 0, 0);
        let (mut level, mut changed) = (begun, false);
        for (segment, brief) in run.briefs() {
            if changed {
                (dip, rise) = (dip.min(change), rise.max(change));
                let path = self.frames[lowest.index()].at(level, brief.start, &mut self.paths);
                circumstances = self.circumstances(path, class);
            }
            self.steps.add(circumstances, segment.0, 1);
            changed = brief.level != 0;
            change += i64::from(brief.level);
            level = level.saturating_add_signed(i32::from(brief.level)).max(1);
        }
        if (dip, rise) == (0, 0) {
            return;
        }
        let leader = std::mem::take(&mut self.frames[lowest.index()]);
        for lane in run.lanes().iter().filter(|lane| *lane != lowest) {
            let mut level = run.first.state(lane).level;
            let own = &mut self.frames[lane.index()];
            if own.follow(level, &leader, begun, (dip, rise)) {
                continue;
            }
            for (_, brief) in run.briefs() {
                own.at(level, brief.start, &mut self.paths);
                level = level.saturating_add_signed(i32::from(brief.level)).max(1);
            }
        }
        self.frames[lowest.index()] = leader;
    }

    /// Charges what was counted, where there is much of it.
    fn keep_small(&mut self, program: &Program) {
        let most = self.steps.len().max(self.classes.len()).max(self.by_circumstances.len());
        if most >= LostSlots::KEPT {
            self.charge(program);
        }
    }

    /// Charges what was counted.
    fn charge(&mut self, program: &Program) {
        for (circumstances, number, times) in self.steps.drain() {
            let (path, class) = self.by_circumstances[circumstances as usize];
            let stretch = self.stretches.of(number, program);
            let (idle, active) = &self.classes[class as usize];
            self.issued.entry((stretch, path)).or_default().add(times, active * times);
            for (seat, count) in idle {
                *self.lost.entry((stretch, path, *seat)).or_default() += count * times;
            }
        }
        self.ids.clear();
        self.classes.clear();
        self.circumstances.clear();
        self.by_circumstances.clear();
        self.known.fill(None);
    }
}

/// What the seats do in which no lane of this step is, of the lanes of which it is known how they parted from them.
fn idle(step: &Step, parted: &[Parting], empty: u64) -> Idle {
    let mut idle = Idle::new();
    if empty > 0 {
        idle.push((Seat::Empty, empty));
    }
    let seat = |lane: Lane| {
        let parting = parted[lane.index()];
        if !step.live.contains(lane) {
            Seat::Finished(parting.site)
        } else if step.at_lock.contains(lane) {
            Seat::AtLock(parting.site)
        } else if step.at_barrier.contains(lane) {
            Seat::AtBarrier(parting.site)
        } else {
            Seat::Elsewhere(parting)
        }
    };
    for column in step.seats().columns() {
        if !column.is_disjoint(&step.lanes) {
            continue;
        }
        let Some(seat) = column.iter().map(seat).min_by_key(Seat::how_far_from_running) else { continue };
        match idle.iter_mut().find(|(s, _)| *s == seat) {
            Some((_, count)) => *count += 1,
            None => idle.push((seat, 1)),
        }
    }
    idle
}

impl Metric for LostSlots {
    fn step(&mut self, step: &Step) -> Result<()> {
        let path = self.path(step);
        let class = self.class(step, None);
        let (circumstances, number) = (self.circumstances(path, class), self.stretches.number(step));
        self.steps.add(circumstances, number, 1);
        self.keep_small(step.standing.program);
        Ok(())
    }

    fn takes_runs(&self) -> bool {
        true
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let path = self.path(&run.first);
        let class = self.class(&run.first, Some(run));
        self.count_run(run, path, class);
        self.keep_small(run.first.standing.program);
        Ok(())
    }

    fn finish(mut self: Box<Self>, ended: &Ended) -> Result<Finding> {
        self.charge(ended.warp.program());
        let program = ended.warp.program();
        let trips = TripBranches::of(program);
        let pc = |(segment, at): Site| program.segments[segment].instructions[at as usize].pc;
        let mut charges: FxHashMap<Charge, u64> = FxHashMap::default();
        for (((segment, first, end), path, seat), slots) in self.lost {
            let (cause, site) = trips.cause(seat);
            for at in first..end {
                let charge = Charge { cause, parted_at: site.map(pc), issued: pc((segment, at)), path };
                *charges.entry(charge).or_default() += slots;
            }
        }
        let mut issued: FxHashMap<(Pc, PathId), Issued> = FxHashMap::default();
        for (((segment, first, end), path), more) in self.issued {
            for at in first..end {
                issued.entry((pc((segment, at)), path)).or_default().add(more.fetches, more.thread_instructions);
            }
        }
        Ok(Finding::new(Causes { charges: sorted(charges), issued: sorted(issued), paths: self.paths }))
    }
}

/// Which branches decide how often a loop runs.
struct TripBranches<'a> {
    program: &'a Program,
    loops: Option<Loops>,
}

impl TripBranches<'_> {
    fn of(program: &Program) -> TripBranches<'_> {
        TripBranches { program, loops: program.control_flow.graph().map(Loops::of) }
    }

    fn cause(&self, seat: Seat) -> (Cause, Option<Site>) {
        match seat {
            Seat::Empty => (Cause::EmptySeat, None),
            Seat::Finished(site) => (Cause::Finished, site),
            Seat::AtLock(site) => (Cause::Lock, site),
            Seat::AtBarrier(site) => (Cause::Barrier, site),
            Seat::Elsewhere(Parting { site, why }) => {
                let cause = match (why, site) {
                    (Why::Lock, _) => Cause::Lock,
                    (Why::Barrier, _) => Cause::Barrier,
                    (Why::Schedule, _) | (Why::Split, None) => Cause::Schedule,
                    (Why::Split, Some(site)) => self.of_split(site),
                };
                (cause, site)
            }
        }
    }

    fn of_split(&self, (segment, at): Site) -> Cause {
        let segment = &self.program.segments[segment];
        match segment.instructions[at as usize].kind {
            // A jump with one target parts lanes only where it stands for a call whose callee is not replayed but calls
            // back.
            Kind::Call | Kind::IndirectCall | Kind::Return | Kind::Jump => Cause::CallTarget,
            _ if self.leaves_a_loop(NodeId(segment.place.0)) => Cause::LoopTripCount,
            _ => Cause::Branch,
        }
    }

    /// Whether the block is in a natural loop, and one of the ways out of the block leads out of the loop.
    fn leaves_a_loop(&self, block: NodeId) -> bool {
        let (Some(graph), Some(loops)) = (self.program.control_flow.graph(), &self.loops) else { return false };
        let Some(innermost) = loops.innermost(block).filter(|l| !loops.is_irreducible(*l)) else { return false };
        graph.successors(block).iter().any(|to| !loops.contains(innermost, *to))
    }
}
