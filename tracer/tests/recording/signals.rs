//! Signals that come often: programs get on and print what they print natively, and what is recorded of the handlers is
//! what `step` records.

use std::path::Path;
use std::process::Command;

use trace_format::Event;

use crate::support::{all_events, compile, is_whole, record};
use crate::translate_equal::assert_equal_with;

#[test]
fn a_program_that_sends_itself_signals_again_and_again() {
    assert!(assert_equal_with("", &compile("signals_raised.c", &["-static"]), &[]) > 2000);
}

#[test]
fn handlers_that_hide_and_raise_other_signals() {
    let program = compile("signals_varied.c", &["-static"]);
    assert!(assert_equal_with("", &program, &[]) > 2000);
    let native = Command::new(&program).arg("moved").output().unwrap();
    for options in ["", "memory", "cache=65536 throw=1", "cache=65536 throw=2", "throw=3"] {
        let recorded = record(&format!("engine=translate {options}"), &program, &["moved"]);
        assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "{options}");
    }
}

#[test]
fn a_signal_that_comes_often_costs_one_stop() {
    let recorded = record("engine=translate", &compile("signals_often.c", &["-static"]), &["raised", "0", "3000", "0"]);
    assert_eq!(recorded.stdout(), "3000 signals\n");
    recorded.trace();
    let (_, stops) = recorded.outcome.split_once("stops: ").expect("the outcome has it");
    let stops: u64 = stops.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    // What is left is code that the program reaches for the first time, and the first few signals.
    assert!((3000..3800).contains(&stops), "{}", recorded.outcome);
}

/// What a program prints without the tracer. Its handlers interrupt each other, and natively, too, they fill the stack
/// in up to every tenth run: the first run that ends well counts.
fn natively(program: &Path, arguments: &[&str]) -> String {
    let run = || Command::new(program).args(arguments).output().unwrap();
    let ended = (0..20).map(|_| run()).find(|native| native.status.success()).expect("it ends natively");
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn programs_get_on_however_fast_signals_come() {
    let program = compile("signals_often.c", &["-static"]);
    for (number, arguments) in [
        ["timer", "100", "300000", "0"],
        ["timer", "50", "300000", "0"],
        ["timer", "10", "1000000", "0"],
        ["nested", "100", "300000", "0"],
        ["bounded", "0", "2000000", "2"],
        ["long", "0", "1000000", "2"],
        ["changes", "0", "2000000", "2"],
    ]
    .into_iter()
    .enumerate()
    {
        // What it prints does not depend on the period, and natively it may not get on with a short one.
        let [how, _, turns, threads] = arguments;
        let native = natively(&program, &[if how == "long" { "bounded" } else { how }, "10000", turns, threads]);
        let options = ["engine=translate", "engine=translate memory"];
        for options in if is_whole() { &options[..] } else { &options[number % 2..][..1] } {
            // How many handlers are entered is for the kernel's scheduler to say: on a busy machine it may be none.
            let often = (0..20).any(|_| {
                let recorded = record(options, &program, &arguments);
                assert_eq!(recorded.stdout(), native, "{arguments:?}, {options}");
                let events = all_events(&recorded.trace());
                let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
                let entered = count(|event| matches!(event, Event::Signal { .. }));
                assert_eq!(count(|event| *event == Event::SignalReturn), entered, "{arguments:?}, {options}");
                entered > 16
            });
            assert!(often, "{arguments:?}, {options}: never more than 16 handlers were entered");
        }
    }
}

#[test]
fn signals_that_wait_until_handlers_are_translated_anew_do_not_fill_the_stack() {
    let program = compile("signals_often.c", &["-static"]);
    let turns = if is_whole() { "300000" } else { "100000" };
    let arguments = ["threads", "0", turns, "2"];
    let native = natively(&program, &["bounded", "10000", turns, "2"]);
    for options in ["engine=translate throw=2", "engine=translate cache=65536 throw=3"] {
        let recorded = record(options, &program, &arguments);
        assert_eq!(recorded.stdout(), native, "{options}: {}", recorded.stderr());
    }
}
