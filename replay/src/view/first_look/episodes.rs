//! Barrier episodes: which waits of which threads are one use of a barrier, and which parallel bodies are one launch.
//!
//! The trace tells when each thread entered and left a barrier, in one order over all threads. Nobody leaves a barrier
//! before everybody is in: an episode is complete at the first leave, or when as many have arrived as the barrier was
//! initialised for. Where threads come first and wait later, the n-th waits of all threads are one. Episodes
//! are numbered for all threads, lanes or not: who has none in its stream is not waited for.

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Pc, Seq, SyncFunction};

use crate::EpisodeId;
use crate::view::first_look::leagues::{Leagues, is_of_construct};
use crate::view::first_look::seats::{Forker, Seats, seats};
use crate::view::first_look::survey::{Body, Fork, ThreadSurvey};
use crate::view::waits::conditions::number_rounds;
use crate::view::waits::gatherings::{Rounds, Sections, number_gatherings};
use crate::view::waits::hand_overs::HandOvers;
use crate::view::waits::own_locks::Barriers;

/// A thread's wait at a barrier.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct BarrierWait {
    /// The barrier's address; 0 for a team's.
    pub object: u64,
    pub enter: Seq,
    /// None when it was never left.
    pub leave: Option<Seq>,
    /// For a team's barrier: the parallel body that it was in, as an index of the thread's bodies.
    pub body: Option<usize>,
    /// Whether the thread came to the barrier before it entered the wait: others may have left it already.
    pub is_late: bool,
}

/// A barrier is initialised.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct BarrierInit {
    pub object: u64,
    /// How many threads it waits for.
    pub count: u64,
    pub seq: Seq,
}

/// The episodes of all threads.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Episodes {
    /// Per thread: one for each barrier wait that was left, in that order.
    pub waits: Vec<Vec<EpisodeId>>,
    /// Per thread: one for each call of a condition variable that is the meeting of a barrier.
    pub conditions: Vec<Vec<Option<EpisodeId>>>,
    /// Per thread: what it meets where it gives back the mutex of another barrier.
    pub gatherings: Vec<Rounds>,
    /// What threads hand over to each other.
    pub hand_overs: HandOvers,
    /// By word at which threads meet at a barrier of the program's own: the first of its episodes, and how many it has.
    pub own: FxHashMap<u64, (EpisodeId, usize)>,
    /// What counts there who has come.
    pub arrivals: FxHashSet<Pc>,
    /// Per thread: one for each outermost parallel body, in order; none where its fork is not known.
    pub launches: Vec<Vec<Option<EpisodeId>>>,
    /// The episodes with which forked teams begin.
    pub forks: FxHashSet<EpisodeId>,
    /// The same of parallel bodies inside of those, on the same thread.
    pub inner: Vec<Vec<Option<EpisodeId>>>,
    /// The bodies of parallel regions that fork others, each time for one thread: what is shared out there is not.
    pub forks_alone: FxHashSet<Pc>,
    /// The launches inside of others that are of one thread.
    pub alone: FxHashSet<EpisodeId>,
    /// Whether it is unknown of which of several launches a body is: threads forked the same one side by side.
    pub is_unsure: bool,
    /// Which launches are teams of one construct.
    pub leagues: Leagues,
    /// By thread, the first thread of its lane, where lanes are numbers in teams.
    pub seats: Vec<usize>,
    /// Whether a thread of the runtime's one pool worked in several teams, under numbers that chance gave it.
    pub teams_are_mixed: bool,
}

impl Episodes {
    /// `pool_is_one`: threads of one team may become another's, whoever started them, as clang's runtime has them.
    pub fn new(threads: &[ThreadSurvey], barriers: &Barriers, pool_is_one: bool) -> Episodes {
        let mut numbers = 0..;
        let mut next = || EpisodeId(numbers.next().expect("fewer than 2^32 episodes"));
        let Launches { launches, forks, is_unsure } = number_launches(threads, pool_is_one, &mut next);
        let leagues = Leagues::new(threads, &launches, &forks, &mut next);
        let waits = number_waits(threads, &launches, &mut next);
        let calls: Vec<_> = threads.iter().map(|thread| &thread.conditions[..]).collect();
        let conditions = number_rounds(&calls, &mut next);
        let gatherings = gatherings(threads, &conditions, &mut next);
        let calls: Vec<_> = threads.iter().map(|thread| &thread.hand_overs[..]).collect();
        let hand_overs = HandOvers::new(&calls, &handed_over(threads), &mut next);
        let own = barriers.rounds.iter().map(|(word, rounds)| {
            let first = next();
            (1..*rounds).for_each(|_| _ = next());
            (*word, (first, *rounds))
        });
        let own = own.collect();
        let of_bodies = |outermost: bool| {
            let of_thread = |(thread, launches): (&ThreadSurvey, &Vec<Option<EpisodeId>>)| {
                let bodies = thread.bodies.iter().zip(launches);
                bodies.filter(|(b, _)| is_parallel(b) && b.outermost == outermost).map(|(_, launch)| *launch).collect()
            };
            threads.iter().zip(&launches).map(of_thread).collect()
        };
        let (forks_alone, alone) = alone(threads, &launches, &forks);
        let launches_of: Vec<Vec<Option<EpisodeId>>> = of_bodies(true);
        let of_thread = |(by, forks): (usize, Vec<EpisodeId>)| {
            let thread = &threads[by];
            let inside = |fork: &Fork| fork.inside.map(|body| &thread.bodies[body]).filter(|body| is_parallel(body));
            let depth = move |fork: &Fork| inside(fork).map_or(0, |body| if body.outermost { 1 } else { 2 });
            forks.into_iter().zip(&thread.forks).map(move |(launch, fork)| (launch, (by, depth(fork))))
        };
        let forkers: FxHashMap<EpisodeId, Forker> = forks.into_iter().enumerate().flat_map(of_thread).collect();
        let Seats { first, are_mixed } = seats(threads, &launches_of, &forkers);
        let is_nested = forkers.values().any(|(_, depth)| *depth > 0);
        let inner = of_bodies(false);
        Episodes {
            waits,
            conditions,
            gatherings,
            hand_overs,
            own,
            arrivals: barriers.pcs.clone(),
            launches: launches_of,
            inner,
            forks_alone,
            alone,
            is_unsure,
            forks: forkers.into_keys().collect(),
            leagues,
            seats: first,
            teams_are_mixed: pool_is_one && is_nested && are_mixed,
        }
    }
}

/// Per thread, the barriers of mutexes but for those whose condition variables tell who meets.
fn gatherings(
    threads: &[ThreadSurvey],
    conditions: &[Vec<Option<EpisodeId>>],
    next: &mut impl FnMut() -> EpisodeId,
) -> Vec<Rounds> {
    let calls = threads.iter().zip(conditions).flat_map(|(thread, met)| thread.conditions.iter().zip(met));
    let known: FxHashSet<u64> = calls.filter(|(_, met)| met.is_some()).map(|(call, _)| call.mutex).collect();
    let mutexes: Vec<&Sections> = threads.iter().map(|thread| &thread.mutexes).collect();
    number_gatherings(&mutexes, |mutex| known.contains(&mutex), next)
}

/// The bodies of parallel regions that fork others, each time for one thread; and these others.
fn alone(
    threads: &[ThreadSurvey],
    launches: &[Vec<Option<EpisodeId>>],
    forks: &[Vec<EpisodeId>],
) -> (FxHashSet<Pc>, FxHashSet<EpisodeId>) {
    let mut sizes: FxHashMap<EpisodeId, usize> = FxHashMap::default();
    launches.iter().flatten().flatten().for_each(|launch| *sizes.entry(*launch).or_default() += 1);
    let (mut bodies, mut others, mut alone) = <(FxHashSet<Pc>, FxHashSet<Pc>, FxHashSet<EpisodeId>)>::default();
    for (thread, forks) in threads.iter().zip(forks) {
        for (fork, launch) in thread.forks.iter().zip(forks) {
            let inside = fork.inside.map(|body| &thread.bodies[body]).filter(|body| is_parallel(body));
            let Some(body) = inside.map(|body| Pc(body.object)) else { continue };
            if sizes.get(launch) == Some(&1) {
                bodies.insert(body);
                alone.insert(*launch);
            } else {
                others.insert(body);
            }
        }
    }
    bodies.retain(|body| !others.contains(body));
    (bodies, alone)
}

/// The semaphores that are no locks, each with its first value if that is known.
fn handed_over(threads: &[ThreadSurvey]) -> FxHashMap<u64, Option<u64>> {
    let all = threads.iter().flat_map(|thread| &thread.semaphores).filter(|(_, used)| used.is_handed_over());
    let mut all: FxHashMap<u64, Option<u64>> = all.map(|(object, _)| (*object, None)).collect();
    for init in threads.iter().flat_map(|thread| &thread.inits) {
        all.entry(init.object).and_modify(|first| *first = Some(init.count));
    }
    all
}

fn is_parallel(body: &Body) -> bool {
    body.function == SyncFunction::ParallelBody
}

/// The launches of all threads.
struct Launches {
    /// Per thread and body, that which it belongs to.
    launches: Vec<Vec<Option<EpisodeId>>>,
    /// Per thread and fork, that which it makes.
    forks: Vec<Vec<EpisodeId>>,
    is_unsure: bool,
}

/// Per thread and body, the launch it belongs to: the innermost fork of the same body that was open when it began; of
/// several forkers' (nested regions), its own, or that of the thread which started it. Per thread and fork, the launch
/// that it makes.
fn number_launches(threads: &[ThreadSurvey], pool_is_one: bool, next: &mut impl FnMut() -> EpisodeId) -> Launches {
    enum What {
        Fork(usize, usize, Option<Seq>),
        Body(usize, usize),
    }
    let mut happenings = Vec::new();
    for (t, thread) in threads.iter().enumerate() {
        let forks = thread.forks.iter().enumerate();
        happenings.extend(forks.map(|(i, f)| (f.enter, f.object, What::Fork(t, i, f.leave))));
        let bodies = thread.bodies.iter().enumerate().filter(|(_, b)| is_parallel(b) || is_of_construct(b));
        happenings.extend(bodies.map(|(i, b)| (b.enter, b.object, What::Body(t, i))));
    }
    happenings.sort_by_key(|h| h.0);
    let mut launches: Vec<Vec<Option<EpisodeId>>> = threads.iter().map(|t| vec![None; t.bodies.len()]).collect();
    let mut joined: Vec<FxHashSet<EpisodeId>> = vec![FxHashSet::default(); threads.len()];
    let mut forks: Vec<Vec<EpisodeId>> = threads.iter().map(|t| vec![EpisodeId(0); t.forks.len()]).collect();
    let mut open: Vec<(u64, Option<Seq>, EpisodeId, usize, bool)> = Vec::new();
    let mut is_unsure = false;
    for (seq, object, what) in happenings {
        open.retain(|(_, leave, ..)| leave.is_none_or(|l| l > seq));
        match what {
            What::Fork(t, i, leave) => {
                forks[t][i] = next();
                open.push((object, leave, forks[t][i], t, threads[t].forks[i].team.is_some()));
            }
            What::Body(t, i) => {
                // A thread takes part in a launch once: what it runs of the same body after that is a call of its own,
                // or another team.
                let parent = threads[t].start.and_then(|start| start.parent);
                let of_body = || open.iter().rev().filter(|fork| fork.0 == object);
                let of = |by: usize| of_body().find(|fork| fork.3 == by);
                let by_itself = of(t);
                let own = by_itself.or_else(|| of(parent?));
                let is_known = by_itself.is_some() || own.is_some() && !pool_is_one;
                // Which team of a construct it is makes no difference.
                is_unsure |= !is_known && of_body().filter(|fork| !fork.4).count() > 1;
                let launch = own.or_else(|| of_body().next()).map(|fork| fork.2);
                let is_construct = is_of_construct(&threads[t].bodies[i]);
                launches[t][i] = launch.filter(|l| is_construct || joined[t].insert(*l));
            }
        }
    }
    Launches { launches, forks, is_unsure }
}

/// Who meets whom at a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Barrier {
    Object(u64),
    /// The team of a launch: its barriers have no address.
    Team(EpisodeId),
}

/// Per thread, the episode of each wait that was left.
fn number_waits(
    threads: &[ThreadSurvey],
    launches: &[Vec<Option<EpisodeId>>],
    next: &mut impl FnMut() -> EpisodeId,
) -> Vec<Vec<EpisodeId>> {
    enum What {
        Init(u64),
        Arrive(usize, usize),
        Leave(usize, usize),
    }
    let mut met: Vec<Vec<EpisodeId>> = threads.iter().map(|t| vec![EpisodeId(0); t.waits.len()]).collect();
    let mut late: FxHashMap<(u64, usize), EpisodeId> = FxHashMap::default();
    let mut happenings = Vec::new();
    for (t, thread) in threads.iter().enumerate() {
        happenings.extend(thread.inits.iter().map(|i| (i.seq, Barrier::Object(i.object), What::Init(i.count))));
        let mut rounds: FxHashMap<u64, usize> = FxHashMap::default();
        for (i, wait) in thread.waits.iter().enumerate() {
            if wait.is_late {
                let round = rounds.entry(wait.object).or_default();
                met[t][i] = *late.entry((wait.object, *round)).or_insert_with(&mut *next);
                *round += 1;
                continue;
            }
            let team = wait.body.and_then(|b| launches[t][b]);
            let barrier = team.map_or(Barrier::Object(wait.object), Barrier::Team);
            happenings.push((wait.enter, barrier, What::Arrive(t, i)));
            happenings.extend(wait.leave.map(|seq| (seq, barrier, What::Leave(t, i))));
        }
    }
    happenings.sort_by_key(|h| h.0);
    let mut counts: FxHashMap<Barrier, u64> = FxHashMap::default();
    let mut gathering: FxHashMap<Barrier, (EpisodeId, u64)> = FxHashMap::default();
    for (_, barrier, what) in happenings {
        match what {
            What::Init(count) => {
                counts.insert(barrier, count);
                gathering.remove(&barrier);
            }
            What::Arrive(t, i) => {
                let (id, arrived) = gathering.entry(barrier).or_insert_with(|| (next(), 0));
                met[t][i] = *id;
                *arrived += 1;
                if counts.get(&barrier) == Some(&*arrived) {
                    gathering.remove(&barrier);
                }
            }
            What::Leave(t, i) => {
                if gathering.get(&barrier).is_some_and(|g| g.0 == met[t][i]) {
                    gathering.remove(&barrier);
                }
            }
        }
    }
    // A task that a thread runs at a barrier may reach others.
    let left = |(thread, met): (&ThreadSurvey, Vec<EpisodeId>)| {
        let mut left: Vec<(Seq, EpisodeId)> =
            thread.waits.iter().zip(met).filter_map(|(wait, id)| Some((wait.leave?, id))).collect();
        left.sort_by_key(|(leave, _)| *leave);
        left.into_iter().map(|(_, id)| id).collect()
    };
    threads.iter().zip(met).map(left).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(enter: u64, leave: Option<u64>) -> BarrierWait {
        BarrierWait { object: 64, enter: Seq(enter), leave: leave.map(Seq), body: None, is_late: false }
    }

    fn threads(waits: &[&[BarrierWait]]) -> Vec<ThreadSurvey> {
        waits.iter().map(|w| ThreadSurvey { waits: w.to_vec(), ..ThreadSurvey::default() }).collect()
    }

    fn numbers(threads: &[ThreadSurvey]) -> Vec<Vec<u32>> {
        Episodes::new(threads, &Barriers::default(), false)
            .waits
            .iter()
            .map(|w| w.iter().map(|m| m.0).collect())
            .collect()
    }

    #[test]
    fn a_meeting_is_complete_at_its_first_leave() {
        let all = threads(&[&[wait(1, Some(4)), wait(5, Some(8))], &[wait(2, Some(3)), wait(6, Some(7))]]);
        assert_eq!(numbers(&all), [[0, 1], [0, 1]]);
    }

    #[test]
    fn a_fast_thread_that_comes_again_is_in_the_next_meeting() {
        let all = threads(&[&[wait(1, Some(5)), wait(6, Some(7))], &[wait(2, Some(3)), wait(4, Some(8))]]);
        assert_eq!(numbers(&all), [[0, 1], [0, 1]]);
    }

    #[test]
    fn a_known_count_completes_a_meeting_before_anybody_leaves() {
        let mut all = threads(&[&[wait(1, Some(5))], &[wait(2, Some(6))], &[wait(3, Some(8))], &[wait(4, Some(7))]]);
        all[0].inits.push(BarrierInit { object: 64, count: 2, seq: Seq(0) });
        assert_eq!(numbers(&all), [[0], [0], [1], [1]]);
    }

    #[test]
    fn who_never_left_has_no_meeting() {
        let all = threads(&[&[wait(1, Some(3))], &[wait(2, Some(4)), wait(5, None)]]);
        assert_eq!(numbers(&all), [[0], [0]]);
    }

    #[test]
    fn a_barrier_made_anew_at_the_same_address_starts_a_new_meeting() {
        let mut all = threads(&[&[wait(1, None)], &[wait(4, Some(6))], &[wait(5, Some(7))]]);
        all[0].inits.push(BarrierInit { object: 64, count: 2, seq: Seq(3) });
        let met = numbers(&all);
        assert_eq!((met[0].len(), met[1][0]), (0, met[2][0]));
    }

    fn body(enter: u64) -> Body {
        let function = SyncFunction::ParallelBody;
        Body {
            function,
            object: 9,
            enter: Seq(enter),
            outermost: true,
            instructions: 0,
            callable: 0,
            calls: None,
            forks: false,
            has_teams: false,
        }
    }

    fn fork(enter: u64, leave: u64) -> Fork {
        Fork { object: 9, enter: Seq(enter), leave: Some(Seq(leave)), team: None, makes_construct: false, inside: None }
    }

    #[test]
    fn bodies_of_one_fork_are_one_launch() {
        let master = ThreadSurvey {
            forks: vec![fork(1, 5), fork(6, 9)],
            bodies: vec![body(2), body(8)],
            ..ThreadSurvey::default()
        };
        let other = ThreadSurvey { bodies: vec![body(3), body(7)], ..ThreadSurvey::default() };
        let episodes = Episodes::new(&[master, other], &Barriers::default(), false);
        assert_eq!(episodes.launches[0], episodes.launches[1]);
        assert_ne!(episodes.launches[0][0], episodes.launches[0][1]);
        assert!(episodes.launches[0][0].is_some());
    }

    #[test]
    fn a_thread_joins_a_launch_once() {
        let master =
            ThreadSurvey { forks: vec![fork(1, 9)], bodies: vec![body(2), body(4)], ..ThreadSurvey::default() };
        let launches = Episodes::new(&[master], &Barriers::default(), false).launches;
        assert!(launches[0][0].is_some() && launches[0][1].is_none());
    }

    #[test]
    fn teams_of_two_forks_do_not_meet() {
        let team_wait = |enter, leave| BarrierWait { body: Some(0), object: 0, ..wait(enter, Some(leave)) };
        let first = ThreadSurvey {
            forks: vec![Fork { object: 1, ..fork(1, 20) }],
            bodies: vec![Body { object: 1, ..body(3) }],
            waits: vec![team_wait(10, 12)],
            ..ThreadSurvey::default()
        };
        let second = ThreadSurvey {
            forks: vec![Fork { object: 2, ..fork(2, 21) }],
            bodies: vec![Body { object: 2, ..body(4) }],
            waits: vec![team_wait(11, 13)],
            ..ThreadSurvey::default()
        };
        let met = Episodes::new(&[first, second], &Barriers::default(), false).waits;
        assert_ne!(met[0], met[1]);
    }
}
