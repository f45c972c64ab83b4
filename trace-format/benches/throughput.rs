//! How many blocks a second the writer takes and the reader gives, on one core and in memory: the time of the format
//! itself, with no disk. The stream is made by a fixed rule: three nested loops over a table of 200 blocks with some
//! branches decided by a linear congruential generator, so that it compresses about as a program's does.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use trace_format::{
    Block, BlockId, Event, Finish, Instruction, Item, Kind, Meta, Pc, Seq, SpEffect, ThreadExit, ThreadId, Trace,
    TraceWriter,
};

const BLOCKS: u64 = 2_000_000;
const STATIC_BLOCKS: u32 = 200;
const THREAD: ThreadId = ThreadId(0);

/// A block of three instructions, the first with this many memory addresses.
fn block(number: u32, memory: u8) -> Block {
    let start = 0x40_0000 + u64::from(number) * 16;
    let instruction =
        |i: u64, kind, memory| Instruction { pc: Pc(start + 4 * i), len: 4, kind, sp: SpEffect::Add(0), memory };
    Block {
        instructions: vec![
            instruction(0, Kind::Plain, memory),
            instruction(1, Kind::Plain, 0),
            instruction(2, Kind::Branch, 0),
        ],
        code: vec![0x90; 12],
        ..Block::default()
    }
}

/// The blocks in the order in which they run.
fn walk() -> Vec<BlockId> {
    let mut random = 1u64;
    let mut ids = Vec::with_capacity(BLOCKS as usize);
    let mut at = 0;
    while ids.len() < BLOCKS as usize {
        // Ten blocks in a row, over and over; now and then another branch, seldom another function.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = random >> 33;
        if dice.is_multiple_of(64) {
            at = (dice / 64) as u32 % (STATIC_BLOCKS - 10);
        }
        let turns = if dice.is_multiple_of(8) { 9 } else { 10 };
        ids.extend((at..at + turns).map(BlockId));
    }
    ids.truncate(BLOCKS as usize);
    ids
}

fn write(ids: &[BlockId], memory: u8) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), "bench", &Meta::default()).unwrap();
    for number in 0..STATIC_BLOCKS {
        writer.add_block(block(number, memory)).unwrap();
    }
    writer.event(THREAD, Event::ThreadStart { parent: None, os_tid: 1, sp: 0x7fff_0000, seq: Seq(0) }).unwrap();
    let mut addresses = [0u64; 1];
    for (i, &id) in ids.iter().enumerate() {
        addresses[0] = 0x6000_0000 + 8 * i as u64;
        writer.block(THREAD, id, &[], &addresses[..usize::from(memory)]).unwrap();
    }
    writer.event(THREAD, Event::ThreadEnd { exit: ThreadExit::Exited(0), seq: Seq(1) }).unwrap();
    writer.finish(&Finish::default()).unwrap()
}

fn read(trace: &Trace) -> u64 {
    let mut stream = trace.stream(THREAD);
    let mut sum = 0;
    while let Some(item) = stream.next().unwrap() {
        match item {
            Item::Block { block, memory, .. } => sum += u64::from(block.0) + memory.first().copied().unwrap_or(0),
            Item::Partial { executed, .. } => sum += u64::from(executed),
            Item::Event(_) => sum += 1,
        }
    }
    sum
}

fn throughput(criterion: &mut Criterion) {
    let ids = walk();
    for (name, memory) in [("plain", 0), ("one address per block", 1)] {
        let bytes = write(&ids, memory);
        println!("{name}: {:.3} bytes per block in the file", bytes.len() as f64 / BLOCKS as f64);
        let trace = Trace::from_bytes(bytes, "bench").unwrap();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(BLOCKS)).sample_size(10);
        group.bench_function("write", |b| b.iter(|| write(black_box(&ids), memory)));
        group.bench_function("read", |b| b.iter(|| read(black_box(&trace))));
        group.finish();
    }
}

criterion_group!(benches, throughput);
criterion_main!(benches);
