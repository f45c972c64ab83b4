//! How evenly the work of a warp is spread over its lanes, and whether that was decided while the program was recorded.
//!
//! *Balance* = instructions of all lanes / sum over warps (lanes of the warp x instructions of its longest lane): 1
//! where all lanes of a warp are as long as each other. No model's efficiency can be above it, since a warp runs at
//! least as long as its longest lane. Below [`UNEVEN`] a warning is given.
//!
//! Worked number: one warp, lanes of 100, 100, 100 and 400 instructions: 700 / (4 x 400) = 43.8%.
//!
//! Where threads take pieces of work whenever they are free (a dynamic or guided schedule of OpenMP, a pool of threads,
//! a common queue or counter), it is chance which lane got how much: another recording has other lanes.

use std::collections::BTreeMap;

use replay::Outcome;
use replay::view::{CutInto, View};
use trace_format::Trace;

use crate::pieces::are_tasks;

/// Below this balance lanes are called uneven.
pub const UNEVEN: f64 = 0.8;

/// How lanes got their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// OpenMP's dynamic, guided or runtime schedules dealt out chunks of iterations.
    Dynamic,
    /// OpenMP's tasks, which whichever thread is free runs.
    Tasks,
    /// Nested teams of OpenMP, whose threads clang's runtime takes from one pool.
    Teams,
    /// The threads of a pool took tasks.
    Pool,
    /// Goroutines, which Go's scheduler puts on threads.
    Go,
    /// Threads waited on a condition variable or a semaphore, as they do for a common queue.
    Queue,
    /// Threads counted up a common counter (`lock xadd`).
    Counter,
    /// Threads took locks, as they do to reach a queue that is never empty.
    Locks,
}

impl Schedule {
    /// What of the trace shows it; none where nothing does.
    #[must_use]
    pub fn of(trace: &Trace, view: &View) -> Option<Schedule> {
        let region = &view.summary().region;
        if region.starts_with("tasks of a pool") {
            return Some(Schedule::Pool);
        }
        let any = |is_it: fn(&str) -> bool| trace.symbols().iter().any(|symbol| is_it(&symbol.name));
        if region.starts_with("OpenMP parallel regions") {
            let is_of_tasks = are_tasks(view.summary()).then_some(Schedule::Tasks);
            let is_of_teams = view.summary().teams_are_mixed.then_some(Schedule::Teams);
            return is_of_tasks.or(is_of_teams).or(any(deals_chunks).then_some(Schedule::Dynamic));
        }
        if any(|name| name == "runtime.mstart" || name == "runtime.mstart0") {
            return Some(Schedule::Go);
        }
        Schedule::taken(view)
    }

    /// What shows that threads may take pieces of work by the program's own means.
    pub(crate) fn taken(view: &View) -> Option<Schedule> {
        if view.summary().waits_for_work {
            return Some(Schedule::Queue);
        }
        if counts_up(view) {
            return Some(Schedule::Counter);
        }
        let summary = view.summary();
        (summary.takes_locks || !summary.own_locks.is_empty()).then_some(Schedule::Locks)
    }

    /// Whether this certainly decided, while recording, which lane ran what; else it may have.
    #[must_use]
    pub fn is_sure(self) -> bool {
        matches!(self, Schedule::Dynamic | Schedule::Tasks | Schedule::Teams | Schedule::Pool | Schedule::Go)
    }

    /// Whether threads that are even are so by chance, if there are pieces of work.
    #[must_use]
    pub fn deals_out(self) -> bool {
        matches!(self, Schedule::Tasks | Schedule::Teams | Schedule::Pool | Schedule::Go | Schedule::Queue)
    }

    /// How it gave out work, as the beginning of a sentence.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Schedule::Dynamic => "an OpenMP schedule that gives a chunk to whichever thread is free",
            Schedule::Tasks => "OpenMP tasks, which whichever thread is free runs",
            Schedule::Teams => "nested OpenMP teams, for which clang's runtime takes threads from one pool",
            Schedule::Pool => "a pool whose threads take the next task when they are free",
            Schedule::Go => "Go's scheduler, which puts goroutines on whichever thread is free",
            Schedule::Queue => "threads that wait for work, as for a common queue",
            Schedule::Locks => "threads that take locks, as for a common queue",
            Schedule::Counter => "threads that increment a common counter, as for the next piece of work",
        }
    }

    /// By what each thread gets the same in every recording.
    #[must_use]
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Schedule::Teams => {
                "record it with KMP_HOT_TEAMS_MAX_LEVEL=9 KMP_HOT_TEAMS_MODE=1, by which nested teams keep their \
                 threads"
            }
            _ => "give each thread a fixed share",
        }
    }
}

/// Whether a function of this name deals out chunks.
fn deals_chunks(name: &str) -> bool {
    let gomp = name.strip_prefix("GOMP_loop_").is_some_and(|rest| {
        rest.ends_with("_next") && ["dynamic", "guided", "runtime"].iter().any(|kind| rest.contains(kind))
    });
    gomp || name.starts_with("__kmpc_dispatch_next") || name.starts_with("gomp_iter_dynamic_next")
}

/// Whether the program's own code in the lanes adds to a counter that all threads share.
fn counts_up(view: &View) -> bool {
    view.segments().iter().any(|(id, _)| view.counts_up(id))
}

/// How evenly work is spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// See the top of this file: 0 to 1.
    pub balance: f64,
    /// The share of all instructions that the longest lane has.
    pub longest: f64,
    /// How lanes got their work, where the trace tells.
    pub schedule: Option<Schedule>,
}

impl Balance {
    /// For lanes that are threads; none if they are not, or if there is only one.
    #[must_use]
    pub fn of(trace: &Trace, view: &View, outcome: &Outcome) -> Option<Balance> {
        if view.summary().cut.is_some() || outcome.lanes < 2 {
            return None;
        }
        let (balance, longest) = of_lanes(view, outcome)?;
        Some(Balance { balance, longest, schedule: Schedule::of(trace, view) })
    }

    /// Whether lanes are uneven.
    #[must_use]
    pub fn is_uneven(&self) -> bool {
        self.balance < UNEVEN
    }

    /// Whether chance decided the lanes while recording, and so decided the efficiency: lanes are uneven, and got their
    /// work in a way that certainly decides it, or in one that may and did (`took_unevenly`: some took many more pieces
    /// than others).
    #[must_use]
    pub fn is_chance(&self, took_unevenly: bool) -> bool {
        // A thread that goes from one piece of the program to another is none of them, however even the threads are.
        matches!(self.schedule, Some(Schedule::Go | Schedule::Tasks | Schedule::Teams))
            || self.is_uneven() && self.schedule.is_some_and(|schedule| schedule.is_sure() || took_unevenly)
    }

    /// Why the figure of these lanes is chance, or may be, in a sentence; none where nothing says so.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let schedule = self.schedule.filter(|_| self.is_chance(true))?;
        let (was, is) = if self.is_chance(false) { ("was", "is") } else { ("may have been", "may be") };
        Some(format!(
            "which lane ran what {was} decided while recording ({}), so the figure {is} chance: `replay` says what to \
             take as lanes",
            schedule.phrase()
        ))
    }
}

/// The balance of lanes of any kind, and the share of the longest one; none where nothing ran.
pub(super) fn of_lanes(view: &View, outcome: &Outcome) -> Option<(f64, f64)> {
    let generations: Vec<u32> = view.lanes().iter().map(|lane| lane.generation).collect();
    spread(&outcome.lane_instructions, &generations, outcome.warp_size)
}

/// The balance, and the share of the longest lane; none where nothing ran. Warps are of consecutive lanes of one
/// generation.
fn spread(lanes: &[u64], generations: &[u32], warp_size: usize) -> Option<(f64, f64)> {
    let total: u64 = lanes.iter().sum();
    let longest = *lanes.iter().max()?;
    if total == 0 {
        return None;
    }
    let mut slots = 0u128;
    let mut first = 0;
    for of_one in generations.chunk_by(|a, b| a == b) {
        let (of_one, from) = (&lanes[first..first + of_one.len()], first);
        first = from + of_one.len();
        for warp in of_one.chunks(warp_size.max(1)) {
            slots += warp.len() as u128 * u128::from(warp.iter().copied().max().unwrap_or(0));
        }
    }
    Some((total as f64 / slots.max(1) as f64, longest as f64 / total as f64))
}

/// Where threads took unlike numbers of a loop's iterations, as of a queue, and lanes are numbered by thread all the
/// same: that a warp's lanes are no neighbours. `have_locks`: lanes take locks, as those do that take a piece.
pub(super) fn taken_by_thread(trace: &Trace, view: &View, have_locks: bool) -> Option<String> {
    let is_by_thread = |cut: &&CutInto| !cut.loops.is_empty() && !cut.is_shared_out && cut.order.contains("by thread");
    view.summary().cut.as_ref().filter(is_by_thread)?;
    let mut taken = BTreeMap::<_, usize>::new();
    view.lanes().iter().for_each(|lane| *taken.entry(lane.thread).or_default() += 1);
    let (least, most) = (taken.values().min()?, taken.values().max()?);
    // Fixed shares differ by one at most.
    let takes = |schedule: &Schedule| have_locks || *schedule == Schedule::Counter;
    let schedule = Schedule::of(trace, view).filter(takes).filter(|_| most - least > 1)?;
    Some(format!(
        "lanes are numbered thread by thread, and there are {}: if these iterations are the pieces that threads took, \
         the lanes of a warp are what one thread took, not neighbours in the queue. --lanes calls --region FUNCTION, of \
         what does a piece, numbers them as they began.",
        schedule.phrase()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_number_and_lanes_of_several_warps() {
        let near = |found: Option<(f64, f64)>, balance: f64, longest: f64| {
            let (b, l) = found.unwrap();
            assert!((b - balance).abs() < 1e-9 && (l - longest).abs() < 1e-9, "{b} {l}");
        };
        near(spread(&[100, 100, 100, 400], &[0; 4], 4), 0.4375, 4.0 / 7.0);
        near(spread(&[100, 100, 400, 400], &[0; 4], 2), 1.0, 0.4);
        near(spread(&[100, 400], &[0, 1], 2), 1.0, 0.8);
        assert_eq!(spread(&[0, 0], &[0, 0], 2), None);
    }

    #[test]
    fn schedules_that_deal_out_chunks_are_told_by_what_the_program_calls() {
        for name in ["GOMP_loop_nonmonotonic_dynamic_next", "GOMP_loop_guided_next", "__kmpc_dispatch_next_4"] {
            assert!(deals_chunks(name), "{name}");
        }
        assert!(!deals_chunks("GOMP_loop_static_next") && !deals_chunks("GOMP_loop_end"));
    }
}
