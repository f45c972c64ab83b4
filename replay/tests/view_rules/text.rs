//! Traces read from text are taken as they stand.

use std::io::Read;
use std::path::Path;

use replay::Control;
use replay::view::View;
use trace_format::{Kind, Trace};

use crate::recording::*;

/// What a lane of a text trace is to do, by its lines.
fn lines_of(text: &str) -> Vec<Vec<Line>> {
    let mut threads: Vec<Vec<Line>> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        if line.starts_with("thread") {
            threads.push(Vec::new());
            continue;
        }
        let mut words = line.split(' ');
        let hex = |word: Option<&str>| u64::from_str_radix(word.unwrap(), 16).unwrap();
        let pc = hex(words.next());
        let sp = words.next().unwrap().parse().unwrap();
        let flags = words.next().unwrap().to_owned();
        let addresses = words.map(|w| hex(Some(w))).collect();
        threads.last_mut().unwrap().push(Line { pc, sp, flags, addresses });
    }
    threads
}

struct Line {
    pc: u64,
    sp: i64,
    flags: String,
    addresses: Vec<u64>,
}

#[test]
fn the_conformance_vectors_pass_through_unchanged() {
    for case in 0..24 {
        let path = format!("{}/../heuristics/conformance/case-{case:02}.trace.gz", env!("CARGO_MANIFEST_DIR"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        let view = View::new(&Trace::open(Path::new(&path)).unwrap(), &options("auto", "main", "drop")).unwrap();
        let threads = lines_of(&text);
        assert_eq!(view.lanes().len(), threads.len(), "case {case}");
        assert_eq!(view.summary().kept, threads.iter().map(|t| t.len() as u64).sum::<u64>());
        for (lane, lines) in threads.iter().enumerate() {
            check_lane(&view, lane, lines, &format!("case {case}, lane {lane}"));
        }
    }
}

fn check_lane(view: &View, lane: usize, lines: &[Line], place: &str) {
    let mut level = 1;
    let mut before: Option<Kind> = None;
    let mut told = follow(view, lane).into_iter();
    for (i, line) in lines.iter().enumerate() {
        let place = format!("{place}, instruction {i}");
        if line.flags.contains('W') {
            assert_eq!(told.next(), Some(Told::Comes(Control::MeetAll)), "{place}");
        }
        let Some(Told::Runs(seen)) = told.next() else { panic!("{place}: no instruction") };
        assert_eq!((seen.instruction.pc.0, seen.sp, seen.level), (line.pc, line.sp, level), "{place}");
        assert_eq!(seen.addresses, line.addresses, "{place}");
        if let Some(kind) = before {
            assert_eq!(kind.transfers_control(), line.flags.contains('B'), "{place}");
        }
        if line.flags.contains('C') {
            level += 1;
        } else if line.flags.contains('R') {
            level = level.max(2) - 1;
        }
        before = Some(seen.instruction.kind);
    }
    assert_eq!(told.next(), None, "{place}: the stream goes on");
}

#[test]
fn a_text_trace_has_no_functions_to_name() {
    let path = format!("{}/../heuristics/conformance/case-00.trace.gz", env!("CARGO_MANIFEST_DIR"));
    let trace = Trace::open(Path::new(&path)).unwrap();
    assert!(refusal(View::new(&trace, &options("main", "all", "ignore"))).contains("read from text"));
}
