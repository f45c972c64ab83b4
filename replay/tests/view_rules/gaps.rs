//! Recordings of a part of the run: instructions are missing, what happened between them is told.

use trace_format::{Event, Meta, SyncFunction::*, ThreadId};

use crate::recording::*;

const SLAVE: u64 = MAIN + 0x80;

fn gap(made: &mut Recording, thread: u32) -> &mut Recording {
    made.event(thread, Event::Gap)
}

/// The recording goes on, with the stack pointer so far below the thread's first.
fn go_on(made: &mut Recording, thread: u32, below: u64) -> &mut Recording {
    made.event(thread, Event::SetSp(STACK - below))
}

#[test]
fn a_recording_that_begins_inside_the_start_routine_has_its_lanes() {
    let mut made = Recording::new();
    made.symbol("slave", SLAVE, 16);
    made.start(0);
    gap(&mut made, 0).end(0);
    for thread in 1..3 {
        made.start(thread);
        gap(&mut made, thread).enter(thread, ThreadBody, SLAVE);
        go_on(&mut made, thread, 64).run(thread, &[plain(SLAVE + 4), adds(SLAVE + 5, 8)]);
        gap(&mut made, thread).leave(thread, ThreadBody).end(thread);
    }
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(view.lanes().iter().map(|lane| lane.thread).collect::<Vec<_>>(), [ThreadId(1), ThreadId(2)]);
    assert_eq!(told(&view, 0), "184 185");
    assert_eq!(view.summary().region, "start routine slave");
}

#[test]
fn lanes_that_the_recording_found_at_different_places_are_told_of() {
    let line = |begins: [u64; 2]| {
        let mut made = Recording::of_run(&Meta { window: Some("calls of f".into()), ..Meta::default() });
        for (thread, at) in (0..2).zip(begins) {
            made.start(thread);
            gap(&mut made, thread).enter(thread, ThreadBody, SLAVE);
            go_on(&mut made, thread, 0).run(thread, &[plain(SLAVE + at), branch(SLAVE + at + 1)]).end(thread);
        }
        made.view(&options("auto", "all", "serialize")).unwrap().summary().to_string()
    };
    assert!(line([0, 8]).ends_with("; lanes begin at 2 places, where the recording found them"), "{}", line([0, 8]));
    assert!(line([8, 8]).ends_with("kept"), "{}", line([8, 8]));
}

#[test]
fn a_lock_that_was_taken_outside_is_held_inside() {
    let mut made = Recording::new();
    made.start(0);
    gap(&mut made, 0).enter(0, MutexLock, 0x500).leave(0, MutexLock);
    go_on(&mut made, 0, 0).run(0, &[plain(MAIN)]);
    gap(&mut made, 0).enter(0, MutexUnlock, 0x500).leave(0, MutexUnlock);
    go_on(&mut made, 0, 0).run(0, &[plain(MAIN + 1)]).end(0);
    assert_eq!(told(&made.view(&whole()).unwrap(), 0), "take0 100 give0 101");
}

#[test]
fn a_barrier_that_was_set_up_outside_has_its_meetings() {
    let mut made = Recording::new();
    made.start(0);
    gap(&mut made, 0).enter_with(0, BarrierInit, 0x600, 2).leave(0, BarrierInit);
    for thread in 0..2 {
        if thread > 0 {
            made.start(thread);
            gap(&mut made, thread);
        }
        go_on(&mut made, thread, 0).run(thread, &[plain(MAIN)]);
    }
    // One wait is recorded, of the other it is only known that it was.
    made.enter(0, BarrierWait, 0x600);
    gap(&mut made, 1).enter(1, BarrierWait, 0x600).leave(1, BarrierWait);
    made.leave(0, BarrierWait).run(0, &[plain(MAIN + 1)]).end(0);
    go_on(&mut made, 1, 0).run(1, &[plain(MAIN + 1)]).end(1);
    let view = made.view(&whole()).unwrap();
    assert_eq!([told(&view, 0), told(&view, 1)], ["100 meet0 101", "100 meet0 101"]);
}

#[test]
fn a_call_whose_function_is_not_recorded_is_no_call() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]);
    gap(&mut made, 0);
    go_on(&mut made, 0, 0).run(0, &[plain(MAIN + 9)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101 109");
    assert!(seen(&view, 0).iter().all(|seen| seen.level == 1 && seen.sp == 0));
}

#[test]
fn frames_that_were_left_outside_are_closed() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run(0, &[plain(SLAVE)]);
    gap(&mut made, 0);
    go_on(&mut made, 0, 0).run(0, &[plain(MAIN + 5)]).end(0);
    let levels: Vec<u32> = seen(&made.view(&whole()).unwrap(), 0).iter().map(|seen| seen.level).collect();
    assert_eq!(levels, [1, 2, 1]);
}

#[test]
fn passes_of_a_loop_with_something_left_out_between_are_no_waiting() {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..3 {
        made.run(0, &[pause(MAIN), branch(MAIN + 1)]);
        gap(&mut made, 0);
        go_on(&mut made, 0, 0);
    }
    made.run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!((view.summary().spin, view.summary().kept), (0, 7));
}

#[test]
fn an_empty_trace_says_why_it_is_empty() {
    let mut made = Recording::new();
    made.start(0);
    gap(&mut made, 0).end(0);
    let refused = refusal(made.view(&whole()));
    assert!(refused.contains("holds no instructions"), "{refused}");
    let mut made = Recording::of_run(&Meta { window: Some("calls of f".into()), ..Meta::default() });
    made.start(0).run(0, &[plain(MAIN)]).end(0);
    let refused = refusal(made.view(&options("auto", "all", "serialize")));
    assert!(refused.contains("a part of the run was recorded: calls of f"), "{refused}");
}
