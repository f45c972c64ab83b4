//! Calls of synchronisation functions are in the trace, with their objects.

use crate::support::{assert_like_native, compile, compile_with, entries, events, is_whole, leaves, record};
use trace_format::{Event, SyncFunction::*, Trace};

/// The addresses that a test program printed.
fn printed(text: &str) -> Vec<u64> {
    text.split_whitespace().filter_map(|w| u64::from_str_radix(w.strip_prefix("0x")?, 16).ok()).collect()
}

#[test]
fn each_kind_of_lock_is_recorded_with_its_object() {
    for flags in [&[][..], &["-static"]] {
        let recorded = record("", &compile("locks.c", flags), &[]);
        assert_eq!(recorded.output.status.code(), Some(0));
        let trace = recorded.trace();
        let [mutex, barrier, semaphore, run] = printed(&recorded.stdout())[..] else { panic!("four addresses") };
        let of = |function, object| entries(&trace, function).iter().filter(|(o, _)| *o == object).count();
        assert_eq!(of(MutexLock, mutex), 12, "{flags:?}");
        assert_eq!(of(MutexUnlock, mutex), 12);
        // The first value of the semaphore, too.
        assert_eq!(entries(&trace, BarrierInit), [(semaphore, 0), (barrier, 3)]);
        assert_eq!(entries(&trace, BarrierWait), [(barrier, 0); 6]);
        assert_eq!(leaves(&trace, BarrierWait), 6);
        assert_eq!(of(SemaphorePost, semaphore), 3);
        assert_eq!(of(SemaphoreWait, semaphore), 3);
        assert_eq!(entries(&trace, SpinLock).len(), 3);
        // glibc's pthread_spin_init is the same code.
        assert_eq!(entries(&trace, SpinUnlock).len(), 4);
        assert_eq!(entries(&trace, ReadLock).len(), 3);
        assert_eq!(entries(&trace, ReadWriteUnlock).len(), 3);
        assert!(entries(&trace, Once).len() >= 3);
        assert_eq!(entries(&trace, ConditionSignal).len(), 1);
        assert_eq!(entries(&trace, ThreadCreate), [(run, 0); 2]);
        assert_eq!(entries(&trace, ThreadJoin).len(), 2);
        // Two threads, and main calls the routine itself.
        assert_eq!(entries(&trace, ThreadBody), [(run, 0); 3]);
        assert_eq!(leaves(&trace, ThreadBody), 3);
    }
}

#[test]
fn what_is_entered_is_left_in_order() {
    let trace = record("", &compile("locks.c", &["-static"]), &[]).trace();
    for thread in trace.threads() {
        let mut inside = Vec::new();
        for event in events(&trace, thread.id.0) {
            match event {
                Event::Enter { function, .. } => inside.push(function),
                Event::Leave { function, .. } => assert_eq!(inside.pop(), Some(function)),
                _ => {}
            }
        }
        assert!(inside.is_empty(), "thread {}: {inside:?}", thread.id);
    }
}

/// Threads are brought to rest between a return and the code that records it too. 16 is `EBUSY`.
#[test]
fn what_functions_answered_is_recorded_while_translations_are_thrown_away() {
    let program = compile("results.c", &[]);
    for seed in 1..=12 {
        let recorded = record(&format!("engine=translate cache=65536 throw={seed}"), &program, &[]);
        assert_eq!(recorded.stdout(), "2000\n", "{}", recorded.stderr());
        let results = crate::support::all_events(&recorded.trace()).into_iter().filter_map(|event| match event {
            Event::Leave { function: MutexTryLock, result, .. } => Some(result as i32),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), [16; 2000], "{seed}");
    }
}

#[test]
fn one_barrier_wait_of_three_returns_the_serial_mark() {
    let trace = record("", &compile("locks.c", &["-static"]), &[]).trace();
    let mut results: Vec<i32> = crate::support::all_events(&trace)
        .into_iter()
        .filter_map(|e| match e {
            Event::Leave { function: BarrierWait, result, .. } => Some(result as i32),
            _ => None,
        })
        .collect();
    results.sort_unstable();
    assert_eq!(results, [-1, -1, 0, 0, 0, 0]);
}

/// The function's other returns lead to the place where the lock's function returns to: they cost no record.
#[test]
fn a_function_that_ends_with_a_jump_to_a_lock_gives_results_and_few_records() {
    let program = compile("tail_calls.c", &["-static", "-foptimize-sibling-calls"]);
    let [few, many] = ["1000", "101000"].map(|turns| record("", &program, &[turns]));
    let results: Vec<u64> = events(&many.trace(), 0)
        .into_iter()
        .filter_map(|e| match e {
            Event::Leave { function: MutexTryLock, result, .. } => Some(result),
            _ => None,
        })
        .collect();
    let native = std::process::Command::new(&program).arg("101000").output().unwrap();
    assert_eq!(many.output.stdout, native.stdout);
    // Of turn 100 the lock is got, then refused until turn 200 has let it go, and so on.
    let refused = results.iter().filter(|&&result| result == 16).count();
    let got = results.iter().filter(|&&result| result == 0).count();
    assert_eq!((got + refused, results.len()), (results.len(), 272 + 1010 + 1010 + 101), "{results:?}");
    let busy: usize = many.stdout().split_whitespace().last().unwrap().parse().unwrap();
    assert!((1..=refused).contains(&busy) && got > 400, "{got} {refused} {busy}");
    let bytes = |recorded: &crate::support::Recorded| -> u64 {
        let (_, bytes) = recorded.outcome.split_once("record_bytes: ").expect("the outcome has it");
        bytes.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let of_a_turn = (bytes(&many) - bytes(&few)) / 100_000;
    assert!(of_a_turn < 40, "{of_a_turn} bytes a turn: as many as the record of a return has");
}

#[test]
fn waiting_in_the_kernel_is_recorded() {
    let recorded = record("", &compile("futex.c", &["-static"]), &[]);
    let word = printed(&recorded.stdout())[0];
    let waits = crate::support::all_events(&recorded.trace())
        .into_iter()
        .filter_map(|e| if let Event::FutexWait { address, .. } = e { Some(address) } else { None });
    assert_eq!(waits.collect::<Vec<_>>(), [word; 2]);
}

#[test]
fn c11_threads_count_as_well() {
    let recorded = record("", &compile("c11.c", &["-static"]), &[]);
    let trace = recorded.trace();
    let run = printed(&recorded.stdout())[0];
    assert!(entries(&trace, ThreadCreate).contains(&(run, 0)));
    assert_eq!(entries(&trace, ThreadBody), [(run, 0)]);
    assert!(!entries(&trace, Yield).is_empty());
    assert!(!entries(&trace, MutexLock).is_empty());
}

fn check_openmp(trace: &Trace) {
    let forks = entries(trace, ParallelFork);
    assert_eq!(forks.len(), 2, "{forks:x?}");
    assert!(forks.iter().all(|(_, threads)| *threads == 3));
    let bodies = entries(trace, ParallelBody);
    let expected: Vec<_> = forks.iter().flat_map(|(body, _)| [(*body, 0); 3]).collect();
    assert_eq!(bodies, expected);
    assert_eq!(leaves(trace, ParallelBody), 6);
    assert_eq!(leaves(trace, ParallelFork), 2);
    assert_eq!(entries(trace, Single).len(), 3);
    assert!(entries(trace, TeamBarrier).len() >= 3);
}

#[test]
fn openmp_regions_of_gcc_have_forks_and_bodies() {
    let recorded = assert_like_native(&compile("openmp.c", &["-fopenmp"]), &[]);
    let trace = recorded.trace();
    check_openmp(&trace);
    let criticals = entries(&trace, CriticalEnter);
    assert_eq!(criticals.len(), 3);
    assert_eq!(entries(&trace, CriticalLeave), criticals);
}

/// Needs clang-19 with its OpenMP library, which not every machine has.
#[test]
fn openmp_regions_of_clang_have_forks_and_bodies() {
    let has_libomp = std::process::Command::new("clang-19")
        .args(["-fopenmp=libomp", "-xc", "-", "-o", "/dev/null"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .and_then(|mut child| {
            use std::io::Write;
            child.stdin.take().expect("it is piped").write_all(b"#include <omp.h>\nint main(void) { return 0; }\n")?;
            child.wait()
        })
        .is_ok_and(|status| status.success());
    if !has_libomp {
        eprintln!("clang-19 with libomp is missing: not tested");
        return;
    }
    let program = compile_with("clang-19", "openmp.c", &["-fopenmp=libomp"]);
    // `step` takes ten seconds for the start of this library.
    let recorded = if is_whole() { assert_like_native(&program, &[]) } else { record("", &program, &[]) };
    assert_eq!(recorded.stdout(), "333 1\n");
    let trace = recorded.trace();
    check_openmp(&trace);
    assert!(entries(&trace, CriticalEnter).len() >= 3);
}

#[test]
fn an_exception_leaves_what_it_passes() {
    let trace = assert_like_native(&compile("exception.cpp", &["-static-libstdc++"]), &[]).trace();
    assert_eq!(entries(&trace, Once).len(), leaves(&trace, Once));
    assert!(!entries(&trace, Once).is_empty());
}

#[test]
fn a_jump_leaves_and_a_change_of_stacks_does_not() {
    let trace = assert_like_native(&compile("unwound.c", &["-static"]), &[]).trace();
    assert_eq!(entries(&trace, Once).len(), leaves(&trace, Once));
    let thread = events(&trace, 1);
    let body: Vec<bool> = thread
        .iter()
        .filter_map(|e| match e {
            Event::Enter { function: ThreadBody, .. } => Some(true),
            Event::Leave { function: ThreadBody, .. } => Some(false),
            _ => None,
        })
        .collect();
    assert_eq!(body, [true, false]);
}
