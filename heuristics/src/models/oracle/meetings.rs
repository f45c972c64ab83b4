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
}

impl Place {
    fn new(id: PlaceId, pc: Pc) -> Place {
        Place { id, pc, is_changed: false, lanes: LaneSet::EMPTY, comers: Vec::new(), meeting: None }
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
        }
    }

    /// The lane that runs next; none where no two will meet.
    pub(super) fn further_of_cheapest(&mut self, warp: &WarpView) -> Option<Lane> {
        let moved = self.look(warp);
        while let Some(index) = self.changed.pop() {
            self.settle(index as usize);
        }
        // Where a lane comes nearer to a place, or comes from another pc, the two nearest may be others.
        let ahead: usize = moved.iter().map(|lane| self.futures[lane.index()].ahead().len()).sum();
        if ahead > self.places.len() {
            for index in 0..self.places.len() {
                self.settle_if_moved(index, moved);
            }
        } else {
            for lane in moved {
                for i in self.futures[lane.index()].at..self.futures[lane.index()].pieces.len() {
                    let place = self.futures[lane.index()].pieces[i].place;
                    self.settle_if_moved(self.index_of[place.0 as usize] as usize, LaneSet::only(lane));
                }
            }
        }
        let least = *self.costs.iter().min()?;
        let cheapest = self.costs.iter().zip(&self.places).filter(|(cost, _)| **cost == least);
        let cheapest = cheapest.filter_map(|(_, place)| place.meeting).min();
        cheapest.map(|meeting| match meeting.to_far * 2 == meeting.distance {
            true => meeting.near.min(meeting.far),
            false => meeting.far,
        })
    }

    fn settle_if_moved(&mut self, index: usize, moved: LaneSet) {
        let place = &self.places[index];
        if self.may_change(place, place.lanes & moved) {
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
    fn look(&mut self, warp: &WarpView) -> LaneSet {
        self.futures.resize_with(warp.lanes(), LaneFuture::default);
        for lane in self.known - warp.ready() {
            self.forget(lane);
        }
        let moved = warp.ready().iter().filter(|lane| self.follow(warp, *lane)).collect();
        self.known = warp.ready();
        moved
    }

    /// Goes on to where the lane stands now; whether it is not where it was.
    fn follow(&mut self, warp: &WarpView, lane: Lane) -> bool {
        let Some(future) = warp.future() else { return false };
        let known = self.known.contains(lane);
        let passed = future.passed(lane);
        let ran = passed.wrapping_sub(self.futures[lane.index()].passed);
        if known && ran == 0 {
            return false;
        }
        if known && ran < self.futures[lane.index()].ahead().len() as u64 {
            for _ in 0..ran {
                self.leave_first(lane);
            }
        } else {
            if known {
                self.forget(lane);
            }
            self.futures[lane.index()] = LaneFuture { passed, ..LaneFuture::default() };
        }
        self.futures[lane.index()].pc = warp.lane(lane).pc;
        self.look_further(warp, lane);
        true
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
            let from = |lane: Lane| self.futures[lane.index()].from(place.comers[lane.index()].number);
            let alike = in_common(from(near), from(far));
            let distance = to_near + to_far;
            let cost = distance as i64 - self.beta * alike as i64;
            Meeting { cost, distance, pc: place.pc, place: place.id, near, far, to_far }
        });
        self.costs[index] = meeting.map_or(i64::MAX, |meeting| meeting.cost);
        let place = &mut self.places[index];
        (place.meeting, place.is_changed) = (meeting, false);
        if place.lanes.is_empty() {
            self.index_of[place.id.0 as usize] = 0;
            self.unused.push(index as u32);
        }
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

/// How many instructions two futures begin with in common.
fn in_common(a: &[Piece], b: &[Piece]) -> u64 {
    let alike = a.iter().zip(b).take_while(|(a, b)| a.place == b.place);
    alike.map(|(a, _)| u64::from(a.instructions)).sum()
}
