//! Spin-waiting in the program's own code.

use trace_format::SyncFunction::*;

use crate::recording::*;

/// A loop `while (!flag) pause;` that goes round so many times: `pause` at 101, the test at 102 and 103.
fn spin(made: &mut Recording, thread: u32, rounds: usize) {
    made.start(thread).run(thread, &[branch(MAIN)]);
    for _ in 0..rounds {
        made.run(thread, &[pause(MAIN + 1)]).run(thread, &[plain(MAIN + 2), branch(MAIN + 3)]);
    }
    made.run(thread, &[plain(MAIN + 4)]).end(thread);
}

#[test]
fn of_a_wait_however_long_one_pass_stays() {
    let mut made = Recording::new();
    spin(&mut made, 0, 1);
    spin(&mut made, 1, 2);
    spin(&mut made, 2, 40_000);
    let view = made.view(&whole()).unwrap();
    for lane in 0..3 {
        assert_eq!(told(&view, lane), "100 101 102 103 104");
    }
    assert_eq!(view.summary().spin, 3 * (1 + 39_999));
}

#[test]
fn a_wait_that_was_over_at_once_stays_as_it_is() {
    let mut made = Recording::new();
    spin(&mut made, 0, 0);
    let view = made.view(&whole()).unwrap();
    assert_eq!((told(&view, 0).as_str(), view.summary().spin), ("100 104", 0));
}

/// A loop with a `pause` and so many blocks in all, gone round three times.
fn loop_of(blocks: u64) -> Recording {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..3 {
        made.run(0, &[pause(MAIN), branch(MAIN + 1)]);
        (1..blocks).for_each(|i| {
            made.run(0, &[branch(MAIN + 16 * i)]);
        });
    }
    made.end(0);
    made
}

#[test]
fn a_loop_of_eight_blocks_is_waiting_and_one_of_nine_is_work() {
    assert_eq!(loop_of(8).view(&whole()).unwrap().summary().spin, 2 * 9);
    assert_eq!(loop_of(9).view(&whole()).unwrap().summary().spin, 0);
}

#[test]
fn a_loop_with_two_pauses_is_waiting_too() {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..5 {
        made.run(0, &[pause(MAIN), branch(MAIN + 1)]).run(0, &[pause(MAIN + 2), branch(MAIN + 3)]);
    }
    made.run(0, &[plain(MAIN + 4)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101 102 103 104");
}

#[test]
fn recursion_through_a_pause_is_no_waiting() {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..3 {
        made.run(0, &[pause(MAIN), call(MAIN + 1)]);
    }
    let view = made.view(&whole()).unwrap();
    assert_eq!(view.summary().spin, 0);
}

#[test]
fn polling_under_a_lock_is_waiting() {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..4 {
        made.run(0, &[pause(MAIN)]).sync(0, MAIN + 1, MutexLock, 64).run(0, &[plain(MAIN + 2)]);
        made.sync(0, MAIN + 3, MutexUnlock, 64).run(0, &[branch(MAIN + 4)]);
    }
    made.run(0, &[plain(MAIN + 5)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101 take0 102 103 give0 104 105");
    assert_eq!(view.summary().spin, 3 * 5);
}

#[test]
fn a_loop_that_meets_others_at_a_barrier_is_work() {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..3 {
        made.run(0, &[pause(MAIN)]).sync(0, MAIN + 1, BarrierWait, 64).run(0, &[branch(MAIN + 2)]);
    }
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101 meet0 102 100 101 meet1 102 100 101 meet2 102");
}

#[test]
fn a_loop_that_takes_a_lock_and_keeps_it_is_work() {
    let mut made = Recording::new();
    made.start(0);
    for object in [64, 128] {
        made.run(0, &[pause(MAIN)]).sync(0, MAIN + 1, MutexLock, object).run(0, &[branch(MAIN + 2)]);
    }
    let view = made.view(&whole()).unwrap();
    assert_eq!(view.summary().spin, 0);
}

#[test]
fn a_loop_that_yields_is_waiting() {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..6 {
        made.run(0, &[plain(MAIN)]).sync(0, MAIN + 1, Yield, 0).run(0, &[branch(MAIN + 2)]);
    }
    made.run(0, &[plain(MAIN + 3)]).end(0);
    let view = made.view(&whole()).unwrap();
    // The first pass up to the yield, then the last.
    assert_eq!(told(&view, 0), "100 101 102 103");
    assert_eq!(view.summary().spin, 5 * 3);
}
