//! What instructions may do to locks of the program's own, by the code of their blocks and of what leads there.

use heuristics::SegmentTable;
use machine::{Instruction, Operand, Operation, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, BlockTable, Kind, LibraryCode, Pc, Trace};

use super::super::values::{self, Found, Place};
use super::barriers::Looks;
use super::by_block::ByBlock;
use super::{barriers, queues, tickets, undone, unseen};
use crate::waiting::Code;

/// What an instruction does to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Does {
    Takes,
    /// It takes the word, or a share of it, or does something else.
    MayTake,
    Gives,
    /// It counts the word down, clears a bit of it, or puts an unknown number there: it gives it where the thread has
    /// it.
    MayGive,
    /// It counts who has come to a barrier.
    Arrives,
    /// It draws a ticket for the word, or counts up what is served; or queues there.
    Draws,
}

/// What an instruction may do to a word that may be a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnWord {
    pub(super) does: Does,
    /// What it puts is not known from the code of its block.
    pub(super) is_open: bool,
    /// It only puts something, clears bits, or counts up: it takes nothing, and gives no share of a word that is
    /// counted down.
    pub(super) only_gives: bool,
    /// It is a plain store. Of those, the address was not recorded.
    pub(super) is_store: bool,
    /// The word's address, where it stands in the code.
    pub(super) place: Option<u64>,
    /// How many bytes it has.
    pub(super) size: u16,
    /// By which register it finds the word, and how far from there.
    pub(super) at: Option<(Register, i64)>,
    /// Where the function begins that it is in, once all of them are known.
    pub(super) function: Option<Pc>,
}

/// The instructions that may act on locks and barriers of the program's own.
pub(in crate::view) struct Acts<'a> {
    pub(super) words: ByBlock<OnWord>,
    /// Stores in functions that a symbol calls an atomic's, as without optimisation.
    pub(super) of_atomics: FxHashSet<Pc>,
    pub(super) tickets: ByBlock<tickets::Does>,
    pub(super) queues: ByBlock<queues::Does>,
    pub(super) counts: ByBlock<()>,
    pub(super) undone: ByBlock<undone::Does>,
    pub(super) unseen: ByBlock<unseen::Does>,
    /// By block: whether any of those but counts is in it.
    has_any: Vec<bool>,
    /// By block, where some instruction counts.
    pub(super) looks: Vec<Looks>,
    pub(super) table: &'a SegmentTable,
    pub(super) blocks: &'a BlockTable,
}

impl<'a> Acts<'a> {
    /// Those of all blocks, outside of the C library and of runtimes.
    pub fn of(trace: &'a Trace, table: &'a SegmentTable, leading: Option<&Code>) -> Acts<'a> {
        let (mut all, libraries) = (Acts::none(trace, table), LibraryCode::new(trace.modules(), trace.symbols()));
        for (id, block) in trace.blocks().iter() {
            let code: Vec<_> = all.listing(id).collect();
            let is_own = |number: usize| !libraries.has(block.instructions[number].pc) && !puts_number(&code, number);
            let atomic = |i: usize| code[i].filter(|one| one.is_atomic() && block.instructions[i].memory > 0);
            let on_word = |i| atomic(i).map_or_else(|| stores(&code, i, leading), |one| acts(&code, i, one, leading));
            all.words.push(block, |i| on_word(i).filter(|_| is_own(i)));
            all.tickets.push(block, |i| tickets::does(&code, i).filter(|_| is_own(i)));
            all.queues.push(block, |i| queues::does(&code, i).filter(|_| is_own(i)));
            all.counts.push(block, |i| (atomic(i).is_some_and(barriers::counts) && is_own(i)).then_some(()));
            let undoes = |i: usize| undone::does(&code, i, block.instructions[i].memory > 0);
            all.undone.push(block, |i| undoes(i).filter(|_| is_own(i)));
            let unseen = |i: usize| unseen::does(&code, i, block.instructions[i].memory > 0, leading);
            all.unseen.push(block, |i| unseen(i).filter(|_| is_own(i)));
            all.looks.push(Looks::of(&code));
        }
        all.settle(trace);
        all
    }

    /// Of a trace whose lanes are told as they are.
    pub fn none(trace: &'a Trace, table: &'a SegmentTable) -> Acts<'a> {
        Acts {
            words: ByBlock::default(),
            of_atomics: FxHashSet::default(),
            tickets: ByBlock::default(),
            queues: ByBlock::default(),
            counts: ByBlock::default(),
            undone: ByBlock::default(),
            unseen: ByBlock::default(),
            has_any: Vec::new(),
            looks: Vec::new(),
            table,
            blocks: trace.blocks(),
        }
    }

    /// What one block tells holds for others; what nothing can follow from goes.
    fn settle(&mut self, trace: &Trace) {
        // What a block does not show another may, which came there by another way.
        let mut known: FxHashMap<Pc, Does> = FxHashMap::default();
        let (mut taken, mut sizes) = (FxHashSet::default(), FxHashSet::default());
        for act in self.words.acts.iter().filter(|act| !act.does.is_store) {
            let does = act.does.does;
            if !matches!(does, Does::MayTake | Does::MayGive) || !known.contains_key(&act.pc) {
                known.insert(act.pc, does);
            }
            if does == Does::Takes || act.does.is_open {
                taken.extend(act.does.place);
                sizes.insert(act.does.size);
            }
        }
        let is_in = |pc: Pc, name| trace.symbol_of(pc).is_some_and(|symbol| symbol.name.contains(name));
        for act in &mut self.words.acts {
            act.does.does = known.get(&act.pc).copied().unwrap_or(Does::Gives);
            // Without optimisation it is a function.
            act.does.only_gives |= is_in(act.pc, "atomic") && is_in(act.pc, "store");
            act.does.function = trace.symbol_of(act.pc).map(|symbol| symbol.pc);
        }
        let may_give = |act: &OnWord| sizes.contains(&act.size) && act.place.is_none_or(|place| taken.contains(&place));
        self.words.retain(|act| !act.is_store || may_give(act));
        let stores = self.words.acts.iter().filter(|act| act.does.is_store && act.does.place.is_none());
        self.of_atomics = stores.map(|act| act.pc).filter(|pc| is_in(*pc, "atomic")).collect();
        self.tickets.keep_if_any(|does| *does == tickets::Does::Draws);
        self.queues.keep_if_any(|does| *does == queues::Does::Queues);
        undone::keep(&mut self.undone);
        let mut unseen = std::mem::take(&mut self.unseen);
        unseen::settle(&mut unseen, || self.blocks.iter().flat_map(|(block, _)| self.listing(block)).flatten());
        self.unseen = unseen;
        let has_any = |block| {
            let of_forms = self.words.has(block) || self.tickets.has(block) || self.queues.has(block);
            of_forms || self.undone.has(block) || self.unseen.has(block)
        };
        self.has_any = self.blocks.iter().map(|(block, _)| has_any(block)).collect();
        if self.counts.is_empty() {
            self.looks = Vec::new();
        }
    }

    /// The instructions of a block; none for each that is not known.
    pub fn listing(&self, block: BlockId) -> impl DoubleEndedIterator<Item = Option<Instruction<'a>>> + use<'a> {
        let table = self.table;
        table.of_block(block).iter().flat_map(|segment| table.listing(*segment).iter())
    }

    /// The instruction of this number of a block.
    pub fn instruction(&self, block: BlockId, mut number: usize) -> Option<Instruction<'a>> {
        for segment in self.table.of_block(block) {
            let length = self.table[*segment].len();
            if number < length {
                return self.table.listing(*segment).get(number);
            }
            number -= length;
        }
        None
    }

    /// Whether the way that leads to some instruction tells what it does.
    pub fn need_ways(&self) -> bool {
        let of_forms = !self.tickets.is_empty() || !self.counts.is_empty() || !self.queues.is_empty();
        of_forms || self.words.acts.iter().any(|act| act.does.is_open)
    }

    /// Whether some instruction of the block may act on a lock.
    #[inline]
    pub fn has(&self, block: BlockId) -> bool {
        self.has_any.get(block.index()).is_some_and(|has| *has)
    }
}

/// The register at whose distance from it the instruction accesses memory.
fn by_register(instruction: Instruction) -> Option<(Register, i64)> {
    let memory = instruction.address().filter(|memory| memory.index.is_none())?;
    Some((memory.base?.register, memory.displacement))
}

/// What an atomic instruction may do to a lock, by the constants in registers.
pub(super) fn does(instruction: Instruction, mut constant: impl FnMut(Register) -> Option<i64>) -> Option<Does> {
    match instruction.operation() {
        Operation::Exchange => {
            let register = instruction.register(1).or_else(|| instruction.register(0))?;
            Some(constant(register.register).map_or(Does::MayGive, |put| match put {
                0 => Does::Gives,
                _ => Does::Takes,
            }))
        }
        Operation::CompareExchange => {
            let put = instruction.register(1).and_then(|part| constant(part.register));
            match (constant(Register::AX), put) {
                (Some(0), Some(0)) => None,
                (_, Some(0)) => Some(Does::MayGive),
                (Some(0), _) | (None, Some(_)) => Some(Does::Takes),
                (Some(_), Some(_)) => None,
                _ => Some(Does::MayTake),
            }
        }
        Operation::TestAndSet => Some(Does::Takes),
        Operation::TestAndClear => Some(Does::Gives),
        Operation::Subtract | Operation::ExchangeAdd | Operation::Add | Operation::And => Some(Does::MayGive),
        _ => (instruction.operand_count() == 1).then_some(Does::MayGive),
    }
}

/// What an atomic instruction, that of this number, does to the word that it accesses.
fn acts(code: &[Option<Instruction>], at: usize, one: Instruction, leading: Option<&Code>) -> Option<OnWord> {
    let mut is_open = false;
    let does = does(one, |register| {
        let known = constant(code, at, register, leading);
        is_open |= known.is_none();
        known
    })?;
    let size = one.address().map_or(0, |memory| memory.size);
    let only_gives = match one.operation() {
        Operation::Exchange => !is_looked_at(code, at, one),
        Operation::And => true,
        _ => values::adds(one).is_some_and(|(_, by)| by > 0),
    };
    Some(OnWord {
        does,
        is_open,
        only_gives,
        is_store: false,
        place: one.place(),
        size,
        at: by_register(one),
        function: None,
    })
}

/// Whether what the atomic instruction of this number finds may be looked at, in its registers or the flags. If not, an
/// exchange stores something that others wait for. Who adds and asks for the number that was there looks, wherever.
pub(super) fn is_looked_at(code: &[Option<Instruction>], at: usize, one: Instruction) -> bool {
    let mut written = one.writes();
    for behind in &code[at + 1..] {
        let Some(behind) = behind else { return true };
        let returns = behind.kind() == Kind::Return && written & Register::AX.bit() != 0;
        if returns || behind.reads() & written != 0 {
            return true;
        }
        written &= !behind.writes();
    }
    // The block was cut there, or leads somewhere. No code reads flags behind a branch.
    let is_open = code.last().copied().flatten().is_none_or(|last| last.kind() == Kind::Plain);
    written & !one.flags_written() != 0 && (is_open || one.operation() == Operation::ExchangeAdd)
}

/// What the instruction of this number does, if it may write 0 to memory outside of the frame.
fn stores(code: &[Option<Instruction>], at: usize, leading: Option<&Code>) -> Option<OnWord> {
    let one = code[at].filter(|one| one.operation() == Operation::Move && one.operand(0) == Operand::Memory)?;
    let memory = one.address().filter(|memory| one.place().is_some() || !memory.is_local())?;
    let put = match one.operand(1) {
        Operand::Constant(put) => Some(put),
        Operand::Register(part) => constant(code, at, part.register, leading),
        _ => return None,
    };
    let (does, is_open, place, size, at) = (Does::Gives, put.is_none(), one.place(), memory.size, by_register(one));
    let only_gives = true;
    let (is_store, function) = (true, None);
    put.is_none_or(|put| put == 0).then_some(OnWord { does, is_open, only_gives, is_store, place, size, at, function })
}

/// Whether the instruction of this number puts a floating-point number, as who adds to a sum that others add to: no
/// lock holds one, also where each thread sets the sum to 0 before.
fn puts_number(code: &[Option<Instruction>], at: usize) -> bool {
    let compares = |one: &Instruction| one.operation() == Operation::CompareExchange;
    let put = code[at].filter(compares).and_then(|one| one.register(1));
    put.is_some_and(|put| match values::found(code[..=at].iter().rev().copied(), Place::Register(put.register)) {
        Found::Made(from, ..) => from.register(0).is_some_and(|part| !part.register.is_general()),
        Found::Before(register, _) => !register.is_general(),
        Found::Constant(_) | Found::Unknown | Found::Loaded(..) => false,
    })
}

/// What a general register holds before the instruction of this number, where the code on the way there says so; before
/// the block, all that leads there.
pub(super) fn constant(
    code: &[Option<Instruction<'_>>],
    at: usize,
    register: Register,
    leading: Option<&Code>,
) -> Option<i64> {
    match values::found(code[..=at].iter().rev().copied(), Place::Register(register)) {
        Found::Constant(constant) => Some(constant),
        Found::Unknown | Found::Loaded(..) | Found::Made(..) => None,
        Found::Before(register, mask) => {
            let begin = (*code.first()?)?.pc();
            leading?.constant_at(begin, register.index()).map(|constant| constant.cast_signed() & mask)
        }
    }
}

#[cfg(test)]
mod tests {
    use machine::Table;

    use super::*;

    /// Whether `mov al, 1; xchg [rdi], al`, and these bytes behind it, take a lock.
    fn takes(behind: &[u8]) -> bool {
        let table = Table::row(Pc(0x100), &[&[0xb0, 1, 0x86, 0x07], behind].concat());
        let code: Vec<_> = table.all().iter().collect();
        acts(&code, 1, code[1].unwrap(), None).is_some_and(|act| act.does == Does::Takes && !act.only_gives)
    }

    #[test]
    fn an_exchange_at_whose_result_nothing_looks_stores_what_others_wait_for() {
        assert!(takes(&[0x84, 0xc0, 0x75, 0xf8]), "test al, al; jne");
        assert!(takes(&[0xc3]), "ret");
        assert!(takes(&[0x89, 0xda]), "the block was cut: mov edx, ebx");
        assert!(!takes(&[0x75, 0xf8]), "jne");
        assert!(!takes(&[0xb0, 0, 0x84, 0xc0, 0x75, 0xf8]), "mov al, 0; test al, al; jne");
    }

    #[test]
    fn no_lock_holds_a_floating_point_number() {
        let puts = |bytes: &[&[u8]]| {
            let table = Table::row(Pc(0x100), &bytes.concat());
            let code: Vec<_> = table.all().iter().collect();
            puts_number(&code, code.len() - 1)
        };
        let (adds, takes_out) = (&[0xf2, 0x0f, 0x58, 0xc8][..], &[0x66, 0x48, 0x0f, 0x7e, 0xc9][..]);
        let exchanges = &[0xf0, 0x48, 0x0f, 0xb1, 0x0f][..];
        assert!(puts(&[adds, takes_out, exchanges]), "addsd xmm1, xmm0; movq rcx, xmm1; lock cmpxchg [rdi], rcx");
        assert!(puts(&[takes_out, exchanges]), "movq rcx, xmm1; lock cmpxchg [rdi], rcx");
        let by_slot = &[0xf2, 0x0f, 0x11, 0x4d, 0xf8, 0x48, 0x8b, 0x4d, 0xf8][..];
        assert!(puts(&[adds, by_slot, exchanges]), "addsd; movsd [rbp-8], xmm1; mov rcx, [rbp-8]; lock cmpxchg");
        assert!(!puts(&[&[0x48, 0x83, 0xc1, 1], exchanges]), "add rcx, 1; lock cmpxchg [rdi], rcx");
        assert!(!puts(&[exchanges]), "lock cmpxchg [rdi], rcx");
        assert!(!puts(&[takes_out]), "movq rcx, xmm1");
    }
}
