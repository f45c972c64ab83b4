//! However a tracer cuts a stream into blocks, the view makes the same of it.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use trace_format::{Instruction, Kind, SpEffect};

use crate::recording::*;

/// What a random thread does next.
#[derive(Clone, Debug)]
enum Deed {
    Plain,
    /// Takes or gives back so many words of stack.
    Moves(i32),
    /// Calls a function of the program, through a stub of the linkage table or not, or one of a library.
    Calls {
        stub: bool,
        library: bool,
    },
    Jumps,
    JumpsToStub,
    Returns,
    /// Drops the return address, as code does that finds out where it is.
    Drops,
    /// Leaves so many functions at once, by a stack pointer that is recorded.
    Leaps(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => Just(Deed::Plain),
        4 => (-3..=3).prop_map(Deed::Moves),
        6 => (any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(stub, library)| Deed::Calls { stub, library }),
        2 => Just(Deed::Jumps),
        1 => Just(Deed::JumpsToStub),
        6 => Just(Deed::Returns),
        1 => Just(Deed::Drops),
        1 => (1..3_usize).prop_map(Deed::Leaps),
    ]
}

/// An instruction that ran, its bytes, and the stack pointer behind it where that is recorded.
type Ran = (Instruction, Vec<u8>, Option<u64>);

/// What a thread runs.
#[derive(Default)]
struct Run {
    ran: Vec<Ran>,
    /// Next addresses in the program and in the library.
    next: [u64; 2],
    in_library: bool,
    sp: u64,
    /// Of the functions that run: where their frames begin, and whether the caller is in the library.
    frames: Vec<(u64, bool)>,
}

impl Run {
    fn push(&mut self, kind: Kind, change: i32, code: &[u8]) {
        let at = &mut self.next[usize::from(self.in_library)];
        let instruction = Instruction { len: code.len() as u8, kind, ..adds(*at, change) };
        // Further on than the next instruction, so that nothing is taken for what a branch falls through to.
        *at += 8;
        self.sp = self.sp.wrapping_add_signed(i64::from(change));
        self.ran.push((instruction, code.to_vec(), None));
    }

    fn stub(&mut self) {
        self.push(Kind::IndirectJump, 0, &[0xff, 0x25, 0, 0, 0, 0]);
    }

    fn does(&mut self, deed: &Deed) {
        let entry = self.frames.last().map_or(STACK, |(entry, _)| *entry);
        match deed {
            Deed::Plain => self.push(Kind::Plain, 0, &[0x90]),
            Deed::Moves(words) => {
                let room = (entry - self.sp) as i32;
                self.push(Kind::Plain, (8 * words).min(room), &[0x90]);
            }
            Deed::Calls { stub, library } => {
                let caller = self.in_library;
                self.push(Kind::Call, -8, &[0x90]);
                self.frames.push((self.sp, caller));
                self.in_library = *library;
                if *stub {
                    // Stubs lie in the program.
                    self.in_library = false;
                    self.stub();
                    self.in_library = *library;
                }
            }
            Deed::Jumps => self.push(Kind::Jump, 0, &[0x90]),
            Deed::JumpsToStub => self.stub(),
            Deed::Returns => {
                let Some((entry, caller)) = self.frames.pop() else { return };
                self.push(Kind::Plain, (entry - self.sp) as i32, &[0x90]);
                self.push(Kind::Return, 8, &[0x90]);
                self.in_library = caller;
            }
            Deed::Drops => {
                let Some((entry, _)) = self.frames.pop() else { return };
                self.push(Kind::Plain, (entry - self.sp) as i32 + 8, &[0x90]);
            }
            Deed::Leaps(count) => {
                for _ in 0..*count {
                    let Some((entry, caller)) = self.frames.pop() else { break };
                    (self.sp, self.in_library) = (entry + 8, caller);
                }
                self.push(Kind::Plain, 0, &[0x90]);
                let (instruction, _, sp) = self.ran.last_mut().expect("one was pushed");
                instruction.sp = SpEffect::Recorded;
                *sp = Some(self.sp);
            }
        }
    }

    /// Recorded in blocks that end where this says so.
    fn record(&self, library: &str, ends: impl Fn(usize, &Instruction) -> bool) -> Recording {
        let mut made = Recording::with_library(library);
        made.start(0);
        let mut from = 0;
        for i in 0..self.ran.len() {
            let is_last = i + 1 == self.ran.len();
            if is_last || ends(i, &self.ran[i].0) {
                let part = &self.ran[from..=i];
                let instructions: Vec<_> = part.iter().map(|(instruction, ..)| *instruction).collect();
                let code: Vec<_> = part.iter().flat_map(|(_, code, _)| code.clone()).collect();
                let sps: Vec<_> = part.iter().filter_map(|(.., sp)| *sp).collect();
                made.run_code_with(0, &instructions, &code, &sps);
                from = i + 1;
            }
        }
        made.end(0);
        made
    }
}

#[test]
fn blocks_with_calls_inside_are_kept_as_blocks_that_end_with_them_are() {
    let strategy = (prop::collection::vec(deed(), 1..60), prop::collection::vec(prop::bool::weighted(0.2), 400));
    let mut runner = TestRunner::new(ProptestConfig { cases: 2000, ..ProptestConfig::default() });
    let outcome = runner.run(&strategy, |(deeds, cuts)| {
        let mut run = Run { next: [MAIN, LIBRARY], sp: STACK, ..Run::default() };
        deeds.iter().for_each(|deed| run.does(deed));
        for (library, code) in [("libz.so.1", "all"), ("libz.so.1", "main"), ("libm.so.6", "all")] {
            let options = options("all", code, "serialize");
            // A thread of which nothing is kept is no lane.
            let one = run.record(library, |_, instruction| instruction.kind.transfers_control()).view(&options);
            let joined = run.record(library, |i, _| cuts[i % cuts.len()]).view(&options);
            match (one, joined) {
                (Ok(one), Ok(joined)) => prop_assert_eq!(told(&one, 0), told(&joined, 0)),
                (one, joined) => prop_assert_eq!(refusal(one), refusal(joined)),
            }
        }
        Ok(())
    });
    outcome.unwrap();
}
