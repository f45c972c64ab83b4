//! What stands for one of x86-64's instructions in the code of an NVIDIA GPU, instruction by instruction.
//!
//! An operand in memory is a load before, or a store behind, what is done with the values; an indexed address is worked
//! out before. What several instructions do there, as divisions, is so many of the class that does most of them, as
//! [`super::gpu_costs`] counts them, without their halves. Names are SASS's, as `nvdisasm` writes them for Volta and
//! later.
//!
//! Worked example: `add [rdi+rcx*8], rax` is `IMAD.WIDE` (the address), `LDG.E.64`, `IADD3` and `STG.E.64`.
//!
//! *Limitation*: an instruction is never nothing here, so that each can be found again. What a GPU has no use for, as
//! copies between registers and pushes, is one instruction, too: its counts are higher than those of
//! [`Instruction::gpu_tenths`]. Flags are predicates there, and not named. The operands of gathers and scatters have no
//! addresses in a trace: they are operations without memory.

use iced_x86::Mnemonic as M;
use trace_format::Kind;

use super::gpu_costs;
use super::operation::moves;
use crate::{Instruction, Register};

/// An instruction of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInstruction {
    /// Its name; of an access to memory without the space and the width, which hang on where lanes access: `LD`, `ST`,
    /// `ATOM` or `LDC`.
    pub opcode: &'static str,
    /// The register that it writes: one of x86-64's, or one from [`GpuInstruction::TEMPORARY`] on.
    pub writes: Option<u8>,
    /// Those that it reads, at most [`GpuInstruction::MOST_READ`].
    pub reads: Vec<u8>,
    /// The memory that it accesses.
    pub access: Option<GpuAccess>,
}

/// A part of a memory operand that one instruction of a GPU accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuAccess {
    /// The number of the operand among those of the instruction that have addresses.
    pub operand: usize,
    /// Where it begins in the operand, in bytes.
    pub offset: u64,
    /// Its bytes: 1, 2, 4, 8 or 16.
    pub bytes: u64,
}

impl GpuInstruction {
    /// The first register that no register of x86-64 stands for.
    pub const TEMPORARY: u8 = 100;
    /// The most registers that one reads.
    pub const MOST_READ: usize = 4;

    fn new(opcode: &'static str, writes: Option<u8>, reads: &[u8]) -> GpuInstruction {
        let mut own: Vec<u8> = Vec::new();
        reads.iter().for_each(|register| {
            if !own.contains(register) {
                own.push(*register)
            }
        });
        own.truncate(GpuInstruction::MOST_READ);
        GpuInstruction { opcode, writes, reads: own, access: None }
    }
}

/// What has been loaded, worked out, and the address of an indexed operand.
const LOADED: u8 = GpuInstruction::TEMPORARY;
const RESULT: u8 = LOADED + 1;
const ADDRESS: u8 = LOADED + 2;

/// At least one.
pub(super) fn of(instruction: Instruction) -> Vec<GpuInstruction> {
    let kind = instruction.kind();
    if kind.transfers_control() {
        return of_transfer(instruction, kind);
    }
    let is_value = |register: Register| {
        register.0 < Register::FLAGS.0 || (Register::MASKS.0..Register::POINTERS.0).contains(&register.0)
    };
    let used = |which: fn(&crate::Access) -> bool| -> Vec<u8> {
        let uses = instruction.uses().iter().filter(|used| which(&used.access));
        uses.map(|used| used.part.register).filter(|register| is_value(*register)).map(|register| register.0).collect()
    };
    let addresses: Vec<u8> = instruction
        .memory()
        .iter()
        .flat_map(|memory| [memory.base, memory.index])
        .flatten()
        .map(|part| part.register.0)
        .collect();
    let mut reads = used(|access| access.reads);
    let written = used(|access| access.writes);
    // A push or pop moves the stack pointer, which a GPU's code need not.
    let target = written.iter().copied().find(|register| !instruction.is_of_stack() || *register != Register::SP.0);
    let loads_it = instruction.memory().iter().any(|memory| memory.access.reads);
    let stores_it = instruction.memory().iter().any(|memory| memory.access.writes);
    let copies = moves(instruction.decoded.mnemonic()) || instruction.is_of_stack() || extends(instruction);
    let work = gpu_costs::work_of(instruction) / 10;
    // What is only copied from or to memory is the load or the store.
    let has_work = !(copies && (loads_it || stores_it) && !instruction.is_atomic());
    let result = match (has_work, stores_it) {
        (_, false) => target,
        (true, true) => Some(RESULT),
        (false, true) if loads_it => Some(LOADED),
        (false, true) => None,
    };
    let mut code = Vec::new();
    let operands = || instruction.memory().iter().filter(|memory| !memory.is_gathered()).enumerate();
    for (operand, memory) in operands().filter(|(_, memory)| memory.access.reads) {
        let opcode = match () {
            () if instruction.is_atomic() => "ATOM",
            () if memory.by_pc && memory.index.is_none() && !memory.access.writes => "LDC",
            () => "LD",
        };
        let (to, values) = match instruction.is_atomic() {
            true => (target, &reads[..]),
            false => (if has_work || stores_it { Some(LOADED) } else { target }, &[][..]),
        };
        accesses(&mut code, opcode, memory, operand, to, values);
    }
    if loads_it {
        // Registers of the address have been read by then.
        reads.retain(|register| !addresses.contains(register) || written.contains(register));
        reads.insert(0, LOADED);
    }
    if has_work && !instruction.is_atomic() || code.is_empty() && !stores_it {
        let opcode = class(instruction);
        code.push(GpuInstruction::new(opcode, result, &reads));
        for _ in 1..work {
            let again: Vec<u8> = result.into_iter().chain(reads.iter().copied()).collect();
            code.push(GpuInstruction::new(opcode, result, &again));
        }
    }
    for (operand, memory) in operands().filter(|(_, memory)| memory.access.writes && !instruction.is_atomic()) {
        let value = result.into_iter().chain(reads.iter().copied().filter(|register| !addresses.contains(register)));
        accesses(&mut code, "ST", memory, operand, None, &value.take(1).collect::<Vec<u8>>());
    }
    code
}

/// Adds the instructions that access an operand, and the one that works out its address, if it has an index.
fn accesses(
    code: &mut Vec<GpuInstruction>,
    opcode: &'static str,
    memory: &crate::Memory,
    operand: usize,
    to: Option<u8>,
    values: &[u8],
) {
    let parts = [memory.base, memory.index].into_iter().flatten();
    let mut address: Vec<u8> = parts.map(|part| part.register).filter(|r| r.is_general()).map(|r| r.0).collect();
    if memory.index.is_some() {
        // What is read and written has its address from the load.
        if !(opcode == "ST" && memory.access.reads) {
            code.push(GpuInstruction::new("IMAD.WIDE", Some(ADDRESS), &address));
        }
        address = vec![ADDRESS];
    }
    let (mut offset, bytes) = (0, memory.bytes() as u64);
    while offset < bytes {
        // A GPU accesses 1, 2, 4, 8 or 16 bytes at once.
        let piece = 1 << (bytes - offset).min(16).ilog2();
        let reads: Vec<u8> = address.iter().chain(values).copied().collect();
        let access = Some(GpuAccess { operand, offset, bytes: piece });
        code.push(GpuInstruction { access, ..GpuInstruction::new(opcode, to, &reads) });
        offset += piece;
    }
}

/// A jump, call or return; what it finds in memory is loaded before. The stack of return addresses is the GPU's own.
fn of_transfer(instruction: Instruction, kind: Kind) -> Vec<GpuInstruction> {
    let mut code = Vec::new();
    let named = instruction.address().is_some();
    if let Some(memory) = instruction.memory().first().filter(|memory| named && memory.access.reads) {
        accesses(&mut code, "LD", memory, 0, Some(LOADED), &[]);
    }
    let target: Vec<u8> = match instruction.register(0) {
        Some(part) => vec![part.register.0],
        None if named => vec![LOADED],
        None => Vec::new(),
    };
    let opcode = match kind {
        Kind::Call => "CALL.REL.NOINC",
        Kind::IndirectCall => "CALL.ABS.NOINC",
        Kind::Return => "RET.REL.NODEC",
        Kind::IndirectJump => "BRX",
        Kind::Syscall => "NOP",
        _ => "BRA",
    };
    code.push(GpuInstruction::new(opcode, None, &target));
    code
}

fn extends(instruction: Instruction) -> bool {
    matches!(instruction.decoded.mnemonic(), M::Movzx | M::Movsx | M::Movsxd)
}

/// The name of what does the work.
fn class(instruction: Instruction) -> &'static str {
    let name = instruction.mnemonic();
    let is_vector = instruction.register(0).is_some_and(|part| !part.register.is_general());
    match instruction.decoded.mnemonic() {
        M::Nop | M::Endbr64 | M::Pause | M::Vzeroupper | M::Mfence | M::Lfence | M::Sfence => "NOP",
        mnemonic if moves(mnemonic) => "MOV",
        _ if instruction.zeroes() => "MOV",
        M::Push | M::Pop | M::Leave | M::Xchg => "MOV",
        M::Add | M::Sub | M::Inc | M::Dec | M::Neg | M::Adc | M::Sbb => "IADD3",
        M::Lea => "LEA",
        M::Imul | M::Mul | M::Mulx | M::Div | M::Idiv => "IMAD",
        M::Cmp => "ISETP",
        M::Test | M::Bt => "LOP3.LUT",
        M::Shl | M::Shld | M::Rol => "SHF.L",
        M::Shr | M::Sar | M::Shrd | M::Ror | M::Sarx | M::Shrx | M::Rorx => "SHF.R",
        M::Movzx | M::Movsx | M::Movsxd | M::Cdqe | M::Cwde | M::Cbw | M::Cdq | M::Cqo | M::Cwd => "SGXT",
        M::Popcnt => "POPC",
        M::Lzcnt | M::Tzcnt | M::Bsf | M::Bsr => "FLO",
        M::Bswap => "PRMT",
        _ if name.starts_with("cmov") || name.starts_with("set") || name.contains("blend") => "SEL",
        _ if name.contains("cvtsi") || name.contains("cvtdq") || name.contains("cvtusi") => "I2F",
        _ if name.contains("cvt") && (name.ends_with("si") || name.ends_with("dq")) => "F2I",
        _ if name.contains("cvt") => "F2F",
        _ if name.contains("round") => "FRND",
        _ if name.contains("comis") => {
            if name.ends_with('d') {
                "DSETP"
            } else {
                "FSETP"
            }
        }
        // x87 works in more than double precision, which no GPU has.
        _ if name.starts_with('f') => "DFMA",
        _ if is_vector => of_vector(&name),
        _ => "LOP3.LUT",
    }
}

/// The same of an instruction for vectors or floating-point numbers.
fn of_vector(name: &str) -> &'static str {
    let name = name.strip_prefix('v').unwrap_or(name);
    let is_double = name.ends_with("sd") || name.ends_with("pd");
    let either = |double, single| if is_double { double } else { single };
    let is = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    let is_float = ["ss", "sd", "ps", "pd"].iter().any(|end| name.ends_with(end));
    match () {
        () if is(&["fm", "fnm"]) => either("DFMA", "FFMA"),
        () if is(&["and", "or", "xor", "pand", "por", "pxor", "ptest"]) => "LOP3.LUT",
        () if is_float && is(&["add", "sub", "hadd", "hsub"]) => either("DADD", "FADD"),
        () if is_float && is(&["mul", "dp"]) => either("DMUL", "FMUL"),
        // Refined by Newton's method.
        () if is_float && is(&["div", "sqrt"]) => either("DFMA", "FFMA"),
        () if is_float && is(&["rcp", "rsqrt"]) => "MUFU.RCP",
        () if is_float && is(&["min", "max"]) => either("DSETP", "FMNMX"),
        () if is_float && is(&["cmp"]) => either("DSETP", "FSETP"),
        () if is(&["pcmp"]) => "ISETP",
        () if is(&["pmin", "pmax"]) => "IMNMX",
        () if is(&["pmul", "pmadd"]) => "IMAD",
        () if is(&["padd", "psub", "pavg", "pabs", "psad", "phadd"]) => "IADD3",
        () if is(&["psll"]) => "SHF.L",
        () if is(&["psrl", "psra"]) => "SHF.R",
        () if is(&["movmsk", "pmovmsk"]) => "VOTE",
        () => "PRMT",
    }
}

#[cfg(test)]
mod tests {
    use trace_format::Pc;

    use super::*;
    use crate::Table;

    /// `OPCODE to <- from, from [operand+offset:bytes]`, an instruction a line.
    fn code(bytes: &[u8]) -> Vec<String> {
        let table = Table::first(Pc(0x1000), bytes);
        let shown = |i: &GpuInstruction| {
            let to = i.writes.map_or("-".to_owned(), |to| to.to_string());
            let from: Vec<String> = i.reads.iter().map(ToString::to_string).collect();
            let access = i.access.map_or(String::new(), |a| format!(" [{}+{}:{}]", a.operand, a.offset, a.bytes));
            format!("{} {to} <- {}{access}", i.opcode, from.join(" "))
        };
        of(table.listing(0..1).iter().next().unwrap().unwrap()).iter().map(shown).collect()
    }

    #[test]
    fn an_operand_in_memory_is_a_load_and_a_store_around_the_work() {
        // add [rdi+rcx*8], rax
        let expected =
            ["IMAD.WIDE 102 <- 7 1", "LD 100 <- 102 [0+0:8]", "IADD3 101 <- 100 0", "ST - <- 102 101 [0+0:8]"];
        assert_eq!(code(&[0x48, 0x01, 0x04, 0xcf]), expected);
        // mov rax, [rdi] and mov [rdi], eax
        assert_eq!(code(&[0x48, 0x8b, 0x07]), ["LD 0 <- 7 [0+0:8]"]);
        assert_eq!(code(&[0x89, 0x07]), ["ST - <- 7 0 [0+0:4]"]);
        // addsd xmm0, [rip+8]: a constant
        assert_eq!(code(&[0xf2, 0x0f, 0x58, 0x05, 8, 0, 0, 0]), ["LDC 100 <-  [0+0:8]", "DADD 16 <- 100 16"]);
    }

    #[test]
    fn wide_operands_are_accessed_in_pieces_that_a_gpu_has() {
        // vmovups [rdi], ymm1
        assert_eq!(code(&[0xc5, 0xfc, 0x11, 0x0f]), ["ST - <- 7 17 [0+0:16]", "ST - <- 7 17 [0+16:16]"]);
        // fld tbyte [rdi]
        assert_eq!(code(&[0xdb, 0x2f])[..2], ["LD 100 <- 7 [0+0:8]", "LD 100 <- 7 [0+8:2]"]);
    }

    #[test]
    fn stacks_calls_and_atomic_instructions_are_what_a_gpu_has() {
        assert_eq!(code(&[0x53]), ["ST - <- 4 3 [0+0:8]"], "push rbx");
        assert_eq!(code(&[0x5b]), ["LD 3 <- 4 [0+0:8]"], "pop rbx");
        assert_eq!(code(&[0xe8, 0, 0, 0, 0]), ["CALL.REL.NOINC - <- "]);
        assert_eq!(code(&[0xff, 0x10]), ["LD 100 <- 0 [0+0:8]", "CALL.ABS.NOINC - <- 100"], "call [rax]");
        assert_eq!(code(&[0xc3]), ["RET.REL.NODEC - <- "]);
        // lock xadd [rdi], eax
        assert_eq!(code(&[0xf0, 0x0f, 0xc1, 0x07]), ["ATOM 0 <- 7 0 [0+0:4]"]);
    }

    #[test]
    fn a_division_is_as_many_instructions_as_a_gpu_has_for_it() {
        // idiv ecx; divsd xmm0, xmm1
        assert_eq!(code(&[0xf7, 0xf9]).len(), 25);
        let division = code(&[0xf2, 0x0f, 0x5e, 0xc1]);
        assert_eq!((division.len(), &*division[1]), (16, "DFMA 16 <- 16 17"));
    }

    #[test]
    fn what_a_gpu_has_no_use_for_is_one_instruction() {
        assert_eq!(code(&[0x90]), ["NOP - <- "]);
        assert_eq!(code(&[0x89, 0xc8]), ["MOV 0 <- 1"]);
        assert_eq!(code(&[0x31, 0xc0]).len(), 1, "xor eax, eax");
    }
}
