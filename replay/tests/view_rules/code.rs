//! Which code is replayed.

use trace_format::SyncFunction::*;

use crate::recording::*;

#[test]
fn a_call_into_a_library_is_a_jump_when_only_main_is_kept() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]);
    made.run(0, &[adds(LIBRARY, -8), adds(LIBRARY + 1, 8), ret(LIBRARY + 2)]).run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&options("all", "main", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "100 101 102");
    assert_eq!(view.summary().outside_main, 3);
}

#[test]
fn a_call_that_is_made_a_jump_takes_its_recorded_stack_pointer_along() {
    let mut made = Recording::new();
    let far_call = trace_format::Instruction { sp: trace_format::SpEffect::Recorded, ..call(MAIN + 1) };
    made.start(0).run_with(0, &[sets(MAIN), far_call], &[STACK - 64, STACK - 80], &[]);
    made.run(0, &[adds(LIBRARY, 16)]).run_with(0, &[sets(MAIN + 2), plain(MAIN + 3)], &[STACK], &[]).end(0);
    let view = made.view(&options("all", "main", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "100 101 102 103");
    assert_eq!(seen(&view, 0).iter().map(|s| s.sp).collect::<Vec<_>>(), [0, -64, -64, 0]);
}

#[test]
fn libraries_stay_by_default() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]);
    made.run(0, &[plain(LIBRARY), ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101c 4000 4001r 102");
}

#[test]
fn a_library_calling_back_into_main_opens_one_level() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]).run(0, &[adds(LIBRARY, -24), call(LIBRARY + 1)]);
    made.run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[adds(LIBRARY + 2, 24), ret(LIBRARY + 3)]);
    made.run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&options("all", "main", "serialize")).unwrap();
    // call -8, library -24, its call -8: the comparison function runs 40 bytes below main.
    assert_eq!(told(&view, 0), "100 101 sp=-40 level=2 140 141r sp=0 102");
}

#[test]
fn a_plt_stub_stays_and_the_level_is_set_right_behind_it() {
    let mut made = Recording::new();
    let stub = MAIN + 0x40;
    made.start(0).run(0, &[call(MAIN)]).run(0, &[of_kind(trace_format::Kind::IndirectJump, stub)]);
    made.inside(0, MutexUnlock, 64, 0, 0).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100c 140 sp=0 level=1 101");
}

#[test]
fn thread_runtime_libraries_and_the_loader_are_dropped() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run(0, &[plain(LIBGOMP), ret(LIBGOMP + 1)]);
    made.run(0, &[call(MAIN + 1)]).run(0, &[plain(LOADER), ret(LOADER + 1)]).run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101 102");
    assert_eq!(view.summary().sync_runtime, 4);
}

#[test]
fn the_c_library_stays_but_for_its_thread_functions() {
    let mut made = Recording::new();
    made.symbol("memcpy", LIBC, 8).symbol("__pthread_once_slow", LIBC + 8, 8);
    made.start(0).run(0, &[call(MAIN)]).run(0, &[plain(LIBC), ret(LIBC + 1)]);
    made.run(0, &[call(MAIN + 1)]).run(0, &[plain(LIBC + 8), ret(LIBC + 9)]).run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100c 2000 2001r 101 102");
}

#[test]
fn thread_functions_of_a_static_program_are_dropped_by_name() {
    let mut made = Recording::of_static_program();
    made.symbol("GOMP_parallel", MAIN + 0x40, 8).symbol("work", MAIN, 8);
    made.start(0).run(0, &[call(MAIN)]).run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[plain(MAIN + 1)]);
    made.end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101");
}

#[test]
fn the_inside_of_a_synchronisation_function_is_dropped_wherever_it_lies() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN)]).sync(0, MAIN + 1, SemaphorePost, 64).run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101 102");
    assert_eq!(view.summary().sync_runtime, 9);
}

#[test]
fn code_that_a_once_function_calls_stays() {
    let mut made = Recording::new();
    made.symbol("pthread_once", LIBC, 8);
    made.start(0).run(0, &[call(MAIN)]).enter(0, Once, 64).run(0, &[adds(LIBC, -8), call(LIBC + 1)]);
    made.run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[adds(LIBC + 2, 8), ret(LIBC + 3)]);
    made.leave(0, Once).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 sp=-24 level=2 140 141r sp=0 101");
}

#[test]
fn nothing_is_kept_after_a_thread_has_called_its_exit() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]).enter(0, ThreadExit, 0);
    made.run(0, &[plain(LIBC), call(LIBC + 1)]).run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101");
}

#[test]
fn a_view_that_keeps_nothing_says_what_dropped_everything() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(LIBRARY)]).end(0);
    let message = refusal(made.view(&options("all", "main", "serialize")));
    assert!(message.contains("1 outside the main executable") && message.contains("--code all"), "{message}");
}

#[test]
fn a_thread_of_which_nothing_is_kept_is_no_lane() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN)]).end(0).start(1).run(1, &[plain(LIBRARY)]).end(1);
    let view = made.view(&options("all", "main", "serialize")).unwrap();
    assert_eq!(view.lanes().len(), 1);
    assert!(view.summary().to_string().ends_with("left out: thread 1 (nothing of it is kept)"));
}
