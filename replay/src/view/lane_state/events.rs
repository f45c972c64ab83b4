//! What happens to a thread beside running blocks: the region begins and ends, functions are entered and left, signals
//! come.

use heuristics::SegmentId;
use trace_format::{Event, SyncFunction};

use super::super::first_look::generations::Part;
use super::super::first_look::survey::{is_barrier, is_part_of_waiting};
use super::super::locks::{self, Action, HeldLock};
use super::{Extent, LaneState, Pending, push_control};
use crate::{Batch, Control, Entry};

impl LaneState<'_> {
    /// The next extent is about to begin: the lane's first, or the first that is not the lane's, cuts the stream.
    fn count_extent(&mut self, batch: &mut Batch) {
        let number = self.extents;
        self.extents += 1;
        if self.parts.is_empty() || std::mem::take(&mut self.has_joined) {
            self.parts.push(Part { extent: number, begin: self.now, kept_before: self.counts.kept });
        }
        if number == self.own.start && number > 0 {
            batch.clear();
            self.told.sp = self.base;
            self.told.level = 1;
        } else if number == self.own.end {
            self.over = Some(batch.lengths());
        }
    }

    /// The thread comes to an extent of the region.
    pub(super) fn begin(&mut self, extent: Extent, batch: &mut Batch) {
        self.count_extent(batch);
        self.begin_counted(extent, batch);
    }

    fn begin_counted(&mut self, extent: Extent, batch: &mut Batch) {
        self.extent = Some(extent);
        self.first.get_or_insert(self.now);
        self.fresh = true;
        self.pending = Pending::Nothing;
        self.frames.restart();
        if self.plan.lock_rule.are_taken() {
            for lock in self.held.locks() {
                self.acquire(*lock, batch);
            }
        }
        self.update();
    }

    /// The extent ends here. Locks that the thread still holds are free for the other lanes.
    pub(super) fn end_extent(&mut self, batch: &mut Batch) {
        if self.extent.is_none() {
            return;
        }
        self.resolve(false, batch);
        if self.plan.lock_rule.are_taken() {
            for lock in self.held.locks() {
                self.release(*lock, batch);
            }
        }
        self.extent = None;
        self.spin.forget();
        self.turns.forget();
        self.yielded = false;
        self.update();
    }

    /// The thread comes to a segment of a region of markers.
    pub(super) fn come_to_marker(&mut self, id: SegmentId, batch: &mut Batch) {
        let open = if let Some(Extent::Marked { open }) = self.extent { open } else { 0 };
        let blocks = &self.plan.blocks;
        match open {
            0 if blocks.is_entry(id) => self.begin(Extent::Marked { open: 1 }, batch),
            _ if blocks.is_entry(id) => self.extent = Some(Extent::Marked { open: open + 1 }),
            1 if blocks.is_exit(id) => self.end_extent(batch),
            2.. if blocks.is_exit(id) => self.extent = Some(Extent::Marked { open: open - 1 }),
            _ => {}
        }
    }

    /// Something happened beside running blocks.
    pub fn event(&mut self, event: Event, batch: &mut Batch) {
        if matches!(event, Event::Chunk(_)) && !self.plan.tells_extents {
            return;
        }
        self.end_repeat(None, batch);
        if !is_part_of_waiting(&event) {
            self.turns.forget();
        }
        match event {
            Event::ThreadStart { sp, seq, .. } => {
                self.now = seq;
                self.sp = sp;
                self.stack_top = sp;
                self.base = sp;
                self.told.sp = sp;
                self.begin_whole(batch);
            }
            Event::ThreadEnd { seq, .. } => {
                self.now = seq;
                self.end_extent(batch);
            }
            Event::SetSp(sp) => {
                if matches!(self.pending, Pending::Call { .. }) {
                    self.resolve(true, batch);
                }
                self.sp = sp;
                self.unsettled = !self.plan.verbatim;
            }
            Event::Signal { .. } => {
                if matches!(self.pending, Pending::Call { .. }) {
                    self.resolve(true, batch);
                }
                // The handler's own stack pointer comes with the event behind this one.
                self.frames.handler_begins(self.sp);
                self.pending = if self.extent.is_some() { Pending::Entry } else { Pending::Nothing };
                self.unsettled = true;
            }
            Event::SignalReturn => {
                self.frames.handler_ends();
                self.unsettled = true;
            }
            Event::Enter { function, object, argument, seq } => {
                self.now = seq;
                self.enter(function, object, argument, batch);
            }
            Event::Leave { function, result, seq } => {
                self.now = seq;
                self.leave(function, result, batch);
            }
            Event::WarpBarrier => self.meet(Control::MeetAll, batch),
            Event::Exec => {
                self.end_extent(batch);
                self.stack_top = 0;
                self.stack.clear();
                self.held.clear();
                self.frames.clear();
                self.pending = Pending::Nothing;
                self.begin_whole(batch);
            }
            Event::Gap => {
                self.resolve(false, batch);
                // What comes behind it may look like another pass of the same loop, and was none.
                self.spin.forget();
                self.yielded = false;
                if matches!(self.extent, Some(Extent::Marked { .. })) {
                    // Recording pauses at the marker that ends it.
                    self.end_extent(batch);
                }
            }
            Event::FutexWait { seq, .. } => {
                self.now = seq;
                self.counts.own_waits += u64::from(self.extent.is_some() && !self.stack.in_leaf());
            }
            Event::Chunk(chunk) => {
                let stride = u32::try_from(chunk.stride.unsigned_abs()).unwrap_or(0);
                push_control(batch, Control::Chunk { first: chunk.first(), stride });
            }
            Event::Partial { .. } | Event::ModuleLoaded(_) | Event::ModuleUnloaded(_) | Event::Fork { .. } => {}
        }
        self.update();
    }

    fn begin_whole(&mut self, batch: &mut Batch) {
        if self.plan.region.is_whole() {
            self.begin(Extent::Whole, batch);
        }
    }

    fn enter(&mut self, function: SyncFunction, object: u64, argument: u64, batch: &mut Batch) {
        let is_outermost = !self.stack.is_in(function);
        let entered = self.stack.enter(function, object, argument);
        if !entered.counts {
            return;
        }
        let launch = if function == SyncFunction::ParallelBody && is_outermost {
            self.launches.next().copied().flatten()
        } else {
            None
        };
        let team = match function {
            SyncFunction::TeamsBody | SyncFunction::TargetBody => self.teams.next().copied(),
            _ => launch.and_then(|launch| self.plan.episodes.leagues.of_launch.get(&launch).copied()),
        };
        let task = if function == SyncFunction::TaskBody { self.tasks.next().copied() } else { None };
        if self.extent.is_none() && self.plan.region.begins_with(function, object) {
            (self.team, self.task) = (team, task);
            self.count_extent(batch);
            // The lanes of a launch start together, and only then take the locks that they came with.
            if let Some(launch) = launch {
                push_control(batch, Control::Meet(launch));
            }
            self.begin_counted(Extent::Function { height: self.stack.height() }, batch);
        }
        let given = match locks::action(function) {
            Some(Action::Give) => self.held.give(object),
            Some(Action::Wait) => self.held.wait(argument),
            Some(Action::Take { .. }) | None => None,
        };
        if let Some(lock) = given {
            self.release_if_replayed(lock, batch);
        }
    }

    fn leave(&mut self, function: SyncFunction, result: u64, batch: &mut Batch) {
        let Some(left) = self.stack.leave(function) else { return };
        if left.counts {
            let taken = match locks::action(function) {
                Some(Action::Take { may_fail: true, .. }) if !locks::has_taken(result) => None,
                Some(Action::Take { shared, .. }) => self.held.take(left.object, shared),
                Some(Action::Wait) => self.held.resume(left.argument),
                Some(Action::Give) | None => None,
            };
            if let Some(lock) = taken
                && self.extent.is_some()
                && self.plan.lock_rule.are_taken()
            {
                self.acquire(lock, batch);
            }
            if is_barrier(function)
                && let Some(episode) = self.waits.next()
            {
                self.meet(Control::Meet(*episode), batch);
            }
            if function == SyncFunction::TeamsNext && result & 0xff != 0 {
                self.team = self.teams.next().copied();
                if self.extent.is_some() && !self.fresh {
                    self.tell_team(batch);
                }
            }
            self.yielded |= function == SyncFunction::Yield;
            self.has_joined |= function == SyncFunction::ThreadJoin;
        }
        if let Some(Extent::Function { height }) = self.extent
            && self.stack.height() < height
        {
            self.end_extent(batch);
        }
    }

    fn meet(&mut self, episode: Control, batch: &mut Batch) {
        if self.extent.is_some() {
            self.spin.forget();
            push_control(batch, episode);
        }
    }

    fn acquire(&self, lock: HeldLock, batch: &mut Batch) {
        if let Some(id) = self.plan.locks.id(lock.object) {
            push_control(batch, if lock.shared { Control::AcquireShared(id) } else { Control::Acquire(id) });
        }
    }

    fn release_if_replayed(&self, lock: HeldLock, batch: &mut Batch) {
        if self.extent.is_some() && self.plan.lock_rule.are_taken() {
            self.release(lock, batch);
        }
    }

    /// Gives a lock back. When nothing was kept since it was taken, neither control stays: nobody would have waited for
    /// anything. Where a turn is watched both stay: they go with it.
    fn release(&self, lock: HeldLock, batch: &mut Batch) {
        let Some(id) = self.plan.locks.id(lock.object) else { return };
        let last = batch.codes.last().filter(|code| code.is_control()).map(|code| code.entry());
        if let Some(Entry::Control(index)) = last
            && !self.turns.is_watching()
            && !self.spin.is_watching()
            && matches!(batch.controls[index], Control::Acquire(taken) | Control::AcquireShared(taken) if taken == id)
        {
            batch.codes.pop();
            batch.controls.pop();
        } else {
            push_control(batch, Control::Release(id));
        }
    }
}
