//! Which values a superblock records, and how memory addresses and stack pointers follow from them.
//!
//! A value is what a register holds at one place of the superblock. Each register is known as a sum of *unknowns*: what
//! registers held at the start, or after an instruction that does more than add constants and registers. An operand's
//! address is a sum then too. When that sum contains an unknown that does not follow from a value yet, a register that
//! holds it is recorded (or else one of the operand's), and the unknown follows from that. So do all later operands
//! relative to the same register, also after constants were added to it, and in other registers.
//!
//! ```text
//! mov rax, [rdi+8]       records rdi: value 0
//! add rdi, 16
//! mov [rdi+rcx*4], rax   records rcx: value 1
//! mov rsi, [rdi-16]      records nothing: value 0
//! ```

use iced_x86::{CodeSize, Instruction, Mnemonic, OpAccess, OpKind, Register, UsedMemory, UsedRegister};
use trace_format::{Address, Source, SpEffect, Term};

use crate::decode;
use crate::kernel::ptrace::Registers;
use crate::translate::code::assembler::register::RSP;

/// The most terms of what a register is known as: an operand has two registers.
const MAX_REGISTER_TERMS: usize = Address::MAX_TERMS / 2;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// What the register with this number holds before the instruction.
    Register(u8),
    /// The stack pointer after the instruction.
    StackPointer,
}

/// How a memory address follows from values and stack pointers, numbered as they are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// It is a sum.
    Sum(Address),
    /// It takes more than a sum: what its registers hold are sums.
    Other(Box<OtherOperand>),
}

/// An operand with a segment that does not start at 0, with a short address, or with a part of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherOperand {
    operand: UsedMemory,
    registers: Vec<(u8, Address)>,
}

impl OtherOperand {
    /// The address, with these bases of fs and gs, for an execution with these stack pointers and values.
    #[must_use]
    pub fn address(&self, segments: [u64; 2], sp: u64, sps: &[u64], values: &[u64]) -> u64 {
        let mut registers: Registers = crate::kernel::ptrace::no_registers();
        [registers.fs_base, registers.gs_base] = segments;
        for (number, sum) in &self.registers {
            set_register(&mut registers, *number, sum.evaluate(sp, sps, values));
        }
        decode::address(&self.operand, &registers)
    }
}

fn set_register(registers: &mut Registers, number: u8, value: u64) {
    let r = registers;
    let all = [
        &mut r.rax, &mut r.rcx, &mut r.rdx, &mut r.rbx, &mut r.rsp, &mut r.rbp, &mut r.rsi, &mut r.rdi, &mut r.r8,
        &mut r.r9, &mut r.r10, &mut r.r11, &mut r.r12, &mut r.r13, &mut r.r14, &mut r.r15,
    ];
    if let Some(register) = all.into_iter().nth(number.into()) {
        *register = value;
    }
}

/// What the register with this number holds.
#[must_use]
pub fn register_value(r: &Registers, number: u8) -> u64 {
    [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15]
        [usize::from(number)]
}

/// The number of the general register that this one is, or is a part of.
fn number_of(register: Register) -> Option<u8> {
    let full = register.full_register();
    full.is_gpr64().then(|| (full as u32 - Register::RAX as u32) as u8)
}

/// The number of a general register of 64 bits.
fn whole(register: Register) -> Option<u8> {
    register.is_gpr64().then(|| (register as u32 - Register::RAX as u32) as u8)
}

/// A sum of unknowns, modulo 2^64.
#[derive(Clone, Debug, Default)]
struct Sum {
    constant: u64,
    terms: Vec<(u32, i64)>,
}

impl Sum {
    fn constant(constant: u64) -> Sum {
        Sum { constant, terms: Vec::new() }
    }

    fn unknown(unknown: u32) -> Sum {
        Sum { constant: 0, terms: vec![(unknown, 1)] }
    }

    fn add(&mut self, other: &Sum, factor: i64) {
        self.constant = self.constant.wrapping_add((factor as u64).wrapping_mul(other.constant));
        for &(unknown, n) in &other.terms {
            let n = n.wrapping_mul(factor);
            match self.terms.iter_mut().find(|term| term.0 == unknown) {
                Some(term) => term.1 = term.1.wrapping_add(n),
                None => self.terms.push((unknown, n)),
            }
        }
    }

    fn plus(&self, other: &Sum, factor: i64) -> Sum {
        let mut sum = self.clone();
        sum.add(other, factor);
        sum
    }
}

/// What is known about a superblock's registers while it is built.
#[derive(Debug)]
pub struct Values {
    /// Whether registers are followed: from the start where all memory addresses are wanted, else from the first
    /// instruction on whose address is.
    pub follows: bool,
    registers: Vec<Sum>,
    /// The unknowns: what each follows from, and what is added to that.
    unknowns: Vec<Option<(Source, u64)>>,
    /// How many stack pointers are recorded.
    sps: u32,
    /// What is recorded.
    pub recorded: Vec<Value>,
    /// The memory operands, instruction by instruction.
    pub operands: Vec<Operand>,
    /// How many values are recorded for the first instruction, the first two, and so on.
    pub after: Vec<u16>,
}

impl Values {
    /// At the start of a superblock only the stack pointer is known.
    #[must_use]
    pub fn new(memory: bool) -> Values {
        let mut unknowns = vec![None; if memory { 16 } else { 0 }];
        if memory {
            unknowns[usize::from(RSP)] = Some((Source::StackPointer(0), 0));
        }
        Values {
            follows: memory,
            registers: (0..unknowns.len() as u32).map(Sum::unknown).collect(),
            unknowns,
            sps: 0,
            recorded: Vec::new(),
            operands: Vec::new(),
            after: Vec::new(),
        }
    }

    /// How many values are recorded so far.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.recorded.len() as u16
    }

    /// The next instruction has these operands in memory. Returns how many have an address; the registers to be
    /// recorded before it runs are added to those recorded.
    pub fn reads(&mut self, memory: &[UsedMemory]) -> u8 {
        if !std::mem::replace(&mut self.follows, true) {
            // Of registers that were not followed nothing is known.
            self.registers = (0..16).map(|_| self.fresh(None)).collect();
        }
        let before = self.operands.len();
        for operand in memory.iter().filter(|operand| machine::x86_64::has_address(operand)) {
            let known = self.operand(operand);
            self.operands.push(known);
        }
        (self.operands.len() - before) as u8
    }

    fn operand(&mut self, operand: &UsedMemory) -> Operand {
        let [base, index] = [operand.base(), operand.index()];
        let simple = |r| r == Register::None || whole(r).is_some();
        let segment = matches!(operand.segment(), Register::FS | Register::GS);
        let long = !matches!(operand.address_size(), CodeSize::Code16 | CodeSize::Code32);
        if simple(base) && simple(index) && !segment && long {
            let mut sum = Sum::constant(operand.displacement());
            // Where a table's entry tells a place in another table, whose base is new here, the one is to follow the
            // other: readers and writers of values expect what followed the last time.
            for (register, factor) in [(index, i64::from(operand.scale())), (base, 1)] {
                if let Some(number) = whole(register) {
                    let register = self.known(number);
                    sum.add(&register, factor);
                }
            }
            return Operand::Sum(self.resolve(&sum));
        }
        let mut registers = Vec::new();
        for number in [base, index].into_iter().filter_map(number_of) {
            let sum = self.known(number);
            registers.push((number, self.resolve(&sum)));
        }
        Operand::Other(Box::new(OtherOperand { operand: *operand, registers }))
    }

    /// What a register holds, as a sum of what is recorded by then.
    fn known(&mut self, number: u8) -> Sum {
        let sum = &self.registers[usize::from(number)];
        let follows = |&(unknown, _): &(u32, i64)| self.unknowns[unknown as usize].is_some();
        if sum.terms.iter().all(follows) {
            return sum.clone();
        }
        if let Some(holders) = self.holders_of_unknowns(sum) {
            // What is added to it does not change with it, mostly: the next such sum takes one number, which says more.
            for (unknown, holder) in holders {
                let constant = self.registers[usize::from(holder)].constant;
                let value = Source::Value(self.recorded.len() as u32);
                self.recorded.push(Value::Register(holder));
                self.unknowns[unknown as usize] = Some((value, constant.wrapping_neg()));
            }
            return self.registers[usize::from(number)].clone();
        }
        let value = Source::Value(self.recorded.len() as u32);
        self.recorded.push(Value::Register(number));
        match sum.terms[..] {
            [(unknown, 1)] => {
                self.unknowns[unknown as usize] = Some((value, sum.constant.wrapping_neg()));
            }
            _ => self.registers[usize::from(number)] = self.fresh(Some((value, 0))),
        }
        self.registers[usize::from(number)].clone()
    }

    /// Registers from which the unknowns of a sum of several follow, those that do not follow from anything yet. None
    /// where one has no such register.
    fn holders_of_unknowns(&self, sum: &Sum) -> Option<Vec<(u32, u8)>> {
        let alone = matches!(sum.terms[..], [(_, 1)]);
        let unknowns = sum.terms.iter().map(|term| term.0).filter(|&u| self.unknowns[u as usize].is_none());
        let holder = |unknown| self.registers.iter().position(|register| register.terms[..] == [(unknown, 1)]);
        unknowns.map(|u| Some((u, holder(u)? as u8))).collect::<Option<Vec<_>>>().filter(|_| !alone)
    }

    fn fresh(&mut self, follows: Option<(Source, u64)>) -> Sum {
        self.unknowns.push(follows);
        Sum::unknown(self.unknowns.len() as u32 - 1)
    }

    fn resolve(&self, sum: &Sum) -> Address {
        let mut address = Address { constant: sum.constant, terms: Vec::with_capacity(sum.terms.len()) };
        for &(unknown, factor) in &sum.terms {
            let (source, added) = self.unknowns[unknown as usize].expect("the registers of operands are known");
            address.constant = address.constant.wrapping_add((factor as u64).wrapping_mul(added));
            match address.terms.iter_mut().find(|term| term.source == source) {
                Some(term) => term.factor = term.factor.wrapping_add(factor),
                None => address.terms.push(Term { source, factor }),
            }
        }
        address
    }

    /// The instruction runs, and changes these registers.
    pub fn runs(&mut self, instruction: &Instruction, used: &[UsedRegister], sp: SpEffect) {
        let result = self.result(instruction);
        let exchanged = (instruction.mnemonic() == Mnemonic::Xchg)
            .then(|| Some((register_operand(instruction, 0)?, register_operand(instruction, 1)?)))
            .flatten();
        if let Some((a, b)) = exchanged.filter(|&(a, b)| a != RSP && b != RSP) {
            self.registers.swap(a.into(), b.into());
            return;
        }
        for used in used {
            let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None);
            if let Some(number) = number_of(used.register()).filter(|&number| !reads && number != RSP) {
                self.forget(number);
            }
        }
        if instruction.mnemonic() == Mnemonic::Xbegin {
            // It always aborts, and says so in rax.
            self.forget(0);
        }
        if let Some((number, sum)) =
            result.filter(|(number, sum)| *number != RSP && sum.terms.len() <= MAX_REGISTER_TERMS)
        {
            self.registers[usize::from(number)] = sum;
        }
        if let SpEffect::Add(bytes) = sp {
            self.registers[usize::from(RSP)].add(&Sum::constant(i64::from(bytes) as u64), 1);
        }
    }

    fn forget(&mut self, number: u8) {
        self.registers[usize::from(number)] = self.fresh(None);
    }

    /// The register that the instruction sets to a sum, and the sum.
    fn result(&self, instruction: &Instruction) -> Option<(u8, Sum)> {
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
            return None;
        }
        let zeroes = matches!(instruction.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
            && instruction.op_count() == 2
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register();
        let long = instruction.op0_register().is_gpr32() || instruction.op0_register().is_gpr64();
        if zeroes && long {
            return Some((number_of(instruction.op0_register())?, Sum::constant(0)));
        }
        if instruction.mnemonic() == Mnemonic::Mov && instruction.op0_register().is_gpr32() {
            let constant = instruction.try_immediate(1).ok()?;
            return Some((number_of(instruction.op0_register())?, Sum::constant(constant & 0xffff_ffff)));
        }
        let number = whole(instruction.op0_register())?;
        let first = &self.registers[usize::from(number)];
        let second = || -> Option<Sum> {
            match instruction.op1_kind() {
                OpKind::Register => Some(self.registers[usize::from(whole(instruction.op1_register())?)].clone()),
                _ => instruction.try_immediate(1).ok().map(Sum::constant),
            }
        };
        let zero = Sum::default();
        let sum = match instruction.mnemonic() {
            Mnemonic::Mov => second()?,
            Mnemonic::Lea => self.effective_address(instruction)?,
            Mnemonic::Add => first.plus(&second()?, 1),
            Mnemonic::Sub => first.plus(&second()?, -1),
            Mnemonic::Inc => first.plus(&Sum::constant(1), 1),
            Mnemonic::Dec => first.plus(&Sum::constant(1), -1),
            Mnemonic::Neg => zero.plus(first, -1),
            Mnemonic::Shl => zero.plus(first, 1 << (instruction.try_immediate(1).ok()? & 63)),
            Mnemonic::Imul if instruction.op_count() == 3 && instruction.op1_kind() == OpKind::Register => {
                zero.plus(&second()?, instruction.try_immediate(2).ok()?.cast_signed())
            }
            _ => return None,
        };
        Some((number, sum))
    }

    fn effective_address(&self, instruction: &Instruction) -> Option<Sum> {
        // With a base of rip, the displacement is the whole address.
        let mut sum = Sum::constant(instruction.memory_displacement64());
        let scale = i64::from(instruction.memory_index_scale());
        for (register, factor) in [(instruction.memory_base(), 1), (instruction.memory_index(), scale)] {
            if !matches!(register, Register::None | Register::RIP) {
                sum.add(&self.registers[usize::from(whole(register)?)], factor);
            }
        }
        Some(sum)
    }

    /// The stack pointer is recorded after the instruction. Returns the number of the value.
    pub fn record_stack_pointer(&mut self) -> u16 {
        self.sps += 1;
        if self.follows {
            self.registers[usize::from(RSP)] = self.fresh(Some((Source::StackPointer(self.sps), 0)));
        }
        self.recorded.push(Value::StackPointer);
        self.count() - 1
    }

    /// All is recorded for the instruction.
    pub fn ran(&mut self) {
        self.after.push(self.count());
    }
}

/// The number of the operand's register, where it is a general register of 64 bits.
fn register_operand(instruction: &Instruction, operand: u32) -> Option<u8> {
    let is_register = instruction.op_kind(operand) == OpKind::Register;
    is_register.then(|| whole(instruction.op_register(operand))).flatten()
}

#[cfg(test)]
mod tests;
