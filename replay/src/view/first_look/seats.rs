//! Seats in teams: which threads of OpenMP are one lane, since they had one number in their teams.
//!
//! gcc's runtime ends threads when a team is smaller than the one before, and makes others when the next is larger
//! again; for nested regions it makes new ones each time. What the program asks for its number is the same for each of
//! them, and their work is that of one lane. A runtime numbers the threads of a team in the order in which it made
//! them, behind the thread that forked the team.
//!
//! Example: of regions of 8 and of 4 threads by turns, threads 1 to 7 run the first region and 8 to 11 a later one as
//! numbers 4 to 7: each of those goes on with the lane of one of the threads 4 to 7.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use trace_format::Seq;

use crate::EpisodeId;
use crate::view::first_look::survey::ThreadSurvey;

/// What a thread is in the teams that it works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seat {
    /// It has no number, has several, or forks its teams itself.
    Own,
    /// This number behind the thread that forks all of its teams, from so deep inside of others.
    Behind(Forker, usize),
}

/// A thread that forks teams, and inside of how many teams it does, up to two.
pub(in crate::view) type Forker = (usize, u8);

/// What is known of them.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::view) struct Seats {
    /// By thread, the first thread of its lane: itself, unless it goes on with another's.
    pub first: Vec<usize>,
    /// Whether one thread had several seats, in teams that others forked.
    pub are_mixed: bool,
}

/// `launches` are those of outermost bodies, by thread and in order; `forkers` who forked each, and where.
pub(in crate::view) fn seats(
    threads: &[ThreadSurvey],
    launches: &[Vec<Option<EpisodeId>>],
    forkers: &FxHashMap<EpisodeId, Forker>,
) -> Seats {
    let mut teams: BTreeMap<EpisodeId, Vec<usize>> = BTreeMap::new();
    for (t, of_thread) in launches.iter().enumerate() {
        of_thread.iter().flatten().for_each(|launch| teams.entry(*launch).or_default().push(t));
    }
    let mut seats: Vec<Option<Seat>> = vec![None; threads.len()];
    for (launch, team) in &teams {
        let Some(forker) = forkers.get(launch) else { continue };
        for (number, t) in team.iter().filter(|t| **t != forker.0).enumerate() {
            let seat = Seat::Behind(*forker, number + 1);
            seats[*t] = Some(seats[*t].filter(|known| *known != seat).map_or(seat, |_| Seat::Own));
        }
    }
    let are_mixed = seats.contains(&Some(Seat::Own));
    for (launch, team) in &teams {
        let Some(forker) = forkers.get(launch) else { continue };
        if team.contains(&forker.0) {
            seats[forker.0] = Some(Seat::Own);
        }
    }
    let mut first: Vec<usize> = (0..threads.len()).collect();
    // By number and who forks, as its lane: the thread of the lane that came last, and its last body.
    let mut last: BTreeMap<(Forker, usize), Seq> = BTreeMap::new();
    let mut lanes: BTreeMap<(Forker, usize), usize> = BTreeMap::new();
    // Who forks has a smaller number than whom it forks, in any trace that a program made.
    for (t, thread) in threads.iter().enumerate() {
        let (Some(Seat::Behind((forker, depth), number)), [begins, .., ends] | [begins @ ends]) =
            (seats[t], &thread.bodies[..])
        else {
            continue;
        };
        let seat = ((first[forker], depth), number);
        // Where they ran by turns, they are two lanes.
        if last.insert(seat, ends.enter).is_some_and(|last| last < begins.enter) {
            first[t] = lanes[&seat];
        } else {
            lanes.insert(seat, t);
        }
    }
    Seats { first, are_mixed }
}

#[cfg(test)]
mod tests {
    use trace_format::SyncFunction;

    use super::*;
    use crate::view::first_look::survey::Body;

    /// Threads that run bodies at these times, each of the launch of that number.
    fn first_threads(ran: &[&[(u64, u32)]], forkers: &[(u32, usize)]) -> Vec<usize> {
        let forkers: Vec<(u32, Forker)> = forkers.iter().map(|(launch, by)| (*launch, (*by, 0))).collect();
        first_threads_of(ran, &forkers)
    }

    fn first_threads_of(ran: &[&[(u64, u32)]], forkers: &[(u32, Forker)]) -> Vec<usize> {
        seats_of(ran, forkers).first
    }

    fn seats_of(ran: &[&[(u64, u32)]], forkers: &[(u32, Forker)]) -> Seats {
        let body = |(enter, _): &(u64, u32)| Body {
            function: SyncFunction::ParallelBody,
            object: 1,
            callable: 1,
            calls: None,
            enter: Seq(*enter),
            outermost: true,
            instructions: 0,
            forks: false,
            has_teams: false,
        };
        let thread =
            |of: &&[(u64, u32)]| ThreadSurvey { bodies: of.iter().map(body).collect(), ..ThreadSurvey::default() };
        let threads: Vec<ThreadSurvey> = ran.iter().map(thread).collect();
        let launches: Vec<Vec<Option<EpisodeId>>> =
            ran.iter().map(|of| of.iter().map(|(_, launch)| Some(EpisodeId(*launch))).collect()).collect();
        let forkers = forkers.iter().map(|(launch, by)| (EpisodeId(*launch), *by)).collect();
        seats(&threads, &launches, &forkers)
    }

    #[test]
    fn a_thread_made_for_a_larger_team_goes_on_with_its_numbers_lane() {
        // Teams of three, two, three: thread 2 ends before 3 is made.
        let ran: [&[(u64, u32)]; 4] = [&[(1, 0), (5, 1), (9, 2)], &[(2, 0), (6, 1), (10, 2)], &[(3, 0)], &[(11, 2)]];
        assert_eq!(first_threads(&ran, &[(0, 0), (1, 0), (2, 0)]), [0, 1, 2, 2]);
    }

    #[test]
    fn teams_of_two_forkers_are_other_lanes_and_so_are_threads_that_run_by_turns() {
        let ran: [&[(u64, u32)]; 4] = [&[(1, 0)], &[(2, 1)], &[(3, 0)], &[(4, 1)]];
        assert_eq!(first_threads(&ran, &[(0, 0), (1, 1)]), [0, 1, 2, 3]);
        let by_turns: [&[(u64, u32)]; 3] = [&[(1, 0), (3, 1), (5, 2)], &[(2, 0), (6, 2)], &[(4, 1)]];
        assert_eq!(first_threads(&by_turns, &[(0, 0), (1, 0), (2, 0)]), [0, 1, 2]);
    }

    #[test]
    fn threads_of_nested_teams_go_on_with_the_lane_of_their_number_there() {
        // Thread 1 works for a team of 0, and forks two teams in it, for each of which a thread is made.
        let ran: [&[(u64, u32)]; 4] = [&[(1, 0)], &[(2, 0)], &[(3, 1)], &[(6, 2)]];
        assert_eq!(first_threads(&ran, &[(0, 0), (1, 1), (2, 1)]), [0, 1, 2, 2]);
    }

    #[test]
    fn a_number_of_a_nested_team_is_another_than_the_same_of_the_team_around_it() {
        // Thread 1 works beside 0, which forks a team in theirs when it has begun its last body.
        let ran: [&[(u64, u32)]; 3] = [&[(1, 0)], &[(2, 0)], &[(6, 1)]];
        assert_eq!(first_threads_of(&ran, &[(0, (0, 0)), (1, (0, 1))]), [0, 1, 2]);
    }

    #[test]
    fn a_thread_that_works_for_two_forkers_has_several_seats() {
        let ran: [&[(u64, u32)]; 3] = [&[(1, 0)], &[(2, 0)], &[(3, 1), (5, 2)]];
        let seats = |second: Forker| seats_of(&ran, &[(0, (0, 0)), (1, (0, 1)), (2, second)]);
        assert_eq!((seats((1, 1)).are_mixed, seats((0, 1)).are_mixed), (true, false));
    }
}
