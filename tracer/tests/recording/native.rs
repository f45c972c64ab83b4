//! A recorded program does what it does by itself: outputs, exit status, and a trace that hangs together.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::support::{assert_like_native, compile, is_whole, place, record, record_command};
use trace_format::{Event, Module, ThreadExit};

#[test]
fn dynamic_static_and_fixed_programs_run_alike() {
    for flags in [&["-pie", "-fPIE"][..], &["-no-pie"], &["-static"], &["-static-pie", "-fPIE"], &["-m64", "-O3"]] {
        let recorded = assert_like_native(&compile("hello.c", flags), &["a", "b c"]);
        assert_eq!(recorded.trace().finish().unwrap().exit_status, Some(7), "{flags:?}");
    }
}

#[test]
fn input_is_left_to_the_program() {
    let (program, trace) = (compile("input.c", &["-static"]), place("trace.bin"));
    let mut child =
        record_command("", &trace, &program, &[]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"typed\n");
}

#[test]
fn death_by_a_signal_is_passed_on() {
    let program = compile("killed.c", &["-static"]);
    for signal in ["0", "6", "9", "15", "40"] {
        let recorded = assert_like_native(&program, &[signal]);
        let number = if signal == "0" { 11 } else { signal.parse().unwrap() };
        assert_eq!(recorded.trace().finish().unwrap().signal, Some(number));
        assert!(recorded.outcome.contains("Signalled"), "{}", recorded.outcome);
    }
}

#[test]
fn sixty_four_threads_run_alike() {
    // The loader takes `step` longer than the program.
    let builds = [&["-static"][..], &[]];
    for flags in &builds[..if is_whole() { 2 } else { 1 }] {
        let trace = assert_like_native(&compile("threads64.c", flags), &[]).trace();
        assert_eq!(trace.threads().len(), 65);
    }
}

#[test]
fn thousands_of_short_threads_are_recorded() {
    let trace = assert_like_native(&compile("short_threads.c", &["-static"]), &[]).trace();
    assert_eq!(trace.threads().len(), 3001);
}

#[test]
fn threads_that_still_run_at_the_end_do_not_keep_it_up() {
    let trace = assert_like_native(&compile("exit_while_running.c", &["-static"]), &[]).trace();
    assert_eq!(trace.threads().len(), 4);
}

#[test]
fn the_first_thread_may_leave_first() {
    assert_like_native(&compile("main_leaves_first.c", &[]), &[]).trace();
}

#[test]
fn children_run_by_themselves() {
    let trace = assert_like_native(&compile("fork_exec.c", &["-static"]), &[]).trace();
    assert_eq!(trace.threads().len(), 1);
    let forks = |e: &Event| matches!(e, Event::Fork { thread: None, .. });
    assert_eq!(crate::support::all_events(&trace).iter().filter(|e| forks(e)).count(), 3);
    assert_like_native(&compile("commands.c", &[]), &[]).trace();
}

#[test]
fn forks_are_followed_when_asked() {
    let recorded = record("engine=step follow-forks", &compile("fork_exec.c", &["-static"]), &[]);
    assert_eq!(recorded.output.status.code(), Some(7));
    assert!(recorded.stdout().ends_with("7\n"), "{}", recorded.stdout());
    let trace = recorded.trace();
    assert_eq!(trace.threads().len(), 4);
    let execs = (0..4).filter(|&t| crate::support::events(&trace, t).contains(&Event::Exec)).count();
    assert_eq!(execs, 2);
}

#[test]
fn another_program_may_take_the_place() {
    let program = compile("exec.c", &["-static"]);
    for arguments in [&[][..], &["from-a-thread"]] {
        let trace = assert_like_native(&program, arguments).trace();
        let replaced = |e: &&Event| matches!(e, Event::ThreadEnd { exit: ThreadExit::Replaced, .. });
        let count = crate::support::all_events(&trace).iter().filter(replaced).count();
        assert_eq!(count, if arguments.is_empty() { 0 } else { 2 });
        let names: Vec<_> = trace.modules().iter().map(Module::name).collect();
        assert!(names.contains(&"exec") && names.contains(&"echo"), "{names:?}");
    }
}

#[test]
fn handlers_return_and_jump_as_they_do_natively() {
    let trace = assert_like_native(&compile("signal_jump.c", &["-static"]), &[]).trace();
    let events = crate::support::events(&trace, 0);
    let delivered: Vec<i32> =
        events.iter().filter_map(|e| if let Event::Signal { number, .. } = e { Some(*number) } else { None }).collect();
    assert_eq!(delivered, [10, 12, 36, 11, 8]);
    assert_eq!(events.iter().filter(|e| **e == Event::SignalReturn).count(), 3);
}

#[test]
fn sigtrap_stays_the_programs_own() {
    for flags in [&[][..], &["-static"]] {
        assert_like_native(&compile("traps.c", flags), &[]).trace();
    }
}

#[test]
fn interrupted_calls_go_on_or_fail_as_they_do_natively() {
    let trace = assert_like_native(&compile("restart.c", &["-static"]), &[]).trace();
    let signals = |e: &&Event| matches!(e, Event::Signal { number: 14, .. });
    assert_eq!(crate::support::all_events(&trace).iter().filter(signals).count(), 5);
}

#[test]
fn a_stopped_program_waits_until_it_is_woken() {
    assert_like_native(&compile("stopped.c", &["-static"]), &[]).trace();
}

#[test]
fn a_script_runs_under_its_interpreter() {
    use std::os::unix::fs::PermissionsExt;
    let path = place("script");
    std::fs::write(&path, "#!/bin/sh\necho $0 ran | tail -c 5\nexit 4\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_like_native(&path, &[]).trace();
}

#[test]
fn programs_may_run_where_they_could_anyway() {
    let program = compile("processors.c", &["-static", "-pthread"]);
    for how in ["itself", "thread", "child", "command", "set"] {
        let recorded = assert_like_native(&program, &[how]);
        assert!(recorded.stdout().contains(": "), "{how}");
    }
}

#[test]
fn the_heap_of_the_recorder_grows_in_large_pages() {
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        eprintln!("this kernel has no large pages: not tested");
        return;
    }
    // The recorder is the program's parent. `hg`: large pages are advised.
    let script = "grep -A 30 -F '[heap]' /proc/$PPID/smaps | grep -c '^VmFlags:.* hg'";
    let recorded = record("", Path::new("/bin/sh"), &["-c", script]);
    assert_eq!(recorded.stdout(), "1\n", "one part of the heap: {}", recorded.stderr());
}
