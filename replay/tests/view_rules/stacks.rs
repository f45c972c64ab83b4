//! Stack pointers and call levels, and what the replay is told about them.

use proptest::prelude::*;
use replay::view::{Spin, ViewOptions};
use trace_format::{Event, Instruction, Kind, Pc, SyncFunction::*};

use crate::recording::*;

#[test]
fn recorded_stack_pointers_and_addresses_reach_the_stream() {
    let mut made = Recording::new();
    let load = Instruction { memory: 2, ..sets(MAIN + 1) };
    made.start(0).run_with(0, &[plain(MAIN), load, plain(MAIN + 2)], &[STACK - 100], &[7, 9]);
    made.run(0, &[plain(MAIN + 3)]).end(0);
    let view = made.view(&whole()).unwrap();
    let sps: Vec<i64> = seen(&view, 0).iter().map(|s| s.sp).collect();
    assert_eq!(sps, [0, 0, -100, -100]);
    assert_eq!(seen(&view, 0)[1].addresses, [7, 9]);
    assert!(view.has_memory());
}

#[test]
fn a_stream_with_addresses_tells_where_its_stack_lies() {
    let mut made = Recording::new();
    made.start(0).run(0, &[adds(LOADER, -40)]).run(0, &[plain(MAIN)]).end(0);
    let view = made.view(&whole()).unwrap();
    let first = follow(&view, 0).remove(0);
    assert_eq!(first, Told::Comes(replay::Control::Stack { zero: STACK - 40, above: 40 }));
}

#[test]
fn stack_pointers_count_from_the_first_instruction_kept() {
    let mut made = Recording::new();
    made.start(0).run(0, &[adds(LOADER, -40)]).run(0, &[plain(MAIN)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100");
    assert_eq!(seen(&view, 0)[0].sp, 0);
}

#[test]
fn a_long_jump_closes_the_frames_it_leaps_over() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run(0, &[call(MAIN + 0x10)]).run(0, &[call(MAIN + 0x20)]);
    made.run_with(0, &[sets(MAIN + 0x30), branch(MAIN + 0x31)], &[STACK], &[]).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100c 110c 120c 130 level=1 131 101");
}

#[test]
fn a_call_that_only_pushes_its_address_opens_no_frame() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run(0, &[adds(MAIN + 1, 8), adds(MAIN + 2, -8), plain(MAIN + 3)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100c 101 level=1 102 103");
}

#[test]
fn a_tail_call_keeps_its_level() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run(0, &[of_kind(Kind::Jump, MAIN + 0x10)]);
    made.run(0, &[plain(MAIN + 0x20), ret(MAIN + 0x21)]).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&whole()).unwrap();
    let levels: Vec<u32> = seen(&view, 0).iter().map(|s| s.level).collect();
    assert_eq!((told(&view, 0).as_str(), levels), ("100c 110 120 121r 101", vec![1, 2, 2, 2, 1]));
}

#[test]
fn a_handler_runs_one_level_deeper_and_gives_the_level_back() {
    let mut made = Recording::new();
    let code = [plain(MAIN), plain(MAIN + 1), plain(MAIN + 2)];
    made.start(0).run(0, &[call(MAIN + 0x20)]).run_part(0, &code, 1);
    made.event(0, Event::Signal { number: 10, handler: Pc(MAIN + 0x40) }).event(0, Event::SetSp(STACK - 0x200));
    made.run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[of_kind(Kind::Syscall, LIBC)]);
    made.event(0, Event::SignalReturn).event(0, Event::SetSp(STACK - 8));
    made.run(0, &code[1..]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "120c 100 sp=-512 level=3 140 141r 2000 sp=-8 101 102");
    assert_eq!(seen(&view, 0).last().unwrap().level, 2);
}

#[test]
fn a_handler_on_a_higher_stack_gives_the_level_back_too() {
    let mut made = Recording::new();
    let code = [plain(MAIN), plain(MAIN + 1)];
    made.start(0).run(0, &[call(MAIN + 0x20)]).run_part(0, &code, 1);
    made.event(0, Event::Signal { number: 10, handler: Pc(MAIN + 0x40) }).event(0, Event::SetSp(STACK << 4));
    made.run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[of_kind(Kind::Syscall, LIBC)]);
    made.event(0, Event::SignalReturn).event(0, Event::SetSp(STACK - 8));
    made.run(0, &code[1..]).end(0);
    let view = made.view(&whole()).unwrap();
    let levels: Vec<u32> = seen(&view, 0).iter().map(|s| s.level).collect();
    assert_eq!(levels, [1, 2, 3, 3, 2, 2]);
}

#[test]
fn a_second_signal_at_the_same_instruction_interrupts_the_same_code() {
    let mut made = Recording::new();
    let code = [plain(MAIN), plain(MAIN + 1)];
    made.start(0).run(0, &[call(MAIN + 0x20)]).run_part(0, &code, 1);
    for _ in 0..2 {
        made.event(0, Event::Signal { number: 10, handler: Pc(MAIN + 0x40) }).event(0, Event::SetSp(STACK - 0x200));
        made.run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[of_kind(Kind::Syscall, LIBC)]);
        made.event(0, Event::SignalReturn).event(0, Event::SetSp(STACK - 8));
    }
    made.run(0, &code[1..]).end(0);
    let view = made.view(&whole()).unwrap();
    let levels: Vec<u32> = seen(&view, 0).iter().map(|s| s.level).collect();
    assert_eq!(levels, [1, 2, 3, 3, 2, 3, 3, 2, 2]);
}

#[test]
fn a_long_jump_out_of_a_handler_closes_what_it_leaps_over() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run(0, &[call(MAIN + 0x20)]).run_part(
        0,
        &[plain(MAIN + 0x30), plain(MAIN + 0x31)],
        1,
    );
    made.event(0, Event::Signal { number: 10, handler: Pc(MAIN + 0x40) }).event(0, Event::SetSp(STACK - 0x200));
    made.run_with(0, &[sets(MAIN + 0x40), of_kind(Kind::IndirectJump, MAIN + 0x41)], &[STACK - 8], &[]);
    made.run(0, &[ret(MAIN + 0x21)]).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&whole()).unwrap();
    let levels: Vec<u32> = seen(&view, 0).iter().map(|s| s.level).collect();
    assert_eq!(levels, [1, 2, 3, 4, 2, 2, 1]);
}

#[test]
fn a_signal_in_a_named_function_does_not_end_it() {
    let work = MAIN + 0x60;
    let mut made = Recording::new();
    made.symbol("work", work, 8);
    let code = [plain(work), plain(work + 1), ret(work + 2)];
    made.start(0).run(0, &[call(MAIN)]).run_part(0, &code, 1);
    made.event(0, Event::Signal { number: 10, handler: Pc(MAIN + 0x40) }).event(0, Event::SetSp(STACK << 4));
    made.run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[of_kind(Kind::Syscall, LIBC)]);
    made.event(0, Event::SignalReturn).event(0, Event::SetSp(STACK - 8));
    made.run(0, &code[1..]).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&options("work", "all", "serialize")).unwrap();
    let pcs: Vec<u64> = seen(&view, 0).iter().map(|s| s.instruction.pc.0).collect();
    assert_eq!(pcs, [0x160, 0x140, 0x141, 0x2000, 0x161, 0x162]);
}

#[test]
fn a_block_left_half_way_is_kept_as_far_as_it_ran() {
    let mut made = Recording::new();
    made.start(0).run_part(0, &[plain(MAIN), plain(MAIN + 1), plain(MAIN + 2)], 2).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100 101");
}

#[test]
fn a_long_stream_comes_in_batches_of_which_none_ends_with_a_call_undecided() {
    let mut made = Recording::new();
    made.start(0);
    for _ in 0..40_000 {
        made.sync(0, MAIN, SemaphorePost, 64);
    }
    made.end(0);
    let view = made.view(&whole()).unwrap();
    let seen = seen(&view, 0);
    assert_eq!(seen.len(), 40_000);
    assert!(seen.iter().all(|s| s.instruction.kind == Kind::Jump && s.sp == 0 && s.level == 1));
}

/// A function of the random program: where it lies, and how many bytes of stack its entry takes.
#[derive(Clone, Copy)]
struct Function {
    at: u64,
    frame: i32,
}

/// An instruction that was recorded, and whether the view is to keep it.
struct Recorded {
    instruction: Instruction,
    sp: u64,
    after: u64,
    keeps: bool,
}

/// Runs a random program of functions in the main executable (kept), in a library and in synchronisation functions
/// (both dropped).
struct Random {
    made: Recording,
    recorded: Vec<Recorded>,
    /// The functions that are running, with the stack pointer at their first instructions.
    running: Vec<(Function, u64)>,
    sp: u64,
    in_leaf: bool,
}

impl Random {
    fn run(&mut self, instructions: &[Instruction], sps: &[u64]) {
        let mut recorded = sps.iter();
        for instruction in instructions {
            let after = match instruction.sp {
                trace_format::SpEffect::Add(change) => self.sp.wrapping_add_signed(i64::from(change)),
                trace_format::SpEffect::Recorded => *recorded.next().unwrap(),
            };
            let keeps = instruction.pc.0 < LOADER && !self.in_leaf;
            self.recorded.push(Recorded { instruction: *instruction, sp: self.sp, after, keeps });
            self.sp = after;
        }
        self.made.run_with(0, instructions, sps, &[]);
    }

    /// Each function keeps its frame at one size, so that its blocks are the same each time.
    fn begin(&mut self, function: Function) {
        self.running.push((function, self.sp));
        let at = function.at;
        self.run(&[adds(at, -function.frame), plain(at + 1), branch(at + 2)], &[]);
    }

    fn step(&mut self, choice: u8, functions: &[Function]) {
        let Some((function, entry)) = self.running.last().copied() else { return };
        let at = function.at + 0x10;
        let other = functions[usize::from(choice) / 8 % functions.len()];
        match choice % 8 {
            0 | 1 => self.run(&[plain(at), plain(at + 1), branch(at + 2)], &[]),
            2 => {
                self.run(&[plain(at + 3), call(at + 4)], &[]);
                self.begin(other);
            }
            3 => {
                self.run(&[sets(at + 5), plain(at + 6), ret(at + 7)], &[entry]);
                self.running.pop();
            }
            4 => {
                // A tail call.
                self.run(&[sets(at + 8), of_kind(Kind::Jump, at + 9)], &[entry]);
                self.running.pop();
                self.begin(other);
            }
            5 => {
                // A synchronisation function, by a stub in the main executable.
                self.run(&[call(at + 10)], &[]);
                self.run(&[of_kind(Kind::IndirectJump, MAIN + 0xf00)], &[]);
                self.made.enter(0, SemaphorePost, 64);
                self.in_leaf = true;
                self.run(&[adds(LIBC, -8), plain(LIBC + 1), adds(LIBC + 2, 8), ret(LIBC + 3)], &[]);
                self.in_leaf = false;
                self.made.leave(0, SemaphorePost);
            }
            6 => {
                // A long jump to a running function.
                let to = usize::from(choice) / 8 % self.running.len();
                self.running.truncate(to + 1);
                let (function, entry) = self.running[to];
                let sp = entry.wrapping_sub(function.frame as u64);
                self.run(&[sets(at + 11), of_kind(Kind::IndirectJump, at + 12)], &[sp]);
            }
            _ => self.run(&[sets(at + 13), plain(at + 14)], &[self.sp - 32]),
        }
    }

    /// What the replay is to see, by the definition, instruction by instruction.
    fn expected(&self) -> Vec<(Pc, i64, u32)> {
        let mut expected = Vec::new();
        let mut frames: Vec<u64> = Vec::new();
        let mut base = None;
        let mut after_call = false;
        for run in &self.recorded {
            if run.keeps {
                let base = *base.get_or_insert_with(|| {
                    after_call = false;
                    run.sp
                });
                if after_call {
                    frames.push(run.sp);
                }
                expected.push((run.instruction.pc, run.sp.wrapping_sub(base) as i64, frames.len() as u32 + 1));
            }
            frames.retain(|entry| *entry >= run.after);
            after_call = run.instruction.kind.is_call();
        }
        expected
    }
}

fn random_run(choices: &[u8]) -> Random {
    let functions: Vec<Function> = (0..6)
        .map(|i| Function { at: if i % 2 == 0 { MAIN } else { LIBRARY } + 0x40 * i, frame: 8 * i as i32 })
        .collect();
    let mut random =
        Random { made: Recording::new(), recorded: Vec::new(), running: Vec::new(), sp: STACK, in_leaf: false };
    random.made.start(0);
    random.begin(functions[usize::from(choices[0]) % functions.len()]);
    for choice in &choices[1..] {
        random.step(*choice, &functions);
    }
    random.made.end(0);
    random
}

proptest! {
    #[test]
    fn following_the_stream_gives_the_true_stack_pointer_and_level_everywhere(
        choices in prop::collection::vec(any::<u8>(), 1..400),
    ) {
        let random = random_run(&choices);
        let expected = random.expected();
        // A block that is run again and again, and does nothing, looks like waiting.
        let view = random.made.view(&ViewOptions { spin: Spin::Keep, ..options("all", "main", "serialize") });
        if expected.is_empty() {
            prop_assert!(refusal(view).contains("nothing is left"));
        } else {
            let view = view.unwrap();
            let followed: Vec<(Pc, i64, u32)> =
                seen(&view, 0).iter().map(|s| (s.instruction.pc, s.sp, s.level)).collect();
            prop_assert_eq!(followed, expected);
        }
    }
}
