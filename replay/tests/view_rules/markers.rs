//! `--region markers`: what each thread runs between its own markers.

use trace_format::Event;

use crate::recording::*;

#[test]
fn each_thread_has_the_part_between_its_own_markers() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN)]).run_marker(0, MAIN + 0x10, 1).run(0, &[plain(MAIN + 0x20)]);
    made.run_marker(0, MAIN + 0x30, 2).run(0, &[plain(MAIN + 0x40)]);
    made.run_marker(0, MAIN + 0x10, 1).run_marker(0, MAIN + 0x30, 2).end(0);
    made.start(1).run(1, &[plain(MAIN), plain(MAIN + 1)]).end(1);
    let view = made.view(&options("markers", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "111 119 120 130 111 119 130");
    let line = view.summary().to_string();
    assert!(line.contains("1 lane of 2 threads, between markers"), "{line}");
    assert!(line.ends_with("left out: thread 1 (never in the region)"), "{line}");
}

#[test]
fn pairs_in_pairs_and_ends_without_a_beginning_change_nothing() {
    let mut made = Recording::new();
    made.start(0).run_marker(0, MAIN + 0x30, 2).run(0, &[plain(MAIN)]);
    made.run_marker(0, MAIN + 0x10, 1).run_marker(0, MAIN + 0x50, 1).run_marker(0, MAIN + 0x60, 2);
    made.run(0, &[plain(MAIN + 2)]).run_marker(0, MAIN + 0x30, 2).end(0);
    let view = made.view(&options("markers", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "111 119 150 151 159 160 161 169 102 130");
}

#[test]
fn where_the_recording_paused_at_the_marker_the_part_ends() {
    let mut made = Recording::new();
    for thread in 0..2 {
        made.start(thread).event(thread, Event::Gap).event(thread, Event::SetSp(STACK));
        // The other thread has opened the window: this one reaches its own part later.
        made.run(thread, &[plain(MAIN + 4)]).run_marker(thread, MAIN + 0x10, 1).run(thread, &[plain(MAIN + 0x20)]);
        made.event(thread, Event::Gap).event(thread, Event::SetSp(STACK));
        made.run(thread, &[plain(MAIN + 0x70)]).end(thread);
    }
    let view = made.view(&options("markers", "all", "serialize")).unwrap();
    assert_eq!([told(&view, 0), told(&view, 1)], ["111 119 120", "111 119 120"]);
}

#[test]
fn a_program_without_markers_is_refused_with_the_ways_out() {
    let mut made = Recording::new();
    made.start(0).run_marker(0, MAIN, 2).end(0);
    let refused = refusal(made.view(&options("markers", "all", "serialize")));
    assert!(refused.contains("no LOCKSTEP_BEGIN") && refused.contains("--region SYMBOL"), "{refused}");
}
