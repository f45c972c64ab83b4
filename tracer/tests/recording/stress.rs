//! Threads that get signals at 10 kHz, fork, and run code that others write, while buffers fill and translations are
//! thrown away at any moment: what is printed is what is printed natively, and what is recorded outside of the handlers
//! is what `step` records where no signals come.

use std::collections::HashMap;
use std::process::Command;

use trace_format::{Pc, Trace};

use crate::support::steps::{Step, steps};
use crate::support::{Recorded, compile, is_whole, place, record_command};

/// What `translate` is asked for besides, with a seed in place of `S`, and the time between two signals to a thread in
/// units of 100 µs. Where all is translated again at random moments, a signal each 100 µs leaves no time to get on.
const WAYS: [(&str, &str); 8] = [
    ("", "1"),
    ("small=S", "1"),
    ("memory small=S", "1"),
    ("routes=soon small=S", "1"),
    ("memory cache=65536 small=S", "1"),
    ("cache=65536 throw=S", "5"),
    ("memory cache=65536 throw=S small=S", "5"),
    ("memory routes=soon throw=S", "5"),
];

/// What the threads of a run did.
struct Streams {
    /// Outside of handlers, up to where each thread calls `done`.
    threads: Vec<Vec<Step>>,
    /// What each whole execution of a handler ran, the signals that came meanwhile left out; by thread, with where it
    /// came.
    handlers: Vec<(u32, usize, String, Vec<Pc>)>,
}

fn recorded_by(engine: &str, words: &str, arguments: [&str; 2], program: &std::path::Path) -> (Recorded, Trace) {
    // The program inherits the options, and the length of the environment moves its stack.
    let options = format!("follow-forks engine={engine:<9} {words:<120}");
    let path = place("trace.bin");
    let output = record_command(&options, &path, program, &arguments).output().unwrap();
    let recorded = Recorded { output, outcome: String::new(), path };
    let (path, errors) = (recorded.path.display(), recorded.stderr());
    assert!(recorded.output.status.success(), "{options}: {path}: {:?}, {errors}", recorded.output.status);
    let trace = recorded.trace();
    assert_eq!(trace.meta().engine, engine);
    (recorded, trace)
}

fn streams(trace: &Trace, memory: bool) -> Streams {
    let done = trace.symbols().iter().find(|symbol| symbol.name == "done").expect("the program has it").pc;
    let (mut threads, mut handlers) = (Vec::new(), Vec::new());
    for thread in trace.threads() {
        let (mut own, mut open, mut ended) = (Vec::new(), Vec::<(String, Vec<Pc>)>::new(), false);
        for step in steps(trace, thread.id) {
            match step {
                Step::Event(event) if event.starts_with("Signal {") => open.push((event, Vec::new())),
                Step::Event(event) if event == "SignalReturn" => {
                    let (event, ran) = open.pop().expect("a handler was running");
                    handlers.push((thread.id.0, own.len(), event, ran));
                }
                Step::Instruction { pc, .. } if !open.is_empty() => open.last_mut().unwrap().1.push(pc),
                Step::Event(_) if !open.is_empty() => panic!("{step:?} in a handler"),
                Step::Instruction { pc, .. } if pc == done => ended = true,
                _ if ended => {}
                Step::Instruction { pc, len, sp, .. } if !memory => {
                    own.push(Step::Instruction { pc, len, sp, addresses: Vec::new() });
                }
                step => own.push(step),
            }
        }
        threads.push(own);
    }
    Streams { threads, handlers }
}

/// Records the program so many times in each way. Returns how many handlers were recorded.
fn stress(runs: u64, rounds: &str) -> usize {
    let program = compile("stress.c", &["-static"]);
    let native = Command::new(&program).args(["1", rounds]).output().unwrap();
    let (judge, trace) = recorded_by("step", "memory", ["0", rounds], &program);
    assert_eq!(judge.stdout(), String::from_utf8_lossy(&native.stdout));
    let [expected, with_memory] = [false, true].map(|memory| streams(&trace, memory));
    let handler: HashMap<&str, &Vec<Pc>> =
        expected.handlers.iter().map(|(_, _, event, ran)| (event.as_str(), ran)).collect();
    assert_eq!(handler.len(), 2, "one that is sent by each of two ways");
    let mut handled = 0;
    for seed in 1..=runs {
        for (way, period) in WAYS {
            let words = way.replace('S', &seed.to_string());
            let (recorded, trace) = recorded_by("translate", &words, [period, rounds], &program);
            let about = format!("{words}: {}, stderr: {}", recorded.path.display(), recorded.stderr());
            assert_eq!(recorded.stdout(), judge.stdout(), "{about}");
            let memory = words.contains("memory");
            let found = streams(&trace, memory);
            let expected = if memory { &with_memory } else { &expected };
            assert_eq!(found.threads.len(), expected.threads.len(), "threads, {about}");
            let handlers = &found.handlers;
            for (thread, (found, expected)) in found.threads.iter().zip(&expected.threads).enumerate() {
                if let Some(at) = found.iter().zip(expected).position(|(a, b)| a != b) {
                    let around = |steps: &[Step]| format!("{:#x?}", &steps[at.saturating_sub(3)..=at]);
                    let handled = handlers.iter().filter(|(t, at_, ..)| *t as usize == thread && at_.abs_diff(at) < 4);
                    let handled: Vec<_> = handled.map(|(_, at, event, _)| (at, event)).collect();
                    panic!("thread {thread} at {at}:\n{}\n{}, {handled:?}, {about}", around(found), around(expected));
                }
                assert_eq!(found.len(), expected.len(), "thread {thread}: one ends before the other, {about}");
            }
            for (thread, at, event, ran) in &found.handlers {
                assert!(handler.get(event.as_str()) == Some(&ran), "{event} of thread {thread} at {at}, {about}");
            }
            handled += found.handlers.len();
        }
    }
    handled
}

#[test]
fn signals_forks_and_code_of_others_while_buffers_fill() {
    let handled = stress(1, if is_whole() { "40" } else { "20" });
    assert!(handled > 50, "only {handled} handlers were entered");
}

#[test]
#[ignore = "LOCKSTEP_STRESS_RUNS times each way: scripts/stress-trace runs it"]
fn signals_forks_and_code_of_others_again_and_again() {
    let runs = std::env::var("LOCKSTEP_STRESS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(100);
    println!("{} handlers, no difference", stress(runs, "100"));
}
