//! Checks that a trace hangs together: every instruction follows from the one before, and so does the stack pointer.

use iced_x86::{Decoder, DecoderOptions};
use trace_format::{Block, Event, Instruction, Item, Kind, Pc, SpEffect, Trace};

/// Where a thread may go on.
#[derive(Clone, Debug)]
enum Next {
    Anywhere,
    OneOf(Vec<Pc>),
    /// Behind a call that has not returned yet.
    Return,
}

/// A call that has not returned: where it will go on, and the stack pointer then.
type Call = (Pc, u64);

struct Walk<'a> {
    name: String,
    next: Next,
    sp: u64,
    calls: Vec<Call>,
    /// What the handlers that run now interrupted.
    interrupted: Vec<(Next, usize)>,
    /// Whether nothing has run since something was left out, and whether the stack pointer is known all the same.
    in_gap: bool,
    sp_known: bool,
    had_gap: bool,
    trace: &'a Trace,
    instructions: u64,
}

/// Panics with a sentence where the trace does not hang together.
pub fn check(trace: &Trace) {
    walk(trace, true);
}

/// The same for a trace whose writer died: threads may be without an end.
pub fn check_start(trace: &Trace) {
    walk(trace, false);
}

fn walk(trace: &Trace, whole: bool) {
    let mut seqs = Vec::new();
    for thread in trace.threads() {
        let mut walk = Walk {
            name: format!("thread {}", thread.id),
            next: Next::Anywhere,
            sp: 0,
            calls: Vec::new(),
            interrupted: Vec::new(),
            in_gap: false,
            sp_known: true,
            had_gap: false,
            trace,
            instructions: 0,
        };
        let mut stream = trace.stream(thread.id);
        let mut items = 0u64;
        let mut ended = false;
        while let Some(item) = stream.next().unwrap() {
            assert!(!ended, "{}: something follows the end", walk.name);
            match item {
                Item::Block { block, sps, .. } => {
                    let block = &trace.blocks()[block];
                    walk.block(block, block.instructions.len(), sps);
                }
                Item::Partial { block, executed, sps, .. } => {
                    walk.block(&trace.blocks()[block], executed as usize, sps)
                }
                Item::Event(event) => {
                    assert_eq!(items == 0, matches!(event, Event::ThreadStart { .. }), "{}: starts once", walk.name);
                    ended = matches!(event, Event::ThreadEnd { .. });
                    walk.event(event);
                    seqs.extend(seq(event));
                }
            }
            items += 1;
        }
        assert!(ended || !whole, "{}: has no end", walk.name);
        assert_eq!(walk.instructions, thread.instructions, "{}: the index counts otherwise", walk.name);
    }
    seqs.sort_unstable();
    let count = seqs.len();
    seqs.dedup();
    assert_eq!(seqs.len(), count, "two events have the same place in the order");
}

fn seq(event: Event) -> Option<u64> {
    match event {
        Event::ThreadStart { seq, .. }
        | Event::ThreadEnd { seq, .. }
        | Event::Enter { seq, .. }
        | Event::Leave { seq, .. }
        | Event::FutexWait { seq, .. } => Some(seq.0),
        _ => None,
    }
}

/// The target of a direct jump or call.
fn target(block: &Block, index: usize) -> Option<Pc> {
    let code = &block.code[block.code_range(index)];
    let decoded = Decoder::with_ip(64, code, block.instructions[index].pc.0, DecoderOptions::NONE).decode();
    (decoded.near_branch_target() != 0).then(|| Pc(decoded.near_branch_target()))
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, executed: usize, sps: &[u64]) {
        self.in_gap = false;
        assert!(self.sp_known, "{}: no stack pointer behind a gap", self.name);
        let mut sps = sps.iter();
        for (index, instruction) in block.instructions[..executed].iter().enumerate() {
            self.arrive(instruction.pc);
            self.sp = match instruction.sp {
                SpEffect::Add(change) => self.sp.wrapping_add_signed(change.into()),
                SpEffect::Recorded => *sps.next().unwrap(),
            };
            self.instructions += 1;
            self.leave(block, index, instruction);
        }
        assert!(sps.next().is_none());
    }

    fn arrive(&mut self, pc: Pc) {
        match &self.next {
            Next::Anywhere => {}
            Next::OneOf(targets) => assert!(
                targets.contains(&pc),
                "{}: came to {} instead of {targets:?}, after {} instructions",
                self.name,
                self.describe(pc),
                self.instructions
            ),
            Next::Return => {
                let Some(depth) = self.calls.iter().rposition(|(back, _)| *back == pc) else {
                    assert!(
                        self.calls.is_empty() || self.was_called_unseen() || self.returns_elsewhere(pc),
                        "{}: returned to {}, where no call was made, after {} instructions",
                        self.name,
                        self.describe(pc),
                        self.instructions
                    );
                    return;
                };
                let (_, sp) = self.calls[depth];
                assert_eq!(self.sp, sp, "{}: the stack pointer after the return to {}", self.name, self.describe(pc));
                self.calls.truncate(depth);
            }
        }
    }

    /// The function that returns was called where nothing was recorded: it lies further out than all calls that were.
    fn was_called_unseen(&self) -> bool {
        self.had_gap && self.calls.iter().all(|(_, sp)| *sp < self.sp)
    }

    /// A handler returns to the C library's call of `sigreturn`; contexts are changed, and exceptions land, by a return to
    /// where no call was made.
    fn returns_elsewhere(&self, pc: Pc) -> bool {
        let name = self.trace.symbol_of(pc).map_or("", |s| &s.name);
        self.interrupted.last().is_some_and(|(_, calls)| *calls == self.calls.len())
            || ["__start_context", "other", "run", "attempt"].iter().any(|part| name.contains(part))
    }

    fn leave(&mut self, block: &Block, index: usize, instruction: &Instruction) {
        let after: Vec<Pc> = instruction.next_pc().into_iter().collect();
        self.next = match instruction.kind {
            Kind::Plain | Kind::Pause | Kind::Syscall => Next::OneOf(after),
            Kind::Branch => Next::OneOf(after.into_iter().chain(target(block, index)).collect()),
            Kind::Jump => Next::OneOf(target(block, index).into_iter().collect()),
            Kind::Call => {
                self.calls.push((after[0], self.sp + 8));
                Next::OneOf(target(block, index).into_iter().collect())
            }
            Kind::IndirectCall => {
                self.calls.push((after[0], self.sp + 8));
                Next::Anywhere
            }
            Kind::IndirectJump => Next::Anywhere,
            Kind::Return => Next::Return,
        };
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::ThreadStart { sp, .. } => self.sp = sp,
            Event::SetSp(sp) => {
                self.sp = sp;
                self.sp_known = true;
            }
            Event::Signal { handler, .. } => {
                // The handler's first instructions may have been left out.
                let next = if self.in_gap { Next::Anywhere } else { Next::OneOf(vec![handler]) };
                let before = std::mem::replace(&mut self.next, next);
                self.interrupted.push((before, self.calls.len()));
            }
            Event::SignalReturn => {
                let (next, calls) = self.interrupted.pop().expect("a handler was running");
                self.next = next;
                self.calls.truncate(calls);
            }
            Event::Exec => {
                self.next = Next::Anywhere;
                self.calls.clear();
                self.interrupted.clear();
            }
            Event::Gap => {
                // Calls may have returned in it, and others may have been made.
                (self.in_gap, self.had_gap, self.sp_known) = (true, true, false);
                self.next = Next::Anywhere;
                self.calls.clear();
                for (next, calls) in &mut self.interrupted {
                    (*next, *calls) = (Next::Anywhere, 0);
                }
            }
            _ => {}
        }
    }

    fn describe(&self, pc: Pc) -> String {
        let name = self.trace.symbol_of(pc).map_or("?", |s| &s.name);
        let module = self.trace.module_of(pc).map_or("?", |m| m.name());
        format!("{pc} ({name}, {module})")
    }
}
