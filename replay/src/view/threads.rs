//! What became of each thread: how much of it is kept, and which of its stays in the region are lanes.

use std::collections::BTreeSet;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Pc, Seq, SyncFunction, ThreadId, Trace};

use super::first_look::generations::{Part, Stay, WHOLE_THREAD, generations};
use super::first_look::survey::ThreadSurvey;
use super::plan::Plan;
use super::stacks::OnStacks;
use super::stream::{self, Followed};
use super::waits::conditions::ConditionCall;
use super::waits::unordered::{self, UnorderedWaits};
use super::{LeftOut, Summary};
use crate::lanes::kept::Keeper;
use crate::{Kept, LaneOrigin, LockId, Result};

/// All threads, followed once.
pub(super) struct Threads {
    followed: Vec<Followed>,
    streams: Vec<Option<Kept>>,
}

impl Threads {
    /// What becomes of each thread, and its stream.
    pub fn follow(trace: &Trace, plan: &Plan) -> Result<Threads> {
        let keeper = Keeper::beside(std::iter::empty());
        let threads = trace.threads().par_iter().map(|thread| {
            let (followed, kept) = stream::count(trace, plan, thread.id, &keeper)?;
            Ok((followed, Some(kept)))
        });
        let (followed, streams) = threads.collect::<Result<_>>()?;
        Ok(Threads { followed, streams })
    }

    /// The stays of threads in the region that are lanes, and of how many joins it is not known whom they joined.
    pub fn stays(&self, threads: &[ThreadSurvey]) -> (Vec<Stay>, usize) {
        let parts: Vec<Vec<Part>> = self.followed.iter().map(|one| one.parts.clone()).collect();
        let kept: Vec<u64> = self.followed.iter().map(|one| one.counts.kept).collect();
        generations(threads, &parts, &kept)
    }

    /// How often threads waited in the region for what orders no lanes, and at how many condition variables.
    pub fn unordered(&self, threads: &[ThreadSurvey]) -> (u64, usize) {
        let waits = || self.followed.iter().map(|one| &one.unordered);
        let is_wait = |call: &&ConditionCall| call.function == SyncFunction::ConditionWait;
        let calls = threads.iter().flat_map(|thread| &thread.conditions);
        let awaited: BTreeSet<u64> = calls.filter(is_wait).map(|call| call.condition).collect();
        let conditions = unordered::conditions(waits(), |condition| awaited.contains(&condition));
        (waits().map(UnorderedWaits::total).sum(), conditions)
    }

    /// How often threads asked the kernel in the region for what another may give.
    pub fn asks(&self) -> u64 {
        self.followed.iter().map(|one| one.unordered.asks).sum()
    }

    /// The locks of the program's own that threads took in the region.
    pub fn own_locks(&self) -> Vec<LockId> {
        let all: BTreeSet<LockId> = self.followed.iter().flat_map(|one| &one.own_locks).copied().collect();
        all.into_iter().collect()
    }

    /// By thread: what it ran on stacks of green threads.
    pub fn stacks(&self) -> Vec<OnStacks> {
        self.followed.iter().map(|one| one.stacks.clone()).collect()
    }

    /// What is kept of the trace, and what is not.
    pub fn summary(&self, trace: &Trace, plan: &Plan) -> Summary {
        let mut summary =
            Summary { threads: trace.threads().len(), region: plan.choice.words.clone(), ..Summary::default() };
        for (i, (thread, Followed { counts, first, .. })) in trace.threads().iter().zip(&self.followed).enumerate() {
            summary.instructions += thread.instructions;
            summary.kept += counts.kept;
            summary.outside_region += counts.outside_region;
            summary.outside_main += counts.outside_main;
            summary.sync_runtime += counts.sync_runtime;
            summary.mathematics += counts.mathematics;
            summary.critical += counts.critical;
            summary.spin += counts.spin;
            summary.own_waits += counts.own_waits;
            if counts.kept > 0 || plan.is_text {
                continue;
            }
            let reason = match (plan.choice.others.get(&i), first) {
                (Some(other), _) => other.clone(),
                (None, None) => "never in the region".into(),
                (None, Some(_)) => "nothing of it is kept".into(),
            };
            match summary.left_out.iter_mut().find(|l| l.reason == reason) {
                Some(left) => left.threads.push(thread.id),
                None => summary.left_out.push(LeftOut { threads: vec![thread.id], reason }),
            }
        }
        summary.beginnings = self.beginnings(trace, plan);
        summary.shares.clone_from(&plan.choice.shares);
        summary.doubts.clone_from(&plan.choice.doubts);
        summary
    }

    /// At how many places the lanes of a recorded part begin. All lanes of a whole recording begin where their region
    /// does, or differ since their threads do.
    fn beginnings(&self, trace: &Trace, plan: &Plan) -> usize {
        if trace.meta().window.is_none() {
            return 0;
        }
        let first = self.followed.iter().filter_map(|thread| Some(plan.table[thread.begins_with?].start()));
        first.collect::<FxHashSet<Pc>>().len()
    }

    /// By lane of these stays, its stream: that of a thread that is one lane was made when the thread was followed.
    pub fn kept(mut self, stays: &[Vec<Stayed>]) -> Vec<Option<Kept>> {
        let of_lane = |stays: &Vec<Stayed>| match &stays[..] {
            [(thread, own)] if *own == WHOLE_THREAD => self.streams[thread.index()].take(),
            _ => None,
        };
        stays.iter().map(of_lane).collect()
    }
}

/// The extents of a thread that a lane is, or a part of it.
pub(super) type Stayed = (ThreadId, Range<u64>);

/// The lanes, and by lane what it is of which threads, one after another. Of a trace read from text each thread is a
/// lane, whatever is in it. `first` gives for a thread the first one of its lane, where lanes are numbers in teams.
pub(super) fn lanes_of(
    trace: &Trace,
    stays: Vec<Stay>,
    first: Option<&[usize]>,
    is_text: bool,
) -> (Vec<LaneOrigin>, Vec<Vec<Stayed>>) {
    if is_text {
        let lane = |thread| LaneOrigin { thread, first: Seq::default(), generation: 0 };
        return trace.threads().iter().map(|thread| (lane(thread.id), vec![(thread.id, WHOLE_THREAD)])).unzip();
    }
    let mut lanes: Vec<(LaneOrigin, Vec<Stayed>)> = Vec::with_capacity(stays.len());
    let mut of_seat: FxHashMap<(usize, u32), usize> = FxHashMap::default();
    for stay in stays {
        let thread = trace.threads()[stay.thread].id;
        let stayed = (thread, stay.extents);
        if let Some(first) = first.filter(|_| stayed.1 == WHOLE_THREAD) {
            let at = *of_seat.entry((first[stay.thread], stay.generation)).or_insert(lanes.len());
            if let Some((_, stays)) = lanes.get_mut(at) {
                stays.push(stayed);
                continue;
            }
        }
        lanes.push((LaneOrigin { thread, first: stay.begin, generation: stay.generation }, vec![stayed]));
    }
    lanes.into_iter().unzip()
}
