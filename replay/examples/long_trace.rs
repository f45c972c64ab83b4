//! Writes a trace as long as wanted, to see how replay's time and memory grow with its length:
//! `cargo run --release -p replay --example long_trace -- MILLIONS FILE` writes about so many million thread
//! instructions.
//!
//! 16 threads go through a loop whose body is a diamond and an inner loop; which arm a thread takes and how often it
//! goes round follow from a linear congruential generator, so that lanes part and meet a few times in a hundred
//! instructions.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use trace_format::{
    Block, Event, Finish, Instruction, Kind, Meta, Pc, Seq, SpEffect, ThreadExit, ThreadId, TraceWriter,
};

const THREADS: u32 = 16;

/// The blocks: where each begins, how many instructions it has, and the kind of its last one.
const BLOCKS: [(u64, u64, Kind); 5] = [
    (0x100, 9, Kind::Branch),
    (0x200, 5, Kind::Jump),
    (0x300, 7, Kind::Plain),
    (0x400, 8, Kind::Branch),
    (0x500, 6, Kind::Branch),
];
/// Their numbers.
mod block {
    pub(super) const HEAD: u32 = 0;
    pub(super) const THEN: u32 = 1;
    pub(super) const OTHERWISE: u32 = 2;
    pub(super) const INNER: u32 = 3;
    pub(super) const LATCH: u32 = 4;
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(millions), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("two arguments: how many million thread instructions, and the file to write".into());
    };
    let each = millions.parse::<u64>()? * 1_000_000 / u64::from(THREADS);
    let meta = Meta { command: vec!["long_trace".into()], ..Meta::default() };
    let mut writer = TraceWriter::new(BufWriter::new(File::create(&path)?), &path, &meta)?;
    for (start, length, last) in BLOCKS {
        let kind = |i| if i + 1 == length { last } else { Kind::Plain };
        let at = |i| Instruction { pc: Pc(start + 4 * i), len: 4, kind: kind(i), sp: SpEffect::Add(0), memory: 0 };
        let code = vec![0x90; length as usize * 4];
        writer.add_block(Block { instructions: (0..length).map(at).collect(), code, ..Block::default() })?;
    }
    for thread in (0..THREADS).map(ThreadId) {
        write_thread(&mut writer, thread, each)?;
    }
    writer.finish(&Finish::default())?;
    Ok(())
}

fn write_thread(
    writer: &mut TraceWriter<BufWriter<File>>,
    thread: ThreadId,
    instructions: u64,
) -> trace_format::Result<()> {
    let parent = (thread.0 > 0).then_some(ThreadId(0));
    let seq = |n: u64| Seq(u64::from(thread.0) * 2 + n);
    writer.event(thread, Event::ThreadStart { parent, os_tid: thread.0 + 1, sp: 0x7fff_0000, seq: seq(0) })?;
    let mut random = u64::from(thread.0) + 1;
    let mut done = 0;
    let mut run = Vec::new();
    while done < instructions {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = random >> 33;
        run.clear();
        run.push(block::HEAD);
        run.push(if dice.is_multiple_of(16) { block::THEN } else { block::OTHERWISE });
        let trips = 8 + u64::from((dice >> 8).is_multiple_of(32)) * 2;
        run.extend((0..trips).map(|_| block::INNER));
        run.push(block::LATCH);
        let instructions: u64 = run.iter().map(|block| BLOCKS[*block as usize].1).sum();
        writer.plain_blocks(thread, &run, instructions as u32, 0)?;
        done += instructions;
    }
    writer.event(thread, Event::ThreadEnd { exit: ThreadExit::Exited(0), seq: seq(1) })
}
