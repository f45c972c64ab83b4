//! Locks of a program's own, known by their form: words of memory that atomic instructions take and give.
//!
//! ```text
//! xor eax, eax; mov ecx, 1; lock cmpxchg [w], ecx      takes w: 0 becomes another number; so does `xchg` with one
//! xor eax, eax; xchg [w], eax                          gives it: it becomes 0, or is counted down
//! ```
//!
//! So are Rust's `Mutex` and `RwLock`, parking_lot's, and spin locks. A word is a lock where two threads took it, each
//! gave it back as often as it took it, and none that takes it gave it without. Where a thread tries again, it takes
//! the word once: from its first try on.
//!
//! A `cmpxchg` whose numbers are unknown may take a share, as of an `RwLock`, or be anything else: it is a share of a
//! word that is also taken alone; and the word is taken alone by it where threads wait for the word in the kernel.
//!
//! What gives a word by a plain store is seen only where the address stands in the code.

use heuristics::SegmentTable;
use machine::{Instruction, Operand, Operation, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, ModuleRole, Pc, Trace};

/// What an instruction does to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Does {
    Takes,
    /// It takes the word, or a share of it, or does something else.
    MayTake,
    Gives,
    /// It counts the word down, or clears a bit of it: it gives it where the thread has it.
    MayGive,
}

/// How many instructions a register is followed back at most.
const FAR: usize = 24;

/// Words of a thread that are looked at.
const MOST_WORDS: usize = 1 << 14;

/// Libraries whose own locks are not looked for.
const LIBRARIES: [&str; 8] = ["libc.so", "libc-", "libc.musl", "ld-", "libpthread", "libgomp", "libomp", "libiomp"];

/// An instruction of a block that may act on a lock.
#[derive(Clone, Copy, Debug)]
struct Act {
    pc: Pc,
    does: Does,
    word: Word,
}

/// Which word an instruction acts on.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// Its address stands in the code.
    At(u64),
    /// Which of the addresses that were recorded for the block is its address.
    Recorded(usize),
}

/// The instructions that may act on locks of the program's own.
pub(in crate::view) struct Acts {
    by_block: Vec<Box<[Act]>>,
}

impl Acts {
    /// Those of all blocks, outside of the C library and of runtimes.
    pub fn of(trace: &Trace, table: &SegmentTable) -> Acts {
        let code = |id| -> Vec<Option<Instruction<'_>>> {
            table.of_block(id).iter().flat_map(|segment| table.listing(*segment).iter()).collect()
        };
        let mut by_block: Vec<Vec<Act>> = Vec::new();
        let mut taken = FxHashSet::default();
        for (id, block) in trace.blocks().iter() {
            let mut acts = Vec::new();
            if block.instructions.iter().any(|i| i.memory > 0) {
                let code = code(id);
                let mut recorded = 0;
                for (i, instruction) in block.instructions.iter().enumerate() {
                    let (pc, word) = (instruction.pc, Word::Recorded(recorded));
                    recorded += usize::from(instruction.memory);
                    if let Some(does) = does(&code, i).filter(|_| instruction.memory > 0 && !is_in_library(trace, pc)) {
                        acts.push(Act { pc, does, word });
                        taken.extend(code[i].and_then(Instruction::place).filter(|_| does == Does::Takes));
                    }
                }
            }
            by_block.push(acts);
        }
        if !taken.is_empty() {
            for ((id, _), acts) in trace.blocks().iter().zip(&mut by_block) {
                let code = code(id);
                let stores = (0..code.len()).filter_map(|i| stores_nothing(&code, i));
                acts.extend(stores.filter(|(_, at)| taken.contains(at)).map(|(pc, at)| Act {
                    pc,
                    does: Does::Gives,
                    word: Word::At(at),
                }));
            }
        }
        Acts { by_block: by_block.into_iter().map(Vec::into_boxed_slice).collect() }
    }

    /// Of a trace whose lanes are told as they are.
    pub fn none(trace: &Trace) -> Acts {
        Acts { by_block: trace.blocks().iter().map(|_| Box::default()).collect() }
    }

    /// Whether some instruction of the block may act on a lock.
    #[inline]
    pub fn has(&self, block: BlockId) -> bool {
        !self.by_block[block.index()].is_empty()
    }
}

fn is_in_library(trace: &Trace, pc: Pc) -> bool {
    trace.module_of(pc).is_none_or(|module| {
        module.role == ModuleRole::Loader || LIBRARIES.iter().any(|library| module.name().starts_with(library))
    })
}

/// What the instruction of this number may do to a lock.
fn does(code: &[Option<Instruction<'_>>], at: usize) -> Option<Does> {
    let instruction = code[at].filter(|instruction| instruction.is_atomic())?;
    let source = || instruction.register(1).and_then(|part| constant(code, at, part.register));
    match instruction.operation() {
        Operation::Exchange => {
            let register = instruction.register(1).or_else(|| instruction.register(0))?;
            constant(code, at, register.register).map(|put| if put == 0 { Does::Gives } else { Does::Takes })
        }
        Operation::CompareExchange => match (constant(code, at, Register::AX), source()) {
            (Some(0), Some(0)) => None,
            (_, Some(0)) => Some(Does::Gives),
            (Some(0), _) => Some(Does::Takes),
            (Some(_), Some(_)) => None,
            _ => Some(Does::MayTake),
        },
        Operation::TestAndSet => Some(Does::Takes),
        Operation::TestAndClear => Some(Does::Gives),
        Operation::Subtract | Operation::ExchangeAdd | Operation::Add | Operation::And => Some(Does::MayGive),
        _ => (instruction.operand_count() == 1).then_some(Does::MayGive),
    }
}

/// Where the instruction of this number writes 0, if the address stands in it.
fn stores_nothing(code: &[Option<Instruction<'_>>], at: usize) -> Option<(Pc, u64)> {
    let instruction = code[at].filter(|one| one.operation() == Operation::Move)?;
    let place = instruction.place().filter(|_| instruction.operand(0) == Operand::Memory)?;
    let put = match instruction.operand(1) {
        Operand::Constant(put) => Some(put),
        Operand::Register(part) => constant(code, at, part.register),
        _ => None,
    };
    (put == Some(0)).then_some((instruction.pc(), place))
}

/// What a general register holds before the instruction of this number, where the code on the way there says so.
fn constant(code: &[Option<Instruction<'_>>], at: usize, register: Register) -> Option<i64> {
    let mut wanted = register;
    for instruction in code[at.saturating_sub(FAR)..at].iter().rev() {
        let instruction = (*instruction)?;
        let writes = instruction.uses().iter().any(|used| used.part.register == wanted && used.access.writes);
        if !writes {
            continue;
        }
        if instruction.zeroes() {
            return Some(0);
        }
        match (instruction.operation(), instruction.operand(1)) {
            (Operation::Move | Operation::Extend, Operand::Constant(constant)) => return Some(constant),
            (Operation::Move | Operation::Extend, Operand::Register(from)) => wanted = from.register,
            _ => return None,
        }
    }
    None
}

/// What a thread does with a word.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    has: bool,
    shares: bool,
    /// How often it took the word alone, as a share, gave it back, and gave it without having it.
    takes: u32,
    may_take: u32,
    gives: u32,
    strays: u32,
}

/// What a thread does with words that may be locks.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Uses {
    words: FxHashMap<u64, Use>,
    places: FxHashMap<u64, FxHashSet<Pc>>,
    /// Words that it waited for in the kernel.
    waited: FxHashSet<u64>,
}

impl Uses {
    /// The thread runs a block that may act on locks, with these addresses, up to an instruction.
    pub fn block(&mut self, acts: &Acts, block: BlockId, addresses: &[u64]) {
        for act in &acts.by_block[block.index()] {
            let word = match act.word {
                Word::At(word) => word,
                // The block was left before.
                Word::Recorded(index) => match addresses.get(index) {
                    Some(word) => *word,
                    None => return,
                },
            };
            let takes = matches!(act.does, Does::Takes | Does::MayTake);
            if takes && self.words.len() < MOST_WORDS {
                self.words.entry(word).or_default();
            }
            let Some(used) = self.words.get_mut(&word) else { continue };
            match act.does {
                Does::Takes | Does::MayTake if used.has => used.shares &= act.does == Does::MayTake,
                Does::Takes => (used.has, used.shares, used.takes) = (true, false, used.takes + 1),
                Does::MayTake => (used.has, used.shares, used.may_take) = (true, true, used.may_take + 1),
                Does::Gives | Does::MayGive if used.has => (used.has, used.gives) = (false, used.gives + 1),
                Does::Gives => used.strays += 1,
                Does::MayGive => continue,
            }
            self.places.entry(word).or_default().insert(act.pc);
        }
    }

    /// The thread waits for the word in the kernel.
    pub fn waits(&mut self, word: u64) {
        self.waited.insert(word);
    }
}

/// The words that are locks.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct OwnLocks {
    /// Whether lanes may share it.
    pub words: FxHashMap<u64, bool>,
    /// What acts on them.
    pub acts: FxHashMap<Pc, Does>,
}

impl OwnLocks {
    pub fn new<'a>(threads: impl Iterator<Item = &'a Uses> + Clone, acts: &Acts) -> OwnLocks {
        let mut all = OwnLocks::default();
        let mut of_word: FxHashMap<u64, Vec<Use>> = FxHashMap::default();
        for (word, used) in threads.clone().flat_map(|thread| &thread.words) {
            of_word.entry(*word).or_default().push(*used);
        }
        let waited: FxHashSet<u64> = threads.clone().flat_map(|thread| &thread.waited).copied().collect();
        for (word, uses) in of_word {
            let is_taken = uses.iter().any(|used| used.takes > 0);
            let takes = |used: &&Use| used.takes + used.may_take > 0;
            let is_given = |used: &Use| !used.has && used.strays == 0 && used.gives == used.takes + used.may_take;
            if (is_taken || waited.contains(&word))
                && uses.iter().filter(takes).count() > 1
                && uses.iter().filter(takes).all(is_given)
            {
                all.words.insert(word, is_taken && uses.iter().any(|used| used.may_take > 0));
            }
        }
        let places: FxHashSet<Pc> = threads
            .flat_map(|thread| &thread.places)
            .filter(|(word, _)| all.words.contains_key(word))
            .flat_map(|(_, places)| places.iter().copied())
            .collect();
        let acts = acts.by_block.iter().flat_map(|acts| acts.iter());
        all.acts = acts.filter(|act| places.contains(&act.pc)).map(|act| (act.pc, act.does)).collect();
        all
    }
}
