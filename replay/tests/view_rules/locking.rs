//! How locks count.

use replay::LockId;
use trace_format::SyncFunction::*;

use crate::recording::*;

const MUTEX: u64 = 0x404080;

/// One instruction before, one in and one behind a critical section: the calls are at 101 and 103.
fn critical_section() -> Recording {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN)]).sync(0, MAIN + 1, MutexLock, MUTEX).run(0, &[plain(MAIN + 2)]);
    made.sync(0, MAIN + 3, MutexUnlock, MUTEX).run(0, &[plain(MAIN + 4)]).end(0);
    made
}

#[test]
fn a_lock_is_taken_behind_the_call_and_given_back_behind_the_next() {
    let view = critical_section().view(&options("all", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "100 101 take0 102 103 give0 104");
}

#[test]
fn ignored_locks_leave_no_controls() {
    let view = critical_section().view(&options("all", "all", "ignore")).unwrap();
    assert_eq!(told(&view, 0), "100 101 102 103 104");
}

#[test]
fn a_dropped_critical_section_ends_with_the_call_that_gives_the_lock_back() {
    let view = critical_section().view(&options("all", "all", "drop")).unwrap();
    assert_eq!(told(&view, 0), "100 101 104");
    assert_eq!(view.summary().critical, 2);
}

#[test]
fn a_lock_s_name_says_kind_address_and_symbol() {
    let mut made = critical_section();
    made.symbol("tree_lock", MUTEX, 40);
    let view = made.view(&whole()).unwrap();
    assert_eq!(view.lock_name(LockId(0)), "mutex 0x404080 (tree_lock)");
    assert_eq!(critical_section().view(&whole()).unwrap().lock_name(LockId(0)), "mutex 0x404080");
}

#[test]
fn a_try_that_failed_takes_no_lock() {
    let mut made = Recording::new();
    made.start(0);
    for result in [16, 0] {
        made.run(0, &[call(MAIN + 1)]).inside(0, MutexTryLock, MUTEX, 0, result).run(0, &[branch(MAIN + 2)]);
    }
    made.sync(0, MAIN + 3, MutexUnlock, MUTEX).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "101 102 101 take0 102 103 give0");
}

#[test]
fn a_recursive_mutex_is_taken_and_given_back_once() {
    let mut made = Recording::new();
    made.start(0).sync(0, MAIN, MutexLock, MUTEX).sync(0, MAIN + 1, MutexLock, MUTEX);
    made.sync(0, MAIN + 2, MutexUnlock, MUTEX).sync(0, MAIN + 3, MutexUnlock, MUTEX).run(0, &[plain(MAIN + 4)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 take0 101 102 103 give0 104");
}

#[test]
fn readers_share_a_lock_and_a_writer_does_not() {
    let mut made = Recording::new();
    made.start(0).sync(0, MAIN, ReadLock, MUTEX).sync(0, MAIN + 1, ReadWriteUnlock, MUTEX);
    made.sync(0, MAIN + 2, WriteLock, MUTEX).sync(0, MAIN + 3, ReadWriteUnlock, MUTEX).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 share0 101 give0 102 take0 103 give0");
    assert!(view.lock_name(LockId(0)).starts_with("read-write lock"));
}

#[test]
fn a_condition_wait_gives_its_mutex_up_and_takes_it_again() {
    let mut made = Recording::new();
    made.start(0).sync(0, MAIN, MutexLock, MUTEX).run(0, &[call(MAIN + 1)]);
    made.inside(0, ConditionWait, 64, MUTEX, 0).run(0, &[plain(MAIN + 2)]).sync(0, MAIN + 3, MutexUnlock, MUTEX).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 take0 101 give0 take0 102 103 give0");
}

#[test]
fn openmp_critical_sections_are_locks_whatever_the_functions_return() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).inside(0, CriticalEnter, 0, 0, 0xdead).run(0, &[plain(MAIN + 1)]);
    made.sync(0, MAIN + 2, CriticalLeave, 0).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 take0 101 102 give0");
    assert_eq!(view.lock_name(LockId(0)), "unnamed critical section");
}

#[test]
fn a_lock_taken_inside_another_synchronisation_function_does_not_count() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).enter(0, CriticalEnter, 64).run(0, &[call(LIBGOMP)]);
    made.inside(0, MutexLock, 64, 0, 0).run(0, &[ret(LIBGOMP + 1)]).leave(0, CriticalEnter);
    made.run(0, &[plain(MAIN + 1)]).sync(0, MAIN + 2, CriticalLeave, 64).run(0, &[plain(MAIN + 3)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 take0 101 102 give0 103");
}

#[test]
fn locks_are_numbered_by_address_over_all_lanes() {
    let mut made = Recording::new();
    for (thread, mutex) in [(0, 0x900), (1, 0x800)] {
        made.start(thread).sync(thread, MAIN, MutexLock, mutex).run(thread, &[plain(MAIN + 1)]);
        made.sync(thread, MAIN + 2, MutexUnlock, mutex).end(thread);
    }
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 take1 101 102 give1");
    assert_eq!(told(&view, 1), "100 take0 101 102 give0");
}

#[test]
fn a_lock_held_around_the_region_is_held_in_it() {
    let work = MAIN + 0x40;
    let mut made = Recording::new();
    made.symbol("work", work, 16);
    made.start(0).sync(0, MAIN, MutexLock, MUTEX).run(0, &[call(MAIN + 1)]).run(0, &[plain(work), ret(work + 1)]);
    made.sync(0, MAIN + 2, MutexUnlock, MUTEX).run(0, &[call(MAIN + 3)]).run(0, &[plain(work), ret(work + 1)]).end(0);
    let view = made.view(&options("work", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "take0 140 141r give0 sp=0 140 141r");
}

#[test]
fn a_lock_still_held_at_the_end_of_the_region_is_given_back() {
    let work = MAIN + 0x40;
    let mut made = Recording::new();
    made.start(0).enter(0, ThreadBody, work).run(0, &[plain(work)]).sync(0, work + 1, MutexLock, MUTEX);
    made.run(0, &[ret(work + 2)]).leave(0, ThreadBody).sync(0, MAIN, MutexUnlock, MUTEX).end(0);
    let view = made.view(&options("auto", "all", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "140 141 take0 142r give0");
}

#[test]
fn a_critical_section_of_which_nothing_is_kept_leaves_no_controls() {
    let mut made = Recording::new();
    made.start(0).run(0, &[plain(MAIN), call(MAIN + 1)]).run(0, &[call(LIBRARY)]).inside(0, MutexLock, 64, 0, 0);
    made.run(0, &[plain(LIBRARY + 1), call(LIBRARY + 2)]).inside(0, MutexUnlock, 64, 0, 0).run(0, &[ret(LIBRARY + 3)]);
    made.run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&options("all", "main", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "100 101 102");
}

#[test]
fn giving_back_a_lock_taken_before_the_recording_does_nothing() {
    let mut made = Recording::new();
    made.start(0).sync(0, MAIN, MutexLock, 8).sync(0, MAIN + 1, MutexUnlock, 64).run(0, &[plain(MAIN + 2)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 take0 101 102 give0");
}
