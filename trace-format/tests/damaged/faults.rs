//! Faults inside chunks whose checksums are right.

use trace_format::layout::{ChunkHeader, ChunkKind, FLAG_SKIPPABLE};
use trace_format::{BlockId, ThreadId};

use crate::made_chunks::{ESC, ROW_TABLE, START, TABLE, chunk, columns, global, made, rows, stream};
use crate::random_trace::{OwnItem, items};
use crate::{fault, open};

#[test]
fn each_fault_inside_a_chunk_is_told() {
    let table = || chunk(global(ChunkKind::Table), TABLE);
    let long = [0xffu8; 11];
    let cases: Vec<(&str, ChunkHeader, Vec<u8>)> = vec![
        ("payload byte 0: 4 bytes wanted, 3 left", stream(0, 0, 0, 0), vec![0; 3]),
        ("1 items, but the chunk's header counts", stream(0, 0, 0, 0), columns(&[0], (0, &[]), (0, &[]), &[])),
        ("block 1 is not in the block table, which has 1", stream(0, 1, 0, 2), columns(&[1], (0, &[]), (0, &[]), &[])),
        (
            "1 items are events, but the chunk's header counts 0",
            stream(0, 1, 0, 0),
            columns(&[ESC], (0, &[]), (0, &[]), &[]),
        ),
        ("payload byte 0: 1 bytes wanted, 0 left", stream(0, 0, 1, 0), columns(&[ESC], (0, &[]), (0, &[]), &[])),
        (
            "payload byte 5: 1 bytes are left over",
            stream(0, 0, 1, 0),
            columns(&[ESC], (0, &[]), (0, &[]), &[0, 0, 7, 0, 0, 0]),
        ),
        ("event code 100 is unknown to this version", stream(0, 0, 1, 0), columns(&[ESC], (0, &[]), (0, &[]), &[100])),
        (
            "function code 100 is unknown to this version",
            stream(0, 0, 1, 0),
            columns(&[ESC], (0, &[]), (0, &[]), &[4, 100]),
        ),
        ("an event names module 0, but there are 0", stream(0, 0, 1, 0), columns(&[ESC], (0, &[]), (0, &[]), &[10, 0])),
        (
            "an event names thread 1048576, over the limit of 1048575",
            stream(0, 0, 1, 0),
            columns(&[ESC], (0, &[]), (0, &[]), &[0, 0x81, 0x80, 0x40, 0, 0, 0]),
        ),
        (
            "a thread's end has code 4, unknown to this version",
            stream(0, 0, 1, 0),
            columns(&[ESC], (0, &[]), (0, &[]), &[1, 4]),
        ),
        ("a thread's first item is not its start", stream(0, 0, 1, 0), columns(&[ESC], (0, &[]), (0, &[]), &[13])),
        ("a thread's first item is not its start", stream(0, 1, 0, 2), columns(&[0], (1, &[0]), (1, &[0]), &[])),
        (
            "a thread starts twice",
            stream(0, 0, 2, 0),
            columns(&[ESC, ESC], (0, &[]), (0, &[]), &[START, START].concat()),
        ),
        (
            "2 instructions cannot be a part of block 0, which has 2",
            stream(0, 0, 2, 2),
            columns(&[ESC, ESC], (1, &[0]), (1, &[0]), &[START, &[3, 0, 2]].concat()),
        ),
        (
            "0 instructions cannot be a part of block 0, which has 2",
            stream(0, 0, 2, 0),
            columns(&[ESC, ESC], (0, &[]), (0, &[]), &[START, &[3, 0, 0]].concat()),
        ),
        (
            "block 9 is not in the block table",
            stream(0, 0, 2, 1),
            columns(&[ESC, ESC], (0, &[]), (0, &[]), &[START, &[3, 9, 1]].concat()),
        ),
        (
            "run 2 instructions with 1 stack pointers and 1 values of addresses, but the chunk counts 3, 1 and 1",
            stream(0, 1, 1, 3),
            columns(&[ESC, 0], (1, &[0]), (1, &[0]), START),
        ),
        (
            "run 2 instructions with 1 stack pointers and 1 values of addresses, but the chunk counts 2, 0 and 1",
            stream(0, 1, 1, 2),
            columns(&[ESC, 0], (0, &[]), (1, &[0]), START),
        ),
        (
            "the column of stack pointers holds 1 whole numbers; there should be 2",
            stream(0, 1, 1, 2),
            columns(&[ESC, 0], (2, &[0]), (1, &[0]), START),
        ),
        (
            "the column of values of addresses holds 0 whole numbers; there should be 1",
            stream(0, 1, 1, 2),
            columns(&[ESC, 0], (1, &[0]), (1, &[0x80]), START),
        ),
        (
            "a number of more than 64 bits",
            stream(0, 1, 1, 2),
            columns(&[ESC, 0], (1, &[0]), (1, &[&long[..], &[0]].concat()), START),
        ),
        ("thread number 1048576 is over the limit of 1048575", stream(1 << 20, 0, 0, 0), Vec::new()),
        ("a chunk of thread 1 stands before the first of thread 0", stream(1, 0, 0, 0), Vec::new()),
        ("65536 blocks and 1 events are over the limit of 65536 items", stream(0, 65536, 1, 0), Vec::new()),
        (
            "a table chunk belongs to no thread and has no items",
            ChunkHeader { thread: 0, ..global(ChunkKind::Table) },
            Vec::new(),
        ),
        (
            "chunk kind 77 is unknown to this version and must not be skipped",
            ChunkHeader { kind: 77, ..stream(0, 0, 0, 0) },
            Vec::new(),
        ),
        ("payload byte 0: 5 entries cannot be in the 2 bytes left", global(ChunkKind::Table), vec![5, 0, 0]),
        (
            "a block of 0 instructions; it must have 1 to 4096",
            global(ChunkKind::Table),
            vec![0, 0, 1, 0, 0, 0, 0, 0, 0],
        ),
        (
            "the instruction at 0x1 has 16 bytes; the most is 15",
            global(ChunkKind::Table),
            vec![0, 0, 1, 1, 2, 16, 0, 0, 0, 0],
        ),
        (
            "the instruction at 0x1 has kind 9, unknown to this version",
            global(ChunkKind::Table),
            vec![0, 0, 1, 1, 2, 1, 9, 0, 0, 0],
        ),
        (
            "has 1 bytes of instructions, but 2 bytes of code",
            global(ChunkKind::Table),
            vec![0, 0, 1, 1, 2, 1, 0, 0, 0, 2, 0, 0],
        ),
        ("an address of 5 terms; the most is 4", global(ChunkKind::Table), vec![0, 0, 1, 1, 2, 1, 0x40, 1, 0, 5, 0, 0]),
        (
            "an address of the instruction at 0x1: value 1 comes before 0",
            global(ChunkKind::Table),
            vec![0, 0, 1, 1, 2, 1, 0x40, 1, 0, 1, 0, 2, 2, 0],
        ),
        (
            "stack pointer 1 where 0 are recorded",
            global(ChunkKind::Table),
            vec![0, 0, 1, 1, 2, 1, 0xc0, 1, 1, 0, 3, 2, 0],
        ),
        (
            "gives only some addresses, or too many, as sums",
            global(ChunkKind::Table),
            vec![0, 0, 1, 2, 2, 1, 0x40, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0],
        ),
        ("module role 4 is unknown to this version", global(ChunkKind::Table), vec![1, 0, 4, 0, 0, 0, 0, 0]),
        ("2 where 0 or 1 must stand", global(ChunkKind::Table), vec![1, 0, 0, 0, 2, 0, 0, 0]),
        ("a name that is not UTF-8", global(ChunkKind::Table), vec![0, 1, 0, 0, 1, 0xff, 0, 0]),
        ("the chunk's JSON cannot be read", global(ChunkKind::Finish), b"{".to_vec()),
    ];
    for (expected, header, payload) in cases {
        let bytes = made(&[table(), chunk(header, &payload)]);
        let told = match open(&bytes) {
            // Faults of the header end the readable part of a file without an index.
            Ok(trace) if trace.recovered().is_some_and(|why| why.contains("are lost")) => {
                trace.recovered().unwrap().to_owned()
            }
            _ => fault(&bytes),
        };
        assert!(told.contains(expected), "{expected:?} is expected, and told is {told:?}");
    }
}

#[test]
fn each_fault_of_rows_is_told() {
    let items_of = |blocks: usize| columns(&[&[ESC][..], &vec![0; blocks]].concat(), (0, &[]), (0, &[]), START);
    let offset = |bits: u8| [&[0, 1, 0, bits, 3][..], &[0; 8]].concat();
    let cases: Vec<(&str, u32, Vec<u8>)> = vec![
        ("the items' rows have 2 values, but the chunk counts 0", 1, Vec::new()),
        ("the items' rows have 2 values, but the chunk counts 3", 1, rows(3, &[], &[], &[])),
        ("the items' rows have 0 values, but the chunk counts 2", 0, rows(2, &[], &[], &[])),
        ("4194305 values in rows; the most is 4194304", 1, rows((1 << 22) + 1, &[], &[], &[])),
        ("2 bytes wanted, 1 left", 1, rows(2, &[], &[1, 1], &[])[..17].to_vec()),
        ("bytes are left over", 1, [rows(2, &[], &[], &[]), vec![0]].concat()),
        ("block 7 has no rows", 1, rows(2, &[7, 0], &[], &[])),
        ("given twice", 1, rows(2, &[0, 0, 0, 0], &[], &[])),
        ("cannot be of kind 0", 1, rows(2, &[0, 1, 0, 0], &[], &[])),
        ("cannot be of kind 33", 1, rows(2, &offset(33), &[], &[])),
        ("is shifted by 64", 1, rows(2, &[0, 1, 0, 1, 64], &[], &[])),
        ("column 131072 of the rows of block 0", 1, rows(2, &[0, 1, 0x80, 0x80, 8, 1], &[], &[])),
        ("the column of offsets is too short", 1, rows(2, &offset(9), &[], &[1])),
        ("there are fewer rows than values for them", 1, rows(2, &offset(7), &[], &[1, 1])),
        ("there are fewer rows than values for them", 1, rows(2, &[], &[1, 1, 0, 2], &[])),
        ("there are fewer rows than values for them", 0, rows(0, &[], &[0], &[])),
        ("0 values of a row of 2 are not as expected", 1, rows(2, &[], &[0, 0], &[])),
        ("3 values of a row of 2 are not as expected", 1, rows(2, &[], &[0, 3], &[])),
        ("a row of 2 values has no column 2", 1, rows(2, &[], &[0, 1, 2, 2], &[])),
        ("1 bytes wanted, 0 left", 1, rows(2, &[], &[0, 2, 0, 2], &[])),
    ];
    for (expected, blocks, rows) in cases {
        let payload = [items_of(blocks as usize), rows].concat();
        let bytes = made(&[chunk(global(ChunkKind::Table), ROW_TABLE), chunk(stream(0, blocks, 1, blocks), &payload)]);
        let told = fault(&bytes);
        assert!(told.contains(expected), "{expected:?} is expected, and told is {told:?}");
    }
}

#[test]
fn rows_made_by_hand_are_read_as_described() {
    // Column 0 is an offset of 7 bits in units of 8 from 0x1000; column 1 steps. Column 1 is 5 more
    // than was expected twice: a jump of 5, then one of 10, which is the step when it comes again.
    let plan = [&[0, 1, 0, 7, 3][..], &0x1000u64.to_le_bytes()].concat();
    let rows = rows(8, &plan, &[0, 1, 1, 10, 0, 1, 1, 0x0a], &[0b1000_0001, 0b0000_0001, 0, 0]);
    let payload = [columns(&[ESC, 0, 0, 0, 0], (0, &[]), (0, &[]), START), rows].concat();
    let trace =
        open(&made(&[chunk(global(ChunkKind::Table), ROW_TABLE), chunk(stream(0, 4, 1, 4), &payload)])).unwrap();
    let read: Vec<Vec<u64>> = items(&trace, ThreadId(0))
        .into_iter()
        .filter_map(|item| if let OwnItem::Block(_, _, memory) = item { Some(memory) } else { None })
        .collect();
    assert_eq!(read, [[0x1008, 5], [0x1018, 15], [0x1000, 25], [0x1000, 35]]);
}

#[test]
fn the_hand_made_chunks_are_readable_without_their_fault() {
    let items_of = columns(&[ESC, 0, ESC], (2, &[2, 2]), (2, &[2, 2]), &[START, &[3, 0, 1]].concat());
    let trace = open(&made(&[chunk(global(ChunkKind::Table), TABLE), chunk(stream(0, 1, 2, 3), &items_of)])).unwrap();
    let read = items(&trace, ThreadId(0));
    assert_eq!(read.len(), 3);
    assert_eq!(read[2], OwnItem::Partial(BlockId(0), 1, vec![2], vec![2]));
}

#[test]
fn a_skippable_chunk_of_a_later_version_is_skipped() {
    let header = ChunkHeader { kind: 77, flags: FLAG_SKIPPABLE, ..stream(0, 5, 5, 5) };
    let trace =
        open(&made(&[chunk(header, b"values"), chunk(global(ChunkKind::Finish), b"{\"exit_status\":4}")])).unwrap();
    assert_eq!(trace.finish().map(|finish| finish.exit_status), Some(Some(4)));
}
