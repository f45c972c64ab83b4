//! Recordings of a part of the run: what is recorded is that part of what a whole recording holds, instruction for
//! instruction.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::steps::{Step, steps};
use crate::support::{Recorded, compile, compile_with, place, record, record_command};
use trace_format::{Event, ThreadId, Trace};

const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../include");
const WORKLOADS: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../workloads/include");

/// Options for the engines; `translate` also with translations that are thrown away at random moments.
const ENGINES: [&str; 3] =
    ["engine=step      throw=never", "engine=translate throw=never", "engine=translate cache=65536 throw=777"];

/// Static, since `step` goes through all that is outside of the window too.
fn window_program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| compile("window.c", &[INCLUDE, "-static"]));
    &PROGRAM
}

/// A program of one thread, and all of its run.
struct Whole {
    program: PathBuf,
    arguments: &'static [&'static str],
    trace: Trace,
    steps: Vec<Step>,
}

impl Whole {
    fn of(program: PathBuf, arguments: &'static [&'static str]) -> Whole {
        let (_, trace) = recorded("engine=step memory", &program, arguments);
        let steps = steps(&trace, ThreadId(0));
        Whole { program, arguments, trace, steps }
    }
}

/// That of the program that most tests are about.
static WHOLE: LazyLock<Whole> = LazyLock::new(|| Whole::of(window_program().to_owned(), &[]));

/// Records with these options, and asserts that the program does what it does natively and that the trace hangs
/// together. The length of the environment moves the program's stack: it is always the same.
fn recorded(options: &str, program: &Path, arguments: &[&str]) -> (Recorded, Trace) {
    let native = Command::new(program).args(arguments).output().unwrap();
    let (path, file) = (place("trace.bin"), place("outcome"));
    let mut command = record_command(&format!("{options:<100}"), &path, program, arguments);
    let output = command.env("RECORD_OUTCOME", &file).output().unwrap();
    let outcome = std::fs::read_to_string(file).unwrap_or_default();
    let recorded = Recorded { output, outcome, path };
    assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "{options}: {}", recorded.stderr());
    assert_eq!(recorded.output.status.code(), native.status.code(), "{options}: {}", recorded.outcome);
    let trace = recorded.trace();
    (recorded, trace)
}

fn address(trace: &Trace, function: &str) -> u64 {
    trace.symbols().iter().find(|symbol| symbol.name == function).expect("the function ran").pc.0
}

fn instructions(steps: &[Step]) -> Vec<&Step> {
    steps.iter().filter(|step| matches!(step, Step::Instruction { .. })).collect()
}

/// The instructions of a whole recording that `inside` says are in the window: it is asked before each, with its pc and
/// stack pointer.
fn part(whole: &[Step], mut inside: impl FnMut(u64, u64) -> bool) -> Vec<&Step> {
    let asked = |step: &&Step| matches!(step, Step::Instruction { pc, sp, .. } if inside(pc.0, *sp));
    whole.iter().filter(asked).collect()
}

/// Asserts that the one thread of the program has the same stream by each engine under this window, and that its
/// instructions are those expected of the whole recording. Returns the events of the stream.
fn assert_part(whole: &Whole, window: &str, expected: impl Fn(&Trace, &[Step]) -> Vec<Step>) -> Vec<Step> {
    let Whole { program, arguments, trace, steps: all } = whole;
    let expected = expected(trace, all);
    assert!(expected.len() > 20 && (expected.len() as u64) < trace.instructions(), "{window}: a part");
    let mut judge: Option<Vec<Step>> = None;
    for engine in ENGINES {
        let (_, trace) = recorded(&format!("{engine} memory {window}"), program, arguments);
        assert_eq!(trace.instructions(), expected.len() as u64, "{engine} {window}");
        let found = steps(&trace, ThreadId(0));
        if let Some(at) = instructions(&found).iter().zip(&expected).position(|(a, b)| *a != b) {
            panic!(
                "{engine} {window}: instruction {at}: {:x?} instead of {:x?}",
                instructions(&found)[at],
                expected[at]
            );
        }
        let judge = judge.get_or_insert_with(|| found.clone());
        if let Some(at) = found.iter().zip(&*judge).position(|(a, b)| a != b) {
            panic!(
                "{engine} {window}: step {at}: {:x?} instead of {:x?}",
                &found[at.saturating_sub(4)..=at],
                judge[at]
            );
        }
        assert_eq!(found.len(), judge.len(), "{engine} {window}");
    }
    judge.unwrap().into_iter().filter(|step| matches!(step, Step::Event(_))).collect()
}

fn count(events: &[Step], what: &str) -> usize {
    events.iter().filter(|step| matches!(step, Step::Event(event) if event.starts_with(what))).count()
}

/// What lies from each entry of `enter` to the next of `leave`.
fn between_enter_and_leave(trace: &Trace, whole: &[Step]) -> Vec<Step> {
    let (enter, leave) = (address(trace, "enter"), address(trace, "leave"));
    let mut open = false;
    let inside = |pc, _| {
        open = pc == enter || open && pc != leave;
        open
    };
    part(whole, inside).into_iter().cloned().collect()
}

#[test]
fn from_each_start_to_each_stop() {
    let events = assert_part(&WHOLE, "start=enter stop=leave", between_enter_and_leave);
    // At the start, then at the end of each window: one ends in the handler and begins again there.
    assert_eq!(count(&events, "Gap"), 5);
    assert_eq!(count(&events, "enter MutexLock"), count(&events, "enter MutexUnlock"), "outside too");
    assert_eq!((count(&events, "Signal {"), count(&events, "SignalReturn")), (1, 1));
}

#[test]
fn with_a_start_alone_to_the_end() {
    let events = assert_part(&WHOLE, "start=leave", |trace, whole| {
        let leave = address(trace, "leave");
        let mut open = false;
        let inside = |pc, _| {
            open |= pc == leave;
            open
        };
        part(whole, inside).into_iter().cloned().collect()
    });
    assert_eq!(count(&events, "Gap"), 1);
}

#[test]
fn with_a_stop_alone_from_the_beginning() {
    let events = assert_part(&WHOLE, "stop=leave", |trace, whole| {
        let leave = address(trace, "leave");
        let mut open = true;
        let inside = |pc, _| {
            open &= pc != leave;
            open
        };
        part(whole, inside).into_iter().cloned().collect()
    });
    assert_eq!(count(&events, "Gap"), 1);
}

/// The instructions in calls of a function, from its entry up to its return, where the stack pointer is above what it
/// was.
fn in_calls(trace: &Trace, whole: &[Step], function: &str) -> Vec<Step> {
    let entry = address(trace, function);
    let mut call: Option<u64> = None;
    let inside = |pc, sp| {
        if call.is_some_and(|entered| sp > entered) {
            call = None;
        }
        if pc == entry {
            call.get_or_insert(sp);
        }
        call.is_some()
    };
    part(whole, inside).into_iter().cloned().collect()
}

#[test]
fn a_function_that_is_start_and_stop_is_recorded_from_entry_to_return() {
    let events = assert_part(&WHOLE, "start=deep stop=deep", |trace, whole| in_calls(trace, whole, "deep"));
    assert_eq!(count(&events, "Gap"), 4, "a call of itself neither begins nor ends a window");
    assert_part(&WHOLE, "start=work stop=work", |trace, whole| in_calls(trace, whole, "work"));
}

#[test]
fn markers_begin_and_end_a_window_and_nest() {
    let (_, whole) = recorded("engine=step markers", window_program(), &[]);
    assert!(whole.instructions() > 100);
    // The pcs of markers, by their code.
    let code = |nth: u8| [0x0f, 0x1f, 0x84, 0x00, 0x4c, 0x6b, 0x53, nth];
    let events = assert_part(&WHOLE, "markers", |trace, whole| {
        let mut markers = Vec::new();
        for (_, block) in trace.blocks().iter() {
            for (at, instruction) in block.instructions.iter().enumerate() {
                let bytes = &block.code[block.code_range(at)];
                if bytes[..] == code(1) || bytes[..] == code(2) {
                    markers.push((instruction.pc.0, bytes[7] == 1));
                }
            }
        }
        let mut open = 0u32;
        let inside = |pc, _| {
            match markers.iter().find(|(marker, _)| *marker == pc) {
                Some((_, true)) => open += 1,
                Some((_, false)) => open = open.saturating_sub(1),
                None => {}
            }
            open > 0
        };
        part(whole, inside).into_iter().cloned().collect()
    });
    // Three rounds, one handler, and before.
    assert_eq!(count(&events, "Gap"), 5);
}

#[test]
fn a_call_that_is_jumped_out_of_counts_until_its_function_has_returned() {
    let program = window_program();
    for engine in ENGINES {
        let (_, trace) = recorded(&format!("{engine} start=jumps stop=jumps"), program, &[]);
        assert!(trace.instructions() > 100, "{engine}");
    }
}

#[test]
fn nothing_is_recorded_of_a_program_that_never_comes_to_the_start() {
    let program = window_program();
    for engine in ENGINES {
        for (start, why) in [("lease", "similar names: leave"), ("never", "the function never was never called")] {
            let (recorded, trace) = recorded(&format!("{engine} start={start}"), program, &[]);
            assert_eq!((trace.instructions(), trace.blocks().len()), (0, 0), "{engine}");
            let told = trace.finish().unwrap().stopped_early.clone().unwrap_or_default();
            assert!(told.contains(why), "{engine}: {told}");
            assert!(recorded.outcome.contains("NeverBegan"), "{engine}: {}", recorded.outcome);
        }
        let (recorded, _) = recorded(&format!("{engine} stop=lease"), program, &[]);
        assert!(recorded.outcome.contains("there is no function lease"), "{engine}: {}", recorded.outcome);
        assert!(recorded.outcome.contains("failure: None"), "{engine}: {}", recorded.outcome);
    }
}

#[test]
fn a_library_that_is_loaded_later_has_the_start() {
    let program = compile("loads.c", &[]);
    let library = compile("plugin.c", &["-shared", "-fPIC"]);
    let library = library.to_str().unwrap();
    let mut counts = Vec::new();
    for engine in ENGINES {
        let (_, trace) = recorded(&format!("{engine} start=answer stop=answer"), &program, &[library]);
        counts.push(trace.instructions());
    }
    let [first, ..] = counts[..] else { unreachable!() };
    assert!(first >= 4, "two calls of a function of two instructions or more: {counts:?}");
    assert!(counts.iter().all(|count| *count == first), "{counts:?}");
}

#[test]
fn a_dynamic_program_has_windows_too() {
    let whole = Whole::of(compile("window.c", &[INCLUDE]), &[]);
    assert!(whole.steps.len() > 50_000, "with the loader");
    assert_part(&whole, "start=enter stop=leave", between_enter_and_leave);
}

#[test]
fn the_limit_counts_what_is_recorded() {
    let program = window_program();
    for engine in ENGINES {
        for window in ["start=work stop=work", "start=work", "markers"] {
            let (_, trace) = recorded(&format!("{engine} {window} limit=90"), program, &[]);
            assert_eq!(trace.instructions(), 90, "{engine} {window}");
            assert!(trace.finish().unwrap().stopped_early.as_ref().is_some_and(|why| why.contains("90")));
        }
    }
    let stops = |options: &str| {
        let (recorded, _) =
            recorded(&format!("engine=translate {options}"), &compile("window_threads.c", &[INCLUDE]), &["1", "3000"]);
        let (_, rest) = recorded.outcome.split_once("stops: ").unwrap();
        rest.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    let (limited, all) = (stops("markers limit=90"), stops("markers"));
    assert!(limited + 5000 < all, "behind the limit markers stop nobody: {limited} and {all}");
}

fn fft(options: &str) -> (Recorded, Trace) {
    let program = compile("../../../workloads/fft/fft.c", &[WORKLOADS, "-lm"]);
    recorded(options, &program, &["-p", "4", "-m", "10"])
}

#[test]
fn the_middle_of_a_transform_is_that_part_of_the_whole() {
    let program = compile("../../../workloads/fft/fft.c", &[WORKLOADS, "-static", "-lm"]);
    let whole = Whole::of(program, &["-p", "1", "-m", "4"]);
    let part = |function: &str| {
        assert_part(&whole, &format!("start={function} stop={function}"), |trace, all| in_calls(trace, all, function))
    };
    assert_eq!(count(&part("transform"), "Gap"), 2, "before its call, and behind");
    assert!(count(&part("transform_row"), "Gap") > 5, "one for each row");
}

#[test]
fn threads_of_a_transform_are_recorded_in_the_window_only() {
    let whole = fft("engine=translate").1;
    for engine in &ENGINES[1..] {
        let (recorded, trace) = fft(&format!("{engine} start=transform stop=transform"));
        assert!(trace.instructions() > 1000, "{engine}: {}", recorded.outcome);
        assert!(trace.instructions() < whole.instructions(), "{engine}");
        assert_eq!(trace.threads().len(), whole.threads().len(), "each thread begins and ends, recorded or not");
    }
}

#[test]
fn what_begins_in_the_window_is_recorded_whole() {
    // What each thread runs in its own routine does not depend on the others.
    let program = compile("threads64.c", &["-static"]);
    let counted = |options: &str| -> Vec<u64> {
        let (_, trace) = recorded(options, &program, &[]);
        let main = trace.modules().first().map(|module| module.path.clone());
        assert!(main.is_some());
        trace.threads().iter().skip(1).map(|thread| thread.instructions).collect()
    };
    let mut whole = counted("engine=translate");
    whole.sort_unstable();
    for engine in &ENGINES[1..] {
        let mut part = counted(&format!("{engine} start=main"));
        part.sort_unstable();
        assert_eq!(part.len(), whole.len());
        assert!(part.iter().zip(&whole).all(|(a, b)| a.abs_diff(*b) < 200), "{engine}: {part:?} {whole:?}");
    }
}

#[test]
fn threads_may_pass_gates_all_the_time() {
    let program = compile("window_threads.c", &[INCLUDE, "-static"]);
    for engine in ENGINES {
        for window in ["markers", "start=step stop=step", "start=step stop=done"] {
            let (recorded, trace) = recorded(&format!("{engine} aslr {window}"), &program, &["3", "40"]);
            assert!(trace.instructions() > 100, "{engine} {window}: {}", recorded.outcome);
            assert_eq!(trace.threads().len(), 4);
        }
    }
}

#[test]
fn events_outside_say_what_is_held_inside() {
    let recorded = record("engine=translate start=leave", window_program(), &[]);
    let events = crate::support::events(&recorded.trace(), 0);
    let gap = events.iter().position(|event| *event == Event::Gap).unwrap();
    assert_eq!(gap, 1, "behind the start of the thread");
    assert!(events.iter().any(|event| matches!(event, Event::Enter { .. })));
}

#[test]
fn every_compiler_makes_the_same_of_the_markers() {
    let mut compilers = vec![("gcc", "-O0"), ("gcc", "-O3"), ("gcc", "-std=c99"), ("g++", "-O2")];
    let has_clang = Command::new("clang-19").arg("--version").output().is_ok_and(|output| output.status.success());
    if has_clang {
        compilers.extend([("clang-19", "-O2"), ("clang++-19", "-O0")]);
    } else {
        eprintln!("clang-19 is missing: not tested");
    }
    for (compiler, level) in compilers {
        let language = if compiler == "clang++-19" { "-Wno-deprecated" } else { "-Wall" };
        let program = compile_with(compiler, "window.c", &[INCLUDE, level, language]);
        let (_, trace) = recorded("engine=translate markers", &program, &[]);
        let gaps = crate::support::events(&trace, 0).iter().filter(|event| **event == Event::Gap).count();
        assert_eq!(gaps, 5, "{compiler} {level}");
        assert!(trace.instructions() > 100, "{compiler} {level}");
    }
}

#[test]
fn functions_of_cpp_are_named_as_in_the_source() {
    let program = compile("exception.cpp", &[]);
    for name in ["attempt", "attempt()", "_ZL7attemptv"] {
        let (_, trace) = recorded(&format!("engine=translate start={name} stop={name}"), &program, &[]);
        assert!(trace.symbols().iter().any(|symbol| symbol.name == "_ZL7attemptv"), "{name}");
    }
}

/// The streams of all threads, as each engine records them.
fn assert_engines_agree(program: &Path, window: &str) -> Vec<Vec<Step>> {
    let mut judge: Option<Vec<Vec<Step>>> = None;
    for engine in ENGINES {
        let (_, trace) = recorded(&format!("{engine} {window}"), program, &[]);
        let found: Vec<Vec<Step>> = trace.threads().iter().map(|thread| steps(&trace, thread.id)).collect();
        let judge = judge.get_or_insert_with(|| found.clone());
        for (thread, (found, judge)) in found.iter().zip(&*judge).enumerate() {
            let at = found.iter().zip(judge).position(|(a, b)| a != b);
            assert_eq!(at.map(|at| (&found[at], &judge[at])), None, "{engine} {window}: thread {thread}");
            assert_eq!(found.len(), judge.len(), "{engine} {window}: thread {thread}");
        }
    }
    judge.unwrap()
}

#[test]
fn calls_end_where_the_program_becomes_another() {
    let program = compile("exec.c", &["-static"]);
    let threads = assert_engines_agree(&program, "start=main stop=main");
    assert_eq!(count(&threads[0], "Exec"), 1);
    assert_eq!(count(&threads[0], "Gap"), 2, "before main, and from the other program on");
    let last = threads[0].iter().rposition(|step| matches!(step, Step::Instruction { .. })).unwrap();
    assert!(count(&threads[0][last..], "Exec") == 1, "nothing of the other program is recorded");
    let threads = assert_engines_agree(&program, "start=main");
    assert_eq!(count(&threads[0], "Gap"), 1, "the window stays open");
}

#[test]
fn each_process_has_its_calls() {
    let program = compile("window_processes.c", &["-static"]);
    // What was recorded of the function, and of all else.
    let recorded_of = |options: &str| {
        let (_, trace) = recorded(options, &program, &[]);
        let step = trace.symbols().iter().find(|symbol| symbol.name == "step").unwrap().clone();
        let inside = |pc: u64| step.pc.0 <= pc && pc < step.pc.0 + step.size;
        let all = trace.threads().iter().flat_map(|thread| steps(&trace, thread.id)).filter_map(|step| match step {
            Step::Instruction { pc, .. } => Some(pc.0),
            Step::Event(_) => None,
        });
        let (inside, outside): (Vec<u64>, Vec<u64>) = all.partition(|pc| inside(*pc));
        (trace.threads().len(), inside.len(), outside.len())
    };
    let whole = recorded_of("engine=step      throw=never follow-forks");
    for engine in ENGINES {
        let part = recorded_of(&format!("{engine} follow-forks start=step stop=step"));
        assert_eq!((part.0, part.1), (3, whole.1), "{engine}: {part:?} of {whole:?}");
        // Of the process that waits, at most what it does on its way.
        assert!(part.2 < whole.2 / 20, "{engine}: {part:?} of {whole:?}");
    }
}
