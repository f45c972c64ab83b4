//! Processes that a program makes, recorded with it: by the engine `translate` what `step` records, and output and
//! status as natively.

use std::path::Path;
use std::process::{Command, Output};

use trace_format::{Event, Pc, ThreadExit, Trace};

use crate::support::{Recorded, all_events, compile, events, is_whole, place, record};
use crate::translate_equal::assert_equal_with;

/// Options: as usual, and with little room for translations, which are thrown away at random moments too.
const FOLLOWED: [&str; 2] =
    ["engine=translate follow-forks aslr", "engine=translate follow-forks aslr cache=65536 throw=271828"];

fn assert_like(native: &Output, recorded: &Recorded, options: &str) {
    assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "{options}; stderr: {}", recorded.stderr());
    assert_eq!(recorded.output.status.code(), native.status.code(), "{options}: {}", recorded.outcome);
    assert!(recorded.outcome.contains("stopped_early: None"), "{}", recorded.outcome);
    assert!(recorded.outcome.contains("warnings: []"), "{}", recorded.outcome);
}

/// Records a program with what it starts, and asserts that it does what it does natively and that the trace hangs
/// together.
fn followed(program: &Path, arguments: &[&str]) -> Trace {
    followed_with(FOLLOWED, program, arguments)
}

fn followed_with(options: [&str; 2], program: &Path, arguments: &[&str]) -> Trace {
    let native = Command::new(program).args(arguments).output().unwrap();
    let [usual, _] = options.map(|options| {
        let recorded = record(options, program, arguments);
        assert_like(&native, &recorded, options);
        recorded.trace()
    });
    usual
}

/// The programs that processes became.
fn execs(trace: &Trace) -> usize {
    all_events(trace).iter().filter(|event| **event == Event::Exec).count()
}

fn equal(way: &str) {
    assert!(assert_equal_with("follow-forks", &compile("children.c", &["-static"]), &[way]) > 10_000);
}

#[test]
fn children_one_after_another() {
    equal("forked");
    let with_loader = assert_equal_with("follow-forks", &compile("children.c", &[]), &["forked"]);
    assert!(with_loader > 50_000);
}

#[test]
fn children_made_while_signals_interrupt_their_maker() {
    let program = compile("forks_signalled.c", &["-static"]);
    let children = if is_whole() { 100 } else { 40 };
    let argument = children.to_string();
    let native = Command::new(&program).arg(&argument).output().unwrap();
    for options in FOLLOWED {
        let recorded = record(options, &program, &[argument.as_str()]);
        assert_like(&native, &recorded, options);
        assert_eq!(
            recorded.trace().threads().len(),
            children + 2,
            "{options}: a call that was begun anew made a child unseen"
        );
    }
}

#[test]
fn children_of_children() {
    equal("nested");
}

#[test]
fn a_child_has_the_handlers_of_its_maker_and_its_own_changes_to_them() {
    equal("handlers");
}

#[test]
fn a_vforked_child_that_becomes_another_program() {
    assert!(assert_equal_with("follow-forks", &compile("children.c", &[]), &["executed"]) > 100_000);
}

#[test]
fn spawned_programs_and_one_that_is_not_there() {
    equal("spawned");
}

#[test]
fn a_process_in_the_memory_of_another() {
    equal("cloned");
}

#[test]
fn children_that_are_killed() {
    equal("killed");
}

#[test]
fn code_that_maker_and_child_change_each_for_itself() {
    equal("generating");
}

#[test]
fn a_static_program_forks_and_becomes_another() {
    equal("executed");
}

#[test]
fn a_child_that_no_tracer_is_told_of_is_recorded_all_the_same() {
    assert_eq!(followed(&compile("children.c", &[]), &["untraced"]).threads().len(), 2);
}

#[test]
fn forks_of_a_program_of_many_threads() {
    let trace = followed(&compile("children.c", &[]), &["threaded"]);
    assert_eq!(trace.threads().len(), 5 + 20);
    let forks = |event: &&Event| matches!(event, Event::Fork { thread: Some(_), .. });
    assert_eq!(all_events(&trace).iter().filter(forks).count(), 20);
}

#[test]
fn each_child_names_its_maker() {
    let trace = followed(&compile("children.c", &[]), &["nested"]);
    for thread in 1..6 {
        let start = events(&trace, thread)[0];
        assert!(
            matches!(start, Event::ThreadStart { parent: Some(parent), .. } if parent.0 == thread - 1),
            "{start:?}"
        );
        let fork = |event: &Event| matches!(event, Event::Fork { thread: Some(child), .. } if child.0 == thread);
        assert!(events(&trace, thread - 1).iter().any(fork));
    }
}

#[test]
fn the_way_in_which_each_child_ends_is_recorded() {
    let trace = followed(&compile("children.c", &[]), &["killed"]);
    let end = |thread| match events(&trace, thread).last() {
        Some(Event::ThreadEnd { exit, .. }) => *exit,
        other => panic!("{other:?}"),
    };
    assert_eq!([end(0), end(1), end(2)], [ThreadExit::Exited(0), ThreadExit::Killed(9), ThreadExit::Killed(11)]);
}

#[test]
fn a_pipeline_of_a_shell() {
    let trace = followed(Path::new("sh"), &["-c", "seq 1000 | sort | uniq -c | head -n 5; exit 3"]);
    assert_eq!(trace.threads().len(), 5);
    assert_eq!(execs(&trace), 4);
}

#[test]
fn a_makefile() {
    let makefile = place("Makefile");
    let rules =
        "all: a.txt b.txt c.txt\n\tcat $^\n%.txt:\n\techo $@ | tr a-c x-z > $@\n.INTERMEDIATE: a.txt b.txt c.txt\n";
    std::fs::write(&makefile, rules).unwrap();
    let folder = makefile.parent().unwrap().to_str().unwrap();
    let trace = followed(Path::new("make"), &["-j", "2", "-s", "--no-print-directory", "-C", folder]);
    assert!(execs(&trace) >= 7, "{} programs", execs(&trace));
}

#[test]
fn a_subprocess_of_python() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        eprintln!("python3 is missing: not tested");
        return;
    }
    let script = "import os, subprocess\n\
        done = subprocess.run(['sh', '-c', 'read x; echo got $x; exit 4'], input=b'it\\n', capture_output=True)\n\
        print(done.returncode, done.stdout, flush=True)\n\
        pid = os.fork()\n\
        if pid == 0: os._exit(sum(range(1000)) % 100)\n\
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    // A program with so much code takes minutes when all is thrown away at random.
    let options = [FOLLOWED[0], "engine=translate follow-forks aslr cache=3000000"];
    assert_eq!(followed_with(options, python, &["-S", "-c", script]).threads().len(), 3);
}

#[test]
fn translations_of_many_processes_at_once_take_bounded_memory() {
    let program = compile("children.c", &[]);
    let native = Command::new(&program).arg("crowd").output().unwrap();
    let recorded = record("engine=translate follow-forks aslr cache=600000", &program, &["crowd"]);
    assert_like(&native, &recorded, "crowd");
    assert_eq!(recorded.trace().threads().len(), 31);
    let (_, rest) = recorded.outcome.split_once("most_code: ").unwrap();
    let most: u64 = rest.split(',').next().unwrap().parse().unwrap();
    // Each takes about 300 kB; a stop may translate a few dozen superblocks beyond the limit.
    assert!((300_000..1_200_000).contains(&most), "{most} bytes");
}

#[test]
fn processes_that_end_give_their_memory_back() {
    let program = compile("children.c", &[]);
    // As much address space as a few processes at once take of ours, and far less than two hundred.
    let limited = format!("ulimit -v {}; exec \"$0\" \"$@\"", 40 << 20);
    let trace = place("trace.bin");
    let inner = crate::support::record_command(FOLLOWED[0], &trace, &program, &["many"]);
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).arg(inner.get_program()).args(inner.get_args()).env("RECORD_OPTIONS", FOLLOWED[0]);
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "many: 199\n", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(Trace::open(&trace).unwrap().threads().len(), 201);
}

/// The symbols with this name.
fn symbols(trace: &Trace, name: &str) -> Vec<u64> {
    trace.symbols().iter().filter(|symbol| symbol.name == name).map(|symbol| symbol.pc.0).collect()
}

#[test]
fn programs_that_lie_at_the_same_addresses_have_code_of_their_own() {
    let flags = ["-no-pie", "-static", "-Wl,-z,norelro"];
    let [first, second] =
        [&flags[..], &[&flags[..], &["-DWORK=second_work"]].concat()].map(|f| compile("overlaid.c", f));
    let second = second.to_str().unwrap();
    for (engine, ways) in [("translate", &[&["forked", second][..], &[second]][..]), ("step", &[&["forked", second]])] {
        for arguments in ways {
            let recorded = record(&format!("engine={engine} follow-forks"), &first, arguments);
            let trace = recorded.trace();
            let [ours, theirs] = ["first_work", "second_work"].map(|name| symbols(&trace, name));
            assert_eq!((ours.len(), theirs.len()), (1, 1), "{engine} {arguments:?}: {}", recorded.outcome);
            assert_ne!(ours, theirs);
            let [ours, theirs] = [ours[0], theirs[0]].map(Pc);
            assert_eq!((ours.program(), theirs.program()), (0, 1));
            assert_eq!(trace.module_of(theirs).map(|module| &module.path[..]), Some(second));
            assert_eq!(trace.symbol_of(theirs).map(|symbol| &symbol.name[..]), Some("second_work"));
        }
    }
}

#[test]
fn a_program_that_runs_again_has_the_code_that_it_had() {
    let first = compile("overlaid.c", &["-no-pie", "-static"]);
    let copy = first.to_str().unwrap();
    let trace = record("engine=translate follow-forks", &first, &["forked", copy]).trace();
    assert_eq!(symbols(&trace, "first_work").len(), 1);
    assert!(trace.blocks().iter().all(|(_, block)| block.instructions.iter().all(|i| i.pc.program() == 0)));
}
