//! Loops that wait without a `pause`, by their machine code; and loops that only look like it.

use replay::Control;
use replay::view::{Spin, View, ViewOptions};
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
    let mut pieces: Vec<(Vec<Instruction>, Vec<u8>)> =
        pieces.iter().map(|piece| (piece.instructions.clone(), piece.code.clone())).collect();
    if let Some((instructions, code)) = pieces.last_mut() {
        // The branch at the end leads back to the first piece.
        let back = MAIN.wrapping_sub(instructions.last().unwrap().next_pc().unwrap().0);
        *code.last_mut().unwrap() = back as u8;
    }
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..turns {
        pieces.iter().for_each(|(instructions, code)| made.run_code(0, instructions, code));
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
    // A way that no thread goes three times is not looked at.
    assert_eq!(left_out(&wait(), 3, &nop()), 0);
    assert_eq!(left_out(&wait(), 4, &nop()), 9);
    assert_eq!(left_out(&wait(), 50_000, &nop()), 3 * 49_999);
    let view = looped(&wait(), 50_000, &nop(), Spin::Auto);
    assert_eq!(told(&view, 0), "100 106 109 180");
    assert_eq!(looped(&wait(), 50_000, &nop(), Spin::Keep).summary().spin, 0);
}

#[test]
fn a_loop_of_several_blocks_is_waiting_too() {
    let two = [piece(MAIN, &[LOAD, COMPARE, &[0x74, 0x15]]), piece(MAIN + 0x20, &[LOAD, COMPARE, EQUAL])];
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
    let told = "97.6% of the thread instructions recorded look like spin-waiting but are not left out, since that is not \
                certain: at 0x100";
    assert!(line.contains(told), "{line}");
    assert_eq!(looped(&bounded, 100, &forgets, Spin::At(vec![Pc(MAIN)])).summary().spin, 5 * 99);
}

#[test]
fn what_looks_like_waiting_in_code_of_which_nothing_is_kept_is_not_told() {
    let summary = |code: &str| {
        // The same loop in a library; beside it a hundredth as much in the program.
        let mut made = Recording::new();
        let test = piece(LIBRARY, &[LOAD, COMPARE, &[0x75, 0x70]]);
        let count = piece(LIBRARY + 0x0b, &[&[0xff, 0xc9], &[0x75, 0xf1]]);
        let forgets = piece(MAIN, &[&[0x31, 0xc9], NOP]);
        made.start(0);
        for _ in 0..100 {
            made.run_code(0, &test.instructions, &test.code);
            made.run_code(0, &count.instructions, &count.code);
        }
        made.run_code(0, &forgets.instructions, &forgets.code);
        made.end(0);
        made.view(&options("all", code, "serialize")).unwrap().summary().clone()
    };
    let (main, all) = (summary("main"), summary("all"));
    assert!(!main.to_string().contains("look like spin-waiting"), "{main}");
    let seen: u64 = all.waiting_loops_kept().map(|seen| seen.instructions).sum();
    assert!(main.kept * 100 < seen && seen <= all.instructions, "{main:?}");
    assert!(all.to_string().contains("; 97.6% of the thread instructions recorded look like spin-waiting"), "{all}");
}

/// A thread runs these pieces, a block each.
fn ran(pieces: &[&Piece], spin: Spin) -> View {
    let mut made = Recording::new();
    made.start(0);
    pieces.iter().for_each(|piece| made.run_code(0, &piece.instructions, &piece.code));
    made.end(0);
    made.view(&ViewOptions { spin, ..whole() }).unwrap()
}

/// One block of several pieces.
fn joined(pieces: &[&Piece]) -> Piece {
    Piece {
        instructions: pieces.iter().flat_map(|piece| piece.instructions.clone()).collect(),
        code: pieces.iter().flat_map(|piece| piece.code.clone()).collect(),
    }
}

/// `load; compare; je` back to its beginning.
fn wait() -> Piece {
    piece(MAIN, &[LOAD, COMPARE, &[0x74, 0xf5]])
}

#[test]
fn how_the_recording_cut_a_wait_into_blocks_does_not_matter() {
    let (one, behind) = (wait(), piece(MAIN + 11, &[NOP]));
    let (three, last) = (joined(&[&wait(), &wait(), &wait()]), joined(&[&wait(), &wait(), &behind]));
    let before = piece(MAIN - 1, &[NOP]);
    let begin = joined(&[&before, &wait(), &wait()]);
    for blocks in [
        &[&before, &one, &one, &one, &one, &one, &behind][..],
        &[&before, &three, &three, &one, &three, &three, &last],
        &[&begin, &three, &three, &behind],
        &[&begin, &one, &one, &last],
    ] {
        let view = ran(blocks, Spin::Auto);
        assert_eq!(told(&view, 0), "ff 100 106 109 10b");
        assert_eq!(view.summary().spin + 5, view.summary().instructions);
    }
}

#[test]
fn a_loop_with_a_test_before_it_and_one_at_its_end_leaves_one_test() {
    // The first test leads to 11a, as does the end of the loop.
    let first = piece(MAIN, &[LOAD, COMPARE, &[0x75, 0x0f]]);
    let turn = piece(MAIN + 11, &[&[0x66, 0x90], LOAD, COMPARE, &[0x74, 0xf1]]);
    let behind = piece(MAIN + 26, &[NOP]);
    for turns in [0, 1, 2, 50] {
        let way: Vec<&Piece> = std::iter::once(&first).chain((0..turns).map(|_| &turn)).chain([&behind]).collect();
        // Another loop of the same kind shows that it waits.
        let again: Vec<&Piece> = std::iter::once(&first).chain((0..9).map(|_| &turn)).chain([&behind]).collect();
        let view = ran(&[again, way].concat(), Spin::Auto);
        assert_eq!(told(&view, 0), "100 106 109 11a 100 106 109 11a", "{turns} turns");
    }
}

#[test]
fn a_locked_operation_that_succeeds_is_work_and_one_that_fails_is_waiting() {
    // xor eax, eax; lock cmpxchg [rip + 0x1000], ecx; then jne or je back.
    let tries = |branch: u8| {
        [piece(MAIN, &[&[0x31, 0xc0], &[0xf0, 0x0f, 0xb1, 0x0d, 0x00, 0x10, 0x00, 0x00], &[branch, 0xf0]])]
    };
    assert_eq!(left_out(&tries(0x75), 100, &nop()), 3 * 99);
    assert_eq!(left_out(&tries(0x74), 100, &nop()), 0);
    // mov eax, 1; xchg [lock], eax; test eax, eax; je: it takes the lock each time.
    let takes =
        [piece(MAIN, &[&[0xb8, 1, 0, 0, 0], &[0x87, 0x05, 0x00, 0x10, 0x00, 0x00], &[0x85, 0xc0], &[0x74, 0xf0]])];
    assert_eq!(left_out(&takes, 100, &nop()), 0);
    // Nothing tells whether it changed memory.
    let unknown = [piece(MAIN, &[&[0xf0, 0x0f, 0xb1, 0x0d, 0x00, 0x10, 0x00, 0x00], LOAD, COMPARE, &[0x74, 0xf0]])];
    assert_eq!(left_out(&unknown, 100, &nop()), 0);
}

/// mov [rbp - 8], ecx; load; compare; je back.
fn writes_at_frame_pointer() -> Piece {
    piece(MAIN, &[&[0x89, 0x4d, 0xf8], LOAD, COMPARE, &[0x74, 0xf2]])
}

#[test]
fn what_is_written_through_the_frame_pointer_is_memory_where_it_is_none() {
    let behind = piece(MAIN + 14, &[NOP]);
    let frame = |setup: &[u8]| {
        let before = piece(MAIN - 3, &[setup]);
        let turn = writes_at_frame_pointer();
        let way: Vec<&Piece> = std::iter::once(&before).chain((0..20).map(|_| &turn)).chain([&behind]).collect();
        ran(&way, Spin::Auto).summary().spin
    };
    assert_eq!(frame(&[0x48, 0x89, 0xe5]), 4 * 19); // mov rbp, rsp
    assert_eq!(frame(&[0x48, 0x89, 0xfd]), 0); // mov rbp, rdi
}

#[test]
fn a_bound_in_the_frame_is_waiting_where_memory_ended_it_and_nobody_reads_it_later() {
    // mov rbp, rsp; loop: sub [rbp - 8], 1; je out; load; compare; je loop.
    let before = piece(MAIN - 3, &[&[0x48, 0x89, 0xe5]]);
    let bound = piece(MAIN, &[&[0x83, 0x6d, 0xf8, 0x01], &[0x74, 0x30]]);
    let test = piece(MAIN + 6, &[LOAD, COMPARE, &[0x74, 0xef]]);
    let spin = |behind: &[u8]| {
        let behind = piece(MAIN + 17, &[behind, NOP]);
        let turns = (0..20).flat_map(|_| [&bound, &test]);
        let way: Vec<&Piece> = std::iter::once(&before).chain(turns).chain([&behind]).collect();
        ran(&way, Spin::Auto).summary().spin
    };
    assert_eq!(spin(&[0x8b, 0x45, 0xf0]), 5 * 19); // mov eax, [rbp - 16]
    assert_eq!(spin(&[0x8b, 0x45, 0xf8]), 0); // mov eax, [rbp - 8]
    assert_eq!(spin(&[0x48, 0x8d, 0x45, 0xf8]), 0); // lea rax, [rbp - 8]
}

#[test]
fn a_loop_that_the_user_names_is_left_out_whatever_it_counts_unless_it_writes() {
    // inc rbx, used behind the loop.
    let counts = [piece(MAIN, &[&[0x48, 0xff, 0xc3], LOAD, COMPARE, EQUAL])];
    let uses = piece(MAIN + 0x80, &[&[0x48, 0x89, 0xd8], NOP]); // mov rax, rbx
    assert_eq!(looped(&counts, 100, &uses, Spin::At(vec![Pc(MAIN)])).summary().spin, 4 * 99);
}

#[test]
fn a_pass_with_a_pause_that_writes_is_work() {
    // pause; mov [rip + 0x2000], eax; load; compare; je back.
    let pass = |store: &'static [u8]| {
        let mut pass = piece(MAIN, &[&[0xf3, 0x90], store, LOAD, COMPARE, EQUAL]);
        pass.instructions[0].kind = Kind::Pause;
        [pass]
    };
    assert_eq!(left_out(&pass(&[0x89, 0x05, 0x00, 0x20, 0x00, 0x00]), 100, &nop()), 0);
    assert!(left_out(&pass(&[0x66, 0x90]), 100, &nop()) > 0);
}

/// The piece, whose last instruction is of this kind and moves the stack pointer so far.
fn ends_with(mut piece: Piece, kind: Kind, add: i32) -> Piece {
    let last = piece.instructions.last_mut().unwrap();
    (last.kind, last.sp) = (kind, SpEffect::Add(add));
    piece
}

/// The instructions of spin-waiting of several threads, each the pieces that it runs, one after another.
fn threads_ran(threads: &[Vec<&Piece>]) -> u64 {
    let mut made = Recording::new();
    for (thread, pieces) in (0..).zip(threads) {
        made.start(thread);
        pieces.iter().for_each(|piece| made.run_code(thread, &piece.instructions, &piece.code));
        made.end(thread);
    }
    made.view(&whole()).unwrap().summary().spin
}

#[test]
fn a_counted_loop_whose_inner_branch_goes_two_ways_is_work() {
    // mov eax, [flag]; cmp r15d, eax; je latch, over a write; the latch: dec ecx; jne back
    let head = piece(MAIN, &[LOAD, COMPARE, &[0x74, 0x16]]);
    let writes = piece(MAIN + 11, &[&[0x89, 0x05, 0x00, 0x20, 0x00, 0x00], &[0xeb, 0x0e]]);
    let writes = ends_with(writes, Kind::Jump, 0);
    let latch = piece(MAIN + 0x21, &[&[0xff, 0xc9], &[0x75, 0xdb]]);
    let out = piece(MAIN + 0x25, &[&[0x31, 0xc9], NOP]);
    let idle: Vec<&Piece> = [&head, &latch].into_iter().cycle().take(2 * 50).chain([&out]).collect();
    let busy: Vec<&Piece> = [&head, &writes, &latch].into_iter().cycle().take(3 * 50).chain([&out]).collect();
    assert_eq!(threads_ran(&[idle.clone(), busy]), 0);
    // Where the other way leads out, it is a wait with a bound.
    let leaves = piece(MAIN + 11, &[&[0x31, 0xc9], NOP]);
    assert_eq!(threads_ran(&[idle, vec![&head, &leaves]]), 5 * 49);
}

#[test]
fn a_way_that_comes_back_from_a_call_to_another_place_is_no_turn() {
    // call rdx; mov eax, [flag]; cmp r15d, eax; je; call the same; then a write, and a jump back
    let first = ends_with(piece(MAIN, &[&[0xff, 0xd2]]), Kind::IndirectCall, -8);
    let second = piece(MAIN + 2, &[LOAD, COMPARE, &[0x74, 0x00], &[0xe8, 0x2e, 0, 0, 0]]);
    let second = ends_with(second, Kind::Call, -8);
    let function = ends_with(piece(MAIN + 0x40, &[&[0x31, 0xc0], &[0xc3]]), Kind::Return, 8);
    let behind = piece(MAIN + 18, &[NOP]);
    let writes = piece(MAIN + 19, &[&[0x89, 0x05, 0x00, 0x20, 0x00, 0x00], &[0xeb, 0xe5]]);
    let writes = ends_with(writes, Kind::Jump, 0);
    let one = [&first, &function, &second, &function, &behind, &writes];
    let ran: Vec<&Piece> = one.into_iter().cycle().take(6 * 20).collect();
    assert_eq!(threads_ran(&[ran]), 0);
}

#[test]
fn what_is_never_done_three_times_in_a_row_may_find_what_was_there_before_the_loop() {
    let wait = piece(MAIN, &[LOAD, COMPARE, &[0x74, 0xf5]]);
    let writes = piece(MAIN + 11, &[&[0x89, 0x05, 0x00, 0x20, 0x00, 0x00], &[0xeb, 0xed]]);
    let writes = ends_with(writes, Kind::Jump, 0);
    let ran = |passes: usize| {
        let one = vec![&wait; passes].into_iter().chain([&writes]);
        threads_ran(&[(0..20).flat_map(|_| one.clone()).collect()])
    };
    assert_eq!(ran(2), 0);
    assert!(ran(3) > 0);
}

/// A thread calls a function in a loop, so many times; the last call goes another way in it.
fn calls(turns: usize, is_recorded: bool) -> View {
    // call; the function: push rbp; mov rbp, rsp; mov eax, [flag]; cmp r15d, eax; je; leave, or pop rbp; ret; back: jmp
    let head = ends_with(piece(MAIN, &[&[0xe8, 0x1b, 0, 0, 0]]), Kind::Call, -8);
    let enters = ends_with(piece(MAIN + 0x20, &[&[0x55]]), Kind::Plain, -8);
    let asks = piece(MAIN + 0x21, &[&[0x48, 0x89, 0xe5], LOAD, COMPARE, &[0x74, 0x10]]);
    let mut leaves = ends_with(piece(MAIN + 0x2f, &[if is_recorded { &[0xc9] } else { &[0x5d] }]), Kind::Plain, 8);
    if is_recorded {
        leaves.instructions[0].sp = SpEffect::Recorded;
    }
    let returns = ends_with(piece(MAIN + 0x30, &[&[0xc3]]), Kind::Return, 8);
    let back = ends_with(piece(MAIN + 5, &[&[0xeb, 0xf9]]), Kind::Jump, 0);
    let otherwise = ends_with(piece(MAIN + 0x3f, &[&[0x5d]]), Kind::Plain, 8);
    let out = ends_with(piece(MAIN + 0x40, &[&[0xc3]]), Kind::Return, 8);
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..turns {
        for piece in [&head, &enters, &asks, &leaves, &returns, &back] {
            let sps: &[u64] = if is_recorded && std::ptr::eq(piece, &leaves) { &[STACK - 8] } else { &[] };
            made.run_code_with(0, &piece.instructions, &piece.code, sps);
        }
    }
    [&head, &enters, &asks, &otherwise, &out, &back]
        .into_iter()
        .for_each(|piece| made.run_code(0, &piece.instructions, &piece.code));
    made.end(0);
    made.view(&whole()).unwrap()
}

#[test]
fn what_is_left_of_a_wait_in_a_function_does_not_hang_on_its_turns_nor_on_the_stack_pointers_there() {
    for (turns, is_recorded) in [(10, true), (11, true), (5000, true), (11, false)] {
        let view = calls(turns, is_recorded);
        assert_eq!(view.summary().spin, 9 * turns as u64, "{turns}");
        let [Told::Comes(Control::Stack { .. }), kept @ ..] = &follow(&view, 0)[..] else { panic!("{turns}") };
        let place = |told: &Told| match told {
            Told::Runs(seen) => (seen.sp, seen.level),
            Told::Comes(control) => panic!("{turns}: {control:?}"),
        };
        let inside = [(-16, 2); 5];
        let places = [&[(0, 1), (-8, 2)], &inside[..], &[(-8, 2), (0, 1)]].concat();
        assert_eq!(kept.iter().map(place).collect::<Vec<_>>(), places, "{turns}");
    }
}

const COUNT: &[u8] = &[0xff, 0xc1]; // inc ecx
const FOURTH: &[u8] = &[0xf6, 0xc1, 0x04]; // test cl, 4

/// What a thread runs that makes one turn four times, then another four times, and so on for so many rounds.
fn rounds<'a>(count: usize, one: &[&'a Piece], other: &[&'a Piece]) -> Vec<&'a Piece> {
    [one, one, one, one, other, other, other, other].concat().repeat(count)
}

#[test]
fn a_turn_that_begins_as_another_is_left_out_whole() {
    // loop: inc ecx; load; compare; jne out; test cl, 4; je loop; jmp more; ... more: nop; jmp loop. Behind `je` both
    // the loop and `jmp more` can come, so that one of them came does not show that the wait is over. The thread enters
    // the loop at `test`, so that the first turn begins behind `je`.
    let asks = piece(MAIN, &[COUNT, LOAD, COMPARE, &[0x75, 0x73]]);
    let ends = piece(MAIN + 13, &[FOURTH, &[0x74, 0xee]]);
    let over = ends_with(piece(MAIN + 18, &[&[0xeb, 0x0c]]), Kind::Jump, 0);
    let more = ends_with(piece(MAIN + 32, &[NOP, &[0xeb, 0xdd]]), Kind::Jump, 0);
    let out = piece(MAIN + 0x80, &[&[0x31, 0xc9], NOP]);
    let spin = |count| {
        let way = rounds(count, &[&asks, &ends], &[&asks, &ends, &over, &more]);
        threads_ran(&[[vec![&ends], way, vec![&asks, &out]].concat()])
    };
    assert_eq!(spin(20) - spin(10), 10 * (4 * 6 + 4 * 9));
}

#[test]
fn a_loop_that_is_left_in_the_first_turn_of_another_form_has_not_used_what_the_turns_before_carry() {
    // loop: test cl, 4; je over; nop; over: inc ecx; load; compare; je loop
    let forks = piece(MAIN, &[FOURTH, &[0x74, 0x01]]);
    let more = piece(MAIN + 5, &[NOP]);
    let asks = piece(MAIN + 6, &[COUNT, LOAD, COMPARE, &[0x74, 0xed]]);
    let out = piece(MAIN + 19, &[&[0x31, 0xc9], NOP]);
    let (short, long) = ([&forks, &asks], [&forks, &more, &asks]);
    let spin = |count| {
        let way = rounds(count, &short, &long);
        let left_at_first = [&way[..], &short.repeat(4), &long, &[&out]].concat();
        threads_ran(&[left_at_first, [way, vec![&out]].concat()])
    };
    assert_eq!(spin(20) - spin(10), 2 * 10 * (4 * 6 + 4 * 7));
}
