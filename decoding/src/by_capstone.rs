//! What capstone says.

use capstone::arch::x86::{ArchMode, X86InsnGroup, X86OpMem, X86Operand, X86OperandType};
use capstone::arch::{BuildsCapstone, DetailsArchInsn};
use capstone::{AccessType, Capstone, Insn, InsnDetail, RegId};
use trace_format::{Kind, SpEffect};

use crate::known::{Form, is_prefix};
use crate::opinion::{Access, Operand, Opinion};

/// The other decoder.
pub struct ByCapstone {
    capstone: Capstone,
}

impl Default for ByCapstone {
    /// # Panics
    /// When capstone was built without x86: a bug of the build.
    fn default() -> ByCapstone {
        let capstone = Capstone::new().x86().mode(ArchMode::Mode64).detail(true).build();
        ByCapstone { capstone: capstone.expect("capstone is built with x86") }
    }
}

impl ByCapstone {
    /// Decodes the instruction at `pc` that these bytes begin with; none if they are not an instruction.
    #[must_use]
    pub fn opinion(&self, pc: u64, code: &[u8]) -> Option<Opinion> {
        let all = self.capstone.disasm_count(code, pc, 1).ok()?;
        let instruction = all.first()?;
        let detail = self.capstone.insn_detail(instruction).ok()?;
        let arch = detail.arch_detail();
        let operands: Vec<X86Operand> = arch.x86()?.operands().collect();
        let mnemonic = self.capstone.insn_name(instruction.id())?;
        let kind = kind(&mnemonic, &detail, &operands);
        let constant = matches!(kind, Kind::Branch | Kind::Jump | Kind::Call);
        let target = operands.iter().find_map(|operand| match operand.op_type {
            X86OperandType::Imm(target) => Some(target.cast_unsigned()),
            _ => None,
        });
        let mut memory: Vec<Operand> = if names_no_access(&mnemonic) {
            Vec::new()
        } else {
            let is_access_told = !Form::Evex.is_of(instruction.bytes());
            operands.iter().filter_map(|operand| self.operand(operand, is_access_told)).collect()
        };
        memory.sort();
        let sp = self.sp_effect(&mnemonic, instruction, &detail, &operands);
        Some(Opinion {
            len: instruction.bytes().len(),
            kind,
            target: target.filter(|_| constant),
            memory,
            sp,
            mnemonic,
            extensions: Vec::new(),
        })
    }

    fn name(&self, register: RegId) -> Option<String> {
        let name = self.capstone.reg_name(register)?;
        // The index register that stands for none.
        (name != "riz" && name != "eiz").then_some(name)
    }

    /// An operand in memory. Of instructions encoded by EVEX capstone does not tell how they access it: behind the
    /// operands that its table has, which are fewer by the mask, it gives what lies on its stack.
    fn operand(&self, operand: &X86Operand, is_access_told: bool) -> Option<Operand> {
        let X86OperandType::Mem(memory) = &operand.op_type else { return None };
        let access = operand.access.filter(|_| is_access_told).unwrap_or(AccessType::ReadWrite);
        Some(Operand {
            segment: self.segment(memory),
            base: self.name(memory.base()),
            index: self.name(memory.index()).map(|index| (index, memory.scale().cast_unsigned())),
            displacement: self.displacement(memory),
            size: u32::from(operand.size),
            access: Access { reads: access.is_readable(), writes: access.is_writable() },
        })
    }

    /// As iced-x86 has it: where the address has 32 bits, the displacement has no more.
    fn displacement(&self, memory: &X86OpMem) -> i64 {
        let name = self.name(memory.base()).or_else(|| self.name(memory.index()));
        let is_short = name.is_some_and(|name| name.starts_with('e') && name != "eip" || name.ends_with('d'));
        if is_short { memory.disp() & 0xffff_ffff } else { memory.disp() }
    }

    fn segment(&self, memory: &X86OpMem) -> Option<String> {
        self.name(memory.segment()).filter(|name| name == "fs" || name == "gs")
    }

    fn is_sp(&self, register: RegId) -> bool {
        self.name(register).is_some_and(|name| ["rsp", "esp", "sp", "spl"].contains(&name.as_str()))
    }

    /// The change of the stack pointer, by the instruction's name, operands and encoding.
    fn sp_effect(
        &self,
        mnemonic: &str,
        instruction: &Insn<'_>,
        detail: &InsnDetail<'_>,
        operands: &[X86Operand],
    ) -> SpEffect {
        let names_sp = |operand: &X86Operand| matches!(operand.op_type, X86OperandType::Reg(r) if self.is_sp(r));
        let writes_named =
            operands.iter().any(|operand| names_sp(operand) && operand.access.is_some_and(AccessType::is_writable));
        let writes = writes_named || detail.regs_write().iter().any(|r| self.is_sp(*r));
        if !writes {
            return SpEffect::Add(0);
        }
        let is_word = instruction.bytes().iter().take_while(|b| is_prefix(**b)).any(|b| *b == 0x66);
        let slot = |size: u8| if size == 2 { 2 } else { 8 };
        let first_size = operands.first().map_or(8, |operand| operand.size);
        let immediate = |number: usize| match operands.get(number).map(|operand| &operand.op_type) {
            Some(X86OperandType::Imm(value)) => i32::try_from(*value).ok(),
            _ => None,
        };
        let of_rsp = operands.first().is_some_and(
            |operand| matches!(operand.op_type, X86OperandType::Reg(r) if self.name(r).as_deref() == Some("rsp")),
        );
        let effect = match mnemonic {
            "push" => Some(-if is_word { 2 } else { 8 }),
            "pop" if !operands.first().is_some_and(names_sp) => Some(slot(first_size)),
            "pushf" => Some(-2),
            "popf" => Some(2),
            "pushfq" => Some(-8),
            "popfq" => Some(8),
            "call" => Some(-8),
            "ret" => Some(8 + immediate(0).unwrap_or(0)),
            "add" if of_rsp => immediate(1),
            "sub" if of_rsp => immediate(1).and_then(i32::checked_neg),
            "lea" if of_rsp => match operands.get(1).map(|operand| &operand.op_type) {
                Some(X86OperandType::Mem(m))
                    if self.name(m.base()).as_deref() == Some("rsp") && self.name(m.index()).is_none() =>
                {
                    i32::try_from(m.disp()).ok()
                }
                _ => None,
            },
            _ => None,
        };
        effect.map_or(SpEffect::Recorded, SpEffect::Add)
    }
}

/// Instructions whose operand in brackets is an address and no access; capstone does not tell them apart.
fn names_no_access(mnemonic: &str) -> bool {
    mnemonic == "lea"
        || mnemonic.starts_with("nop")
        || mnemonic.starts_with("prefetch")
        || mnemonic.starts_with("vgatherpf")
        || mnemonic.starts_with("vscatterpf")
        || ["bndmk", "invlpg", "clflush", "clflushopt", "clwb", "cldemote"].contains(&mnemonic)
}

fn kind(mnemonic: &str, detail: &InsnDetail<'_>, operands: &[X86Operand]) -> Kind {
    let is_in = |group: X86InsnGroup::Type| detail.groups().iter().any(|g| u32::from(g.0) == group);
    let constant = matches!(operands.first().map(|operand| &operand.op_type), Some(X86OperandType::Imm(_)));
    match mnemonic {
        "pause" => return Kind::Pause,
        "syscall" | "sysenter" => return Kind::Syscall,
        "int" if matches!(operands.first().map(|o| &o.op_type), Some(X86OperandType::Imm(0x80))) => {
            return Kind::Syscall;
        }
        "xbegin" | "loop" | "loope" | "loopne" => return Kind::Branch,
        "jmp" | "ljmp" => return if constant { Kind::Jump } else { Kind::IndirectJump },
        _ => {}
    }
    match () {
        () if is_in(X86InsnGroup::X86_GRP_CALL) => {
            if constant {
                Kind::Call
            } else {
                Kind::IndirectCall
            }
        }
        () if is_in(X86InsnGroup::X86_GRP_RET) || is_in(X86InsnGroup::X86_GRP_IRET) => Kind::Return,
        () if is_in(X86InsnGroup::X86_GRP_JUMP) => Kind::Branch,
        () => Kind::Plain,
    }
}
