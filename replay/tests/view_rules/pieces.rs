//! Calls of the region's function that begin and end inside of blocks: the same lanes, however blocks lie.

use replay::Batch;
use replay::view::{Lanes, View, ViewOptions};
use trace_format::Instruction;

use crate::recording::*;

const ITEM: u64 = MAIN + 0x80;
const HELPER: u64 = MAIN + 0xc0;

/// One call of the function, which calls a helper, itself, or nothing, and goes on to a function in its place.
fn item(dice: &mut Dice, depth: u32, all: &mut Vec<Instruction>) {
    all.extend([plain(ITEM), branch(ITEM + 1)]);
    for _ in 0..dice.below(3) {
        match dice.below(if depth < 3 { 4 } else { 3 }) {
            0 => all.extend([call(ITEM + 2), plain(HELPER), branch(HELPER + 1), ret(HELPER + 2)]),
            1 => all.extend([adds(ITEM + 3, -32), branch(ITEM + 4), adds(ITEM + 5, 32)]),
            2 => all.extend([plain(ITEM + 6), branch(ITEM + 7)]),
            _ => {
                all.push(call(ITEM + 8));
                item(dice, depth + 1, all);
            }
        }
    }
    match dice.below(3) {
        0 => all.extend([branch(ITEM + 9), plain(HELPER), branch(HELPER + 1), ret(HELPER + 2)]),
        _ => all.extend([plain(ITEM + 10), ret(ITEM + 11)]),
    }
}

fn program(dice: &mut Dice) -> Vec<Instruction> {
    let mut all = Vec::new();
    for _ in 0..12 {
        all.extend([plain(MAIN), branch(MAIN + 1)]);
        if dice.below(3) == 0 {
            all.extend([call(MAIN + 2), plain(HELPER), branch(HELPER + 1), ret(HELPER + 2)]);
        }
        all.push(call(MAIN + 3));
        item(dice, 0, &mut all);
        all.push(branch(MAIN + 4));
    }
    all
}

/// The program, recorded in blocks of so many instructions.
fn recorded(program: &[Instruction], mut of: impl FnMut() -> usize, options: &ViewOptions) -> View {
    let mut made = Recording::new();
    made.symbol("item", ITEM, 0x20);
    made.start(0);
    let mut left = program;
    while !left.is_empty() {
        let (block, rest) = left.split_at(of().min(left.len()));
        made.run(0, block);
        left = rest;
    }
    made.end(0);
    made.view(options).unwrap()
}

#[test]
fn lanes_do_not_depend_on_where_blocks_begin_and_end() {
    for seed in 0..60 {
        let program = program(&mut Dice(seed));
        for lanes in [Lanes::Calls, Lanes::Threads] {
            let options = ViewOptions { lanes, ..options("item", "all", "serialize") };
            let apart = recorded(&program, || 1, &options);
            let mut dice = Dice(!seed);
            let together = recorded(&program, || 1 + dice.below(40) as usize, &options);
            assert_eq!(apart.lanes().len(), together.lanes().len(), "{seed}");
            for lane in 0..apart.lanes().len() {
                assert_eq!(told(&apart, lane), told(&together, lane), "{seed}: lane {lane}");
            }
        }
    }
}

#[test]
fn what_a_call_runs_of_a_block_in_which_calls_begin_and_end_is_one_code() {
    let call_of_item =
        [call(MAIN + 3), plain(ITEM), branch(ITEM + 1), plain(ITEM + 6), branch(ITEM + 7), plain(ITEM + 10)];
    let of_one = [&call_of_item[..], &[ret(ITEM + 11), branch(MAIN + 4)]].concat();
    let program = of_one.repeat(4);
    let options = ViewOptions { lanes: Lanes::Calls, ..options("item", "all", "serialize") };
    let view = recorded(&program, || 16, &options);
    assert_eq!(view.lanes().len(), 4);
    for lane in 0..4 {
        let (mut stream, mut batch) = (view.stream(lane), Batch::default());
        assert!(stream.next_folded(&mut batch).unwrap());
        assert_eq!(batch.codes.len() - batch.controls.len(), 1, "lane {lane}");
        assert!(!stream.next_folded(&mut batch).unwrap());
    }
}
