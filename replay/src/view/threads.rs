//! What became of each thread: how much of it is kept, and which of its stays in the region are lanes.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use trace_format::{Pc, Seq, Trace};

use super::first_look::generations::{Part, Stay, WHOLE_THREAD, generations};
use super::first_look::survey::ThreadSurvey;
use super::plan::Plan;
use super::stream::{self, Followed};
use super::{LeftOut, Summary};
use crate::lanes::kept::Keeper;
use crate::{Kept, LaneOrigin, Result};

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

    /// By lane of these extents of its thread, its stream: that of a thread that is one lane was made when the thread
    /// was followed.
    pub fn kept(mut self, lanes: &[LaneOrigin], extents: &[Range<u64>]) -> Vec<Option<Kept>> {
        let of_lane = |(lane, own): (&LaneOrigin, &Range<u64>)| {
            if *own == WHOLE_THREAD { self.streams[lane.thread.index()].take() } else { None }
        };
        lanes.iter().zip(extents).map(of_lane).collect()
    }
}

/// The lanes, and by lane the extents of its thread. Of a trace read from text each thread is a lane, whatever is in
/// it.
pub(super) fn lanes_of(trace: &Trace, stays: Vec<Stay>, is_text: bool) -> (Vec<LaneOrigin>, Vec<Range<u64>>) {
    if is_text {
        let lane = |thread| LaneOrigin { thread, first: Seq::default(), generation: 0 };
        return trace.threads().iter().map(|thread| (lane(thread.id), WHOLE_THREAD)).unzip();
    }
    let lane = |stay: Stay| {
        let thread = trace.threads()[stay.thread].id;
        (LaneOrigin { thread, first: stay.begin, generation: stay.generation }, stay.extents)
    };
    stays.into_iter().map(lane).unzip()
}
