//! Loops that wait without a `pause`, by their machine code; and loops that only look like it.

use replay::view::{Spin, View};
use trace_format::{Instruction, Kind, Pc, SpEffect};

use crate::recording::*;

/// A block of real code: the bytes of each instruction; one that begins with 0x70 to 0x7f is a conditional branch.
struct Piece {
    instructions: Vec<Instruction>,
    code: Vec<u8>,
}

fn piece(pc: u64, instructions: &[&[u8]]) -> Piece {
    let mut at = pc;
    let one = |bytes: &&[u8]| {
        let kind = if (0x70..0x80).contains(&bytes[0]) { Kind::Branch } else { Kind::Plain };
        let one = Instruction { pc: Pc(at), len: bytes.len() as u8, kind, sp: SpEffect::Add(0), memory: 0 };
        at += bytes.len() as u64;
        one
    };
    Piece { instructions: instructions.iter().map(one).collect(), code: instructions.concat() }
}

const LOAD: &[u8] = &[0x8b, 0x05, 0x00, 0x10, 0x00, 0x00]; // mov eax, [rip + 0x1000]
const COMPARE: &[u8] = &[0x41, 0x39, 0xc7]; // cmp r15d, eax
const EQUAL: &[u8] = &[0x74, 0xf0]; // je
const NOP: &[u8] = &[0x90];

/// A thread runs the loop's pieces so many times, and then the piece behind it.
fn looped(pieces: &[Piece], turns: usize, behind: &Piece, spin: Spin) -> View {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..turns {
        pieces.iter().for_each(|piece| made.run_code(0, &piece.instructions, &piece.code));
    }
    made.run_code(0, &behind.instructions, &behind.code);
    made.end(0);
    let mut options = whole();
    options.spin = spin;
    made.view(&options).unwrap()
}

/// The instructions of spin-waiting in this.
fn left_out(pieces: &[Piece], turns: usize, behind: &Piece) -> u64 {
    looped(pieces, turns, behind, Spin::Auto).summary().spin
}

fn nop() -> Piece {
    piece(MAIN + 0x80, &[NOP])
}

#[test]
fn a_loop_that_carries_nothing_and_hangs_on_memory_is_waiting() {
    let wait = || [piece(MAIN, &[LOAD, COMPARE, EQUAL])];
    assert_eq!(left_out(&wait(), 1, &nop()), 0);
    assert_eq!(left_out(&wait(), 2, &nop()), 3);
    assert_eq!(left_out(&wait(), 50_000, &nop()), 3 * 49_999);
    let view = looped(&wait(), 50_000, &nop(), Spin::Auto);
    assert_eq!(told(&view, 0), "100 106 109 180");
    assert_eq!(looped(&wait(), 50_000, &nop(), Spin::Keep).summary().spin, 0);
}

#[test]
fn a_loop_of_several_blocks_is_waiting_too() {
    let two = [piece(MAIN, &[LOAD, COMPARE, EQUAL]), piece(MAIN + 0x20, &[LOAD, COMPARE, EQUAL])];
    assert_eq!(left_out(&two, 1000, &nop()), 6 * 999);
}

#[test]
fn a_bounded_spin_is_waiting_where_memory_ended_it_and_its_count_is_not_used_behind_it() {
    // dec ecx; je out; mov eax, [flag]; cmp r15d, eax; je back
    let bounded = [piece(MAIN, &[&[0xff, 0xc9], &[0x74, 0x70]]), piece(MAIN + 4, &[LOAD, COMPARE, EQUAL])];
    let forgets = piece(MAIN + 0x80, &[&[0x31, 0xc9], NOP]); // xor ecx, ecx
    assert_eq!(left_out(&bounded, 100, &forgets), 5 * 99);
    let uses = piece(MAIN + 0x80, &[&[0x89, 0xc8], NOP]); // mov eax, ecx
    assert_eq!(left_out(&bounded, 100, &uses), 0);
}

#[test]
fn a_loop_that_writes_or_counts_is_work() {
    // inc rbx, used behind the loop
    let counts = [piece(MAIN, &[&[0x48, 0xff, 0xc3], LOAD, COMPARE, EQUAL])];
    let uses = piece(MAIN + 0x80, &[&[0x48, 0x89, 0xd8], NOP]); // mov rax, rbx
    assert_eq!(left_out(&counts, 100, &uses), 0);
    // mov [rip + 0x2000], eax
    let writes = [piece(MAIN, &[LOAD, &[0x89, 0x05, 0x00, 0x20, 0x00, 0x00], COMPARE, EQUAL])];
    assert_eq!(left_out(&writes, 100, &nop()), 0);
    // lock inc dword [rip + 0x2000]
    let adds = [piece(MAIN, &[&[0xf0, 0xff, 0x05, 0x00, 0x20, 0x00, 0x00], LOAD, COMPARE, EQUAL])];
    assert_eq!(left_out(&adds, 100, &nop()), 0);
}

#[test]
fn a_walk_and_a_search_are_work() {
    // mov rdi, [rdi]; test rdi, rdi; jne
    let walk = [piece(MAIN, &[&[0x48, 0x8b, 0x3f], &[0x48, 0x85, 0xff], &[0x75, 0xf0]])];
    let forgets = piece(MAIN + 0x80, &[&[0x31, 0xff], &[0x31, 0xc9], NOP]);
    assert_eq!(left_out(&walk, 100, &forgets), 0);
    // cmp [rsi + rcx * 4], edx; je out; inc rcx; cmp rcx, 0x7f; jne
    let search = [
        piece(MAIN, &[&[0x39, 0x14, 0x8e], &[0x74, 0x70]]),
        piece(MAIN + 5, &[&[0x48, 0xff, 0xc1], &[0x48, 0x83, 0xf9, 0x7f], &[0x75, 0xf0]]),
    ];
    assert_eq!(left_out(&search, 100, &forgets), 0);
}

#[test]
fn a_loop_that_hangs_on_data_of_its_own_is_work() {
    // inc ecx; cmp ecx, [limit]; jl
    let delay = [piece(MAIN, &[&[0xff, 0xc1], &[0x3b, 0x0d, 0x00, 0x10, 0x00, 0x00], &[0x7c, 0xf0]])];
    let forgets = piece(MAIN + 0x80, &[&[0x31, 0xc9], NOP]);
    assert_eq!(left_out(&delay, 100, &forgets), 0);
}

#[test]
fn a_lock_that_is_tried_with_an_exchange_is_waited_for() {
    // mov eax, 1; xchg [lock], eax; test eax, eax; jne
    let tries =
        [piece(MAIN, &[&[0xb8, 1, 0, 0, 0], &[0x87, 0x05, 0x00, 0x10, 0x00, 0x00], &[0x85, 0xc0], &[0x75, 0xf0]])];
    assert_eq!(left_out(&tries, 100, &nop()), 4 * 99);
}

#[test]
fn what_looks_like_waiting_is_told_and_left_out_on_request() {
    // A bounded spin that was never ended by memory.
    let bounded = [piece(MAIN, &[LOAD, COMPARE, &[0x75, 0x70]]), piece(MAIN + 0x0b, &[&[0xff, 0xc9], &[0x75, 0xf0]])];
    let forgets = piece(MAIN + 0x80, &[&[0x31, 0xc9], NOP]);
    let view = looped(&bounded, 100, &forgets, Spin::Auto);
    assert_eq!(view.summary().spin, 0);
    let line = view.summary().to_string();
    assert!(line.contains("looks like spin-waiting and is kept, as that is not sure: at 0x100"), "{line}");
    assert_eq!(looped(&bounded, 100, &forgets, Spin::At(vec![Pc(MAIN)])).summary().spin, 5 * 99);
}
