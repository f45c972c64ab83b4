//! What is written is read.

mod random_trace;

use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use random_trace::{OwnItem, Step, event, items, steps, write};
use trace_format::layout::{MAX_ITEMS, TARGET_RAW, Version};
use trace_format::{
    Block, BlockId, Chunk, EVENT_CODES, Event, Finish, Instruction, Kind, MAX_BUFFERED, Mapping, Meta, Module,
    ModuleRole, Pc, Seq, SpEffect, Symbol, SyncFunction, ThreadExit, ThreadId, Trace, TraceWriter,
};

proptest! {
    #[test]
    fn random_traces_come_back(steps in steps(300)) {
        let written = write(&steps);
        let trace = Trace::from_bytes(written.bytes.clone(), "random").unwrap();
        written.assert_reads_as(&trace);
    }

    #[test]
    fn a_trace_says_the_same_in_another_version_and_back(mut steps in steps(300)) {
        steps.retain(|step| !matches!(step, Step::Event(_, event) if !event.is_of(Version::V3)));
        let written = write(&steps);
        let mut trace = Trace::from_bytes(written.bytes.clone(), "random").unwrap();
        for version in [Version::V3, Version::V4, Version::V4, Version::V3] {
            let (bytes, _) = trace.write_as(version, Vec::new(), "converted").unwrap();
            trace = Trace::from_bytes(bytes, "converted").unwrap();
            assert_eq!(trace.version(), version as u32);
            written.assert_reads_as(&trace);
        }
    }
}

#[test]
fn every_event_is_among_the_random_ones() {
    let mut runner = TestRunner::deterministic();
    let mut made = || format!("{:?}", event().new_tree(&mut runner).unwrap().current());
    let made: Vec<String> = (0..1000).map(|_| made()).collect();
    // The first of a thread, and what the writer makes of a block, are steps of their own.
    for (name, ..) in EVENT_CODES.iter().filter(|(name, ..)| !["ThreadStart", "Partial"].contains(name)) {
        let is_it = |event: &String| event.split(|c: char| !c.is_alphanumeric()).next() == Some(*name);
        assert!(made.iter().any(is_it), "add {name} to `event` in trace-format/tests/random_trace/mod.rs");
    }
}

#[test]
fn a_trace_comes_back_from_version_3_byte_by_byte() {
    let mut writer = writer();
    let thread = ThreadId(0);
    writer.event(thread, start()).unwrap();
    let instructions = vec![instruction(1, SpEffect::Add(-8), 0), instruction(2, SpEffect::Add(8), 0)];
    let block = writer.add_block(Block { instructions, code: Vec::new(), addresses: Vec::new() }).unwrap();
    for seq in 1..200_000 {
        writer.block(thread, block, &[], &[]).unwrap();
        let object = 0x7fff_0000_0000 + seq % 5 * 64;
        let enter = Event::Enter { function: SyncFunction::MutexLock, object, argument: 0, seq: Seq(seq) };
        writer.event(thread, enter).unwrap();
    }
    let bytes = writer.finish(&Finish::default()).unwrap();
    let newest = Trace::from_bytes(bytes.clone(), "newest").unwrap();
    let (older, _) = newest.write_as(Version::V3, Vec::new(), "older").unwrap();
    assert_ne!(older, bytes);
    let older = Trace::from_bytes(older, "older").unwrap();
    assert!(
        older.write_as(Version::NEWEST, Vec::new(), "newest").unwrap().0 == bytes,
        "chunks are cut and packed alike"
    );
}

#[test]
fn a_block_that_the_caller_keeps_is_added_like_one_that_it_gives_away() {
    let far = Instruction { pc: Pc(0x7fff_0000_0000), ..instruction(2, SpEffect::Recorded, 1) };
    let wide = instruction(3, SpEffect::Add(-4096), 0);
    let instructions = vec![instruction(1, SpEffect::Add(-8), 2), instruction(2, SpEffect::Add(8), 0), far, wide];
    let block = Block { instructions, code: Vec::new(), addresses: Vec::new() };
    let [given, kept] = [true, false].map(|gives| {
        let mut writer = writer();
        writer.event(ThreadId(0), start()).unwrap();
        let id = if gives { writer.add_block(block.clone()) } else { writer.add_block_like(&block) };
        assert_eq!(writer.blocks().get(id.unwrap()), Some(&block));
        writer.finish(&Finish::default()).unwrap()
    });
    assert_eq!(given, kept);
    assert_eq!(Trace::from_bytes(kept, "kept").unwrap().blocks().get(BlockId(0)), Some(&block));
}

#[test]
fn what_version_3_has_none_of_is_left_out_and_nothing_else_is() {
    let mut writer = writer();
    let thread = ThreadId(0);
    writer.event(thread, start()).unwrap();
    let instructions = vec![instruction(1, SpEffect::Add(0), 0)];
    let block = writer.add_block(Block { instructions, code: Vec::new(), addresses: Vec::new() }).unwrap();
    let chunk = |lower| Event::Chunk(Chunk { site: Pc(7), lower, upper: i64::MIN, step: -3, stride: i64::MAX });
    let enter = |function, seq| Event::Enter { function, object: 0x40_1000 * seq, argument: 5, seq: Seq(seq) };
    let leave = |function, seq| Event::Leave { function, result: 7, seq: Seq(seq) };
    use SyncFunction::{MutexLock, TaskBody, TaskCreate, TeamsNext};
    let others = [enter(MutexLock, 2), Event::Gap, leave(MutexLock, 5)];
    let tasks = [enter(TaskBody, 1), leave(TaskBody, 3), enter(TaskCreate, 9)];
    for (lower, (other, task)) in others.into_iter().zip(tasks).enumerate() {
        writer.event(thread, task).unwrap();
        writer.event(thread, chunk(lower as i64)).unwrap();
        writer.block(thread, block, &[], &[]).unwrap();
        writer.event(thread, other).unwrap();
    }
    writer.event(thread, leave(TeamsNext, 20)).unwrap();
    let newest = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "newest").unwrap();
    let events = |trace: &Trace| {
        let (mut stream, mut events, mut blocks) = (trace.stream(thread), Vec::new(), 0);
        while let Some(item) = stream.next().unwrap() {
            match item {
                trace_format::Item::Event(event) => events.push(event),
                _ => blocks += 1,
            }
        }
        assert_eq!(blocks, 3);
        events
    };
    let all = events(&newest);
    assert_eq!(all.iter().filter(|event| matches!(event, Event::Chunk(_))).count(), 3);
    assert_eq!(all[1..3], [tasks[0], chunk(0)]);
    let (older, left_out) = newest.write_as(Version::V3, Vec::new(), "older").unwrap();
    assert_eq!(left_out, 7);
    let older = Trace::from_bytes(older, "older").unwrap();
    let rest: Vec<Event> = all.into_iter().filter(|event| *event == start() || others.contains(event)).collect();
    assert_eq!(events(&older), rest);
    let (again, left_out) = older.write_as(Version::V4, Vec::new(), "again").unwrap();
    assert_eq!((events(&Trace::from_bytes(again, "again").unwrap()), left_out), (rest, 0));
}

fn instruction(pc: u64, sp: SpEffect, memory: u8) -> Instruction {
    Instruction { pc: Pc(pc), len: 1, kind: Kind::Plain, sp, memory }
}

fn start() -> Event {
    Event::ThreadStart { parent: None, os_tid: 7, sp: 1 << 40, seq: Seq(0) }
}

fn writer() -> TraceWriter<Vec<u8>> {
    TraceWriter::new(Vec::new(), "made", &Meta::default()).unwrap()
}

#[test]
fn streams_of_many_chunks_come_back_from_a_file() {
    let mut all: Vec<Step> = vec![Step::AddBlock(Block {
        instructions: vec![instruction(1, SpEffect::Recorded, 2), instruction(2, SpEffect::Add(-8), 0)],
        code: vec![0x55, 0x90],
        ..Block::default()
    })];
    for i in 0..3 * MAX_ITEMS as u64 {
        all.push(Step::Block(ThreadId((i % 2) as u32), 0, i * i));
        if i % 1000 == 0 {
            all.push(Step::Partial(ThreadId(1), 0, i));
            all.push(Step::Event(ThreadId(0), Event::FutexWait { address: i, seq: Seq(i) }));
        }
    }
    let written = write(&all);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &written.bytes).unwrap();
    let trace = Trace::open(file.path()).unwrap();
    assert_eq!(trace.name(), file.path());
    assert!(trace.threads().iter().all(|thread| thread.chunks >= 2));
    written.assert_reads_as(&trace);
    let elsewhere = trace.clone();
    let one = std::thread::spawn(move || items(&elsewhere, ThreadId(0)).len());
    assert_eq!(items(&trace, ThreadId(1)).len(), written.threads[1].len());
    assert_eq!(one.join().unwrap(), written.threads[0].len());
}

#[test]
fn an_index_of_several_chunks_is_followed_back() {
    let mut writer = writer();
    let block = writer
        .add_block(Block { instructions: vec![instruction(1, SpEffect::Add(0), 0)], code: vec![1], ..Block::default() })
        .unwrap();
    writer.event(ThreadId(0), start()).unwrap();
    let chunks = 70_000u64;
    for _ in 0..chunks {
        writer.block(ThreadId(0), block, &[], &[]).unwrap();
        writer.flush().unwrap();
    }
    let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made").unwrap();
    assert_eq!(trace.recovered(), None);
    assert_eq!((trace.threads()[0].chunks, trace.instructions()), (chunks, chunks));
    assert_eq!(items(&trace, ThreadId(0)).len() as u64, chunks + 1);
}

#[test]
fn the_largest_block_fits_into_a_chunk() {
    let mut writer = writer();
    let instructions: Vec<Instruction> =
        (0..Block::MAX_INSTRUCTIONS as u64).map(|i| instruction(i, SpEffect::Recorded, u8::MAX)).collect();
    let block =
        writer.add_block(Block { code: vec![0; instructions.len()], instructions, ..Block::default() }).unwrap();
    writer.event(ThreadId(0), start()).unwrap();
    // Every difference is half of the range: ten bytes each.
    let far = |count: usize| -> Vec<u64> { (0..count as u64).map(|i| (i % 2) << 63).collect() };
    let (sps, memory) = (far(Block::MAX_INSTRUCTIONS), far(Block::MAX_INSTRUCTIONS * 255));
    for _ in 0..2 {
        writer.block(ThreadId(0), block, &sps, &memory).unwrap();
    }
    let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made").unwrap();
    let expected = OwnItem::Block(block, sps, memory);
    assert!(items(&trace, ThreadId(0)) == [OwnItem::Event(start()), expected.clone(), expected]);
    assert_eq!(trace.threads()[0].chunks, 2, "{TARGET_RAW} bytes close a chunk");
}

#[test]
fn many_threads_are_buffered_in_bounded_memory() {
    let mut writer = TraceWriter::new(std::io::sink(), "made", &Meta::default()).unwrap();
    let block = writer
        .add_block(Block { instructions: vec![instruction(1, SpEffect::Add(0), 1)], code: vec![1], ..Block::default() })
        .unwrap();
    let threads = 400;
    let (mut taken, mut most_waiting) = (0usize, 0);
    for thread in 0..threads {
        writer.event(ThreadId(thread), start()).unwrap();
    }
    let mut flushed = writer.bytes_written();
    for i in 0..20_000u64 {
        for thread in 0..threads {
            // An address far from the last: 10 bytes, and 4 of the block.
            writer.block(ThreadId(thread), block, &[], &[(i % 2) << 63]).unwrap();
            taken += 14;
            if writer.bytes_written() != flushed {
                flushed = writer.bytes_written();
                most_waiting = most_waiting.max(taken);
                taken = 0;
            }
        }
    }
    assert!(most_waiting <= MAX_BUFFERED + 400 * 64, "{most_waiting} bytes waited");
    assert!(most_waiting > MAX_BUFFERED / 4, "the limit was never near: {most_waiting}");
}

#[test]
fn a_thread_that_starts_before_one_of_a_lower_number_comes_back() {
    let mut writer = writer();
    writer.event(ThreadId(2), start()).unwrap();
    writer.flush().unwrap();
    writer.event(ThreadId(1), start()).unwrap();
    let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made").unwrap();
    let counts: Vec<u64> = trace.threads().iter().map(|thread| thread.events).collect();
    assert_eq!(counts, [0, 1, 1]);
    assert_eq!(items(&trace, ThreadId(1)), [OwnItem::Event(start())]);
    assert!(items(&trace, ThreadId(3)).is_empty());
}

#[test]
fn what_waits_is_expected_to_shrink_like_what_was_written() {
    let mut writer = writer();
    let block = writer
        .add_block(Block { instructions: vec![instruction(1, SpEffect::Add(0), 0)], code: vec![1], ..Block::default() })
        .unwrap();
    writer.event(ThreadId(0), start()).unwrap();
    let mut random = 1u64;
    let mut run = |writer: &mut TraceWriter<Vec<u8>>, items: usize| {
        for _ in 0..items {
            // A block or an event, by chance: an item takes four bytes in the buffer, and a byte in the chunk.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match random >> 63 {
                0 => writer.block(ThreadId(0), block, &[], &[]).unwrap(),
                _ => writer.event(ThreadId(0), Event::WarpBarrier).unwrap(),
            }
        }
    };
    run(&mut writer, 3 * MAX_ITEMS);
    writer.flush().unwrap();
    let before = writer.bytes_written();
    run(&mut writer, MAX_ITEMS / 2);
    assert_eq!(writer.bytes_written(), before, "they wait");
    let expected = writer.bytes_expected() - before;
    writer.flush().unwrap();
    let taken = writer.bytes_written() - before;
    assert!(expected.abs_diff(taken) < taken / 8, "{expected} bytes were expected, and {taken} came");
}

#[test]
fn a_later_meta_replaces_an_earlier_one() {
    let mut writer = writer();
    writer.set_meta(&Meta { cpu: "a cpu".into(), ..Meta::default() }).unwrap();
    let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made").unwrap();
    assert_eq!(trace.meta().cpu, "a cpu");
}

#[test]
fn an_address_finds_its_symbol_and_module() {
    let mut writer = writer();
    let mapping = |start, end| Mapping { start: Pc(start), end: Pc(end), offset: 0, executable: true };
    for (path, mapping) in [("/bin/a", mapping(0x1000, 0x2000)), ("/lib/b.so", mapping(0x2000, 0x3000))] {
        let module =
            Module { path: path.into(), role: ModuleRole::Main, bias: 0, build_id: None, mappings: vec![mapping] };
        writer.add_module(&module).unwrap();
    }
    for (pc, size, name) in [
        (0x2100, 0, "tail"),
        (0x1000, 0x100, "outer"),
        (0x1010, 0x10, "inner"),
        (0x1800, 0, "open"),
        (0x1010, 0x8, "alias"),
    ] {
        writer.add_symbol(&Symbol { pc: Pc(pc), size, name: name.into() }).unwrap();
    }
    let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made").unwrap();
    let name = |pc| trace.symbol_of(Pc(pc)).map(|symbol| symbol.name.as_str());
    assert_eq!(name(0xfff), None);
    assert_eq!(name(0x1000), Some("outer"));
    assert_eq!(name(0x1018), Some("inner"));
    assert_eq!(name(0x1020), Some("outer"));
    assert_eq!(name(0x1100), None);
    assert_eq!(name(0x1900), Some("open"));
    assert_eq!(name(0x2000), None, "a symbol of unknown size ends with its module");
    assert_eq!(name(0x2fff), Some("tail"));
    assert_eq!(trace.module_of(Pc(0x2000)).map(Module::name), Some("b.so"));
    assert_eq!(trace.module_of(Pc(0x3000)).map(Module::name), None);
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let is_full = |error: trace_format::Error| {
        assert!(error.to_string().starts_with("/dev/full: cannot write: "), "{error}");
        assert!(error.to_string().contains("No space left on device"), "{error}");
    };
    is_full(TraceWriter::new(full, "/dev/full", &Meta::default()).map(|_| ()).unwrap_err());
    // A disk that fills up later: a buffer before it takes the first bytes.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out = std::io::BufWriter::with_capacity(4096, full);
    let mut writer = TraceWriter::new(out, "/dev/full", &Meta::default()).unwrap();
    let block = writer
        .add_block(Block { instructions: vec![instruction(1, SpEffect::Add(0), 1)], code: vec![1], ..Block::default() })
        .unwrap();
    writer.event(ThreadId(0), start()).unwrap();
    let mut random = 1u64;
    let failed = (0..1_000_000).find_map(|_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        writer.block(ThreadId(0), block, &[], &[random]).err()
    });
    is_full(failed.expect("a million addresses do not fit"));
    // The caller may go on; the error comes again where something would be written.
    writer.block(ThreadId(0), BlockId(0), &[], &[1]).unwrap();
    writer.event(ThreadId(0), Event::ThreadEnd { exit: ThreadExit::Exited(0), seq: Seq(1) }).unwrap();
    is_full(writer.flush().unwrap_err());
    is_full(writer.finish(&Finish::default()).map(|_| ()).unwrap_err());
}

#[test]
fn what_does_not_fit_is_told() {
    let mut writer = writer();
    let error = writer.event(ThreadId(1 << 20), start()).unwrap_err();
    assert_eq!(error.to_string(), "made: too large for a trace: it can hold 1048576 threads");
    let symbol = Symbol { pc: Pc(0), size: 0, name: "x".repeat(15 << 20) };
    assert!(writer.add_symbol(&symbol).unwrap_err().to_string().contains("a symbol's name has 15728640 bytes"));
    // Afterwards the writer goes on.
    writer.event(ThreadId(0), start()).unwrap();
    let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), Path::new("made")).unwrap();
    assert_eq!(trace.threads().len(), 1);
}
