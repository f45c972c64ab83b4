//! The long way: a block segment by segment, where the region, the code filter, functions that wait, or a loop that is
//! watched have to be looked at between them.

use heuristics::SegmentId;
use trace_format::{Kind, SpEffect};

use super::super::blocks::{Ends, Facts, Flags, Mark, MarkEvent, OwnLock};
use super::super::code::filter::Class;
use super::extents::Extent;
use super::waiting::tries::{Come, Cut, Tries};
use super::{Counts, Expected, OnStack, Pending, Reason, ThreadState, push_control};
use crate::{Batch, Code, Control};

impl ThreadState<'_> {
    /// Follows the thread through the first so many instructions of a block; all, where no number is given.
    pub(super) fn block_in_parts(
        &mut self,
        facts: Facts,
        executed: Option<u32>,
        sps: &[u64],
        memory: &[u64],
        batch: &mut Batch,
    ) {
        let executed = executed.unwrap_or(facts.len);
        let whole = executed == facts.len;
        let passed = match self.extents.is_open() {
            _ if facts.flags.has(Flags::SWITCH) => None,
            false if !facts.flags.has(Flags::ENTRY) => Some(Reason::OutsideRegion),
            true if self.stack.in_leaf() => Some(Reason::SyncRuntime),
            true if self.quiet && facts.is_mathematics && self.closes_nothing(facts, sps) => Some(Reason::Mathematics),
            true if self.gathers_quietly && self.only_waits(facts, sps) => Some(Reason::SyncRuntime),
            _ => None,
        };
        if let Some(reason) = passed.filter(|_| whole) {
            self.pass_by(facts, reason, sps, batch);
            return;
        }
        let plan = self.plan;
        let codes = plan.blocks.codes(facts);
        let ids = codes.iter().filter_map(|c| c.as_segment());
        let is_watched = facts.flags.has(Flags::WAITS) || self.turns.is_watching();
        let (mut left, mut sps, mut memory) = (executed as usize, sps.iter(), memory);
        for id in ids {
            if left == 0 {
                break;
            }
            let segment = &plan.table[id];
            assert!(segment.len() <= left, "segments are cut where blocks were left");
            left -= segment.len();
            let (addresses, rest) = memory.split_at(segment.addresses as usize);
            memory = rest;
            let recorded = (segment.sp == SpEffect::Recorded).then(|| *sps.next().expect("the reader gives them all"));
            if is_watched {
                if self.repeats_segment((id, recorded), addresses, batch) {
                    continue;
                }
                self.watch_for_turns((id, recorded), batch);
                // With it, the next turn has begun.
                if self.repeats_segment((id, recorded), addresses, batch) {
                    continue;
                }
            }
            // While a turn is made over and over, the stack pointer is not followed.
            let after = self.sp_behind(segment.sp, recorded);
            self.watch_for_spinning(id, batch);
            let kept_before = self.counts.kept;
            self.segment(id, after, addresses, batch);
            if self.counts.kept > kept_before && self.spin.is_watching() {
                self.spin_on(id);
            }
        }
        self.update();
    }

    /// The stack pointer behind a segment that changes it so, by what is recorded.
    pub(super) fn sp_behind(&self, effect: SpEffect, recorded: Option<u64>) -> u64 {
        match effect {
            SpEffect::Add(change) => self.sp.wrapping_add_signed(i64::from(change)),
            SpEffect::Recorded => recorded.unwrap_or(self.sp),
        }
    }

    /// A segment is kept while the thread may be spinning.
    fn spin_on(&mut self, id: SegmentId) {
        if self.plan.writes.is_set(id, &self.plan.table) {
            self.spin.forget();
        } else if self.plan.table[id].last().kind.transfers_control() {
            self.spin.block_kept();
        }
    }

    /// Whether no frame is closed before a block's last segment, nor the extent.
    fn closes_nothing(&self, facts: Facts, sps: &[u64]) -> bool {
        let (mut from, mut left) = (self.sp, sps.iter());
        let outline = self.plan.blocks.outline(facts);
        let mut stays = outline.iter().map(|mark| {
            let stays = !self.rises_above(from, *mark);
            if mark.event == MarkEvent::Recorded {
                from = *left.next().expect("the reader gives as many stack pointers as the block has");
            }
            stays
        });
        !outline.is_empty() && stays.all(|stays| stays)
    }

    /// Whether a block that a thread runs while it waits for others does nothing but run: it has code of one kind,
    /// calls nothing and returns nowhere.
    fn only_waits(&self, facts: Facts, sps: &[u64]) -> bool {
        const MORE: u16 =
            Flags::FILTERED | Flags::MARKER | Flags::STUB | Flags::STUB_FIRST | Flags::LOCK | Flags::SWITCH;
        let is_plain = |mark: &Mark| matches!(mark.event, MarkEvent::Recorded | MarkEvent::Last(Ends::Otherwise));
        !facts.flags.has(MORE)
            && self.plan.blocks.outline(facts).iter().all(is_plain)
            && self.closes_nothing(facts, sps)
    }

    /// A block of which nothing is kept, whatever it is: outside of the region, inside of a leaf function or of a
    /// mathematical one, or while the thread waits for others.
    fn pass_by(&mut self, facts: Facts, reason: Reason, sps: &[u64], batch: &mut Batch) {
        let goes_on = self.pending == Pending::Nothing && !self.linkage.is_sent() && !self.unsettled;
        self.resolve(false, batch);
        self.leave_stub(reason);
        self.counts.drop(reason, u64::from(facts.len));
        let from = sps.last().copied().unwrap_or(self.sp);
        self.sp = from.wrapping_add_signed(i64::from(facts.net));
        if self.extents.is_open() && self.sp > self.ceiling {
            self.settle(batch);
        }
        self.unsettled = false;
        if !goes_on {
            self.update();
        }
    }

    /// The thread runs a segment; `after` is the stack pointer after it.
    pub(super) fn segment(&mut self, id: SegmentId, after: u64, addresses: &[u64], batch: &mut Batch) {
        self.settle_after_jump(batch);
        let before = self.sp;
        if self.plan.choice.rule.exits.is_some() {
            self.pass_marker(id, batch);
        } else if !self.extents.is_open() && self.plan.blocks.is_entry(id) {
            self.begin(Extent::of_function(self.sp, self.stack_top, self.frames.handlers()), batch);
        }
        let segment = &self.plan.table[id];
        let kind = segment.last().kind;
        if self.extents.is_open() {
            self.runtimes.run(self.plan.blocks.side(id), self.sp);
        }
        if let Some((does, lock)) = self.plan.blocks.act(id) {
            let last = || self.held.locks().iter().rfind(|held| self.plan.locks.is_own(held.object).is_some());
            let word = match lock {
                OwnLock::At(word) => Some(word),
                OwnLock::Recorded => addresses.first().copied(),
                OwnLock::Last => last().map(|held| held.object),
            };
            if let Some(word) = word {
                self.act(does, word, id, batch);
            }
        }
        match self.reason(id) {
            None => {
                if self.extents.is_fresh() {
                    self.begin_stream(id, batch);
                }
                self.resolve(true, batch);
                self.come_from_loader();
                self.come_from_tries(id, batch);
                let id = self.perhaps_in_stub(id);
                self.correct(batch);
                batch.codes.push(Code::segment(id));
                batch.addresses.extend_from_slice(addresses);
                if segment.sp == SpEffect::Recorded {
                    batch.sps.push(after.wrapping_sub(self.base) as i64);
                }
                self.counts.kept += segment.len() as u64;
                self.sp = after;
                self.expected.sp = after;
                if kind.is_call() {
                    self.called(batch.codes.len() - 1, before);
                } else if kind == Kind::Return {
                    self.expected.return_();
                }
                if let Some(mut tries) = self.tries.take() {
                    tries.ran(segment, self.plan.table.listing(id), &self.cut_here(batch));
                    self.tries = Some(tries);
                }
            }
            Some(reason) => {
                self.resolve(false, batch);
                self.leave_stub(reason);
                self.counts.drop(reason, segment.len() as u64);
                if self.plan.blocks.class(id) == Class::Checks {
                    self.kept_before_checks = Some(self.counts.kept);
                }
                self.sp = after;
                if kind.is_call() && self.extents.is_open() {
                    self.pending = Pending::Entry;
                }
            }
        }
        if kind == Kind::Syscall
            && let Some(tries) = &mut self.tries
        {
            tries.call_kernel();
        }
        if let Some(is_sure) = self.plan.blocks.switch(id)
            && self.frames.handlers() == 0
            && self.stacks.leads((before, after), self.stack_top, is_sure)
        {
            self.go_on_elsewhere(batch);
        }
        if self.sp > self.ceiling {
            self.settle(batch);
        }
    }

    /// The stack pointer has gone to another stack: what is open there of the region goes on.
    fn go_on_elsewhere(&mut self, batch: &mut Batch) {
        self.resolve(false, batch);
        let mut extent = None;
        self.extents.exchange(&mut extent);
        if let Some((_, false)) = extent {
            push_control(batch, Control::Leave(self.stacks.name()));
        }
        let waits = OnStack {
            extent,
            frames: std::mem::take(&mut self.frames),
            linkage: std::mem::take(&mut self.linkage),
            runtimes: std::mem::take(&mut self.runtimes),
            held: std::mem::take(&mut self.held),
        };
        let mut there = self.stacks.go_to(self.sp, waits, self.counts.outside_region);
        if let Some((_, false)) = there.extent {
            push_control(batch, Control::GoOn(self.stacks.name()));
        }
        self.extents.exchange(&mut there.extent);
        (self.frames, self.linkage, self.runtimes, self.held) =
            (there.frames, there.linkage, there.runtimes, there.held);
        self.forget_waits();
        self.update();
    }

    /// Before a segment at which a thread may be spinning: takes the pass before out again, or watches for the next.
    fn watch_for_spinning(&mut self, first: SegmentId, batch: &mut Batch) {
        if !(self.yielded || self.plan.blocks.pauses(first)) {
            return;
        }
        self.settle_after_jump(batch);
        if self.reason(first).is_some() {
            return;
        }
        if self.extents.is_fresh() {
            self.begin_stream(first, batch);
        }
        self.yielded = false;
        self.has_waited();
        self.resolve(true, batch);
        if let Some(mark) = self.spin.come_to(first, self.sp, self.held.locks(), batch) {
            self.turns.forget();
            self.counts.spin += self.counts.kept - mark.kept;
            self.counts.kept = mark.kept;
            self.expected = mark.expected;
            self.perhaps_forget_tries(batch);
        }
        self.spin.mark(first, self.sp, self.held.locks(), self.counts.kept, self.expected, batch);
    }

    /// The stream as it is.
    fn cut_here(&self, batch: &Batch) -> Cut {
        let (sp, level) = (self.sp, self.frames.level());
        Cut { sp, level, lengths: batch.lengths(), counts: self.counts, expected: self.expected }
    }

    /// What was kept since there was waiting.
    fn cut_back(&mut self, cut: &Cut, batch: &mut Batch) {
        batch.truncate(&cut.lengths);
        self.count_as_waiting(cut.counts, cut.expected);
        self.spin.forget();
        self.turns.forget();
    }

    /// What was kept since there were these counts is out of the stream again, as waiting. Returns what was added to
    /// the counts since.
    pub(super) fn count_as_waiting(&mut self, before: Counts, expected: Expected) -> Counts {
        let mut counts = self.counts.since(&before);
        counts.spin += std::mem::take(&mut counts.kept);
        self.counts = before;
        self.counts.add(&counts);
        self.expected = expected;
        counts
    }

    /// Before a segment that is kept and tries to take a lock of the program's own, which the thread has from its first
    /// try on.
    pub(super) fn try_to_take(&mut self, segment: SegmentId, word: u64, is_first: bool, batch: &mut Batch) {
        let now = self.cut_here(batch);
        if is_first {
            self.tries = Some(Box::new(Tries::new(word, self.held.locks(), segment, now)));
            return;
        }
        let Some(mut tries) = self.tries.take_if(|tries| tries.are_of(word)) else { return };
        // Whole turns go as such.
        if let Some(cut) = tries.again(segment, &now, self.held.locks(), self.turns.is_watching()) {
            self.cut_back(&cut, batch);
            tries.were_cut(self.counts);
        }
        self.tries = Some(tries);
    }

    /// Before a segment that is kept and gives a lock of the program's own: it may wake who waits.
    pub(super) fn perhaps_wake(&mut self, segment: SegmentId, word: u64, batch: &mut Batch) {
        let now = self.cut_here(batch);
        let gives = (segment, self.plan.table.listing(segment));
        self.tries = Tries::wake(word, self.held.locks(), gives, now).map(Box::new);
    }

    /// Before a segment that is kept.
    #[inline]
    fn come_from_tries(&mut self, segment: SegmentId, batch: &mut Batch) {
        let Some(mut tries) = self.tries.take() else { return };
        let pc = self.plan.table[segment].start();
        match tries.come_to(pc, &self.cut_here(batch), self.held.locks()) {
            Come::Behind => self.tries = Some(tries),
            Come::Waited(cut) => self.cut_back(&cut, batch),
            Come::Away => {}
        }
    }

    /// The batch was cut for another reason: what was kept of tries may be gone.
    pub(super) fn perhaps_forget_tries(&mut self, batch: &Batch) {
        self.tries.take_if(|tries| !tries.are_left(batch.codes.len()));
    }
}
