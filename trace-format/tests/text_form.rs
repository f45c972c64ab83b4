//! The text form: what is read comes back, and what cannot be read is told with its line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use trace_format::{
    Block, Error, Event, Finish, Instruction, Item, Kind, Meta, Pc, Seq, SpEffect, SyncFunction, ThreadId, Trace,
    TraceWriter, write_text,
};

fn vectors() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../heuristics/conformance/");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the vectors are in the repository")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.to_string_lossy().ends_with(".trace.gz"))
        .collect();
    paths.sort();
    paths
}

fn body(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect()
}

fn to_text(trace: &Trace) -> String {
    let mut out = Vec::new();
    write_text(trace, &mut out, Path::new("text")).expect("a whole trace can be written");
    String::from_utf8(out).expect("text is UTF-8")
}

fn from_text(text: &str) -> Trace {
    Trace::from_bytes(text.as_bytes().to_vec(), "made.trace").expect("the text can be read")
}

fn fault(text: &str) -> String {
    Trace::from_bytes(text.as_bytes().to_vec(), "made.trace").expect_err("the text cannot be read").to_string()
}

#[test]
fn every_vector_comes_back_byte_for_byte() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 24);
    for path in vectors {
        let mut text = String::new();
        GzDecoder::new(File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.recovered(), None);
        let lines = body(&text).lines().filter(|line| !line.starts_with("thread")).count();
        assert_eq!(trace.instructions(), lines as u64, "{}", path.display());
        assert!(to_text(&trace).split_inclusive('\n').take(2).all(|line| line.starts_with('#')));
        assert!(body(&to_text(&trace)) == body(&text), "{} does not come back", path.display());
        let memory = body(&text).lines().any(|line| line.split(' ').count() > 3);
        assert_eq!(trace.meta().memory, memory, "{}", path.display());
    }
}

#[test]
fn equal_blocks_are_stored_once() {
    let trace = from_text("thread 0\n1 0 -\n2 0 B\n2 0 B\n2 0 B\n3 0 B\nthread 1\n1 0 -\n2 0 B\n3 0 B\n");
    assert_eq!(trace.blocks().len(), 3);
    assert_eq!(trace.threads().iter().map(|thread| thread.blocks).collect::<Vec<_>>(), [5, 3]);
}

#[test]
fn a_barrier_cuts_a_block_and_stands_before_its_instruction() {
    let trace = from_text("thread 0\n1 0 -\n2 -8 W\n3 0 B\n");
    let mut stream = trace.stream(ThreadId(0));
    let mut seen = Vec::new();
    while let Some(item) = stream.next().unwrap() {
        seen.push(match item {
            Item::Block { block, .. } => format!("{}", trace.blocks()[block].start()),
            Item::Partial { .. } => "partial".into(),
            Item::Event(Event::WarpBarrier) => "barrier".into(),
            Item::Event(Event::ThreadStart { sp: 0, .. }) => "start".into(),
            Item::Event(Event::ThreadEnd { .. }) => "end".into(),
            Item::Event(other) => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["start", "0x1", "barrier", "0x2", "0x3", "end"]);
    let kinds: Vec<Kind> = trace.blocks().iter().map(|(_, block)| block.last().kind).collect();
    assert_eq!(kinds, [Kind::Plain, Kind::Branch, Kind::Plain]);
    let changes: Vec<SpEffect> = trace.blocks().iter().map(|(_, block)| block.last().sp).collect();
    assert_eq!(changes, [SpEffect::Add(-8), SpEffect::Add(8), SpEffect::Add(0)]);
}

#[test]
fn a_stack_pointer_that_jumps_far_comes_back() {
    let text = "thread 0\n1 0 -\n2 9223372036854775807 -\n3 -9223372036854775808 -\n4 5 -\n";
    let trace = from_text(text);
    assert_eq!(trace.blocks().get(trace_format::BlockId(0)).unwrap().recorded_sps(4), 3);
    assert_eq!(body(&to_text(&trace)), text);
}

#[test]
fn a_block_of_more_than_4096_instructions_is_cut() {
    let mut text = String::from("thread 0\n");
    for pc in 0..10_000 {
        text += &format!("{pc:x} 0 -\n");
    }
    let trace = from_text(&text);
    assert_eq!(trace.blocks().len(), 3);
    assert_eq!(body(&to_text(&trace)), text);
}

#[test]
fn unreadable_lines_are_told_with_their_number_and_fault() {
    let cases = [
        ("thread 0\n1 0 -\n2 0\n", "line 3: `2 0`: an instruction is written `pc sp flags [addresses]`"),
        ("thread 0\n0x10 0 -\n", "line 2: `0x10` is not an address"),
        ("thread 0\n+1 0 -\n", "line 2: `+1` is not an address"),
        ("thread 0\n10000000000000000 0 -\n", "line 2: `10000000000000000` is not an address"),
        ("thread 0\n1 f -\n", "line 2: `f` is not a stack pointer"),
        ("thread 0\n1 0 X\n", "line 2: `X` is not a flag: the flags are B, W, C, R"),
        ("thread 0\n1 0 BB\n", "line 2: the flags `BB` have B twice"),
        ("thread 0\n1 0 CR\n", "line 2: the flags `CR`: an instruction cannot both call and return"),
        ("thread 0\n1 0 - zz\n", "line 2: `zz` is not an address"),
        ("thread 0\n1 8 -\n", "line 2: the thread's first instruction must have sp 0"),
        ("thread 0\n1 0 C\n2 0 -\n", "line 3: the instruction after a call or return starts a basic block"),
        ("thread 1\n", "line 1: `thread 1`: threads are numbered from 0 in order, the next one is 0"),
        ("thread 0\nthread 0\n", "line 2: `thread 0`: threads are numbered from 0 in order, the next one is 1"),
        ("# nothing\n", "line 1: the text has no line `thread 0`"),
        ("# a\n1 0 -\n", "line 2: an instruction stands before the first `thread 0`"),
    ];
    for (text, expected) in cases {
        let fault = fault(text);
        assert!(fault.starts_with("made.trace: ") && fault.contains(expected), "{text:?} gives {fault:?}");
    }
    let many = "thread 0\n1 0 -".to_owned() + &" 1".repeat(256);
    assert!(fault(&many).contains("line 2: 256 addresses: an instruction has at most 255"));
    let long = "thread 0\n1 0 -".to_owned() + &" ".repeat(20_000);
    assert!(fault(&long).contains("line 2: the line is longer than 16384 bytes"));
    let error = Trace::from_bytes(b"thread 0\n\xff\n".to_vec(), "made.trace").unwrap_err();
    assert!(matches!(error, Error::Text { line: 2, .. }));
}

/// A recorded thread: its items, given to the writer.
fn recorded(items: &[(&str, Vec<Instruction>)], events: &[(usize, Event)]) -> Trace {
    let meta = Meta { engine: "step".into(), ..Meta::default() };
    let mut writer = TraceWriter::new(Vec::new(), "made.bin", &meta).unwrap();
    let thread = ThreadId(0);
    let start = Event::ThreadStart { parent: None, os_tid: 1, sp: 0x7000_0000, seq: Seq(0) };
    writer.event(thread, start).unwrap();
    for (i, (what, instructions)) in items.iter().enumerate() {
        for (_, event) in events.iter().filter(|(before, _)| *before == i) {
            writer.event(thread, *event).unwrap();
        }
        let block = Block { instructions: instructions.clone(), ..Block::default() };
        let id = writer.add_block(block).unwrap();
        match *what {
            "half" => writer.partial(thread, id, 1, &[], &[]).unwrap(),
            "far" => writer.block(thread, id, &[0x7000_0000 + 0x100], &[]).unwrap(),
            _ => writer.block(thread, id, &[], &[]).unwrap(),
        }
    }
    Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made.bin").unwrap()
}

fn one(pc: u64, kind: Kind) -> Vec<Instruction> {
    let change = if kind.is_call() { -8 } else { i32::from(kind == Kind::Return) * 8 };
    vec![Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(change), memory: 0 }]
}

#[test]
fn a_recorded_trace_is_written_against_its_first_stack_pointer() {
    let mut pair = one(0x10, Kind::Plain);
    pair[0].sp = SpEffect::Add(-16);
    pair.extend(one(0x11, Kind::Branch));
    let mut far = one(0x12, Kind::Jump);
    far[0].sp = SpEffect::Recorded;
    let wait = Event::Leave { function: SyncFunction::BarrierWait, result: 0, seq: Seq(1) };
    let unlock = Event::Leave { function: SyncFunction::MutexUnlock, result: 0, seq: Seq(2) };
    let trace = recorded(
        &[("", pair.clone()), ("half", pair), ("far", far), ("", one(0x13, Kind::Plain)), ("", one(0x14, Kind::Plain))],
        &[(0, Event::SetSp(0x7000_0000)), (2, wait), (3, unlock)],
    );
    assert_eq!(body(&to_text(&trace)), "thread 0\n10 0 -\n11 -16 -\n10 -16 B\n12 -32 W\n13 256 B\n14 256 -\n");
}

#[test]
fn only_returns_from_called_functions_bear_the_flag() {
    let call = |pc| ("", one(pc, Kind::Call));
    let ret = |pc| ("", one(pc, Kind::Return));
    let trace = recorded(&[call(1), call(2), ret(3), ret(4), ret(5), ("", one(6, Kind::Plain))], &[]);
    assert_eq!(body(&to_text(&trace)), "thread 0\n1 0 C\n2 -8 BC\n3 -16 BR\n4 -8 BR\n5 0 B\n6 8 B\n");
}

#[test]
fn a_signal_handler_s_own_return_bears_no_flag() {
    let signal = Event::Signal { number: 10, handler: Pc(0x20) };
    let items = [
        ("", one(1, Kind::Call)),
        ("", one(0x20, Kind::Call)),
        ("", one(0x30, Kind::Return)),
        ("", one(0x21, Kind::Return)),
        ("", one(2, Kind::Return)),
    ];
    // The handler runs on a stack of its own, above the thread's.
    let events =
        [(1, signal), (1, Event::SetSp(0x7100_0000)), (4, Event::SignalReturn), (4, Event::SetSp(0x7000_0000 - 8))];
    let text = body(&to_text(&recorded(&items, &events)));
    let flags: Vec<&str> = text.lines().skip(1).map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(flags, ["C", "BC", "BR", "B", "BR"]);
}

#[test]
fn what_comes_behind_a_gap_begins_a_block_and_a_call_into_one_is_no_call() {
    let items = [
        ("", one(1, Kind::Call)),
        ("", one(2, Kind::Call)),
        ("", one(9, Kind::Plain)),
        ("", one(10, Kind::Plain)),
        ("", one(11, Kind::Return)),
    ];
    let back = Event::SetSp(0x7000_0000 - 8);
    let text = to_text(&recorded(&items, &[(2, Event::Gap), (2, back), (3, Event::Gap), (3, back)]));
    assert_eq!(body(&text), "thread 0\n1 0 C\n2 -8 B\n9 -8 B\na -8 B\nb -8 R\n");
    Trace::from_bytes(text.into_bytes(), "written.trace").unwrap();
}

#[test]
fn functions_left_by_a_longjmp_are_not_open_any_more() {
    let mut back = one(4, Kind::IndirectJump);
    back[0].sp = SpEffect::Add(16);
    let items = [
        ("", one(1, Kind::Call)),
        ("", one(2, Kind::Call)),
        ("", one(3, Kind::Call)),
        ("", back),
        ("", one(2, Kind::Return)),
    ];
    let text = body(&to_text(&recorded(&items, &[])));
    assert!(text.ends_with("4 -24 B\n2 -8 BR\n"), "{text}");
}
