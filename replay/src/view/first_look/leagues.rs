//! Leagues: which parallel regions are teams of one teams construct or target region.
//!
//! A GPU runs all teams of a construct at once. The machine that runs them in its place may do so one after another on
//! one thread (gcc's target regions: each team begins with `GOMP_teams4`), or with a thread for each (clang's). A team
//! either forks threads for its part of the loop, or runs it alone.

use rustc_hash::FxHashMap;
use trace_format::SyncFunction;

use crate::EpisodeId;
use crate::view::first_look::survey::{Body, ThreadSurvey};

/// Which team of a teams construct or a target region a thread works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::view) struct TeamAt {
    /// The construct's body, as an index of the thread's bodies.
    pub body: usize,
    /// Which construct inside of it.
    pub league: u32,
    /// Which team of that.
    pub team: u32,
}

/// A construct, and what orders a part of it among the others.
pub(in crate::view) type InLeague = (EpisodeId, u32);

/// The leagues of all threads.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Leagues {
    /// By launch of a parallel region: the construct that it is a team's of.
    pub of_launch: FxHashMap<EpisodeId, InLeague>,
    /// Per thread: one for each body of a construct and for each of the teams that it goes on with, in that order.
    pub starts: Vec<Vec<InLeague>>,
}

/// Whether the body is a construct's.
pub(in crate::view) fn is_of_construct(body: &Body) -> bool {
    matches!(body.function, SyncFunction::TeamsBody | SyncFunction::TargetBody)
}

/// Where a team's part stands in its construct: how often the team reached such a loop before, which body of the
/// construct, which of the teams that this runs, and when it was seen.
type Rank = (u32, u32, u32, usize);

impl Leagues {
    /// `launches`: per thread and body, the launch that it belongs to; `forks`: per thread and fork, that which it
    /// makes.
    pub fn new(
        threads: &[ThreadSurvey],
        launches: &[Vec<Option<EpisodeId>>],
        forks: &[Vec<EpisodeId>],
        next: &mut impl FnMut() -> EpisodeId,
    ) -> Leagues {
        let numbers = bodies_in_order(threads, launches);
        let mut ids: FxHashMap<(Option<EpisodeId>, usize, usize, u32), EpisodeId> = FxHashMap::default();
        let mut league = |t: usize, at: TeamAt| {
            let launch = launches[t][at.body];
            // A body of no known fork is a construct of its own.
            let own = if launch.is_some() { (0, 0) } else { (t + 1, at.body) };
            *ids.entry((launch, own.0, own.1, at.league)).or_insert_with(&mut *next)
        };
        let mut all: FxHashMap<EpisodeId, Vec<(u64, Rank, EpisodeId)>> = FxHashMap::default();
        let mut starts: Vec<Vec<InLeague>> = Vec::with_capacity(threads.len());
        let mut begun: FxHashMap<EpisodeId, Vec<(Rank, usize, usize)>> = FxHashMap::default();
        for (t, thread) in threads.iter().enumerate() {
            let mut times: FxHashMap<(TeamAt, u64), u32> = FxHashMap::default();
            for (fork, launch) in thread.forks.iter().zip(&forks[t]) {
                let Some(at) = fork.team else { continue };
                let time = times.entry((at, fork.object)).or_default();
                let rank = (*time, numbers[t][at.body], at.team, t);
                *time += 1;
                all.entry(league(t, at)).or_default().push((fork.object, rank, *launch));
            }
            for (place, at) in thread.teams.iter().enumerate() {
                let rank = (0, numbers[t][at.body], at.team, t);
                begun.entry(league(t, *at)).or_default().push((rank, t, place));
            }
            starts.push(thread.teams.iter().map(|at| (league(t, *at), 0)).collect());
        }
        let mut of_launch = FxHashMap::default();
        for (id, mut parts) in all {
            parts.sort_unstable();
            for of_loop in parts.chunk_by(|a, b| a.0 == b.0) {
                of_launch.extend((0..).zip(of_loop).map(|(order, (_, _, launch))| (*launch, (id, order))));
            }
        }
        for mut parts in begun.into_values() {
            parts.sort_unstable();
            (0..).zip(parts).for_each(|(order, (_, t, place))| starts[t][place].1 = order);
        }
        Leagues { of_launch, starts }
    }
}

/// Per thread and body of a construct: its number among those of the same construct, as they began.
fn bodies_in_order(threads: &[ThreadSurvey], launches: &[Vec<Option<EpisodeId>>]) -> Vec<Vec<u32>> {
    let mut numbers: Vec<Vec<u32>> = threads.iter().map(|thread| vec![0; thread.bodies.len()]).collect();
    let mut all = Vec::new();
    for (t, thread) in threads.iter().enumerate() {
        let bodies = thread.bodies.iter().enumerate().filter(|(_, body)| is_of_construct(body));
        all.extend(bodies.map(|(i, body)| (launches[t][i], body.enter, t, i)));
    }
    all.sort_unstable();
    for of_one in all.chunk_by(|a, b| a.0.is_some() && a.0 == b.0) {
        (0..).zip(of_one).for_each(|(number, (_, _, t, i))| numbers[*t][*i] = number);
    }
    numbers
}
