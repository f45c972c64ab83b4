//! Checks that a trace hangs together: every instruction follows from the one before, and so does the stack pointer.

use trace_format::{Block, BlockId, Event, Instruction, Item, Kind, Pc, SpEffect, Trace};

/// Where a thread may go on.
#[derive(Clone, Copy, Debug)]
enum Next {
    Anywhere,
    OneOf([Option<Pc>; 2]),
    /// Behind a call that has not returned yet.
    Return,
}

/// What is to be known about an instruction each time it runs.
#[derive(Clone, Copy)]
struct Known {
    pc: Pc,
    sp: SpEffect,
    next: Next,
    /// Of a call: the instruction behind it.
    back: Option<Pc>,
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

/// Instructions of a block of which each but the last leads to the one behind it, whoever runs them, and none but the
/// last calls: to look at them once is enough.
#[derive(Clone, Copy)]
struct Straight {
    first: Pc,
    last: Known,
    instructions: u64,
    /// How many stack pointers are recorded, and what is added to the last of them, or to what it was before.
    recorded: usize,
    added: i64,
}

impl Straight {
    fn of(row: &[Known]) -> Straight {
        let add = |(recorded, added): (usize, i64), one: &Known| match one.sp {
            SpEffect::Add(change) => (recorded, added + i64::from(change)),
            SpEffect::Recorded => (recorded + 1, 0),
        };
        let (recorded, added) = row.iter().fold((0, 0), add);
        Straight { first: row[0].pc, last: row[row.len() - 1], instructions: row.len() as u64, recorded, added }
    }
}

/// What is known about a block.
struct KnownBlock {
    each: Vec<Known>,
    rows: Vec<Straight>,
}

impl KnownBlock {
    fn of(block: &Block) -> KnownBlock {
        let at = |(index, instruction)| known(block, index, instruction);
        let each: Vec<Known> = block.instructions.iter().enumerate().map(at).collect();
        KnownBlock { rows: rows(&each), each }
    }
}

fn rows(each: &[Known]) -> Vec<Straight> {
    let leads = |one: &Known, next: &Known| match one.next {
        Next::OneOf(targets) => one.back.is_none() && targets.contains(&Some(next.pc)),
        Next::Anywhere | Next::Return => false,
    };
    each.chunk_by(leads).map(Straight::of).collect()
}

/// What is known about the blocks, worked out when each is first met: they run millions of times.
#[derive(Default)]
struct KnownBlocks(Vec<Option<KnownBlock>>);

impl KnownBlocks {
    fn get(&mut self, trace: &Trace, id: BlockId) -> &KnownBlock {
        if self.0.len() <= id.index() {
            self.0.resize_with(id.index() + 1, || None);
        }
        self.0[id.index()].get_or_insert_with(|| KnownBlock::of(&trace.blocks()[id]))
    }
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
    let mut blocks = KnownBlocks::default();
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
        let (mut ended, mut last) = (false, None);
        while let Some(item) = stream.next().unwrap() {
            assert!(!ended, "{}: something follows the end", walk.name);
            match item {
                Item::Block { block, sps, .. } => walk.rows(&blocks.get(trace, block).rows, sps),
                Item::Partial { block, executed, sps, .. } => {
                    walk.rows(&rows(&blocks.get(trace, block).each[..executed as usize]), sps)
                }
                Item::Event(event) => {
                    assert_eq!(items == 0, matches!(event, Event::ThreadStart { .. }), "{}: starts once", walk.name);
                    ended = matches!(event, Event::ThreadEnd { .. });
                    walk.event(event);
                    if let Some(seq) = seq(event) {
                        assert!(last.replace(seq) < Some(seq), "{}: {event:?} stands too late", walk.name);
                        seqs.push(seq);
                    }
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
    machine::target(block.instructions[index].pc, &block.code[block.code_range(index)])
}

fn known(block: &Block, index: usize, instruction: &Instruction) -> Known {
    let after = instruction.next_pc();
    let (next, back) = match instruction.kind {
        Kind::Plain | Kind::Pause | Kind::Syscall => (Next::OneOf([after, None]), None),
        Kind::Branch => (Next::OneOf([after, target(block, index)]), None),
        Kind::Jump => (Next::OneOf([target(block, index), None]), None),
        Kind::Call => (Next::OneOf([target(block, index), None]), after),
        Kind::IndirectCall => (Next::Anywhere, after),
        Kind::IndirectJump => (Next::Anywhere, None),
        Kind::Return => (Next::Return, None),
    };
    Known { pc: instruction.pc, sp: instruction.sp, next, back }
}

impl Walk<'_> {
    fn rows(&mut self, rows: &[Straight], mut sps: &[u64]) {
        self.in_gap = false;
        assert!(self.sp_known, "{}: no stack pointer behind a gap", self.name);
        for row in rows {
            self.arrive(row.first);
            let recorded = sps.split_off(..row.recorded).expect("a stack pointer for each that is recorded");
            self.sp = recorded.last().unwrap_or(&self.sp).wrapping_add_signed(row.added);
            self.instructions += row.instructions;
            self.next = row.last.next;
            self.calls.extend(row.last.back.map(|back| (back, self.sp + 8)));
        }
        assert!(sps.is_empty());
    }

    fn arrive(&mut self, pc: Pc) {
        match &self.next {
            Next::Anywhere => {}
            Next::OneOf(targets) => assert!(
                targets.contains(&Some(pc)),
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

    /// A handler returns to the C library's call of `sigreturn`; contexts are changed, and exceptions land, by a return
    /// to where no call was made.
    fn returns_elsewhere(&self, pc: Pc) -> bool {
        let name = self.trace.symbol_of(pc).map_or("", |s| &s.name);
        self.interrupted.last().is_some_and(|(_, calls)| *calls == self.calls.len())
            || ["__start_context", "other", "run", "attempt"].iter().any(|part| name.contains(part))
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
                let next = if self.in_gap { Next::Anywhere } else { Next::OneOf([Some(handler), None]) };
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
