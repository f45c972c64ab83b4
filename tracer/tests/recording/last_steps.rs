//! What a thread runs last is in the trace, wherever it is when its process ends.

use crate::support::{compile, place, record};
use trace_format::{Item, ThreadId, Trace};

/// The mark before each count: `nopl 0x12345678(%rax)`.
const MARK: [u8; 7] = [0x0f, 0x1f, 0x80, 0x78, 0x56, 0x34, 0x12];

/// How often the thread ran an instruction that comes behind the mark.
fn counted(trace: &Trace, thread: u32) -> u64 {
    // Where the marks are, block by block: the blocks run millions of times.
    let marks: Vec<Vec<bool>> = trace
        .blocks()
        .iter()
        .map(|(_, block)| (0..block.instructions.len()).map(|at| block.code[block.code_range(at)] == MARK).collect())
        .collect();
    let mut stream = trace.stream(ThreadId(thread));
    let (mut count, mut marked) = (0, false);
    while let Some(item) = stream.next().unwrap() {
        let (block, executed) = match item {
            Item::Block { block, .. } => (block, usize::MAX),
            Item::Partial { block, executed, .. } => (block, executed as usize),
            Item::Event(_) => continue,
        };
        for is_mark in marks[block.index()].iter().take(executed) {
            count += u64::from(marked);
            marked = *is_mark;
        }
    }
    count
}

#[test]
fn threads_that_are_ended_by_another_lose_nothing() {
    let program = compile("counted.c", &[]);
    for run in 0..15 {
        let file = place("counts");
        let wait = (run * 37 % 400).to_string();
        let recorded = record("engine=translate", &program, &[file.to_str().unwrap(), &wait]);
        assert_eq!(recorded.output.status.code(), Some(6));
        let trace = recorded.trace();
        let bytes = std::fs::read(file).unwrap();
        for thread in 0..3 {
            let there = u64::from_le_bytes(bytes[8 * thread..8 * thread + 8].try_into().unwrap());
            assert_eq!(counted(&trace, thread as u32 + 1), there, "thread {thread} in run {run}");
        }
    }
}
