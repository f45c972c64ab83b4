//! Files of DynamoRIO's drmemtrace, written here record by record: what is read in them, and what is refused.
//! Recordings by the tool itself are in the tests of the crate `cli`.

mod check;

use std::fs;
use std::path::Path;

use check::{convert, gzipped, header, record};
use proptest::prelude::*;
use trace_format::{Event, Item, SpEffect, SyncFunction, ThreadId, Trace};

/// Marks that stand for kinds of records.
const READ: u16 = 0;
const WRITE: u16 = 1;
const EXIT: u16 = 23;
const FOOTER: u16 = 26;
const MARKER: u16 = 28;

/// An instruction with its bytes.
fn instruction(pc: u64, code: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in code.chunks(8) {
        let mut value = [0; 8];
        value[..part.len()].copy_from_slice(part);
        bytes.extend(record(47, part.len() as u16, u64::from_le_bytes(value)));
    }
    bytes.extend(record(10, code.len() as u16, pc));
    bytes
}

/// A function of five instructions, called at 0x1000 with the stack pointer 0x8000, and what runs behind it.
fn call() -> Vec<u8> {
    [
        instruction(0x1000, &[0xe8, 0xfb, 0x0f, 0, 0]), // call 0x2000
        record(WRITE, 8, 0x7ff8),
        instruction(0x2000, &[0x55]), // push rbp
        record(WRITE, 8, 0x7ff0),
        instruction(0x2001, &[0x48, 0x89, 0xe5]), // mov rbp, rsp
        instruction(0x2004, &[0x48, 0x29, 0xc4]), // sub rsp, rax
        instruction(0x2007, &[0x90]),             // nop
        instruction(0x2008, &[0x50]),             // push rax
        record(WRITE, 8, 0x7f88),
        instruction(0x2009, &[0xc9]), // leave
        record(READ, 8, 0x7ff0),
        instruction(0x200a, &[0xc3]), // ret
        record(READ, 8, 0x7ff8),
        instruction(0x1005, &[0xf3, 0xa4]), // rep movsb
        record(READ, 1, 0x5000),
        record(WRITE, 1, 0x6000),
        record(29, 2, 0x1005),
        record(READ, 1, 0x5001),
        record(WRITE, 1, 0x6001),
        instruction(0x1007, &[0x0f, 0x05]), // syscall
        record(MARKER, 25, 60),
        record(EXIT, 4, 11),
        record(FOOTER, 0, 0),
    ]
    .concat()
}

fn whole() -> Vec<u8> {
    [header(7, 0x640), call()].concat()
}

/// The trace that comes of a thread's file.
fn converted(contents: &[u8]) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.trace"), contents).unwrap();
    let output = folder.path().join("trace.bin");
    tracer::convert_drmemtrace(folder.path(), &output).unwrap();
    Trace::open(&output).unwrap()
}

/// The stack pointer before each instruction, with its memory addresses.
fn steps(trace: &Trace) -> Vec<(u64, u64, Vec<u64>)> {
    let mut stream = trace.stream(ThreadId(0));
    let (mut sp, mut steps) = (0, Vec::new());
    while let Some(item) = stream.next().unwrap() {
        match item {
            Item::Event(Event::ThreadStart { sp: first, .. } | Event::SetSp(first)) => sp = first,
            Item::Block { block, sps, memory } => {
                let (mut sps, mut memory) = (sps.iter(), memory.iter().copied());
                for instruction in &trace.blocks()[block].instructions {
                    let addresses = memory.by_ref().take(instruction.memory.into()).collect();
                    steps.push((instruction.pc.0, sp, addresses));
                    sp = match instruction.sp {
                        SpEffect::Add(change) => sp.wrapping_add_signed(change.into()),
                        SpEffect::Recorded => *sps.next().unwrap(),
                    };
                }
            }
            _ => {}
        }
    }
    steps
}

#[test]
fn the_stack_pointer_follows_from_what_touches_the_stack() {
    let steps = steps(&converted(&whole()));
    let found: Vec<(u64, u64)> = steps.iter().map(|(pc, sp, _)| (*pc, *sp)).collect();
    assert_eq!(
        found,
        [
            (0x1000, 0x8000),
            (0x2000, 0x7ff8),
            (0x2001, 0x7ff0),
            (0x2004, 0x7ff0),
            (0x2007, 0x7f90), // told by the push behind it
            (0x2008, 0x7f90),
            (0x2009, 0x7f88),
            (0x200a, 0x7ff8),
            (0x1005, 0x8000),
            (0x1007, 0x8000),
        ]
    );
}

#[test]
fn a_repeated_instruction_ran_once_with_its_first_addresses() {
    let trace = converted(&whole());
    assert_eq!(trace.instructions(), 10);
    let addresses: Vec<Vec<u64>> = steps(&trace).into_iter().map(|(.., addresses)| addresses).collect();
    let mut moved = addresses[8].clone();
    moved.sort_unstable();
    assert_eq!(moved, [0x5000, 0x6000]);
    assert_eq!(addresses[0], [0x7ff8]);
}

#[test]
fn instructions_without_addresses_are_read_with_a_stack_of_calls() {
    let only: Vec<u8> =
        whole().chunks(12).filter(|one| one[..2] != [0, 0] && one[..2] != [1, 0]).flatten().copied().collect();
    let at = 12 * 2 + 4;
    let mut only = only;
    only[at..at + 8].copy_from_slice(&0x644u64.to_le_bytes());
    let trace = converted(&only);
    assert!(!trace.meta().memory);
    let steps = steps(&trace);
    let sps: Vec<u64> = steps.iter().map(|(_, sp, _)| *sp).collect();
    assert_eq!((sps[1], sps[7], sps[8]), (sps[0] - 8, sps[0] - 8, sps[0]));
}

#[test]
fn a_handler_stands_between_a_signal_and_its_return() {
    let contents = [
        header(7, 0x640),
        instruction(0x1000, &[0x50]), // push rax
        record(WRITE, 8, 0x7ff8),
        record(MARKER, 0, 0x1001),
        record(MARKER, 40, 10),
        instruction(0x3000, &[0xc3]), // ret
        record(READ, 8, 0x7000),
        instruction(0x3100, &[0x0f, 0x05]), // syscall
        record(MARKER, 25, 15),
        record(MARKER, 1, 0),
        instruction(0x1001, &[0x58]), // pop rax
        record(READ, 8, 0x7ff8),
        record(EXIT, 4, 11),
        record(FOOTER, 0, 0),
    ]
    .concat();
    let trace = converted(&contents);
    let found: Vec<(u64, u64)> = steps(&trace).iter().map(|(pc, sp, _)| (*pc, *sp)).collect();
    assert_eq!(found, [(0x1000, 0x8000), (0x3000, 0x7000), (0x3100, 0x7008), (0x1001, 0x7ff8)]);
    let mut stream = trace.stream(ThreadId(0));
    let mut events = Vec::new();
    while let Some(item) = stream.next().unwrap() {
        if let Item::Event(event @ (Event::Signal { .. } | Event::SignalReturn)) = item {
            events.push(event);
        }
    }
    assert!(matches!(events[..], [Event::Signal { number: 10, handler }, Event::SignalReturn] if handler.0 == 0x3000));
}

/// The functions that a thread entered, each with its object, and those that it left, with their results.
fn functions(trace: &Trace, thread: u32) -> Vec<(SyncFunction, u64)> {
    let mut stream = trace.stream(ThreadId(thread));
    let mut events = Vec::new();
    while let Some(item) = stream.next().unwrap() {
        match item {
            Item::Event(Event::Enter { function, object, .. }) => events.push((function, object)),
            Item::Event(Event::Leave { function, result, .. }) => events.push((function, result)),
            _ => {}
        }
    }
    events
}

#[test]
fn recorded_functions_are_known_by_the_list_of_functions() {
    let folder = tempfile::tempdir().unwrap();
    let mut contents =
        [header(7, 0x640), instruction(0x1000, &[0xe8, 0xfb, 0x0f, 0, 0]), record(WRITE, 8, 0x7ff8)].concat();
    for marker in [(4, 3), (5, 0x1005), (6, 0x4444)] {
        contents.extend(record(MARKER, marker.0, marker.1));
    }
    contents.extend([instruction(0x2000, &[0xc3]), record(READ, 8, 0x7ff8)].concat());
    for marker in [(4, 3), (7, 16)] {
        contents.extend(record(MARKER, marker.0, marker.1));
    }
    contents.extend([instruction(0x1005, &[0x90]), record(EXIT, 4, 11), record(FOOTER, 0, 0)].concat());
    fs::write(folder.path().join("a.trace"), contents).unwrap();
    fs::write(folder.path().join("funclist.log"), "3,1,0x2000,libc.so.6!pthread_mutex_trylock\n").unwrap();
    let output = folder.path().join("out");
    tracer::convert_drmemtrace(&folder.path().join("a.trace"), &output).unwrap();
    let events = functions(&Trace::open(&output).unwrap(), 0);
    assert_eq!(events, [(SyncFunction::MutexTryLock, 0x4444), (SyncFunction::MutexTryLock, 16)]);
}

/// The first thread waits at the end of a region until nobody else can go on. The other one must not go on into a
/// region that the first has not begun.
#[test]
fn a_thread_is_not_in_a_region_before_another_has_begun_it() {
    let end = [record(EXIT, 4, 11), record(FOOTER, 0, 0)].concat();
    let fork = |pc: u64, body: u64| {
        let markers = [(4, 7), (5, pc + 2), (6, body), (6, 0), (6, 2)];
        [
            instruction(pc, &[0xff, 0xd0]), // call rax
            record(WRITE, 8, 0x7ff8),
            markers.map(|(marker, value)| record(MARKER, marker, value)).concat(),
            instruction(0x2000, &[0xff, 0xd0]),
            record(WRITE, 8, 0x7ff0),
            instruction(body, &[0xc3]), // ret
            record(READ, 8, 0x7ff0),
            instruction(0x2002, &[0xc3]),
            record(READ, 8, 0x7ff8),
        ]
        .concat()
    };
    let body = |pc, body| {
        let call = [instruction(pc, &[0xff, 0xd0]), record(WRITE, 8, 0x9ff8)].concat();
        [call, instruction(body, &[0xc3]), record(READ, 8, 0x9ff8)].concat()
    };
    let first = [fork(0x1000, 0x5000), fork(0x1002, 0x6000), instruction(0x1004, &[0x90]), end.clone()].concat();
    let other = [body(0x3000, 0x5000), body(0x3002, 0x6000), instruction(0x3004, &[0x90]), end].concat();
    let folder = tempfile::tempdir().unwrap();
    for (name, thread, records) in [("a.trace", 11, first), ("b.trace", 12, other)] {
        fs::write(folder.path().join(name), [check::header_of(thread, 7, 0x640), records].concat()).unwrap();
    }
    fs::write(folder.path().join("funclist.log"), "7,3,0x2000,libgomp.so.1!GOMP_parallel\n").unwrap();
    let output = folder.path().join("out");
    let converted = tracer::convert_drmemtrace(folder.path(), &output).unwrap();
    assert!(!converted.warnings.iter().any(|warning| warning.contains("cannot have been")), "{:?}", converted.warnings);
    let of_body = |body| [(SyncFunction::ParallelBody, body), (SyncFunction::ParallelBody, 0)];
    assert_eq!(functions(&Trace::open(&output).unwrap(), 1), [of_body(0x5000), of_body(0x6000)].concat());
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason_and_the_way_out() {
    let with = |version, file_type| [header(version, file_type), call()].concat();
    let thread = |number| [header(7, 0x640), record(22, 4, number), call()].concat();
    let bad = |records: Vec<u8>| [header(7, 0x640), records, call()].concat();
    let cases = [
        (Vec::new(), "it is empty"),
        (b"plain text, and no recording".to_vec(), "no header of drmemtrace's"),
        (whole()[..whole().len() - 5].to_vec(), "cut off in record"),
        (whole()[..whole().len() - 12].to_vec(), "without a footer"),
        ([whole(), record(25, 0, 7)].concat(), "more than one trace"),
        (with(8, 0x640), "format version 8"),
        (with(u64::MAX, 0x640), "format version 18446744073709551615"),
        (with(3, 0x40), "no encodings"),
        (with(7, 0x608), "of AArch64"),
        (with(7, 0x610), "of 32-bit ARM"),
        (with(7, 0x620), "of 32-bit x86"),
        (with(7, 0x2_0640), "of no real processor"),
        (with(7, 0x1_0640), "those of cores"),
        (with(7, 0x6c0), "filtered"),
        (thread(12), "several threads"),
        (bad(record(10, 3, 0x9000)), "has no encoding"),
        (bad(record(10, 16, 0x9000)), "an instruction of 16 bytes"),
        (bad([record(47, 3, 0x90), record(10, 2, 0x9000)].concat()), "has an encoding of 3"),
        (bad([record(47, 8, 0), record(47, 8, 0)].concat()), "more than 15 bytes"),
        (bad(record(77, 3, 0)), "kind 77"),
        (bad(record(17, 3, 0)), "32-bit ARM"),
        (bad(record(MARKER, 1, 0).repeat(5000)), "markers without an instruction"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (contents, words) in cases {
        let file = folder.path().join("a.trace");
        fs::write(&file, contents).unwrap();
        let error = convert(&file).unwrap_err();
        assert!(error.contains(words), "{error:?} has no {words:?}");
    }
}

#[test]
fn files_that_are_packed_in_other_ways_or_damaged_are_refused() {
    let packed = gzipped(&whole());
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, contents: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, contents).unwrap();
        convert(&file)
    };
    assert_eq!(write("a.trace.gz", &packed), Ok(10));
    assert!(write("a.trace.gz", &packed[..packed.len() / 2]).unwrap_err().contains("cannot be read behind record"));
    assert!(write("a.trace.zip", &packed).unwrap_err().contains("no whole zip archive"));
    assert!(write("a.trace.lz4", &packed).unwrap_err().contains("-compress gzip"));
    assert!(convert(Path::new("/nowhere")).unwrap_err().contains("cannot be read"));
    let empty = tempfile::tempdir().unwrap();
    assert!(convert(empty.path()).unwrap_err().contains("no file of an offline trace"));
    fs::create_dir_all(empty.path().join("trace/window.0000")).unwrap();
    assert!(convert(empty.path()).unwrap_err().contains("window.0000"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check::check(&bytes);
    }

    #[test]
    fn no_change_of_a_file_makes_it_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        values in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..4),
        kind in any::<u8>(),
    ) {
        let mut bytes = call();
        for (record, value) in values {
            let at = 12 * record.index(bytes.len() / 12) + 4;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        check::check(&[&[kind], &bytes[..]].concat());
    }
}
