//! Episodes at barriers.

use trace_format::SyncFunction::{self, *};

use crate::recording::*;

const BARRIER: u64 = 0x5000;

/// Threads that wait at a barrier together, in this order, and then run an instruction.
fn wait(made: &mut Recording, threads: &[u32], function: SyncFunction, object: u64, pc: u64) {
    for thread in threads {
        made.run(*thread, &[call(pc)]).enter(*thread, function, object);
        made.run(*thread, &[plain(LIBC)]);
    }
    for thread in threads.iter().rev() {
        made.run(*thread, &[ret(LIBC + 1)]).leave(*thread, function).run(*thread, &[plain(pc + 1)]);
    }
}

#[test]
fn lanes_that_left_a_barrier_together_meet_there() {
    let mut made = Recording::new();
    (0..3).for_each(|t| {
        made.start(t);
    });
    wait(&mut made, &[0, 1, 2], BarrierWait, BARRIER, MAIN);
    wait(&mut made, &[2, 0, 1], BarrierWait, BARRIER, MAIN + 2);
    let view = made.view(&whole()).unwrap();
    for lane in 0..3 {
        assert_eq!(told(&view, lane), "100 meet0 101 102 meet1 103");
    }
}

#[test]
fn sub_teams_meet_at_their_own_barriers() {
    let mut made = Recording::new();
    (0..4).for_each(|t| {
        made.start(t);
    });
    wait(&mut made, &[0, 1], BarrierWait, BARRIER, MAIN);
    wait(&mut made, &[2, 3], BarrierWait, BARRIER + 32, MAIN);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), told(&view, 1));
    assert_eq!(told(&view, 2), told(&view, 3));
    assert_ne!(told(&view, 0), told(&view, 2));
}

#[test]
fn a_known_count_parts_two_teams_that_use_one_barrier_in_turn() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN + 8)]).inside(0, BarrierInit, BARRIER, 2, 0);
    (1..4).for_each(|t| {
        made.start(t);
    });
    // All four are in before anybody leaves.
    wait(&mut made, &[0, 1, 2, 3], BarrierWait, BARRIER, MAIN);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "108 100 meet0 101");
    assert_eq!(told(&view, 1), "100 meet0 101");
    assert_eq!(told(&view, 2), "100 meet1 101");
    assert_eq!(told(&view, 3), "100 meet1 101");
}

#[test]
fn a_thread_that_ends_in_a_barrier_meets_nobody() {
    let mut made = Recording::new();
    made.start(0).start(1).start(2);
    made.run(2, &[call(MAIN)]).enter(2, BarrierWait, BARRIER).run(2, &[plain(LIBC)]);
    wait(&mut made, &[0, 1], BarrierWait, BARRIER, MAIN);
    made.end(2);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 meet0 101");
    assert_eq!(told(&view, 1), "100 meet0 101");
    assert_eq!(told(&view, 2), "100");
}

#[test]
fn a_barrier_waited_at_outside_of_the_region_is_no_meeting() {
    let work = MAIN + 0x40;
    let mut made = Recording::new();
    made.symbol("work", work, 8);
    made.start(0).start(1);
    wait(&mut made, &[0, 1], BarrierWait, BARRIER, MAIN);
    for thread in [0, 1] {
        made.run(thread, &[call(MAIN + 2)]).run(thread, &[plain(work)]);
    }
    wait(&mut made, &[0, 1], BarrierWait, BARRIER, work + 1);
    let view = made.view(&options("work", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "140 141 meet1 142");
    assert_eq!(told(&view, 1), told(&view, 0));
}

#[test]
fn a_team_s_barriers_are_meetings_of_the_team() {
    let body = MAIN + 0x40;
    let mut made = Recording::new();
    made.start(0).start(1).enter(0, ParallelFork, body);
    for thread in [0, 1] {
        made.enter(thread, ParallelBody, body).run(thread, &[plain(body)]);
    }
    wait(&mut made, &[1, 0], TeamBarrier, 0, body + 1);
    for thread in [0, 1] {
        made.run(thread, &[ret(body + 3)]).leave(thread, ParallelBody);
    }
    made.leave(0, ParallelFork);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "meet0 140 141 meet1 142 143r");
    assert_eq!(told(&view, 1), told(&view, 0));
}

#[test]
fn a_barrier_in_a_dropped_critical_section_is_still_a_meeting() {
    let mut made = Recording::new();
    made.start(0).start(1).sync(0, MAIN + 8, MutexLock, 64);
    wait(&mut made, &[0, 1], BarrierWait, BARRIER, MAIN);
    made.sync(0, MAIN + 9, MutexUnlock, 64).run(0, &[plain(MAIN + 10)]);
    let view = made.view(&options("all", "all", "drop")).unwrap();
    assert_eq!(told(&view, 0), "108 meet0 10a");
    assert_eq!(told(&view, 1), "100 meet0 101");
}
