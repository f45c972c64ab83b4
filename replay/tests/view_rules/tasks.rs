//! OpenMP tasks as lanes: each has its own instructions, whether it ran inside of another one or behind it.

use replay::Control;
use replay::view::{Lanes, Region, View, ViewOptions};
use trace_format::SyncFunction;

use crate::recording::*;

const BODY: u64 = MAIN + 0x80;
const HELPER: u64 = MAIN + 0xc0;

/// A task: its turns before and behind each wait, and what its thread runs while it waits.
struct Task {
    number: u64,
    turns: Vec<u64>,
    /// By wait.
    inside: Vec<Vec<Task>>,
    locks: bool,
    calls: bool,
}

/// Trees of tasks, as a number has them.
fn drawn(dice: &mut Dice, depth: u64, count: &mut u64) -> Task {
    let number = *count;
    *count += 1;
    let inside = |dice: &mut Dice, count: &mut u64| {
        (0..dice.below(3)).map(|_| drawn(dice, depth - 1, count)).collect::<Vec<_>>()
    };
    let waits = if depth > 0 { dice.below(3) } else { 0 };
    Task {
        number,
        turns: (0..=waits).map(|_| dice.below(4)).collect(),
        inside: (0..waits).map(|_| inside(dice, count)).collect(),
        locks: dice.below(3) == 0,
        calls: dice.below(2) == 0,
    }
}

/// Records a task. Those that it waits for run inside of it, or come behind it and are handed back.
fn record(made: &mut Recording, task: Task, is_nested: bool) -> Vec<Task> {
    let mut behind = Vec::new();
    made.run(0, &[call(LIBGOMP + 0x40)]);
    made.enter_with(0, SyncFunction::TaskBody, BODY, 2 * task.number + 1);
    made.run(0, &[plain(BODY), adds(BODY + 1, -48)]);
    if task.calls {
        made.run(0, &[call(BODY + 2), plain(HELPER)]);
    }
    let lock = 0x9000 + task.number;
    if task.locks {
        made.sync(0, BODY + 3, SyncFunction::MutexLock, lock);
    }
    let mut inside = task.inside.into_iter();
    for turns in task.turns {
        for _ in 0..turns {
            made.run(0, &[plain(BODY + 5), branch(BODY + 6)]);
        }
        let Some(tasks) = inside.next() else { break };
        made.run(0, &[call(BODY + 7)]);
        made.enter(0, SyncFunction::TeamBarrier, 0);
        made.run(0, &[adds(LIBGOMP, -40), branch(LIBGOMP + 1)]);
        if is_nested {
            tasks.into_iter().for_each(|task| drop(record(made, task, is_nested)));
        } else {
            behind.extend(tasks);
        }
        made.run(0, &[adds(LIBGOMP + 2, 40), ret(LIBGOMP + 3)]);
        made.leave(0, SyncFunction::TeamBarrier);
    }
    if task.locks {
        made.sync(0, BODY + 8, SyncFunction::MutexUnlock, lock);
    }
    if task.calls {
        made.run(0, &[ret(HELPER + 1)]);
    }
    made.run(0, &[adds(BODY + 9, 48), ret(BODY + 10)]);
    made.leave(0, SyncFunction::TaskBody);
    behind
}

fn view(seed: u64, is_nested: bool) -> (View, u64) {
    let (mut dice, mut count) = (Dice(seed), 0);
    let task = drawn(&mut dice, 4, &mut count);
    let mut made = Recording::new();
    made.start(0);
    for number in 0..count {
        made.enter_with(0, SyncFunction::TaskCreate, BODY, 2 * number + 1);
        made.leave(0, SyncFunction::TaskCreate);
    }
    let mut left = vec![task];
    while let Some(task) = left.pop() {
        left.extend(record(&mut made, task, is_nested));
    }
    made.end(0);
    let options = ViewOptions { lanes: Lanes::Tasks, region: Region::Auto, ..ViewOptions::default() };
    (made.view(&options).unwrap(), count)
}

/// What a lane runs and locks, and at which level and stack pointer.
fn ran(view: &View, lane: usize) -> Vec<Told> {
    let is_own = |told: &Told| !matches!(told, Told::Comes(Control::Sp(_) | Control::Level(_) | Control::Stack { .. }));
    follow(view, lane).into_iter().filter(is_own).collect()
}

#[test]
fn a_task_that_runs_inside_of_another_is_the_lane_that_it_is_behind_it() {
    let mut all = 0;
    for seed in 0..80 {
        let ((nested, count), (behind, _)) = (view(seed, true), view(seed, false));
        assert_eq!((nested.lanes().len() as u64, behind.lanes().len() as u64), (count, count), "{seed}");
        for lane in 0..count as usize {
            assert_eq!(ran(&nested, lane), ran(&behind, lane), "{seed}: lane {lane}");
        }
        all += count;
    }
    assert!(all > 400, "{all} tasks");
}

/// A thread may end inside of tasks.
#[test]
fn tasks_that_never_end_are_lanes_too() {
    let mut made = Recording::new();
    made.start(0);
    for key in [1, 3] {
        made.enter_with(0, SyncFunction::TaskBody, BODY, key);
        made.run(0, &[plain(BODY), call(BODY + 7)]);
        made.enter(0, SyncFunction::TeamBarrier, 0);
        made.run(0, &[adds(LIBGOMP, -40), call(LIBGOMP + 1)]);
    }
    made.end(0);
    let view = made.view(&ViewOptions { lanes: Lanes::Tasks, ..ViewOptions::default() }).unwrap();
    assert_eq!([0, 1].map(|lane| told(&view, lane)), ["180 187", "180 187"]);
}

/// clang's tasks that are `untied` return at each wait, and any thread calls them again.
#[test]
fn parts_of_a_task_are_one_lane_whichever_threads_run_them() {
    let mut made = Recording::new();
    made.start(0).start(1);
    for key in [0x80, 0xa0] {
        made.enter_with(0, SyncFunction::TaskCreate, BODY, key);
        made.leave(0, SyncFunction::TaskCreate);
    }
    let mut part = |thread: u32, key: u64, at: u64| {
        made.run(thread, &[call(LIBGOMP + 0x40)]);
        made.enter_with(thread, SyncFunction::TaskBody, BODY, key);
        made.run(thread, &[adds(BODY + at, -8), adds(BODY + at + 1, 8), ret(BODY + at + 2)]);
        made.leave(thread, SyncFunction::TaskBody);
    };
    for (thread, key, at) in [(1, 0x80, 0), (0, 0xa0, 0), (0, 0x80, 16), (1, 0x80, 32), (1, 0xa0, 48)] {
        part(thread, key, at);
    }
    made.end(0).end(1);
    let view = made.view(&ViewOptions { lanes: Lanes::Tasks, ..ViewOptions::default() }).unwrap();
    let starts = |lane: usize| {
        let of = follow(&view, lane).into_iter().filter_map(|told| match told {
            Told::Runs(seen) => Some((seen.instruction.pc.0 - BODY, seen.sp, seen.level)),
            Told::Comes(_) => None,
        });
        of.collect::<Vec<_>>()
    };
    let part = |at: u64| [(at, 0, 1), (at + 1, -8, 1), (at + 2, 0, 1)];
    assert_eq!(view.lanes().len(), 2);
    assert_eq!(starts(0), [part(0), part(16), part(32)].concat());
    assert_eq!(starts(1), [part(0), part(48)].concat());
}
