//! Barriers and locks of one warp: who waits for whom.

use std::collections::HashMap;

use heuristics::{Lane, LaneSet, LaneState};
use rustc_hash::FxBuildHasher;

use super::Counts;
use super::turns::{Moved, Turns, Wanted};
use crate::{Control, EpisodeId, LockId, Locks};

/// Where a lane stands after it moved on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Before a segment.
    Ready,
    /// At a barrier or lock.
    Waits,
    /// At its end.
    Finished,
}

/// What happened between lanes, for the metrics that ask how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncEvent {
    /// The lane has to wait for the lock.
    Waits {
        /// The lane.
        lane: Lane,
        /// The lock.
        lock: LockId,
    },
    /// The lane takes the lock, at once or after a wait.
    Takes {
        /// The lane.
        lane: Lane,
        /// The lock.
        lock: LockId,
        /// Whether others can have it at the same time.
        shared: bool,
    },
    /// The lane gives the lock back.
    Gives {
        /// The lane.
        lane: Lane,
        /// The lock.
        lock: LockId,
        /// Whether others could have it at the same time.
        shared: bool,
    },
    /// The lane need not wait any longer for a lock that nobody would have given back.
    Forced {
        /// The lane.
        lane: Lane,
    },
    /// The lanes have met at a barrier and go on.
    Meets {
        /// The lanes.
        lanes: LaneSet,
    },
}

/// How many lanes may have a lock that they share without a limit.
const ALL: u32 = u32::MAX;

#[derive(Default)]
struct Lock {
    owner: Option<Lane>,
    sharers: LaneSet,
    /// Lanes that wait, in the order in which they came, and how many may have it with them.
    queue: Vec<(Lane, u32)>,
}

/// The waits of one warp.
pub(crate) struct Sync {
    /// Who has each episode in its stream; an episode that took place is taken out.
    expected: HashMap<EpisodeId, LaneSet, FxBuildHasher>,
    arrived: HashMap<EpisodeId, LaneSet, FxBuildHasher>,
    at_meet_all: LaneSet,
    /// Who will hand over what, and who waits for that.
    posters: HashMap<EpisodeId, Lane, FxBuildHasher>,
    awaited: HashMap<EpisodeId, LaneSet, FxBuildHasher>,
    at_post: LaneSet,
    locks: HashMap<LockId, Lock, FxBuildHasher>,
    at_meeting: LaneSet,
    at_lock: LaneSet,
    finished: LaneSet,
    freed: LaneSet,
    /// The episode that took place last, since it was asked for, and its lanes.
    opened: Option<(EpisodeId, LaneSet)>,
    /// What happened since it was cleared last.
    events: Vec<SyncEvent>,
    /// Where lanes take turns at locks, instead of waiting in the order in which they came.
    turns: Option<Turns>,
    /// Whether lanes run through locks.
    ignores_locks: bool,
}

impl Sync {
    pub(crate) fn new(
        expected: HashMap<EpisodeId, LaneSet, FxBuildHasher>,
        posters: HashMap<EpisodeId, Lane, FxBuildHasher>,
        locks: Locks,
    ) -> Sync {
        Sync {
            expected,
            arrived: HashMap::default(),
            at_meet_all: LaneSet::EMPTY,
            posters,
            awaited: HashMap::default(),
            at_post: LaneSet::EMPTY,
            locks: HashMap::default(),
            at_meeting: LaneSet::EMPTY,
            at_lock: LaneSet::EMPTY,
            finished: LaneSet::EMPTY,
            freed: LaneSet::EMPTY,
            opened: None,
            events: Vec::new(),
            turns: (locks == Locks::Simt).then(Turns::new),
            ignores_locks: locks == Locks::Ignore,
        }
    }

    /// The episode that took place last, and its lanes; none where that was asked before.
    #[inline]
    pub(crate) fn take_opened(&mut self) -> Option<(EpisodeId, LaneSet)> {
        self.opened.take()
    }

    /// Whether an episode took place since that was asked for.
    #[inline]
    pub(crate) fn has_opened(&self) -> bool {
        self.opened.is_some()
    }

    /// All lanes that wait.
    #[inline]
    pub(crate) fn waiting(&self) -> LaneSet {
        self.at_meeting | self.at_lock | self.at_meet_all | self.at_post
    }

    /// Those that wait for one other lane: for its lock, or for what it hands over.
    #[inline]
    pub(crate) fn waiting_for_lock(&self) -> LaneSet {
        self.at_lock | self.at_post
    }

    #[inline]
    pub(crate) fn waiting_for_post(&self) -> LaneSet {
        self.at_post
    }

    /// The sections in progress, where lanes take turns.
    #[inline]
    pub(super) fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref()
    }

    pub(super) fn turns_mut(&mut self) -> Option<&mut Turns> {
        self.turns.as_mut()
    }

    /// Lanes that have moved on have reached locks or behind sections: the lanes that can go on now. To be called until
    /// there are none.
    pub(crate) fn take_turns(&mut self, states: &[LaneState], live: LaneSet) -> LaneSet {
        let waiting = self.waiting();
        let Some(turns) = &mut self.turns else { return LaneSet::EMPTY };
        let arrived = turns.make_sections(states);
        let ready = live - waiting;
        let mut freed = LaneSet::EMPTY;
        while let Some(moved) = turns.next(ready | freed, |lane, wanted| takes(&mut self.locks, lane, wanted)) {
            freed = freed | apply(moved, &mut self.events);
        }
        for (lane, wanted) in arrived.into_iter().filter(|(lane, _)| !freed.contains(*lane)) {
            self.events.push(SyncEvent::Waits { lane, lock: wanted.lock });
        }
        self.at_lock = self.at_lock - freed;
        freed
    }

    /// No lane can run: the lanes that can when turns, or lanes behind a section, no longer wait for each other. Empty:
    /// that changes nothing.
    pub(crate) fn give_up_turns(&mut self) -> Option<LaneSet> {
        let moved = self.turns.as_mut()?.give_up(|lane, wanted| takes(&mut self.locks, lane, wanted))?;
        let freed = apply(moved, &mut self.events);
        self.at_lock = self.at_lock - freed;
        Some(freed)
    }

    /// What happened since it was cleared last, in order.
    #[inline]
    pub(crate) fn events(&self) -> &[SyncEvent] {
        &self.events
    }

    /// Forgets what happened. To be called now and then, so that it does not grow.
    #[inline]
    pub(crate) fn clear_events(&mut self) {
        self.events.clear();
    }

    /// The lanes freed since the last call; they go on.
    pub(crate) fn take_freed(&mut self, live: LaneSet) -> LaneSet {
        if self.at_meet_all == live && !live.is_empty() {
            self.events.push(SyncEvent::Meets { lanes: self.at_meet_all });
            self.freed = self.freed | std::mem::take(&mut self.at_meet_all);
        }
        std::mem::take(&mut self.freed)
    }

    /// The lane reaches a control that is neither stack pointer nor level; whether it goes on without waiting.
    pub(crate) fn passes(&mut self, lane: Lane, control: Control) -> bool {
        match control {
            Control::Meet(episode) => self.meet(lane, episode),
            Control::MeetAll => {
                self.at_meet_all.insert(lane);
                false
            }
            Control::Post(episode) => {
                self.post(episode);
                true
            }
            Control::Await(episode) => self.awaits(lane, episode),
            Control::Acquire(lock) => self.acquire(lane, Wanted { lock, most: 1 }),
            Control::AcquireShared(lock) => self.acquire(lane, Wanted { lock, most: ALL }),
            Control::AcquireOneOf { lock, most } => self.acquire(lane, Wanted { lock, most }),
            Control::Release(lock) => {
                self.release(lane, lock);
                let waits = self.turns.as_mut().is_some_and(|turns| turns.gave(lane, lock));
                if waits {
                    self.at_lock.insert(lane);
                }
                !waits
            }
            Control::Sp(_) | Control::Level(_) | Control::Stack { .. } => true,
            Control::Leave(_) | Control::GoOn(_) => true,
            Control::Begin { .. } | Control::Chunk { .. } | Control::Piece { .. } | Control::Team { .. } => true,
            Control::Iterations(_) | Control::Turns(_) | Control::Part(_) | Control::PartEnd => true,
        }
    }

    fn meet(&mut self, lane: Lane, episode: EpisodeId) -> bool {
        let arrived = self.arrived.entry(episode).or_default();
        arrived.insert(lane);
        self.at_meeting.insert(lane);
        if self.complete(episode) {
            self.open(episode);
            // This lane goes on at once; the others as freed lanes.
            self.freed.remove(lane);
            return true;
        }
        false
    }

    fn post(&mut self, episode: EpisodeId) {
        self.posters.remove(&episode);
        let lanes = self.awaited.remove(&episode).unwrap_or_default();
        self.at_post = self.at_post - lanes;
        self.freed = self.freed | lanes;
    }

    /// Whether the lane need not wait: it was handed over, or another warp does that.
    fn awaits(&mut self, lane: Lane, episode: EpisodeId) -> bool {
        let is_to_come = self.posters.get(&episode).is_some_and(|poster| *poster != lane);
        if is_to_come {
            self.awaited.entry(episode).or_default().insert(lane);
            self.at_post.insert(lane);
        }
        !is_to_come
    }

    /// Whether all that take part are there, or have finished.
    fn complete(&self, episode: EpisodeId) -> bool {
        let (Some(expected), Some(arrived)) = (self.expected.get(&episode), self.arrived.get(&episode)) else {
            return true;
        };
        (*expected - self.finished).is_subset(arrived)
    }

    fn open(&mut self, episode: EpisodeId) {
        let lanes = self.arrived.remove(&episode).unwrap_or_default();
        self.expected.remove(&episode);
        self.opened = Some((episode, lanes));
        self.events.push(SyncEvent::Meets { lanes });
        self.at_meeting = self.at_meeting - lanes;
        self.freed = self.freed | lanes;
    }

    fn acquire(&mut self, lane: Lane, wanted: Wanted) -> bool {
        if self.ignores_locks {
            return true;
        }
        let Wanted { lock: id, most } = wanted;
        let lock = self.locks.entry(id).or_default();
        if let Some(turns) = &mut self.turns
            && !lock.holders().contains(lane)
        {
            turns.arrive(lane, wanted);
            self.at_lock.insert(lane);
            return false;
        }
        if lock.queue.is_empty() && lock.take(lane, most) {
            self.events.push(SyncEvent::Takes { lane, lock: id, shared: most > 1 });
            return true;
        }
        lock.queue.push((lane, most));
        self.events.push(SyncEvent::Waits { lane, lock: id });
        self.at_lock.insert(lane);
        false
    }

    fn release(&mut self, lane: Lane, id: LockId) {
        if let Some(lock) = self.locks.get_mut(&id) {
            let had = lock.holders().contains(lane);
            let shared = lock.owner != Some(lane);
            lock.give_back(lane);
            if had {
                self.events.push(SyncEvent::Gives { lane, lock: id, shared });
            }
            for (freed, most) in lock.admit() {
                self.events.push(SyncEvent::Takes { lane: freed, lock: id, shared: most > 1 });
                self.at_lock.remove(freed);
                self.freed.insert(freed);
            }
        }
    }

    /// The lane has ended: it gives back what it holds, and nobody waits for it at a barrier.
    pub(crate) fn finished(&mut self, lane: Lane) {
        self.finished.insert(lane);
        if let Some(turns) = &mut self.turns {
            turns.finished(lane);
        }
        let mut held: Vec<LockId> =
            self.locks.iter().filter(|(_, l)| l.holders().contains(lane)).map(|(i, _)| *i).collect();
        held.sort_unstable();
        for id in held {
            self.release(lane, id);
        }
        let mut posts: Vec<EpisodeId> = self.awaited.keys().copied().filter(|e| self.posters[e] == lane).collect();
        posts.sort_unstable();
        posts.into_iter().for_each(|episode| self.post(episode));
        let mut complete: Vec<EpisodeId> = self.arrived.keys().copied().filter(|m| self.complete(*m)).collect();
        complete.sort_unstable();
        for episode in complete {
            self.open(episode);
        }
    }

    /// No lane is ready: lets the lowest lane through that waits for a lock or for another lane, or else opens the
    /// barrier that the lowest lane waits at. That happens only when what they wait for lies outside the replay.
    pub(crate) fn force(&mut self, counts: &mut Counts) -> LaneSet {
        counts.forced += 1;
        if let Some(lane) = self.at_lock.lowest() {
            self.at_lock.remove(lane);
            self.events.push(SyncEvent::Forced { lane });
            if let Some(turns) = &mut self.turns {
                turns.forced(lane);
            }
            for lock in self.locks.values_mut() {
                lock.queue.retain(|(l, _)| *l != lane);
            }
            return LaneSet::only(lane);
        }
        if let Some(lane) = self.at_post.lowest() {
            self.at_post.remove(lane);
            self.awaited.values_mut().for_each(|lanes| lanes.remove(lane));
            return LaneSet::only(lane);
        }
        let lane = self.at_meeting.lowest();
        let episode = self.arrived.iter().find(|(_, l)| lane.is_some_and(|lane| l.contains(lane))).map(|(m, _)| *m);
        match episode {
            Some(episode) => self.open(episode),
            None => self.freed = self.freed | std::mem::take(&mut self.at_meet_all),
        }
        std::mem::take(&mut self.freed)
    }

    /// The locks that these lanes wait for: lock, who waits, who holds it. In order of lock numbers.
    pub(crate) fn locks_waited_for(&self, lanes: LaneSet) -> Vec<(LockId, LaneSet, LaneSet)> {
        let waits =
            |lock: &Lock| lock.queue.iter().map(|(l, _)| *l).filter(|l| lanes.contains(*l)).collect::<LaneSet>();
        let mut all: Vec<_> = self.locks.iter().map(|(id, lock)| (*id, waits(lock), lock.holders())).collect();
        all.retain(|(_, waiting, _)| !waiting.is_empty());
        all.sort_unstable_by_key(|(id, ..)| *id);
        all
    }
}

/// The lane takes the lock, where nobody else has it.
fn takes(locks: &mut HashMap<LockId, Lock, FxBuildHasher>, lane: Lane, wanted: Wanted) -> bool {
    locks.entry(wanted.lock).or_default().take(lane, wanted.most)
}

/// The lanes that go on.
fn apply(moved: Vec<Moved>, events: &mut Vec<SyncEvent>) -> LaneSet {
    let mut freed = LaneSet::EMPTY;
    for moved in moved {
        match moved {
            Moved::Takes(lane, Wanted { lock, most }) => {
                events.push(SyncEvent::Takes { lane, lock, shared: most > 1 });
                freed.insert(lane);
            }
            Moved::Free(lanes) => freed = freed | lanes,
        }
    }
    freed
}

impl Lock {
    fn holders(&self) -> LaneSet {
        self.sharers | self.owner.into_iter().collect()
    }

    fn take(&mut self, lane: Lane, most: u32) -> bool {
        let others = self.holders() - LaneSet::only(lane);
        if most > 1 && self.owner.is_none_or(|o| o == lane) && others.len() < most as usize {
            self.sharers.insert(lane);
            return true;
        }
        if most <= 1 && others.is_empty() {
            self.owner = Some(lane);
            return true;
        }
        false
    }

    /// A lane that does not hold it gives nothing back: it took the lock outside the replay.
    fn give_back(&mut self, lane: Lane) {
        if self.owner == Some(lane) {
            self.owner = None;
        } else {
            self.sharers.remove(lane);
        }
    }

    /// Lets those at the head of the queue in, as many as can hold it together.
    fn admit(&mut self) -> Vec<(Lane, u32)> {
        let mut admitted = Vec::new();
        while let Some((lane, most)) = self.queue.first().copied() {
            if !self.take(lane, most) {
                break;
            }
            self.queue.remove(0);
            admitted.push((lane, most));
        }
        admitted
    }
}
