//! Programs of many threads under the engine `translate`: each block follows from the one before, and output and status
//! are the program's own.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::support::{compile, entries, events, leaves, record};
use trace_format::{Event, SyncFunction, ThreadId, Trace};

fn recorded(source: &str, flags: &[&str]) -> Trace {
    let program = compile(source, flags);
    let native = Command::new(&program).output().unwrap();
    let recorded = record("engine=translate aslr", &program, &[]);
    // Some print addresses, which differ from run to run.
    let words = |text: &str| text.split_whitespace().filter(|word| !word.starts_with("0x")).count();
    let expected = String::from_utf8_lossy(&native.stdout);
    assert_eq!(words(&recorded.stdout()), words(&expected), "stderr: {}", recorded.stderr());
    if !expected.contains("0x") {
        assert_eq!(recorded.stdout(), expected);
    }
    let status = native.status.code().or_else(|| native.status.signal().map(|signal| 128 + signal));
    assert_eq!(recorded.output.status.code(), status, "{}", recorded.outcome);
    recorded.trace()
}

#[test]
fn sixty_four_threads_are_all_recorded() {
    let trace = recorded("threads64.c", &[]);
    assert_eq!(trace.threads().len(), 65);
    assert!(trace.modules().iter().all(|module| !module.path.contains("memfd")), "our own code is no module");
}

#[test]
fn locks_are_entered_as_often_as_they_are_left() {
    let trace = recorded("locks.c", &[]);
    for function in [SyncFunction::MutexLock, SyncFunction::MutexUnlock] {
        let entered = entries(&trace, function).len();
        assert!(entered > 0);
        assert_eq!(leaves(&trace, function), entered, "{function:?}");
    }
}

/// When a thread has got a lock, and when it is about to give it back, with the lock.
fn uses(trace: &Trace, thread: ThreadId) -> Vec<(u64, u64, bool)> {
    use SyncFunction::{MutexLock, MutexUnlock, ReadWriteUnlock, WriteLock};
    let (mut waits_for, mut uses) = (0, Vec::new());
    for event in events(trace, thread.0) {
        match event {
            Event::Enter { function: MutexLock | WriteLock, object, .. } => waits_for = object,
            Event::Leave { function: MutexLock | WriteLock, seq, .. } => uses.push((waits_for, seq.0, true)),
            Event::Enter { function: MutexUnlock | ReadWriteUnlock, object, seq, .. } => {
                uses.push((object, seq.0, false))
            }
            _ => {}
        }
    }
    uses
}

#[test]
fn one_thread_at_a_time_has_a_lock_by_the_order_of_events() {
    let trace = recorded("contended.c", &[]);
    let mut all: Vec<_> = trace
        .threads()
        .iter()
        .flat_map(|thread| uses(&trace, thread.id).into_iter().map(move |(lock, seq, got)| (lock, seq, got, thread.id)))
        .collect();
    all.sort_unstable();
    assert!(all.len() >= 4 * (4 * 5000 - 6), "{} uses", all.len());
    for pair in all.chunks(2) {
        let [(first, _, true, has), (second, _, false, gives)] = pair else { panic!("{pair:?}") };
        assert_eq!((first, has), (second, gives), "{pair:?}");
    }
}

#[test]
fn a_program_may_exit_while_its_threads_run() {
    recorded("exit_while_running.c", &[]);
}

#[test]
fn the_first_thread_may_end_before_the_others() {
    recorded("main_leaves_first.c", &[]);
}

#[test]
fn slots_of_threads_that_ended_are_used_again() {
    recorded("short_threads.c", &[]);
    // The program sees how much of the memory for slots can be written: as many slots as there were threads at once,
    // and some more where threads began before their forerunners were known to be gone.
    let program = compile("short_threads.c", &[]);
    let writable = |stdout: &[u8]| String::from_utf8_lossy(stdout).lines().nth(1).unwrap().parse::<u64>().unwrap();
    let recorded = record("engine=translate", &program, &["slots"]);
    let slots = writable(&recorded.output.stdout).div_ceil(256 << 10);
    // On a loaded machine these are many; without reuse there would be 3000.
    assert!((1..=1000).contains(&slots), "{slots} slots for 3000 threads, of which two ran at once");
    let native = Command::new(&program).arg("slots").output().unwrap();
    assert_eq!(writable(&native.stdout), 0, "nothing else lies there");
}

#[test]
fn each_openmp_body_is_entered_by_each_thread_of_its_team() {
    let trace = recorded("openmp.c", &["-fopenmp"]);
    let entered = |thread: u32, wanted: SyncFunction| {
        let objects = events(&trace, thread).into_iter().filter_map(move |event| match event {
            Event::Enter { function, object, .. } if function == wanted => Some(object),
            _ => None,
        });
        objects.collect::<Vec<u64>>()
    };
    let forked = entered(0, SyncFunction::ParallelFork);
    assert!(forked.len() == 2 && forked[0] != forked[1], "{forked:x?}");
    assert_eq!(trace.threads().len(), 3);
    for thread in 0..3 {
        assert_eq!(entered(thread, SyncFunction::ParallelBody), forked, "thread {thread}");
    }
}

#[test]
fn traps_stay_the_programs_own() {
    recorded("traps.c", &[]);
}
