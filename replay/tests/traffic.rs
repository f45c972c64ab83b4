//! Small programs whose memory traffic can be counted by hand.

use heuristics::Spec;
use replay::in_memory::{Does, InMemory};
use replay::metrics::{Accesses, Checker, MemoryClasses, Space, Traffic};
use replay::{Control, ReplayOptions, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

/// Accesses 8 bytes at this address; the stack pointer moves by so much.
fn access(pc: u64, address: u64, sp: i32) -> Does {
    Does::Runs(Instruction { pc: Pc(pc), len: 1, kind: Kind::Plain, sp: SpEffect::Add(sp), memory: 1 }, vec![address])
}

/// The stack of a lane: its zero lies 64 KiB above that of the lane before, and 256 bytes below the stack's end.
fn stack(lane: u64) -> (u64, Does) {
    let zero = 0x7fff_0000 + lane * 0x1_0000;
    (zero, Does::Comes(Control::Stack { zero, above: 256 }))
}

fn traffic(lanes: &[Vec<Does>], size: usize) -> Traffic {
    let options = ReplayOptions {
        measures: vec![MemoryClasses::measure(), Traffic::measure(), Checker::measure()],
        warp_size: Some(size),
        ..ReplayOptions::default()
    };
    let specs = [Spec::parse("minpc").unwrap()];
    replay(&InMemory::new(lanes), &specs, &options, None, &|_, _| {})
        .unwrap()
        .remove(0)
        .found::<Traffic>()
        .unwrap()
        .clone()
}

fn at(traffic: &Traffic, pc: u64) -> &Accesses {
    &traffic.by_instruction[&Pc(pc)]
}

#[test]
fn the_worked_number_of_the_metric() {
    let lanes: Vec<Vec<Does>> = (0..4)
        .map(|lane| {
            let (zero, told) = stack(lane);
            vec![told, access(10, 0x1000 + 8 * lane, 0), access(11, zero - 8, -8)]
        })
        .collect();
    let traffic = traffic(&lanes, 4);
    let (read, push) = (at(&traffic, 10), at(&traffic, 11));
    assert_eq!(read.heap, Space { accesses: 1, lane_accesses: 4, transactions: [1, 1, 1] });
    assert_eq!((read.stack, read.strides.most_first()), (Space::default(), vec![(8, 1)]));
    assert_eq!(push.stack, Space { accesses: 1, lane_accesses: 4, transactions: [4, 4, 4] });
    assert_eq!((push.heap, push.interleaved), (Space::default(), [1, 1, 1]));
    assert_eq!(push.strides.most_first(), [(0x1_0000, 1)]);
    assert_eq!((traffic.total.accesses(), traffic.total.lane_accesses()), (2, 8));
}

#[test]
fn the_stack_reaches_from_the_red_zone_to_the_first_stack_pointer() {
    let one = |offset: i64| {
        let (zero, told) = stack(0);
        let lane = vec![told, access(10, zero - 8, -64), access(11, zero.wrapping_add_signed(offset), 0)];
        at(&traffic(&[lane], 1), 11).stack.accesses
    };
    // After the first instruction the stack pointer is -64; the red zone below it ends at -192.
    assert_eq!([-193, -192, -64, 0, 255, 256].map(one), [0, 1, 1, 1, 1, 0]);
}

#[test]
fn another_lanes_stack_is_heap_and_is_transferred_apart() {
    let lanes: Vec<Vec<Does>> = (0..2)
        .map(|lane| {
            let (_, told) = stack(lane);
            vec![told, access(10, stack(0).0 - 8, 0)]
        })
        .collect();
    let found = traffic(&lanes, 2);
    let both = at(&found, 10);
    assert_eq!((both.stack.lane_accesses, both.heap.lane_accesses), (1, 1));
    assert_eq!((both.stack.transactions, both.heap.transactions), ([1; 3], [1; 3]));
    assert_eq!((both.classes.uniform, both.accesses()), (1, 1));
}

#[test]
fn without_known_stacks_everything_is_heap() {
    let lanes = [vec![access(10, 0x7fff_0000, -8)], vec![access(10, 0x7fff_0040, -8)]];
    let found = traffic(&lanes, 2);
    assert_eq!(found.total.heap, Space { accesses: 1, lane_accesses: 2, transactions: [2, 2, 1] });
    assert_eq!(found.total.interleaved, [0; 3]);
}

#[test]
fn traffic_of_two_warps_adds_up() {
    let lanes: Vec<Vec<Does>> = (0..4).map(|lane| vec![access(10, 0x1000 + 16 * lane, 0)]).collect();
    let (one, two) = (traffic(&lanes, 4), traffic(&lanes, 2));
    assert_eq!((one.total.heap.transactions, two.total.heap.transactions), ([2, 1, 1], [2, 2, 2]));
    assert_eq!((one.total.strides.most_first(), two.total.strides.most_first()), (vec![(16, 1)], vec![(16, 2)]));
}
