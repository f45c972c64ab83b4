//! Instructions of the program, decoded once, with the places at which they touch the stack.

use std::cell::OnceCell;
use std::rc::Rc;

use iced_x86::{OpAccess, Register, UsedMemory};
use rustc_hash::FxHashMap;
use trace_format::{Instruction, Kind, Pc, SpEffect};

use crate::decode::{Decoded, InstructionDecoder, MAX_LENGTH};

/// The bytes of an instruction; those behind its length are 0.
pub type Bytes = [u8; MAX_LENGTH];

/// An instruction.
#[derive(Debug)]
pub struct Code {
    /// What it is.
    pub decoded: Decoded,
    /// The memory operand that tells the stack pointer before it: the number, and what is added to the stack pointer.
    pub stack: Option<(usize, u64)>,
    /// What it does to the stack pointer, where that is not constant.
    pub moves: Moves,
    without_memory: OnceCell<Rc<Code>>,
}

/// How the stack pointer after an instruction follows, where the instruction does not add a constant to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// From registers that are unknown.
    Unknown,
    /// It is 8 above the address that is read (`leave`).
    Leaves,
    /// It is rounded down (`and rsp, MASK`).
    Aligns(u64),
}

impl Code {
    fn new(decoded: Decoded) -> Code {
        let on_stack = |operand: &UsedMemory| operand.base() == Register::RSP && operand.index() == Register::None;
        let stack = decoded.memory.iter().position(on_stack);
        let moves = match *decoded.code() {
            [0xc9] => Moves::Leaves,
            [0x48, 0x83, 0xe4, mask] => Moves::Aligns(i64::from(mask.cast_signed()).cast_unsigned()),
            [0x48, 0x81, 0xe4, a, b, c, d] => {
                Moves::Aligns(i64::from(i32::from_le_bytes([a, b, c, d])).cast_unsigned())
            }
            _ => Moves::Unknown,
        };
        let stack = stack.map(|at| (at, decoded.memory[at].displacement()));
        Code { decoded, stack, moves, without_memory: OnceCell::new() }
    }

    /// It, where this execution of it accessed no memory, or not all that it may: no address is recorded then.
    pub fn without_memory(&self) -> Rc<Code> {
        let bare = || {
            let instruction = Instruction { memory: 0, ..self.decoded.instruction };
            let decoded = Decoded { instruction, memory: Box::default(), ..self.decoded.clone() };
            Rc::new(Code { decoded, stack: None, moves: self.moves, without_memory: OnceCell::new() })
        };
        self.without_memory.get_or_init(bare).clone()
    }

    /// The addresses of its memory operands among what was recorded, which has all that is read first; none where not
    /// all are there.
    pub fn addresses(&self, accesses: &[Access], into: &mut Vec<u64>) -> bool {
        let before = into.len();
        let (mut reads, mut writes) = (0, 0);
        let next = |from: &mut usize, write: bool| {
            let at = *from + accesses[*from..].iter().position(|access| access.writes == write)?;
            *from = at + 1;
            Some(accesses[at].address)
        };
        for operand in &self.decoded.memory {
            let reading = !matches!(operand.access(), OpAccess::Write | OpAccess::CondWrite);
            let writing = matches!(
                operand.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            let read = if reading { next(&mut reads, false) } else { None };
            let written = if writing { next(&mut writes, true) } else { None };
            let Some(address) = read.or(written) else {
                into.truncate(before);
                return false;
            };
            into.push(address);
        }
        true
    }
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where.
    pub address: u64,
    /// Whether it wrote.
    pub writes: bool,
}

/// All instructions, each once however many threads run it.
pub struct Codes {
    decoder: InstructionDecoder,
    known: FxHashMap<(u64, Bytes, u8), Rc<Code>>,
}

impl Codes {
    /// None yet; `memory` tells whether the trace has memory addresses.
    pub fn new(memory: bool) -> Codes {
        Codes { decoder: InstructionDecoder::new(memory), known: FxHashMap::default() }
    }

    /// The instruction of so many bytes at this address.
    pub fn get(&mut self, pc: u64, bytes: &Bytes, len: u8) -> Rc<Code> {
        let Codes { decoder, known } = self;
        let decode = || {
            let decoded = decoder.decode(Pc(pc), &bytes[..usize::from(len)], false);
            Rc::new(Code::new(if decoded.instruction.len == len { decoded } else { undecoded(pc, bytes, len) }))
        };
        known.entry((pc, *bytes, len)).or_insert_with(decode).clone()
    }
}

/// An instruction that is not known, but ran.
fn undecoded(pc: u64, bytes: &Bytes, len: u8) -> Decoded {
    let instruction = Instruction { pc: Pc(pc), len, kind: Kind::Plain, sp: SpEffect::Recorded, memory: 0 };
    Decoded { instruction, bytes: *bytes, ..Decoded::unknown(Pc(pc)) }
}
