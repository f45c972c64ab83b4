//! A translated superblock: the path through the program's code that it follows, and what each place in the translated
//! code stands for in the program.

use trace_format::Instruction;

use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::packed;
use crate::translate::code::values::Operand;

/// The most instructions of a superblock.
pub const MAX_INSTRUCTIONS: usize = 64;
/// The same for superblocks that run often: a loop is unrolled further, and takes fewer records.
pub const MAX_HOT_INSTRUCTIONS: usize = 640;

/// What the registers hold at a mark that are not the program's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Borrowed {
    /// All are the program's (but r11, see [`Mark::pointer_in_r11`]).
    Nothing,
    /// rcx is in the slot, at its place for lookups.
    Rcx,
    /// This register is in the slot, at the place for borrowed ones.
    Register(u8),
    /// The system call has not begun, but its path has been recorded already.
    BeforeSyscall,
    /// The system call is done, and its path has been recorded.
    AfterSyscall,
}

/// An address in the translated code where the program stands between two instructions, or can be put back to such a
/// place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The address, as distance from the start of the superblock's code.
    pub offset: u32,
    /// How many of its instructions have run.
    pub executed: u16,
    /// What is borrowed.
    pub borrowed: Borrowed,
    /// Whether r11 holds the place of the next record, and the program's r11 is in the slot. Else the other way round.
    pub pointer_in_r11: bool,
}

/// A jump that goes to the code of `target` once it is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The address of its 4-byte distance.
    pub site: CachePc,
    /// Where it goes in the program.
    pub target: ProgramPc,
    /// The trap that it leads to before.
    pub trap: CachePc,
}

/// Why translated code stopped at an `int3` of ours. The registers are the program's, with the record pointer in r11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// The code at this address of the program comes next, and is not translated (any more).
    Missing(ProgramPc),
    /// The lookup found nothing: the target is in the slot.
    Lookup,
    /// A thread that is at rest: where it goes on in the program is in the slot.
    Rest,
    /// A system call that we make for the program. It is recorded already.
    Syscall {
        /// The address after it.
        next: ProgramPc,
    },
    /// A system call that fills a buffer is about to be made, behind the trap.
    Filling,
    /// A return from a signal handler that we have to look at. It is recorded already.
    Return,
    /// A system call, made at this address, has ended with `EFAULT`: perhaps since its buffer lies in memory that we
    /// made read-only.
    Fault(CachePc),
    /// The instruction at this address has to run outside of the cache.
    Native(ProgramPc),
    /// The recording may begin or end before the instruction at this address, with which the superblock starts.
    Gate(ProgramPc),
    /// A synchronisation function starts here whose caller or routine is not known yet.
    Hook(ProgramPc),
}

/// The entry of a superblock for lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Where a lookup by the first table goes, which compares the address that it looks for; none where there was no
    /// room for that.
    pub entry: Option<CachePc>,
    /// Where a lookup goes on that has found its address.
    pub landing: CachePc,
}

/// A superblock as it is built.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Where it starts in the program.
    pub head: ProgramPc,
    /// Where its code lies.
    pub start: CachePc,
    /// Where code jumps to run it.
    pub body: CachePc,
    /// The entry for lookups, if it has one.
    pub checked: Option<Checked>,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// Their bytes.
    pub code: Vec<u8>,
    /// How many values are recorded for its first instruction, the first two, and so on.
    pub values: Vec<u16>,
    /// How the addresses of memory operands follow from the values, operand by operand; empty when they are not
    /// recorded.
    pub operands: Vec<Operand>,
    /// Its marks, by address.
    pub marks: Vec<Mark>,
    /// Room for what is packed.
    pub packed: Vec<u8>,
}

impl Draft {
    /// The superblock. The draft can be used for another one after [`Draft::clear`].
    #[must_use]
    pub fn pack(&mut self) -> Superblock {
        self.packed.clear();
        packed::pack_instructions(self.head, &self.instructions, &mut self.packed);
        let code_at = self.packed.len() as u32;
        self.packed.extend_from_slice(&self.code);
        let marks_at = self.packed.len() as u32;
        packed::pack_marks(&self.marks, &mut self.packed);
        Superblock {
            head: self.head,
            start: self.start,
            body: self.body,
            checked: self.checked,
            lists: self.packed[..].into(),
            code_at,
            marks_at,
            values: if self.values.last() == Some(&0) { Box::default() } else { self.values[..].into() },
            operands: std::mem::take(&mut self.operands).into(),
            dead: false,
        }
    }

    /// Makes it empty, and keeps its room.
    pub fn clear(&mut self) {
        let Draft { head, start, body, checked, instructions, code, values, operands, marks, packed } = self;
        (*head, *start, *body, *checked) = (ProgramPc(0), CachePc(0), CachePc(0), None);
        instructions.clear();
        code.clear();
        values.clear();
        operands.clear();
        marks.clear();
        packed.clear();
    }
}

/// A superblock and its translation.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// Where it starts in the program.
    pub head: ProgramPc,
    /// Where its code lies.
    pub start: CachePc,
    /// Where code jumps to run it.
    pub body: CachePc,
    /// The entry for lookups, if it has one.
    pub checked: Option<Checked>,
    /// Its instructions, packed; their bytes, from `code_at` on; and its marks, packed, from `marks_at` on.
    lists: Box<[u8]>,
    code_at: u32,
    marks_at: u32,
    /// As in [`Draft`]; empty when there are none at all.
    values: Box<[u16]>,
    /// As in [`Draft`].
    pub operands: Box<[Operand]>,
    /// Whether it was given up: the code has changed.
    pub dead: bool,
}

impl Superblock {
    /// About how many bytes of our memory it takes, with its entries in tables.
    #[must_use]
    pub fn size(&self) -> u64 {
        let lists = self.lists.len()
            + size_of_val(&self.values[..])
            // A sum has two terms on average, in a list of its own.
            + 2 * size_of_val(&self.operands[..]);
        (lists + 2 * size_of::<Superblock>()) as u64 + 100
    }

    /// Its instructions.
    #[must_use]
    pub fn instructions(&self) -> packed::Instructions<'_> {
        packed::Instructions::new(self.head, &self.lists[..self.code_at as usize])
    }

    /// The bytes of its instructions.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.lists[self.code_at as usize..self.marks_at as usize]
    }

    /// One of its instructions alone, without a translation; it must have no memory operands.
    #[must_use]
    pub fn only(&self, number: usize) -> Superblock {
        let before: usize = self.instructions().take(number).map(|i| usize::from(i.len)).sum();
        let instructions: Vec<Instruction> = self.instructions().skip(number).take(1).collect();
        let bytes: usize = instructions.iter().map(|i| usize::from(i.len)).sum();
        let mut draft = Draft {
            head: self.pc_after(number),
            code: self.code()[before..before + bytes].to_vec(),
            values: vec![0],
            instructions,
            ..Draft::default()
        };
        Superblock { dead: true, ..draft.pack() }
    }

    /// The mark at exactly this address: the last one, where instructions that need no code of their own come before.
    #[must_use]
    pub fn mark_at(&self, address: CachePc) -> Option<Mark> {
        let offset = u32::try_from(address.behind(self.start)).ok()?;
        packed::mark_at(&self.lists[self.marks_at as usize..], offset)
    }

    /// How many values are recorded when so many of its instructions have run.
    #[must_use]
    pub fn values_after(&self, executed: usize) -> u16 {
        let last = executed.checked_sub(1).and_then(|last| self.values.get(last));
        last.copied().unwrap_or(0)
    }

    /// The address in the program after so many of its instructions.
    #[must_use]
    pub fn pc_after(&self, executed: usize) -> ProgramPc {
        let mut last = None;
        for (count, instruction) in self.instructions().enumerate() {
            if count == executed {
                return instruction.pc.into();
            }
            last = Some(instruction);
        }
        last.and_then(|last| last.next_pc()).map_or(self.head, ProgramPc::from)
    }
}

/// A jump to code that is translated, or leads to a trap.
#[derive(Clone, Copy)]
pub struct Jump {
    /// The address of its 4-byte distance.
    pub site: CachePc,
    /// Where it goes in the program.
    pub target: ProgramPc,
    /// Where it goes as long as that is not translated.
    pub trap: CachePc,
    /// The jump to the same target that was made before, or [`NO_JUMP`].
    pub before: u32,
}

/// No jump: see [`Jump::before`].
pub const NO_JUMP: u32 = u32::MAX;
