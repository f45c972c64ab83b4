//! Rows that come back, and how much they take.

use std::cell::Cell;

use crate::{
    Address, Block, BlockId, Event, Execution, Finish, Instruction, Item, Kind, KnownBlock, Meta, Pc, Seq, SpEffect,
    ThreadId, Trace, TraceWriter,
};

const THREAD: ThreadId = ThreadId(0);

/// One execution: the number of its block, and its values.
type Row = (u32, Vec<u64>);

/// A block at this address whose values are its addresses.
fn block(start: u64, values: u32) -> Block {
    let memory = |n: u32| n.min(255) as u8;
    let rest = (values > 255).then(|| memory(values - 255));
    let instructions: Vec<Instruction> = [Some(memory(values)), rest]
        .into_iter()
        .flatten()
        .zip(0..)
        .map(|(memory, i)| Instruction { pc: Pc(start + i), len: 1, kind: Kind::Plain, sp: SpEffect::Add(0), memory })
        .collect();
    Block {
        code: vec![0x90; instructions.len()],
        instructions,
        addresses: (0..values).map(Address::of_value).collect(),
    }
}

fn writer(blocks: &[(u64, u32)]) -> TraceWriter<Vec<u8>> {
    let mut writer = TraceWriter::new(Vec::new(), "rows", &Meta::default()).unwrap();
    for &(start, values) in blocks {
        writer.add_block(block(start, values)).unwrap();
    }
    writer.event(THREAD, Event::ThreadStart { parent: None, os_tid: 1, sp: 0, seq: Seq(0) }).unwrap();
    writer
}

/// The trace of these executions, written one by one.
fn one_by_one(blocks: &[(u64, u32)], rows: &[Row]) -> Vec<u8> {
    let mut writer = writer(blocks);
    for (block, values) in rows {
        writer.block(THREAD, BlockId(*block), &[], values).unwrap();
    }
    writer.finish(&Finish::default()).unwrap()
}

/// The same, written many at once.
fn at_once(blocks: &[(u64, u32)], rows: &[Row]) -> Vec<u8> {
    let mut writer = writer(blocks);
    let known: Vec<Cell<KnownBlock>> = vec![Cell::default(); blocks.len()];
    let halves = |values: &Vec<u64>| values.iter().map(|&v| [v as u32, (v >> 32) as u32]).collect::<Vec<_>>();
    let split: Vec<(u32, Vec<[u32; 2]>)> = rows.iter().map(|(block, values)| (*block, halves(values))).collect();
    for part in split.chunks(1000) {
        let mut left = part.iter();
        let next = || {
            let (block, values) = left.next()?;
            Some(Execution { block: BlockId(*block), values, known: &known[*block as usize] })
        };
        writer.executions(THREAD, next).unwrap();
    }
    writer.finish(&Finish::default()).unwrap()
}

/// Writes the rows in both ways, reads them back, and returns how many bytes the streams take.
fn come_back(blocks: &[(u64, u32)], rows: &[Row]) -> u64 {
    let bytes = one_by_one(blocks, rows);
    for bytes in [&bytes, &at_once(blocks, rows)] {
        let trace = Trace::from_bytes(bytes.clone(), "rows").unwrap();
        let mut stream = trace.stream(THREAD);
        assert!(matches!(stream.next().unwrap(), Some(Item::Event(_))));
        for (number, (block, values)) in rows.iter().enumerate() {
            let item = stream.next().unwrap_or_else(|error| panic!("row {number}: {error}"));
            let expected = Item::Block { block: BlockId(*block), sps: &[], memory: values };
            assert_eq!(item, Some(expected), "row {number}");
        }
        assert_eq!(stream.next().unwrap(), None);
    }
    Trace::from_bytes(bytes, "rows").unwrap().threads()[0].bytes
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 20
}

const ONE: &[(u64, u32)] = &[(0x1000, 2)];

#[test]
fn steps_take_next_to_nothing_also_across_the_end_of_the_numbers() {
    let rows: Vec<Row> =
        (0..200_000u64).map(|i| (0, vec![0x7f00_0000_0000 + 16 * i, (8 * i).wrapping_sub(40_000)])).collect();
    let bytes = come_back(ONE, &rows);
    assert!(bytes < 3000, "{bytes} bytes for {} rows", rows.len());
}

#[test]
fn ends_of_loops_of_constant_length_are_told_beforehand() {
    let row = |i: u64| vec![0x10_0000 + 8 * (i % 7) + 4096 * (i / 7), 0x20_0000 + 16 * i];
    let rows: Vec<Row> = (0..60_000).map(|i| (0, row(i))).collect();
    let bytes = come_back(ONE, &rows);
    assert!(bytes < 1000, "{bytes} bytes for {} rows", rows.len());
}

#[test]
fn loops_that_change_their_length_and_their_step_come_back() {
    let (mut rows, mut at, mut state) = (Vec::new(), 0u64, 1);
    for _ in 0..5000 {
        let (length, step) = (random(&mut state) % 9, random(&mut state) % 3 * 8);
        for _ in 0..length {
            at = at.wrapping_add(step);
            rows.push((0, vec![at, at.wrapping_mul(3)]));
        }
        at = at.wrapping_sub(random(&mut state) % 4 * 1000);
    }
    come_back(ONE, &rows);
}

#[test]
fn random_places_in_a_small_table_take_the_bits_of_their_number() {
    let mut state = 2;
    let rows: Vec<Row> =
        (0..600_000).map(|i| (0, vec![0x5000_0000 + 8 * (random(&mut state) % 256), 0x6000_0000 + 4 * i])).collect();
    // The first chunk is the one that is learnt from.
    let (half, all) = (come_back(ONE, &rows[..300_000]), come_back(ONE, &rows));
    assert!(all - half < 320_000, "{} bytes for 300,000 rows of 8 bits", all - half);
}

#[test]
fn places_that_move_on_for_each_value_before_take_nothing() {
    let (mut state, mut next) = (3, (0..256).map(|i| 0x9_0000_0000 + i * 0x100_0000).collect::<Vec<u64>>());
    let rows: Vec<Row> = (0..600_000)
        .map(|_| {
            let digit = random(&mut state) % 256;
            next[digit as usize] += 4;
            (0, vec![digit, next[digit as usize]])
        })
        .collect();
    // The first chunk is the one that is learnt from.
    let (half, all) = (come_back(ONE, &rows[..300_000]), come_back(ONE, &rows));
    assert!(all - half < 320_000, "{} bytes for 300,000 rows of 8 bits", all - half);
}

/// Rows of the last pass of a sort whose threads have tables of 256 places, 8 bytes apart: so many keys are moved in
/// each row. A row is of block 0 when that is one key, else of block 1.
fn moved_keys(state: &mut u64, next: &mut [u64], turns: u64, rows: u64) -> Vec<Row> {
    let row = |i| {
        let mut row = vec![0x7000_0000 + 4 * turns * i];
        for turn in 0..turns {
            let digit = random(state) % 256;
            row.extend([0x5555_0000_0040 + 8 * digit, next[digit as usize]]);
            if turn == 0 {
                row.push(0x6666_0000_0000);
            }
            next[digit as usize] += 1;
        }
        (u32::from(turns > 1), row)
    };
    (0..rows).map(row).collect()
}

#[test]
fn turns_of_a_loop_in_one_row_share_what_is_known_of_the_table() {
    let (mut state, mut next) = (13, (0..256).map(|i| 0x900 + i * 0x10_0000).collect::<Vec<u64>>());
    let blocks = &[(0x1000, 4), (0x1000, 54)];
    for alone in [0, 70_000] {
        // Where columns are known from the rows of single keys, the others come later.
        let mut rows = moved_keys(&mut state, &mut next, 1, alone);
        rows.extend(moved_keys(&mut state, &mut next, 26, 30_000));
        let half = come_back(blocks, &rows);
        rows.extend(moved_keys(&mut state, &mut next, 26, 30_000));
        let (keys, bytes) = (30_000 * 26, come_back(blocks, &rows) - half);
        assert!(bytes < keys * 11 / 10, "{bytes} bytes for {keys} numbers of 8 bits behind {alone} rows");
    }
}

#[test]
fn threads_with_tables_of_their_own_learn_from_each_other() {
    let bytes = |count: u64| {
        let mut writer = writer(&[(0x1000, 4), (0x1000, 54)]);
        let other = ThreadId(1);
        writer.event(other, Event::ThreadStart { parent: None, os_tid: 2, sp: 0, seq: Seq(1) }).unwrap();
        let (mut state, next) = (14, (0..256).map(|i| 0x900 + i * 0x10_0000).collect::<Vec<u64>>());
        let [rows, others] = [(); 2].map(|()| moved_keys(&mut state, &mut next.clone(), 26, count));
        for ((_, row), (_, mut others)) in rows.iter().zip(others) {
            writer.block(THREAD, BlockId(1), &[], row).unwrap();
            // Its table lies behind that of the first.
            others.iter_mut().filter(|value| **value >> 16 == 0x5555_0000).for_each(|value| *value += 0x800);
            writer.block(other, BlockId(1), &[], &others).unwrap();
        }
        writer.finish(&Finish::default()).unwrap().len() as u64
    };
    let (bytes, keys) = (bytes(60_000) - bytes(30_000), 2 * 30_000 * 26);
    assert!(bytes < keys * 13 / 10, "{bytes} bytes for {keys} numbers of 9 bits");
}

#[test]
fn numbers_without_a_rule_come_back() {
    let mut state = 4;
    let mut value = || random(&mut state) << 20 ^ random(&mut state);
    let rows: Vec<Row> = (0..30_000).map(|_| (0, vec![value(), value()])).collect();
    come_back(ONE, &rows);
}

#[test]
fn tables_that_move_and_grow_come_back() {
    let mut state = 5;
    let rows: Vec<Row> = (0..300_000u64)
        .map(|i| {
            let (base, size) = (0x1000_0000 * (1 + i / 50_000), 64 << (i / 40_000));
            (0, vec![base + 16 * (random(&mut state) % size), base.wrapping_neg() + random(&mut state) % size])
        })
        .collect();
    come_back(ONE, &rows);
}

#[test]
fn a_column_becomes_random_and_regular_again() {
    let mut state = 6;
    let rows: Vec<Row> = (0..400_000u64)
        .map(|i| {
            let regular = i / 100_000 % 2 == 0;
            (0, vec![if regular { 8 * i } else { random(&mut state) % 5000 }, i])
        })
        .collect();
    come_back(ONE, &rows);
}

#[test]
fn paths_of_several_lengths_from_one_start_share_their_columns() {
    // Block 1 goes on where block 0 ends; block 2 starts elsewhere; block 3 has no values.
    let blocks: &[(u64, u32)] = &[(0x1000, 1), (0x1000, 3), (0x2000, 300), (0x3000, 0)];
    let mut state = 7;
    let rows: Vec<Row> = (0..40_000u64)
        .map(|i| match random(&mut state) % 8 {
            0..4 => (0, vec![8 * i]),
            4 | 5 => (1, vec![8 * i, 16 * i, random(&mut state) % 99]),
            6 => (2, (0..300).map(|column| column * 4096 + i / 300 * column).collect()),
            _ => (3, Vec::new()),
        })
        .collect();
    come_back(blocks, &rows);
}

#[test]
fn more_columns_than_a_chunk_takes_go_to_the_next() {
    let blocks: Vec<(u64, u32)> = (0..600).map(|n| (0x1000 * (n + 1), 300)).collect();
    let rows: Vec<Row> =
        (0..1800u64).map(|i| ((i % 600) as u32, (0..300).map(|column| i * column).collect())).collect();
    come_back(&blocks, &rows);
}

#[test]
fn threads_and_parts_of_blocks_do_not_disturb_each_other() {
    let mut writer = writer(&[(0x1000, 300), (0x2000, 1)]);
    let other = ThreadId(1);
    writer.event(other, Event::ThreadStart { parent: None, os_tid: 2, sp: 0, seq: Seq(1) }).unwrap();
    let values = |i: u64| (0..300).map(|column| 7 * i * column).collect::<Vec<u64>>();
    for i in 0..500 {
        for thread in [THREAD, other] {
            writer.block(thread, BlockId(0), &[], &values(i + u64::from(thread.0))).unwrap();
            writer.partial(thread, BlockId(0), 1, &[], &values(i)[..255]).unwrap();
            writer.block(thread, BlockId(1), &[], &[i]).unwrap();
        }
    }
    let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "rows").unwrap();
    for thread in [THREAD, other] {
        let mut stream = trace.stream(thread);
        stream.next().unwrap();
        for i in 0..500 {
            let mut memory = |expected: &[u64]| match stream.next().unwrap() {
                Some(Item::Block { memory, .. } | Item::Partial { memory, .. }) => assert_eq!(memory, expected),
                other => panic!("{other:?}"),
            };
            memory(&values(i + u64::from(thread.0)));
            memory(&values(i)[..255]);
            memory(&[i]);
        }
    }
}

#[test]
#[should_panic(expected = "the values that its block takes")]
fn a_wrong_number_of_values_is_the_callers_fault() {
    at_once(ONE, &[(0, vec![1, 2]), (0, vec![1])]);
}
