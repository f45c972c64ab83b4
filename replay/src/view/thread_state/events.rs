//! What happens to a thread besides running blocks: the region begins and ends, functions are entered and left, signals
//! come.

use heuristics::SegmentId;
use trace_format::{Event, Seq, SyncFunction};

use super::super::first_look::leagues::InLeague;
use super::super::locks::{self, Action, HeldLock};
use super::super::waits::conditions::is_of_condition;
use super::super::waits::own_locks::Does;
use super::super::waits::unordered::UnorderedWaits;
use super::extents::{Belongs, Extent, Marked};
use super::runtimes::Runtimes;
use super::{Expected, Pending, ThreadState, Waiting, push_control};
use crate::{Batch, Control, Entry, EpisodeId};

impl ThreadState<'_> {
    /// The next extent is about to begin: the lane's first, or the first that is not the lane's, cuts the stream.
    fn count_extent(&mut self, batch: &mut Batch) {
        match self.extents.count(self.now, self.counts.kept) {
            Belongs::Within => {}
            Belongs::First => {
                batch.clear();
                self.expected = Expected { sp: self.base, level: 1 };
            }
            Belongs::Behind => self.over = Some(batch.lengths()),
        }
    }

    /// The thread reaches an extent of the region.
    pub(super) fn begin(&mut self, extent: Extent, batch: &mut Batch) {
        self.count_extent(batch);
        self.begin_counted(extent, batch);
    }

    fn begin_counted(&mut self, extent: Extent, batch: &mut Batch) {
        self.extents.begin(extent, self.now);
        self.runtimes = Runtimes::default();
        self.pending = Pending::Nothing;
        self.frames.restart();
        if self.plan.lock_rule.are_taken() {
            for lock in self.held.locks().to_vec() {
                self.acquire(lock, batch);
            }
        }
        self.update();
    }

    /// The thread, which waits in a task, runs another one. What it has locked is the first one's.
    fn begin_inside(&mut self, task: Option<(Seq, u32)>, batch: &mut Batch) {
        self.resolve(false, batch);
        if !self.extents.is_fresh() {
            push_control(batch, Control::Leave(self.extents.depth()));
        }
        let held = std::mem::take(&mut self.held);
        self.waiting.push(Waiting { held, task: self.task, piece: self.piece.take() });
        self.task = task;
        self.extents.begin_inside(Extent::Function { height: self.stack.height() });
        self.pending = Pending::Nothing;
        self.update();
    }

    /// All extents end here, the inner ones first.
    pub(super) fn end_extents(&mut self, batch: &mut Batch) {
        while self.extents.is_open() {
            self.end_extent(batch);
        }
    }

    /// The extent ends here. Locks that the thread still holds are free for the other lanes.
    pub(super) fn end_extent(&mut self, batch: &mut Batch) {
        if !self.extents.is_open() {
            return;
        }
        self.resolve(false, batch);
        self.meet_behind(None, batch);
        if self.plan.lock_rule.are_taken() {
            for lock in self.held.locks() {
                self.release(*lock, batch);
            }
        }
        if self.extents.end()
            && let Some(waiting) = self.waiting.pop()
        {
            (self.held, self.task, self.piece) = (waiting.held, waiting.task, waiting.piece);
            if !self.extents.is_fresh() {
                push_control(batch, Control::GoOn(self.extents.depth()));
            }
        }
        self.forget_waits();
        self.update();
    }

    /// What comes is no wait that began before.
    pub(super) fn forget_waits(&mut self) {
        self.spin.forget();
        self.turns.forget();
        self.tries = None;
        self.yielded = false;
    }

    /// The thread stands before a segment of a region of markers.
    pub(super) fn pass_marker(&mut self, id: SegmentId, batch: &mut Batch) {
        let blocks = &self.plan.blocks;
        match self.extents.pass_marker(blocks.is_entry(id), blocks.is_exit(id)) {
            Marked::Nothing => {}
            Marked::Begins => self.begin(Extent::Marked { open: 1 }, batch),
            Marked::Ends => self.end_extent(batch),
        }
    }

    /// Something happened besides running blocks.
    pub(super) fn happen(&mut self, event: Event, batch: &mut Batch) {
        // What a thread shares with no other is a part of its lane.
        if let Event::Chunk(chunk) = event
            && (!self.plan.tells_extents || self.alone.is_some() || chunk.is_no_loops())
        {
            return;
        }
        self.end_repeat(None, batch);
        if !locks::is_part_of_waiting(&event) {
            self.turns.forget();
        }
        match event {
            Event::ThreadStart { sp, seq, .. } => {
                self.now = seq;
                self.sp = sp;
                self.stack_top = sp;
                self.base = sp;
                self.expected.sp = sp;
                self.begin_whole(batch);
            }
            Event::ThreadEnd { seq, .. } => {
                self.now = seq;
                self.end_extents(batch);
            }
            Event::SetSp(sp) => {
                if matches!(self.pending, Pending::Call { .. }) {
                    self.resolve(true, batch);
                }
                self.sp = sp;
                self.unsettled = true;
            }
            Event::Signal { .. } => {
                if matches!(self.pending, Pending::Call { .. }) {
                    self.resolve(true, batch);
                }
                // The handler's own stack pointer comes with the event behind this one.
                self.frames.handler_begins(self.sp);
                self.pending = if self.extents.is_open() { Pending::Entry } else { Pending::Nothing };
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
            Event::Exec => {
                self.end_extents(batch);
                self.stack_top = 0;
                self.stacks.forget();
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
                self.tries = None;
                self.yielded = false;
                if self.extents.end_at_gap() {
                    self.end_extent(batch);
                }
            }
            Event::FutexWait { seq, address } => {
                self.now = seq;
                // A sanitizer's own locks are no lane's.
                let is_in_checks = self.kept_before_checks == Some(self.counts.kept);
                let is_in_runtime = self.stack.in_leaf() || self.runtimes.is_in();
                let is_known =
                    is_in_runtime || self.plan.locks.id(address).is_some() || self.plan.libraries.has(address);
                let last = self.plan.blocks.rows.last_segment(batch).or(self.previous);
                let is_librarys =
                    self.plan.libraries.is_linked && last.is_some_and(|last| self.plan.table.is_of_library(last));
                let is_known = is_known || is_librarys || self.unordered.has_met(self.counts.kept);
                let is_own = self.extents.is_open() && !is_known && !is_in_checks;
                self.counts.own_waits += u64::from(is_own);
            }
            Event::Chunk(chunk) => self.take_chunk(&chunk, batch),
            // Only text has barriers of a warp.
            Event::WarpBarrier
            | Event::Partial { .. }
            | Event::ModuleLoaded(_)
            | Event::ModuleUnloaded(_)
            | Event::Fork { .. } => {}
        }
        self.update();
    }

    fn begin_whole(&mut self, batch: &mut Batch) {
        if self.plan.choice.rule.is_whole() {
            self.begin(Extent::Whole, batch);
        }
    }

    fn enter(&mut self, function: SyncFunction, object: u64, argument: u64, batch: &mut Batch) {
        let is_outermost = !self.stack.is_in(function);
        let entered = self.stack.enter(function, object, argument);
        self.linkage.reach_runtime();
        if !entered.counts {
            return;
        }
        let launch = match function {
            SyncFunction::ParallelBody if is_outermost => self.launches.next().copied().flatten(),
            SyncFunction::ParallelBody => self.inner_launches.next().copied().flatten(),
            _ => None,
        };
        let team = match function {
            SyncFunction::TeamsBody | SyncFunction::TargetBody => self.teams.next().copied(),
            _ => launch.and_then(|launch| self.plan.episodes.leagues.of_launch.get(&launch).copied()),
        };
        if function == SyncFunction::ParallelBody
            && !is_outermost
            && launch.is_some_and(|launch| self.plan.episodes.alone.contains(&launch))
        {
            self.alone.get_or_insert(self.stack.height());
        }
        if function == SyncFunction::TaskBody {
            self.task_body = Some(object);
            // Who runs tasks while it waits does work, also where a task writes nothing.
            self.spin.forget();
            self.tries = None;
        }
        let task = if function == SyncFunction::TaskBody { self.tasks.next().copied() } else { None };
        if self.extents.is_open() && function == SyncFunction::TaskBody && self.plan.choice.rule.is_tasks() {
            self.begin_inside(task, batch);
        } else if self.extents.is_open() {
            self.tell_part(function, (object, launch, team), batch);
        } else if self.plan.choice.rule.begins_with(function, object) {
            (self.team, self.task, self.piece) = (team, task, None);
            self.count_extent(batch);
            // The lanes of a launch start together, and only then take the locks that they came with.
            if let Some(launch) = launch {
                push_control(batch, Control::Meet(launch));
            }
            self.begin_counted(Extent::Function { height: self.stack.height() }, batch);
        }
        if matches!(function, SyncFunction::SemaphorePost | SyncFunction::DoacrossPost)
            && let Some(episode) = self.hand_overs.next().copied().flatten()
        {
            self.tell(Control::Post(episode), batch);
        }
        if function == SyncFunction::ValueWait && self.extents.is_open() && self.plan.lock_rule.are_taken() {
            match argument {
                1 => self.unordered.waits_surely(),
                // It wakes who waits for a lock that it has given.
                2 if self.plan.locks.id(object).is_some() => {}
                _ => self.unordered.waits(self.counts.kept),
            }
        }
        let action = locks::action(function).filter(|_| !self.plan.locks.is_no_lock(function, object));
        let given = match action {
            Some(Action::Give) => {
                let object = locks::object_of(function, object);
                let is_known = self.held.has(object) || !self.extents.is_open();
                if !is_known && self.plan.lock_rule.are_taken() && locks::is_only_given_by_who_has_it(function) {
                    self.unordered.waits_surely();
                }
                self.held.give(object)
            }
            Some(Action::Wait) => self.held.wait(argument),
            Some(Action::Take { .. }) | None => None,
        };
        if let Some(lock) = given {
            self.release_if_replayed(lock, batch);
        }
        if is_of_condition(function) {
            self.waits_at = self.conditions.next().copied().flatten();
            let is_wait = function == SyncFunction::ConditionWait;
            let is_own = self.extents.is_open() && !self.runtimes.is_in_openmp();
            let is_ordered = self.waits_at.is_some() || self.is_of_gathering(argument);
            if !is_ordered && is_own && self.plan.lock_rule.are_taken() {
                let UnorderedWaits { awaited, signalled, .. } = &mut self.unordered;
                if is_wait { awaited } else { signalled }.insert(object);
            }
            if !is_wait {
                self.wake(batch);
            }
        }
    }

    /// It begins its part of a team's work: of each, where a thread's whole run is the region; else of those inside of
    /// an extent.
    fn tell_part(
        &mut self,
        function: SyncFunction,
        (object, launch, team): (u64, Option<EpisodeId>, Option<InLeague>),
        batch: &mut Batch,
    ) {
        let rule = &self.plan.choice.rule;
        if rule.is_whole() && rule.begins_with(function, object) {
            self.parts.push(self.stack.height());
            self.team = team;
            push_control(batch, Control::Part(launch));
            self.tell_team(batch);
        } else if function == SyncFunction::ParallelBody
            && self.plan.tells_extents
            && self.plan.choice.marks.is_empty()
            && self.alone.is_none()
            && launch.is_some()
        {
            self.parts.push(self.stack.height());
            push_control(batch, Control::Part(launch));
        }
    }

    fn leave(&mut self, function: SyncFunction, result: u64, batch: &mut Batch) {
        let Some(left) = self.stack.leave(function) else { return };
        self.alone.take_if(|height| self.stack.height() < *height);
        while self.parts.pop_if(|height| self.stack.height() < *height).is_some() {
            push_control(batch, Control::PartEnd);
        }
        if left.counts {
            if let Some(episode) = self.waits_at.take().filter(|_| function == SyncFunction::ConditionWait) {
                if let Some(lock) = self.plan.locks.of_barrier(left.argument) {
                    self.meets_behind = Some((lock, episode));
                } else {
                    self.meet(Control::Meet(episode), batch);
                }
            }
            if function == SyncFunction::MutexUnlock {
                self.meet_behind(Some(left.object), batch);
                self.gather(left.object, batch);
            }
            // gcc's runtime waits for its turn also where it gives a thread the next iterations.
            let is_in_runtime = function == SyncFunction::OrderedEnter && self.runtimes.is_below_openmp(self.sp);
            let is_no_lock = is_in_runtime || self.plan.locks.is_no_lock(function, left.object);
            let action = locks::action(function).filter(|_| !is_no_lock);
            let taken = match action {
                Some(Action::Take { .. }) if !locks::has_taken(function, left.argument, result) => None,
                Some(Action::Take { shared, .. }) => self.held.take(locks::object_of(function, left.object), shared),
                Some(Action::Wait) => self.held.resume(left.argument),
                Some(Action::Give) | None => None,
            };
            if let Some(lock) = taken {
                self.gathers_at.take_if(|mutex| *mutex == lock.object);
                if self.extents.is_open() && self.plan.lock_rule.are_taken() {
                    self.acquire(lock, batch);
                }
            }
            let has_waited = match function {
                SyncFunction::SemaphoreWait | SyncFunction::SemaphoreTryWait => result as u32 == 0,
                function => function == SyncFunction::DoacrossWait,
            };
            if has_waited && let Some(episode) = self.hand_overs.next().copied().flatten() {
                self.tell(Control::Await(episode), batch);
            }
            if locks::is_barrier(function)
                && let Some(episode) = self.waits.next()
            {
                self.meet(Control::Meet(*episode), batch);
                // It waits for the others behind the function.
                if left.argument == 2 && function == SyncFunction::BarrierWait {
                    self.unordered.meets(self.counts.kept);
                }
            }
            if function == SyncFunction::TeamsNext && result & 0xff != 0 {
                self.team = self.teams.next().copied();
                if self.extents.is_open() && !self.extents.is_fresh() {
                    self.tell_team(batch);
                }
            }
            // A runtime that yields waits by itself.
            self.yielded |= function == SyncFunction::Yield && self.extents.is_open() && !self.runtimes.is_in_openmp();
            if function == SyncFunction::ThreadJoin {
                self.extents.join();
            }
        }
        while self.extents.end_below(self.stack.height()) {
            self.end_extent(batch);
        }
    }

    /// Before an instruction that may take or give a lock of the program's own.
    pub(super) fn act(&mut self, does: Does, word: u64, segment: SegmentId, batch: &mut Batch) {
        // A ticket lock is drawn at one address and given at another.
        let (does, word) = match (does, self.plan.locks.given_at(word)) {
            (Does::Draws, lock) if lock != word => (Does::Gives, lock),
            (_, lock) => (does, lock),
        };
        // Without optimisation one instruction may count at barriers and act on locks.
        let (pc, episodes) = (self.plan.table[segment].start(), &self.plan.episodes);
        if episodes.own.contains_key(&word) && episodes.arrivals.contains(&pc) {
            return self.arrive(word, batch);
        }
        let Some(can_share) = self.plan.locks.can_share(word) else { return };
        let has = self.held.locks().iter().any(|lock| lock.object == word);
        match does {
            Does::Takes | Does::MayTake | Does::Draws => {
                let taken = if has { None } else { self.held.take(word, can_share && does == Does::MayTake) };
                if let Some(lock) = taken.filter(|lock| self.plan.locks.is_own(lock.object).is_some())
                    && self.extents.is_open()
                    && self.plan.lock_rule.are_taken()
                {
                    self.acquire(lock, batch);
                }
                if does != Does::Draws && self.reason(segment).is_none() && !self.extents.is_fresh() {
                    self.resolve(true, batch);
                    self.try_to_take(segment, word, !has, batch);
                }
            }
            Does::Gives | Does::MayGive if has => {
                self.tries = None;
                if let Some(lock) = self.held.give(word) {
                    self.release_if_replayed(lock, batch);
                    self.meet_behind(Some(word), batch);
                }
                if self.reason(segment).is_none() && !self.extents.is_fresh() {
                    self.resolve(true, batch);
                    self.perhaps_wake(segment, word, batch);
                }
            }
            _ => {}
        }
    }

    /// The thread posts, or has waited.
    fn tell(&mut self, control: Control, batch: &mut Batch) {
        if self.extents.is_open() {
            self.spin.forget();
            self.turns.forget();
            push_control(batch, control);
        }
    }

    /// The thread has waited in a loop. That it has a lock of the program's own may be since it asks for it: it has it
    /// from its first try on.
    pub(super) fn has_waited(&mut self) {
        let is_own = |lock: &HeldLock| self.plan.locks.is_own(lock.object).is_some();
        if self.plan.lock_rule.are_taken() && !self.held.locks().iter().any(is_own) {
            self.unordered.waits(self.counts.kept);
        }
    }

    pub(super) fn acquire(&mut self, lock: HeldLock, batch: &mut Batch) {
        self.unordered.is_ordered(self.counts.kept);
        if self.plan.locks.is_own(lock.object).is_some() && self.plan.locks.of_barrier(lock.object).is_none() {
            self.own_locks.extend(self.plan.locks.id(lock.object));
        }
        if let Some(acquire) = self.plan.locks.acquire(lock) {
            push_control(batch, acquire);
        }
    }

    pub(super) fn release_if_replayed(&self, lock: HeldLock, batch: &mut Batch) {
        if self.extents.is_open() && self.plan.lock_rule.are_taken() {
            self.release(lock, batch);
        }
    }

    /// Gives a lock back. When nothing was kept since it was taken, neither control stays: nobody would have waited for
    /// anything. Where a turn is watched both stay: they go with it.
    fn release(&self, lock: HeldLock, batch: &mut Batch) {
        let Some(id) = self.plan.locks.replayed(lock) else { return };
        let last = batch.codes.last().filter(|code| code.is_control()).map(|code| code.entry());
        if let Some(Entry::Control(index)) = last
            && !self.turns.is_watching()
            && !self.spin.is_watching()
            && batch.controls[index].acquired() == Some(id)
        {
            batch.codes.pop();
            batch.controls.pop();
        } else {
            push_control(batch, Control::Release(id));
        }
    }
}
