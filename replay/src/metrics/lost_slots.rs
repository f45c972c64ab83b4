//! Charges lost lane-slots to their causes: the metric of [`Causes`].

use flowgraph::{Loops, NodeId};
use heuristics::{Lane, LaneSet, Program, Seats, Segment};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc};

use super::call_paths::{CallPaths, Frames, PathId};
use super::causes::{Cause, Causes, Charge, Issued, sorted};
use super::counter::{Counter, Stretch, Stretches};
use super::partings::{Parting, PartingId, Partings, Site, Why};
use super::pieces::{PieceId, Pieces};
use super::{Ended, Finding, Metric, Run, Standing, Step};
use crate::Result;
use crate::lanes::brief::level_change;

/// What a seat does in which no lane is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Seat {
    Empty,
    Finished(Option<Site>),
    AtLock(Option<Site>),
    AtBarrier(Option<Site>),
    Elsewhere(Parting),
}

/// A seat, by the number of its lane's parting and what the lane does. In a block of warps several lanes could have
/// taken a seat; the slot is charged to the one that does the least of [`SeatId::ELSEWHERE`] and so on, the lowest
/// among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SeatId(u32);

impl SeatId {
    const ELSEWHERE: u32 = 0;
    const AT_LOCK: u32 = 1;
    const AT_BARRIER: u32 = 2;
    const FINISHED: u32 = 3;
    const EMPTY: SeatId = SeatId(u32::MAX);

    fn new(parting: PartingId, does: u32) -> SeatId {
        SeatId(parting << 2 | does)
    }

    fn does(self) -> u32 {
        self.0 & 3
    }

    fn seat(self, partings: &Partings) -> Seat {
        if self == SeatId::EMPTY {
            return Seat::Empty;
        }
        let parting = partings.get(self.0 >> 2);
        match self.does() {
            SeatId::ELSEWHERE => Seat::Elsewhere(parting),
            SeatId::AT_LOCK => Seat::AtLock(parting.site),
            SeatId::AT_BARRIER => Seat::AtBarrier(parting.site),
            _ => Seat::Finished(parting.site),
        }
    }
}

/// What the seats without an active lane do, equal ones counted, and on what that depends.
#[derive(Clone, Default)]
struct Idle {
    formation: u64,
    live: LaneSet,
    at_lock: LaneSet,
    at_barrier: LaneSet,
    seats: Vec<(SeatId, u64)>,
}

impl Idle {
    fn holds(&self, formation: u64, step: &Step) -> bool {
        let alike = self.live == step.live && self.at_lock == step.at_lock;
        self.formation == formation && alike && self.at_barrier == step.at_barrier
    }

    /// Finds it out for this step, of whose other lanes it is known how they parted from its own.
    fn find(&mut self, formation: u64, step: &Step, parted: &[PartingId], empty: u64) {
        (self.formation, self.live) = (formation, step.live);
        (self.at_lock, self.at_barrier) = (step.at_lock, step.at_barrier);
        self.seats.clear();
        if empty > 0 {
            self.seats.push((SeatId::EMPTY, empty));
        }
        let seat = |lane: Lane| {
            let does = if !step.live.contains(lane) {
                SeatId::FINISHED
            } else if step.at_lock.contains(lane) {
                SeatId::AT_LOCK
            } else if step.at_barrier.contains(lane) {
                SeatId::AT_BARRIER
            } else {
                SeatId::ELSEWHERE
            };
            SeatId::new(parted[lane.index()], does)
        };
        let seats = &mut self.seats;
        let mut count = |seat: SeatId| match seats.iter_mut().find(|(s, _)| *s == seat) {
            Some((_, count)) => *count += 1,
            None => seats.push((seat, 1)),
        };
        if step.seats().warps().len() == 1 {
            (LaneSet::first(parted.len()) - step.lanes).iter().for_each(|lane| count(seat(lane)));
            return;
        }
        for column in step.seats().columns().iter().filter(|column| column.is_disjoint(&step.lanes)) {
            column.iter().map(seat).min_by_key(|seat| seat.does()).into_iter().for_each(&mut count);
        }
    }
}

/// What was fetched, and at which call path it began.
struct Fetched {
    what: What,
    path: PathId,
    /// Where in [`LostSlots::pushed`] the paths of the frames are that its last segment has above the first.
    pushed: (u32, u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Stretch(u32),
    Piece(PieceId),
}

/// Goes through the segments of a piece.
struct Walk {
    /// The first that counts is that of the piece's first segment.
    frames: Frames,
    level: u32,
    by_call: bool,
}

impl Walk {
    /// The piece begins at this path.
    fn from(path: PathId, by_call: bool) -> Walk {
        Walk { frames: Frames::of(path), level: 1, by_call }
    }

    /// The next segment's path.
    fn to(&mut self, segment: &Segment, paths: &mut CallPaths) -> PathId {
        let path = self.frames.at(self.level, segment.start(), paths);
        if self.by_call {
            self.frames.ran(segment.last().pc);
        }
        self.level = self.level.saturating_add_signed(i32::from(level_change(segment))).max(1);
        path
    }
}

/// Charges the lost lane-slots of one warp's replay.
///
/// Fetches are counted by what idle seats do meanwhile. That stays the same while the active lanes keep together and no
/// other lane begins to wait or ends. Runs are counted by their pieces, which are charged segment by segment when there
/// are many of them, and at the end.
pub struct LostSlots {
    /// Whether the instruction that called is a part of a path.
    by_call: bool,
    empty_seats: u64,
    partings: Partings,
    frames: Vec<Frames>,
    paths: CallPaths,
    /// By the lowest lane of a formation.
    idle: Vec<Idle>,
    stretches: Stretches,
    pieces: Pieces,
    /// By its number.
    fetched: Vec<Fetched>,
    numbers: FxHashMap<(What, PathId), u32>,
    pushed: Vec<PathId>,
    /// Fetches of what was fetched, by active lanes.
    by_active: Counter,
    /// Seats that were idle meanwhile.
    by_seat: Counter,
    /// Room for the levels of lanes.
    levels: Vec<(Lane, u32)>,
    /// Seats, by what was fetched without them.
    lost: FxHashMap<(Stretch, PathId, SeatId), u64>,
    issued: FxHashMap<(Stretch, PathId), Issued>,
}

impl LostSlots {
    /// So many counts, and pieces of so many segments, are kept at most before they are charged.
    const KEPT: usize = 1 << 16;
    const KEPT_SEGMENTS: usize = 1 << 21;

    /// For so many lanes, which sit here.
    #[must_use]
    pub fn new(lanes: usize, seats: &Seats) -> LostSlots {
        LostSlots {
            by_call: false,
            empty_seats: seats.width().saturating_sub(seats.columns().len()) as u64,
            partings: Partings::new(lanes),
            frames: vec![Frames::default(); lanes],
            paths: CallPaths::default(),
            idle: vec![Idle { formation: u64::MAX, ..Idle::default() }; lanes],
            stretches: Stretches::default(),
            pieces: Pieces::default(),
            fetched: Vec::new(),
            numbers: FxHashMap::default(),
            pushed: Vec::new(),
            by_active: Counter::default(),
            by_seat: Counter::default(),
            levels: Vec::new(),
            lost: FxHashMap::default(),
            issued: FxHashMap::default(),
        }
    }

    /// The same, with the instruction that called as a part of a path.
    #[must_use]
    pub(super) fn by_call(self) -> LostSlots {
        LostSlots { by_call: true, ..self }
    }

    /// The path of the lowest active lane, after all active lanes have reached theirs.
    fn path(&mut self, step: &Step) -> PathId {
        let (pc, last) = (step.instructions[0].pc, step.instructions[step.instructions.len() - 1].pc);
        let mut paths = step.lanes.iter().map(|lane| {
            let frames = &mut self.frames[lane.index()];
            let path = frames.at(step.state(lane).level, pc, &mut self.paths);
            if self.by_call {
                frames.ran(last);
            }
            path
        });
        let lowest = paths.next().expect("a step has an active lane");
        paths.for_each(drop);
        lowest
    }

    /// Finds out what idle seats do during this step, where that has changed; and the steps of its run.
    fn find_idle(&mut self, step: &Step, run: Option<&Run>) {
        let (formation, parted) = match run {
            Some(run) => self.partings.ran(run),
            None => self.partings.step(step),
        };
        let lowest = step.lanes.lowest().expect("a step has an active lane").index();
        let idle = &mut self.idle[lowest];
        if !idle.holds(formation, step) {
            idle.find(formation, step, parted, self.empty_seats);
        }
    }

    /// The number of what is fetched at this path.
    fn number(&mut self, what: What, path: PathId, program: &Program) -> u32 {
        let next = self.fetched.len() as u32;
        if let Some(known) = self.numbers.get(&(what, path)) {
            return *known;
        }
        let begins = self.pushed.len() as u32;
        if let What::Piece(piece) = what {
            let mut walk = Walk::from(path, self.by_call);
            self.pieces.segments(piece).iter().for_each(|id| _ = walk.to(&program.segments[*id], &mut self.paths));
            self.pushed.extend_from_slice(walk.frames.above(1));
        }
        self.numbers.insert((what, path), next);
        self.fetched.push(Fetched { what, path, pushed: (begins, self.pushed.len() as u32) });
        next
    }

    /// Counts what was fetched once, while seats are idle beside these lanes as was found out.
    fn count(&mut self, number: u32, lanes: LaneSet) {
        let lowest = lanes.lowest().expect("a step has an active lane").index();
        self.by_active.add(number, lanes.len() as u32, 1);
        for (seat, count) in &self.idle[lowest].seats {
            self.by_seat.add(number, seat.0, *count);
        }
    }

    /// Counts the pieces of a run, and moves the frames of its lanes on.
    fn count_pieces(&mut self, run: &Run) {
        let (lanes, Standing { program, briefs, .. }) = (run.lanes(), run.first.standing);
        let lowest = lanes.lowest().expect("a run has an active lane").index();
        let mut levels = std::mem::take(&mut self.levels);
        levels.extend(lanes.iter().map(|lane| (lane, run.first.state(lane).level)));
        let mut rest = run.segments;
        while !rest.is_empty() {
            let front;
            (front, rest) = self.pieces.cut(rest, briefs);
            for id in self.pieces.of(front, briefs) {
                let piece = self.pieces.piece(id);
                let last = self.pieces.segments(id).last().map(|last| briefs[last.0 as usize].last);
                let path = self.frames[lowest].at(levels[0].1, piece.start, &mut self.paths);
                let number = self.number(What::Piece(id), path, program);
                self.count(number, lanes);
                let (begins, ends) = self.fetched[number as usize].pushed;
                for (lane, level) in &mut levels {
                    let frames = &mut self.frames[lane.index()];
                    let own = frames.at(*level, piece.start, &mut self.paths);
                    let number = if own == path { number } else { self.number(What::Piece(id), own, program) };
                    let (own_begins, own_ends) = self.fetched[number as usize].pushed;
                    let frames = &mut self.frames[lane.index()];
                    frames.push(&self.pushed[own_begins as usize..own_ends as usize]);
                    last.filter(|_| self.by_call).into_iter().for_each(|last| frames.ran(last));
                    *level = (*level + (ends - begins)).saturating_add_signed(i32::from(piece.last_change)).max(1);
                }
            }
        }
        levels.clear();
        self.levels = levels;
    }

    /// As [`LostSlots::count_pieces`], segment by segment: for lanes so deep that their frames may not be kept.
    fn count_segments(&mut self, run: &Run) {
        let mut levels: Vec<(Lane, u32)> = run.lanes().iter().map(|l| (l, run.first.state(l).level)).collect();
        for (segment, brief) in run.briefs() {
            let mut lowest = None;
            for (lane, level) in &mut levels {
                let frames = &mut self.frames[lane.index()];
                let path = frames.at(*level, brief.start, &mut self.paths);
                if self.by_call {
                    frames.ran(brief.last);
                }
                lowest.get_or_insert(path);
                *level = level.saturating_add_signed(i32::from(brief.level)).max(1);
            }
            let path = lowest.expect("a run has an active lane");
            let number = self.number(What::Stretch(segment.0), path, run.first.standing.program);
            self.count(number, run.lanes());
        }
    }

    /// Charges what was counted, where there is much of it.
    fn keep_small(&mut self, program: &Program) {
        let counts = self.by_seat.len().max(self.by_active.len()).max(self.fetched.len());
        if counts >= LostSlots::KEPT || self.pieces.len().max(self.pushed.len()) >= LostSlots::KEPT_SEGMENTS {
            self.charge(program);
        }
    }

    /// Charges what was counted.
    fn charge(&mut self, program: &Program) {
        // By number: what was fetched, segment by segment.
        let mut unfolded: Vec<Vec<((Stretch, PathId), u64)>> = Vec::with_capacity(self.fetched.len());
        for fetched in &self.fetched {
            let mut stretches: Vec<(Stretch, PathId)> = Vec::new();
            match fetched.what {
                What::Stretch(number) => stretches.push((self.stretches.of(number, program), fetched.path)),
                What::Piece(piece) => {
                    let mut walk = Walk::from(fetched.path, self.by_call);
                    for id in self.pieces.segments(piece) {
                        let path = walk.to(&program.segments[*id], &mut self.paths);
                        stretches.push((self.stretches.of(id.0, program), path));
                    }
                }
            }
            stretches.sort_unstable();
            unfolded.push(stretches.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect());
        }
        for (number, active, times) in self.by_active.drain() {
            for (at, each) in &unfolded[number as usize] {
                self.issued.entry(*at).or_default().add(each * times, u64::from(active) * each * times);
            }
        }
        for (number, seat, times) in self.by_seat.drain() {
            for ((stretch, path), each) in &unfolded[number as usize] {
                *self.lost.entry((*stretch, *path, SeatId(seat))).or_default() += each * times;
            }
        }
        self.pieces.clear();
        self.fetched.clear();
        self.numbers.clear();
        self.pushed.clear();
    }
}

impl Metric for LostSlots {
    fn step(&mut self, step: &Step) -> Result<()> {
        let path = self.path(step);
        self.find_idle(step, None);
        let stretch = self.stretches.number(step);
        let number = self.number(What::Stretch(stretch), path, step.standing.program);
        self.count(number, step.lanes);
        self.keep_small(step.standing.program);
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        self.find_idle(&run.first, Some(run));
        let highest = run.lanes().iter().map(|lane| run.first.state(lane).level as usize).max().unwrap_or(0);
        if highest + run.segments.len() < Frames::MOST {
            self.count_pieces(run);
        } else {
            self.count_segments(run);
        }
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
            let (cause, site) = trips.cause(seat.seat(&self.partings));
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
