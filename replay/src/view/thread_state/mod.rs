//! A thread's way through its stream, item by item: what is kept of it, and what the replay must be told.
//!
//! Two states run side by side. The *true* one follows the whole stream: stack pointer, open frames, functions, locks.
//! What the replay makes of the stream it gets is the other (`expected.rs`). Where they differ before a kept segment, a
//! control sets the replay right.
//!
//! A block is followed in one of four ways: whole (`whole.rs`), as most are; as a part of a turn that is made over
//! and over (`turns.rs`); in pieces, where an extent of a function begins or ends in it (`in_pieces.rs`); or segment by
//! segment (`in_parts.rs`), which is right for every block. Each of the others says what it buys.

mod chunks;
mod counts;
mod events;
mod expected;
mod extents;
mod in_parts;
mod in_pieces;
mod linkage;
mod meetings;
mod runtimes;
mod waiting;
mod whole;

use std::collections::BTreeSet;
use std::ops::Range;

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::{BlockId, Event, Seq, SpEffect};

pub(super) use self::counts::{Counts, Reason};
pub(super) use self::expected::{Expected, push_control};
use self::extents::{Extent, Extents};
use self::linkage::Linkage;
use self::runtimes::Runtimes;
pub(super) use self::runtimes::Side;
use self::waiting::spin::Spin;
use self::waiting::tries::Tries;
use self::waiting::turns::Turns;

use super::code::filter::Class;
use super::first_look::leagues::InLeague;
use super::frames::Frames;
use super::locks::Held;
use super::plan::Plan;
use super::stacks::{Stacks, Waits};
use super::stream::{Followed, Follower};
use super::sync_stack::SyncStack;
use super::waits::gatherings::Rounds;
use super::waits::unordered::UnorderedWaits;
use crate::lanes::stream::BatchLengths;
use crate::{Batch, Code, Control, EpisodeId, LockId, Locks};

/// What the last instruction leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// A call that is kept: it stays a call if the code called is kept. Its code is at this index; the stack pointer
    /// before it.
    Call {
        code: usize,
        sp: u64,
    },
    /// A call that is not kept, or a signal: a frame opens if the next instruction is kept.
    Entry,
}

/// What is kept of a stack that the thread is not on.
#[derive(Default)]
struct OnStack {
    /// What is open of the region there, and whether nothing of it was kept yet.
    extent: Option<(Extent, bool)>,
    frames: Frames,
    linkage: Linkage,
    runtimes: Runtimes,
    held: Held,
}

impl Waits for OnStack {
    fn is_empty(&self) -> bool {
        self.extent.is_none()
    }

    fn is_gone_at(&self, sp: u64) -> bool {
        matches!(self.extent, Some((Extent::Frame { entry, .. }, _)) if entry < sp)
    }
}

/// What is kept of a task that waits, while its thread runs another one inside of it.
struct Waiting {
    held: Held,
    task: Option<(Seq, u32)>,
    piece: Option<(Option<u64>, Control)>,
}

/// Where a thread stands.
pub(super) struct ThreadState<'a> {
    plan: &'a Plan,
    launches: std::slice::Iter<'a, Option<EpisodeId>>,
    inner_launches: std::slice::Iter<'a, Option<EpisodeId>>,
    /// How many functions were open when it began a region inside of another that it runs alone.
    alone: Option<usize>,
    waits: std::slice::Iter<'a, EpisodeId>,
    conditions: std::slice::Iter<'a, Option<EpisodeId>>,
    hand_overs: std::slice::Iter<'a, Option<EpisodeId>>,
    /// What it meets where it gives mutexes of barriers back; how often it has done so, and at which it waits.
    gatherings: &'a Rounds,
    given: FxHashMap<u64, usize>,
    gathers_at: Option<u64>,
    /// At which barrier the thread is that waits for a condition.
    waits_at: Option<EpisodeId>,
    /// The meeting behind a mutex that is a part of a barrier, which the thread still has.
    meets_behind: Option<(u64, EpisodeId)>,
    teams: std::slice::Iter<'a, InLeague>,
    tasks: std::slice::Iter<'a, (Seq, u32)>,
    taskloops: std::slice::Iter<'a, u32>,
    /// The team of a construct that the extent is of, until the stream says so.
    team: Option<InLeague>,
    /// How many functions are open where the thread began its parts of teams' work, if it is told where.
    parts: Vec<usize>,
    /// The number of the task that the extent is, and of its part.
    task: Option<(Seq, u32)>,
    /// The body of a task that has just begun.
    task_body: Option<u64>,
    /// The piece of a taskloop that the extent is, until the stream says so.
    piece: Option<(Option<u64>, Control)>,
    /// Of the extents around the open one.
    waiting: Vec<Waiting>,
    stacks: Stacks<OnStack>,

    sp: u64,
    /// Whether frames have to be looked at before the next instruction: the stack pointer has jumped.
    unsettled: bool,
    frames: Frames,
    pending: Pending,
    linkage: Linkage,
    runtimes: Runtimes,
    stack: SyncStack,
    held: Held,
    extents: Extents,
    /// The stack pointer that counts as 0.
    base: u64,
    /// The thread's first stack pointer.
    stack_top: u64,
    spin: Spin,
    turns: Turns,
    /// Tries to take a lock of the program's own.
    tries: Option<Box<Tries>>,
    /// The last segment of the batch before.
    previous: Option<SegmentId>,
    /// How many codes more than it has the batch would have unfolded.
    folded_away: usize,
    /// Frames that a block has closed which may yet turn out to need the long way.
    closed: Vec<u64>,
    /// Whether the thread has just yielded.
    yielded: bool,

    expected: Expected,

    /// Whether all of this holds: in an extent of which something was kept, in no leaf function, in no dropped critical
    /// section, in no handler, no loop watched.
    quiet: bool,
    /// The same, but that it waits at a barrier made of a mutex.
    gathers_quietly: bool,
    /// The highest stack pointer that closes neither a frame nor the extent.
    ceiling: u64,

    counts: Counts,
    unordered: UnorderedWaits,
    /// The locks of the program's own that it took in the region.
    own_locks: BTreeSet<LockId>,
    /// By word: how often the thread has come to the barrier of the program's own.
    arrivals: FxHashMap<u64, u32>,
    /// How much was kept when the thread last ran code of a sanitizer.
    kept_before_checks: Option<u64>,
    now: Seq,
    /// Where the batch ended when the first extent behind the lane's own began.
    over: Option<BatchLengths>,
}

impl<'a> ThreadState<'a> {
    /// A thread before its first item.
    ///
    /// Of its extents of the region, those of these numbers are the lane's.
    pub fn new(plan: &'a Plan, thread: usize, own: Range<u64>) -> ThreadState<'a> {
        ThreadState {
            plan,
            launches: plan.episodes.launches[thread].iter(),
            inner_launches: plan.episodes.inner[thread].iter(),
            alone: None,
            waits: plan.episodes.waits[thread].iter(),
            conditions: plan.episodes.conditions[thread].iter(),
            gatherings: &plan.episodes.gatherings[thread],
            given: FxHashMap::default(),
            gathers_at: None,
            hand_overs: plan.episodes.hand_overs.episodes[thread].iter(),
            waits_at: None,
            meets_behind: None,
            teams: plan.episodes.leagues.starts[thread].iter(),
            tasks: plan.tasks.numbers.get(thread).map_or(&[][..], |numbers| numbers).iter(),
            taskloops: plan.tasks.taskloops.get(thread).map_or(&[][..], |numbers| numbers).iter(),
            team: None,
            parts: Vec::new(),
            task: None,
            task_body: None,
            piece: None,
            waiting: Vec::new(),
            stacks: Stacks::default(),
            sp: 0,
            unsettled: false,
            frames: Frames::default(),
            pending: Pending::Nothing,
            linkage: Linkage::default(),
            runtimes: Runtimes::default(),
            stack: SyncStack::default(),
            held: Held::default(),
            extents: Extents::new(own),
            base: 0,
            stack_top: 0,
            spin: Spin::default(),
            turns: Turns::default(),
            tries: None,
            previous: None,
            folded_away: 0,
            closed: Vec::new(),
            yielded: false,
            expected: Expected::default(),
            quiet: false,
            gathers_quietly: false,
            ceiling: u64::MAX,
            counts: Counts::default(),
            unordered: UnorderedWaits::default(),
            own_locks: BTreeSet::new(),
            arrivals: FxHashMap::default(),
            kept_before_checks: None,
            now: Seq(0),
            over: None,
        }
    }

    #[inline]
    fn called(&mut self, code: usize, sp_before: u64) {
        self.expected.call();
        self.pending = Pending::Call { code, sp: sp_before };
    }

    /// Why a segment that runs now is not kept; none where it is.
    fn reason(&self, id: SegmentId) -> Option<Reason> {
        if !self.extents.is_open() {
            return Some(Reason::OutsideRegion);
        }
        if self.stack.in_leaf() {
            return Some(Reason::SyncRuntime);
        }
        match self.plan.blocks.class(id) {
            Class::SyncRuntime | Class::Checks => Some(Reason::SyncRuntime),
            Class::OutsideMain => Some(Reason::OutsideMain),
            Class::Mathematics => Some(Reason::Mathematics),
            Class::Keep if self.gathers_at.is_some() => Some(Reason::SyncRuntime),
            Class::Keep if self.runtimes.is_helped() || self.binds(id) => Some(Reason::SyncRuntime),
            Class::Keep if self.drops_critical() => Some(Reason::Critical),
            Class::Keep => None,
        }
    }

    /// Whether the segment is what a stub of the linkage table does to have its slot bound, when it is used for the
    /// first time: a part of the loader.
    fn binds(&self, id: SegmentId) -> bool {
        let plan = self.plan;
        if plan.table.in_stub(id) == id {
            return false;
        }
        let is_in_stub = self.linkage.is_sent() || plan.blocks.is_named_stub(id);
        is_in_stub && plan.table.binds(id) || self.linkage.binds_above(self.sp)
    }

    fn drops_critical(&self) -> bool {
        self.plan.lock_rule == Locks::Drop && !self.held.locks().is_empty()
    }

    /// Streams that are to be cut tell which team the thread works for.
    fn tell_team(&mut self, batch: &mut Batch) {
        if let Some((league, order)) = self.team.take_if(|_| self.plan.tells_extents) {
            push_control(batch, Control::Team { league, order });
        }
    }

    /// The first instruction of an extent is kept: it is at level 1 and its stack pointer counts as 0.
    fn begin_stream(&mut self, first: SegmentId, batch: &mut Batch) {
        self.extents.keep(first);
        self.pending = Pending::Nothing;
        self.linkage.begin();
        if self.plan.tells_extents {
            let (after, part) = self.task.unwrap_or((self.now, 0));
            push_control(batch, Control::Begin { after, part });
            self.tell_team(batch);
            if let Some((iterations, piece)) = self.piece.take() {
                chunks::push_piece(batch, iterations, piece);
            }
        }
        // One that is inside of another goes on with the thread's stack; where the stream is cut, it counts from there.
        if self.extents.depth() > 0 {
            return;
        }
        self.frames.restart();
        let expected = self.expected.sp.wrapping_sub(self.base);
        // Where calls go on behind others, all of a thread's count from one place.
        if !self.plan.choice.rule.by_stack {
            self.base = self.sp;
        }
        if self.plan.has_memory {
            // A stack that does not lie below the thread's first one is another that the thread made for itself: what
            // lies above is not known.
            let above = u32::try_from(self.stack_top.wrapping_sub(self.base)).unwrap_or(0);
            push_control(batch, Control::Stack { zero: self.base, above });
        }
        self.expected.sp = self.base.wrapping_add(expected);
        self.raise_ceiling();
    }

    /// It is known whether the code after the last call is kept.
    fn resolve(&mut self, kept: bool, batch: &mut Batch) {
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {}
            Pending::Call { .. } | Pending::Entry if kept => {
                self.linkage.send(self.sp);
                self.frames.push(self.sp);
                self.raise_ceiling();
            }
            Pending::Call { code, sp } => {
                let (table, rows) = (&self.plan.table, &self.plan.blocks.rows);
                batch.codes[code] = match (batch.codes[code].as_segment(), batch.codes[code].as_row()) {
                    (Some(call), _) => {
                        if table[call].sp == SpEffect::Recorded {
                            batch.sps.pop();
                        }
                        Code::segment(table.elided(call))
                    }
                    (_, Some(row)) => Code::row(rows.elided(row)),
                    _ => unreachable!("a call is no control"),
                };
                self.expected.elide_call(sp);
            }
            Pending::Entry => {}
        }
    }

    /// The segment that is kept now, marked where it is in a stub of the linkage table.
    fn perhaps_in_stub(&mut self, id: SegmentId) -> SegmentId {
        let in_stub = self.plan.table.in_stub(id);
        let has_form = in_stub != id;
        if self.linkage.run_stub(has_form, has_form && self.plan.blocks.is_named_stub(id)) { in_stub } else { id }
    }

    /// What comes now is not kept. A stub that leads there was a part of the call, so that the function opens no level,
    /// nor does what it calls back.
    fn leave_stub(&mut self, reason: Reason) {
        if let Some(frame) = self.linkage.leave(reason == Reason::SyncRuntime) {
            self.frames.close(frame);
        }
    }

    /// What comes now is kept: it may be the function that the loader has bound a stub to.
    #[inline]
    fn come_from_loader(&mut self) {
        if let Some(frame) = self.linkage.come_from_loader(self.sp) {
            self.frames.push(frame);
            self.raise_ceiling();
        }
    }

    /// Before a kept segment: tells the replay what it cannot know.
    #[inline]
    fn correct(&mut self, batch: &mut Batch) {
        self.expected.correct(self.sp, self.base, self.frames.level(), batch);
    }

    /// Before an instruction: closes what a jump of the stack pointer has left.
    fn settle_after_jump(&mut self, batch: &mut Batch) {
        if self.unsettled {
            self.unsettled = false;
            self.settle(batch);
        }
    }

    /// Closes what the stack pointer has risen above.
    fn settle(&mut self, batch: &mut Batch) {
        self.frames.settle(self.sp);
        if self.extents.end_at(self.sp, self.frames.handlers()) {
            self.end_extent(batch);
        }
        self.update();
    }

    fn raise_ceiling(&mut self) {
        self.ceiling = self.frames.ceiling().min(self.extents.ceiling());
    }

    /// Works out again what the short way looks at.
    fn update(&mut self) {
        let is_quiet = self.extents.is_open()
            && !self.extents.is_fresh()
            && !self.unsettled
            && !self.yielded
            && !self.stack.in_leaf()
            && !self.runtimes.is_in()
            && !self.drops_critical()
            && self.frames.handlers() == 0
            && !self.spin.is_watching()
            && !self.turns.is_watching()
            && self.tries.is_none();
        self.quiet = is_quiet && self.gathers_at.is_none();
        self.gathers_quietly = is_quiet && self.gathers_at.is_some();
        self.raise_ceiling();
    }
}

impl Follower for ThreadState<'_> {
    #[inline]
    fn is_over(&self, batch: &mut Batch) -> bool {
        if let Some(lengths) = &self.over {
            batch.truncate(lengths);
        }
        self.over.is_some()
    }

    /// No control may wait for its segment, and nothing in the batch may still change.
    #[inline]
    fn may_cut(&self, batch: &Batch) -> bool {
        !matches!(self.pending, Pending::Call { .. })
            && !self.spin.is_watching()
            && !self.turns.is_watching()
            && self.tries.is_none()
            && batch.codes.last().is_some_and(|c| !c.is_control())
    }

    #[inline]
    fn unfolded(&self, batch: &Batch) -> usize {
        batch.codes.len() + self.folded_away
    }

    #[inline]
    fn block(&mut self, block: BlockId, sps: &[u64], memory: &[u64], batch: &mut Batch) {
        let facts = self.plan.blocks.of(block);
        if self.may_keep_whole(facts, sps, memory, batch) || self.repeats(block, facts, sps, memory) {
            return;
        }
        match self.plan.blocks.pieces(block) {
            pieces @ [_, ..] if self.may_divide(facts) => self.block_in_pieces(pieces, sps, memory, batch),
            _ => self.block_in_parts(facts, None, sps, memory, batch),
        }
    }

    fn partial(&mut self, block: BlockId, executed: u32, sps: &[u64], memory: &[u64], batch: &mut Batch) {
        let facts = self.plan.blocks.of(block);
        self.block_in_parts(facts, Some(executed), sps, memory, batch);
    }

    fn event(&mut self, event: Event, batch: &mut Batch) {
        self.happen(event, batch);
    }

    fn end(&mut self, batch: &mut Batch) {
        self.end_repeat(None, batch);
        self.end_extents(batch);
    }

    fn hand_on(&mut self, batch: &Batch) {
        self.previous = self.plan.blocks.rows.last_segment(batch);
        self.folded_away = 0;
    }

    fn followed(self) -> Followed {
        Followed {
            counts: self.counts,
            unordered: self.unordered,
            own_locks: self.own_locks,
            first: self.extents.first(),
            begins_with: self.extents.begins_with(),
            parts: self.extents.parts().to_vec(),
            stacks: self.stacks.ran(),
        }
    }
}
