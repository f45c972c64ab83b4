//! Where lanes will meet, kept from choice to choice: only what lanes will run that have moved is looked at again.

use trace_format::Pc;

use crate::{Lane, LaneSet, PlaceId, SegmentTable, WarpView};

/// What all ready lanes will run up to the horizon, and of each place there the two lanes nearest to it.
pub(super) struct Meetings {
    horizon: u64,
    beta: i64,
    futures: Vec<LaneFuture>,
    /// The lanes whose futures are known.
    known: LaneSet,
    /// By the number of a place: its index in `places`, 0 where no lane will come there.
    index_of: Vec<u32>,
    places: Vec<Place>,
    /// Of the meeting at each place; the greatest number where there is none.
    costs: Vec<i64>,
    unused: Vec<u32>,
    /// Places where a lane comes no more that did, or comes later.
    changed: Vec<u32>,
    /// Choices so far.
    choices: u64,
}

/// The lanes that are not where they were when a choice was made last.
struct Moved {
    lanes: LaneSet,
    /// How many instructions they have run since, where they stood at one pc and no other lane stood there, and now
    /// stand so again: of each meeting of one of them with another lane only the distance is another.
    together: Option<u64>,
}

/// What a lane will run.
#[derive(Default)]
struct LaneFuture {
    /// How many segments it has run.
    passed: u64,
    /// How many instructions it has run, since its future was made again.
    ran: u64,
    /// Where it stands.
    pc: Pc,
    /// What it has run is removed from time to time only: the first of `pieces` that it has not.
    at: usize,
    pieces: Vec<Piece>,
}

/// A segment that a lane will run.
#[derive(Clone, Copy)]
struct Piece {
    place: PlaceId,
    instructions: u32,
    /// How many instructions the lane will have run before it, counted as [`LaneFuture::ran`].
    begins: u64,
}

/// A place that lanes will reach.
struct Place {
    id: PlaceId,
    pc: Pc,
    /// Whether it is among those that have changed.
    is_changed: bool,
    /// The choice for which it was settled last.
    settled: u64,
    /// The lanes that will come there.
    lanes: LaneSet,
    /// By lane, of these.
    comers: Vec<Comer>,
    meeting: Option<Meeting>,
}

/// How a lane will reach a place.
#[derive(Clone, Copy, Default)]
struct Comer {
    /// When it comes there first, counted as [`LaneFuture::ran`].
    begins: u64,
    /// Which of its segments that is, counted from its first one.
    number: u64,
}

/// The two lanes nearest to a place that don't stand at one pc; the smallest is the cheapest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Meeting {
    cost: i64,
    distance: u64,
    pc: Pc,
    place: PlaceId,
    near: Lane,
    far: Lane,
    /// Of the further one.
    to_far: u64,
    /// Whether they may run more instructions alike than is known.
    is_open: bool,
}

impl Place {
    fn new(id: PlaceId, pc: Pc) -> Place {
        Place { id, pc, is_changed: false, settled: 0, lanes: LaneSet::EMPTY, comers: Vec::new(), meeting: None }
    }
}

impl LaneFuture {
    fn ahead(&self) -> &[Piece] {
        &self.pieces[self.at..]
    }

    /// It has run its first piece.
    fn pass_first(&mut self) -> Piece {
        /// So many pieces that have run are kept before they are removed.
        const KEPT: usize = 1024;
        let piece = self.pieces[self.at];
        self.at += 1;
        self.passed += 1;
        self.ran += u64::from(piece.instructions);
        if self.at == KEPT {
            self.pieces.drain(..KEPT);
            self.at = 0;
        }
        piece
    }

    /// What it will run from its segment of this number on.
    fn from(&self, number: u64) -> &[Piece] {
        &self.ahead()[(number - self.passed) as usize..]
    }
}

impl Meetings {
    pub(super) fn new(horizon: u32, beta: i64) -> Meetings {
        Meetings {
            horizon: u64::from(horizon),
            beta,
            futures: Vec::new(),
            known: LaneSet::EMPTY,
            index_of: Vec::new(),
            places: vec![Place::new(PlaceId(0), Pc(0))],
            costs: vec![i64::MAX],
            unused: Vec::new(),
            changed: Vec::new(),
            choices: 0,
        }
    }

    /// The lane that runs next; none where no two will meet.
    pub(super) fn further_of_cheapest(&mut self, warp: &WarpView) -> Option<Lane> {
        self.choices += 1;
        let moved = self.look(warp);
        while let Some(index) = self.changed.pop() {
            self.settle(index as usize);
        }
        // Where a lane comes nearer to a place, or comes from another pc, the two nearest may be others.
        let ahead: usize = moved.lanes.iter().map(|lane| self.futures[lane.index()].ahead().len()).sum();
        if ahead > self.places.len() {
            for index in 0..self.places.len() {
                self.settle_if_moved(index, &moved);
            }
        } else {
            for lane in moved.lanes {
                for i in self.futures[lane.index()].at..self.futures[lane.index()].pieces.len() {
                    let place = self.futures[lane.index()].pieces[i].place;
                    self.settle_if_moved(self.index_of[place.0 as usize] as usize, &moved);
                }
            }
        }
        self.cheapest().map(|meeting| match meeting.to_far * 2 == meeting.distance {
            true => meeting.near.min(meeting.far),
            false => meeting.far,
        })
    }

    fn cheapest(&self) -> Option<&Meeting> {
        let mut cheapest: Option<&Meeting> = None;
        let mut least = i64::MAX;
        for (cost, place) in self.costs.iter().zip(&self.places) {
            if *cost <= least {
                let meeting = place.meeting.as_ref();
                if *cost < least || meeting < cheapest {
                    (least, cheapest) = (*cost, meeting);
                }
            }
        }
        cheapest
    }

    /// Brings the meeting at a place up to date, now that these lanes have moved.
    #[inline]
    fn settle_if_moved(&mut self, index: usize, moved: &Moved) {
        let place = &mut self.places[index];
        if place.settled == self.choices {
            return;
        }
        place.settled = self.choices;
        if let (Some(instructions), Some(meeting)) = (moved.together, &mut place.meeting)
            && moved.lanes.contains(meeting.near) | moved.lanes.contains(meeting.far)
        {
            // The lane that moved is nearer, and the other still the nearest of those that stand elsewhere.
            if moved.lanes.contains(meeting.far) {
                let to_near = meeting.distance - meeting.to_far;
                meeting.to_far -= instructions;
                if (meeting.to_far, meeting.far) < (to_near, meeting.near) {
                    (meeting.near, meeting.far, meeting.to_far) = (meeting.far, meeting.near, to_near);
                }
            }
            meeting.distance -= instructions;
            meeting.cost -= instructions as i64;
            if meeting.is_open {
                let (near, far) = (meeting.near, meeting.far);
                let (alike, is_open) = self.in_common(index, near, far);
                if let Some(meeting) = &mut self.places[index].meeting {
                    meeting.cost = meeting.distance as i64 - self.beta * alike as i64;
                    meeting.is_open = is_open;
                }
            }
            self.costs[index] = self.places[index].meeting.map_or(i64::MAX, |meeting| meeting.cost);
            return;
        }
        let place = &self.places[index];
        if self.may_change(place, place.lanes & moved.lanes) {
            self.settle(index);
        }
    }

    /// Whether the two lanes nearest to a place may be others, or come there in another way, now that these of its
    /// lanes have moved.
    fn may_change(&self, place: &Place, moved: LaneSet) -> bool {
        let Some(meeting) = &place.meeting else { return !moved.is_empty() };
        let goes_before = |lane: Lane| {
            let distance = place.comers[lane.index()].begins - self.futures[lane.index()].ran;
            (distance, lane) <= (meeting.to_far, meeting.far)
        };
        moved.contains(meeting.near) || moved.iter().any(goes_before)
    }

    /// Takes up what has changed since it was asked last; the lanes that have moved or were not known.
    fn look(&mut self, warp: &WarpView) -> Moved {
        self.futures.resize_with(warp.lanes(), LaneFuture::default);
        for lane in self.known - warp.ready() {
            self.forget(lane);
        }
        let mut lanes = LaneSet::EMPTY;
        // Of those that moved: where they stood, and what they ran; none where they differ, or one was not known.
        let mut alike: Option<Option<(Pc, u64)>> = None;
        for lane in warp.ready() {
            let from = self.futures[lane.index()].pc;
            match self.follow(warp, lane) {
                None => continue,
                Some(ran) => {
                    let own = ran.map(|ran| (from, ran));
                    alike = Some(if alike.is_none_or(|alike| alike == own) { own } else { None });
                }
            }
            lanes.insert(lane);
        }
        self.known = warp.ready();
        let stands_alone = |from| {
            lanes.lowest().is_some_and(|lane| warp.mates(lane) == lanes)
                && warp.groups().iter().all(|group| group.pc != from || group.lanes == lanes)
        };
        let together = alike.flatten().filter(|(from, _)| stands_alone(*from)).map(|(_, ran)| ran);
        Moved { lanes, together }
    }

    /// Goes on to where the lane stands now. None where it is where it was; else how many instructions it has run,
    /// where that is known.
    #[inline]
    fn follow(&mut self, warp: &WarpView, lane: Lane) -> Option<Option<u64>> {
        let future = warp.future()?;
        let known = self.known.contains(lane);
        let passed = future.passed(lane);
        let segments = passed.wrapping_sub(self.futures[lane.index()].passed);
        if known && segments == 0 {
            return None;
        }
        let mut instructions = None;
        if known && segments < self.futures[lane.index()].ahead().len() as u64 {
            let before = self.futures[lane.index()].ran;
            for _ in 0..segments {
                self.leave_first(lane);
            }
            instructions = Some(self.futures[lane.index()].ran - before);
        } else {
            if known {
                self.forget(lane);
            }
            self.futures[lane.index()] = LaneFuture { passed, ..LaneFuture::default() };
        }
        self.futures[lane.index()].pc = warp.lane(lane).pc;
        self.look_further(warp, lane);
        Some(instructions)
    }

    /// Adds what the lane will run up to the horizon and is not known yet.
    fn look_further(&mut self, warp: &WarpView, lane: Lane) {
        let Some(future) = warp.future() else { return };
        let of_lane = &self.futures[lane.index()];
        let known = of_lane.ahead().len();
        let mut begins = of_lane.ahead().last().map_or(of_lane.ran, |last| last.begins + u64::from(last.instructions));
        let end = of_lane.ran + self.horizon;
        if begins >= end {
            return;
        }
        let segments: &SegmentTable = &warp.program().segments;
        future.look(lane, known, &mut |id| {
            let segment = &segments[id];
            let piece = Piece { place: segment.place, instructions: segment.len() as u32, begins };
            begins += u64::from(piece.instructions);
            self.come(lane, piece, segment.start());
            begins < end
        });
    }

    /// The lane will run this, after all that is known.
    fn come(&mut self, lane: Lane, piece: Piece, pc: Pc) {
        let of_lane = &mut self.futures[lane.index()];
        let number = of_lane.passed + of_lane.ahead().len() as u64;
        of_lane.pieces.push(piece);
        let index = self.index(piece.place, pc);
        let place = &mut self.places[index as usize];
        if !place.lanes.contains(lane) {
            place.lanes.insert(lane);
            if place.comers.len() <= lane.index() {
                place.comers.resize(lane.index() + 1, Comer::default());
            }
            place.comers[lane.index()] = Comer { begins: piece.begins, number };
        }
    }

    /// The lane has run the first segment that it was known to run.
    fn leave_first(&mut self, lane: Lane) {
        let piece = self.futures[lane.index()].pass_first();
        let index = self.index_of[piece.place.0 as usize];
        self.change(index);
        let of_lane = &self.futures[lane.index()];
        let place = &mut self.places[index as usize];
        match of_lane.ahead().iter().position(|next| next.place == piece.place) {
            Some(next) => {
                let number = of_lane.passed + next as u64;
                place.comers[lane.index()] = Comer { begins: of_lane.ahead()[next].begins, number };
            }
            None => place.lanes.remove(lane),
        }
    }

    /// Nothing is known about the lane any more.
    fn forget(&mut self, lane: Lane) {
        let of_lane = std::mem::take(&mut self.futures[lane.index()]);
        for piece in of_lane.ahead() {
            let index = self.index_of[piece.place.0 as usize];
            self.change(index);
            self.places[index as usize].lanes.remove(lane);
        }
    }

    fn index(&mut self, place: PlaceId, pc: Pc) -> u32 {
        let number = place.0 as usize;
        if number >= self.index_of.len() {
            self.index_of.resize(number + 1, 0);
        }
        if self.index_of[number] == 0 {
            let index = self.unused.pop().unwrap_or(self.places.len() as u32);
            if index as usize == self.places.len() {
                self.places.push(Place::new(place, pc));
                self.costs.push(i64::MAX);
            }
            let new = &mut self.places[index as usize];
            (new.id, new.pc) = (place, pc);
            self.index_of[number] = index;
        }
        self.index_of[number]
    }

    fn change(&mut self, index: u32) {
        if !std::mem::replace(&mut self.places[index as usize].is_changed, true) {
            self.changed.push(index);
        }
    }

    /// Finds the two lanes nearest to a place again.
    fn settle(&mut self, index: usize) {
        let place = &self.places[index];
        let meeting = self.nearest(place).map(|((to_near, near), (to_far, far))| {
            let (alike, is_open) = self.in_common(index, near, far);
            let distance = to_near + to_far;
            let cost = distance as i64 - self.beta * alike as i64;
            Meeting { cost, distance, pc: place.pc, place: place.id, near, far, to_far, is_open }
        });
        self.costs[index] = meeting.map_or(i64::MAX, |meeting| meeting.cost);
        let place = &mut self.places[index];
        (place.meeting, place.is_changed, place.settled) = (meeting, false, self.choices);
        if place.lanes.is_empty() {
            self.index_of[place.id.0 as usize] = 0;
            self.unused.push(index as u32);
        }
    }

    /// How many instructions two lanes that will come to a place run alike from there on, as far as is known, and
    /// whether it may be more.
    fn in_common(&self, index: usize, a: Lane, b: Lane) -> (u64, bool) {
        let from = |lane: Lane| self.futures[lane.index()].from(self.places[index].comers[lane.index()].number);
        let (a, b) = (from(a), from(b));
        let mut alike = 0;
        for (a, b) in a.iter().zip(b) {
            if a.place != b.place {
                return (alike, false);
            }
            alike += u64::from(a.instructions);
        }
        (alike, true)
    }

    /// The two lanes nearest to a place, among equals the lower ones, that don't stand at one pc; with their distances.
    fn nearest(&self, place: &Place) -> Option<((u64, Lane), (u64, Lane))> {
        let mut lanes = place.lanes.iter().map(|lane| {
            let future = &self.futures[lane.index()];
            ((place.comers[lane.index()].begins - future.ran, lane), future.pc)
        });
        let (mut first, mut first_pc) = lanes.next()?;
        let mut second = None;
        for (lane, pc) in lanes {
            if lane < first {
                if pc != first_pc {
                    second = Some(first);
                }
                (first, first_pc) = (lane, pc);
            } else if pc != first_pc && second.is_none_or(|second| lane < second) {
                second = Some(lane);
            }
        }
        Some((first, second?))
    }
}
