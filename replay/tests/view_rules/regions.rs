//! Which part of each thread is replayed.

use trace_format::{Event, SyncFunction::*, ThreadId};

use crate::recording::*;

const SLAVE: u64 = MAIN + 0x80;

/// A worker: its start routine runs two instructions and returns into the C library.
fn worker(made: &mut Recording, thread: u32, routine: u64) {
    made.start(thread).run(thread, &[plain(LIBC), call(LIBC + 1)]);
    made.enter(thread, ThreadBody, routine).run(thread, &[plain(routine), ret(routine + 1)]);
    made.leave(thread, ThreadBody).run(thread, &[plain(LIBC + 2)]).end(thread);
}

#[test]
fn lanes_are_the_threads_that_run_the_start_routine() {
    let mut made = Recording::new();
    made.symbol("slave", SLAVE, 16);
    made.start(0).run(0, &[plain(MAIN)]).end(0);
    worker(&mut made, 1, SLAVE);
    worker(&mut made, 2, SLAVE);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(view.lanes().iter().map(|l| l.thread).collect::<Vec<_>>(), [ThreadId(1), ThreadId(2)]);
    assert_eq!(told(&view, 0), "180 181r");
    assert_eq!(told(&view, 1), "180 181r");
    assert!(view.lanes()[0].first < view.lanes()[1].first);
    assert_eq!(
        view.summary().to_string(),
        "2 lanes of 3 threads, start routine slave; 4 of 11 thread instructions kept; \
         dropped: 7 outside the region; left out: thread 0 (never in the region)"
    );
}

#[test]
fn main_calling_the_start_routine_itself_is_a_lane() {
    let mut made = Recording::new();
    worker(&mut made, 1, SLAVE);
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]).run(0, &[plain(SLAVE), ret(SLAVE + 1)]);
    made.run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(view.lanes().len(), 2);
    assert_eq!(told(&view, 0), "180 181r");
}

#[test]
fn the_start_routine_of_most_threads_is_taken_and_others_are_named() {
    let mut made = Recording::new();
    made.symbol("logger", MAIN + 0x40, 16);
    made.start(0).end(0);
    worker(&mut made, 1, MAIN + 0x40);
    worker(&mut made, 2, SLAVE);
    worker(&mut made, 3, SLAVE);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(view.lanes().len(), 2);
    let line = view.summary().to_string();
    assert!(line.contains("start routine at 0x180"), "{line}");
    assert!(line.contains("thread 1 (start routine logger)"), "{line}");
}

#[test]
fn of_start_routines_with_equally_many_threads_the_one_with_most_instructions_is_taken() {
    let mut made = Recording::new();
    worker(&mut made, 0, MAIN + 0x40);
    made.start(1).enter(1, ThreadBody, SLAVE);
    made.run(1, &[plain(SLAVE), plain(SLAVE + 1), plain(SLAVE + 2), ret(SLAVE + 3)]).end(1);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(view.lanes()[0].thread, ThreadId(1));
}

#[test]
fn a_thread_that_ends_inside_its_routine_closes_the_region() {
    let mut made = Recording::new();
    made.start(0).enter(0, ThreadBody, SLAVE).run(0, &[plain(SLAVE), branch(SLAVE + 1)]).end(0);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "180 181");
}

#[test]
fn a_program_without_threads_is_refused_with_the_ways_out() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN)]).end(0);
    let message = refusal(made.view(&options("auto", "all", "serialize")));
    assert!(message.contains("--region SYMBOL") && message.contains("--region all"), "{message}");
}

#[test]
fn a_trace_without_instructions_is_refused() {
    let mut made = Recording::new();
    made.start(0).end(0);
    assert!(refusal(made.view(&whole())).contains("no instructions"));
}

/// Two forks of a team of two; thread 1 reaches the second body before thread 0 does.
fn parallel_regions() -> Recording {
    const BODY: u64 = MAIN + 0x40;
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]);
    made.start(1).enter(1, ThreadBody, LIBGOMP + 0x80).run(1, &[plain(LIBGOMP + 0x80), call(LIBGOMP + 0x81)]);
    for order in [[0, 1], [1, 0]] {
        made.enter(0, ParallelFork, BODY).run(0, &[plain(LIBGOMP), call(LIBGOMP + 1)]);
        for thread in order {
            made.enter(thread, ParallelBody, BODY).run(thread, &[adds(BODY, -16), adds(BODY + 1, 16), ret(BODY + 2)]);
            made.leave(thread, ParallelBody);
        }
        made.run(0, &[plain(LIBGOMP + 2), ret(LIBGOMP + 3)]).leave(0, ParallelFork);
        made.run(0, &[plain(MAIN + 2), call(MAIN + 1)]);
        made.run(1, &[plain(LIBGOMP + 0x82), call(LIBGOMP + 0x81)]);
    }
    made.end(0).end(1);
    made
}

#[test]
fn each_fork_of_a_team_is_one_aligned_launch() {
    let view = parallel_regions().view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(view.lanes().len(), 2);
    // The return of the first body leaves the stack pointer above where the second begins.
    assert_eq!(told(&view, 0), "meet0 140 141 142r meet1 sp=0 140 141 142r");
    assert_eq!(told(&view, 1), told(&view, 0));
    assert!(view.summary().to_string().contains("OpenMP parallel regions (2 forks)"));
}

#[test]
fn a_thread_runtime_s_own_start_routine_is_no_region() {
    let view = parallel_regions().view(&options("auto", "all", "serialize")).unwrap();
    assert!(!view.summary().to_string().contains("start routine"), "{}", view.summary());
}

#[test]
fn threads_win_over_teams_that_hold_fewer_instructions() {
    const BODY: u64 = MAIN + 0x40;
    let mut made = Recording::new();
    made.start(0).enter(0, ParallelFork, BODY).enter(0, ParallelBody, BODY).run(0, &[ret(BODY)]);
    made.leave(0, ParallelBody).leave(0, ParallelFork).end(0);
    worker(&mut made, 1, SLAVE);
    worker(&mut made, 2, SLAVE);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(view.lanes()[0].thread, ThreadId(1));
    assert!(view.summary().to_string().contains("OpenMP parallel regions run too"), "{}", view.summary());
}

/// One thread calls `work` twice, once from inside itself; `work` takes 16 bytes of stack.
fn recursive() -> Recording {
    const WORK: u64 = MAIN + 0x40;
    let mut made = Recording::new();
    made.symbol("work", WORK, 16).symbol("main", MAIN, 16);
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]);
    made.run(0, &[adds(WORK, -16), call(WORK + 1)]).run(0, &[adds(WORK, -16), call(WORK + 1)]);
    made.run(0, &[plain(MAIN + 0x60), ret(MAIN + 0x61)]);
    made.run(0, &[adds(WORK + 2, 16), ret(WORK + 3)]).run(0, &[adds(WORK + 2, 16), ret(WORK + 3)]);
    made.run(0, &[plain(MAIN + 2), call(MAIN + 1)]).run(0, &[adds(WORK, -16), call(WORK + 1)]);
    made.run(0, &[plain(MAIN + 0x60), ret(MAIN + 0x61)]).run(0, &[adds(WORK + 2, 16), ret(WORK + 3)]);
    made.run(0, &[plain(MAIN + 3)]).end(0);
    made
}

#[test]
fn a_named_function_s_outermost_executions_are_the_region() {
    let view = recursive().view(&options("work", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "140 141c 140 141c 160 161r 142 143r 142 143r sp=0 140 141c 160 161r 142 143r");
    let levels: Vec<u32> = seen(&view, 0).iter().map(|s| s.level).collect();
    assert_eq!(levels, [1, 1, 2, 2, 3, 3, 2, 2, 1, 1, 1, 1, 2, 2, 1, 1]);
    assert_eq!(view.summary().outside_region, 5);
}

#[test]
fn a_named_function_reached_by_falling_into_it_is_found() {
    let mut made = Recording::new();
    made.symbol("work", MAIN + 2, 16);
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 0x10)]);
    made.run(0, &[plain(MAIN + 1), plain(MAIN + 2), ret(MAIN + 3)]).run(0, &[plain(MAIN + 0x11)]).end(0);
    let view = made.view(&options("work", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "102 103r");
}

#[test]
fn a_function_that_did_not_run_is_refused_with_similar_names() {
    let message = refusal(recursive().view(&options("wrok", "all", "serialize")));
    assert!(message.contains("no function named `wrok` ran; similar names: work"), "{message}");
    assert!(message.contains("only functions that ran are known"), "{message}");
}

#[test]
fn a_function_that_never_ran_from_its_beginning_is_refused() {
    let mut made = Recording::new();
    made.symbol("work", MAIN, 16);
    made.start(0).run(0, &[plain(MAIN + 4)]).end(0);
    let message = refusal(made.view(&options("work", "all", "serialize")));
    assert!(message.contains("nothing is left to replay") && message.contains("--region all"), "{message}");
}

#[test]
fn a_trace_without_names_refuses_a_named_function() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN)]).end(0);
    assert!(refusal(made.view(&options("work", "all", "serialize"))).contains("no function names"));
}

#[test]
fn whole_threads_are_taken_on_request() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN)]).end(0);
    worker(&mut made, 1, SLAVE);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100");
    assert_eq!(told(&view, 1), "2000 2001c 180 181r 2002");
}

#[test]
fn an_executed_program_replaced_by_another_goes_on_in_its_thread() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]).event(0, Event::Exec).event(0, Event::SetSp(STACK + 64));
    made.run(0, &[plain(MAIN + 0x20)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101 120");
}
