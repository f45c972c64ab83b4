//! The claims of the analysis about each instruction, in a form that a run of the code can contradict.
//!
//! Code generation turns one instruction into several, or folds it into another. So a claim says what holds for all
//! code made from the instruction. If there is no such claim, there is a reason.

use divergence::{Class, Decision, Fact, ValueId};
use rustc_hash::FxHashMap;

use super::{FunctionFacts, Program};
use crate::Place;
use crate::llvm::{Instruction, Module, Opcode, Value};

/// The claim about the directions that threads take which are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// All take the same.
    Uniform,
    /// Nothing.
    Divergent,
    /// A decision by several conditions, uniform as a whole though parts of it are not: code that decides by one of the
    /// parts may diverge.
    Parts,
}

/// The claim about the addresses of threads that are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// They are equal.
    Uniform,
    /// From one thread number to the next they grow by so many bytes, modulo 2^64.
    Stride(i64),
    /// They are an affine function of the thread's number; by what they grow is unknown.
    Affine,
    /// Nothing.
    Divergent,
}

/// The claims about an instruction.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its function in [`Program::functions`].
    pub function: usize,
    /// Where it is in the source.
    pub place: Option<Place>,
    /// What it is: `br`, `load`.
    pub opcode: String,
    /// The claim about branches in code made from it; none if such code may depend on more than its operands.
    pub direction: Option<Direction>,
    /// Of the memory that it reads itself.
    pub read: Option<Addresses>,
    /// Of the memory that it writes itself.
    pub written: Option<Addresses>,
    /// Whether that may be memory of the thread's own frame.
    pub local: bool,
    /// Whether its address is that of a global variable, or at a fixed distance from one.
    pub global: bool,
    /// Loads that code generation may have folded into it, by their numbers: its operands, and for an address what
    /// loads from there.
    pub near: Vec<usize>,
    /// The same for the operands of its operands.
    pub far: Vec<usize>,
    /// What the claims follow from.
    pub because: Option<ValueId>,
}

/// The claims of all instructions of a module, in the order of [`Module::instructions`].
#[must_use]
pub fn claims(module: &Module, program: &Program<'_>) -> Vec<Claim> {
    let instructions = module.instructions();
    let numbers: FxHashMap<Value<'_>, usize> =
        instructions.iter().enumerate().map(|(number, i)| (i.as_value(), number)).collect();
    let mut claims = Vec::with_capacity(instructions.len());
    for (f, facts) in program.functions().iter().enumerate() {
        for block in facts.function().blocks() {
            let branch = facts.branch(block);
            for instruction in block.instructions() {
                let id = facts.id(instruction.as_value());
                let decides = match facts.analysis().gated().decision(facts.flow().node(block)) {
                    Decision::By(node) if instruction.is_terminator() => Some(node),
                    _ => None,
                };
                let address = id.and_then(|id| facts.analysis().gated().op(id).address());
                let mut folds = Folds { of: instruction, numbers: &numbers, near: Vec::new(), far: Vec::new() };
                folds.look(instruction, FOLDED_DEPTH, true);
                folds.look_at_users(instruction, FOLDED_DEPTH);
                let Folds { near, far, .. } = folds;
                let (read, written) = accesses(facts, instruction);
                claims.push(Claim {
                    function: f,
                    place: instruction.place(),
                    opcode: name(instruction),
                    direction: match branch {
                        Some(class) if instruction.is_terminator() => Some(decided(facts, instruction, class)),
                        _ if instruction.is_terminator() => None,
                        _ => lowered(facts, instruction),
                    },
                    read,
                    written,
                    local: address_of(instruction).is_some_and(|address| may_be_local(address, LOCAL_DEPTH)),
                    global: address_of(instruction).is_some_and(|address| address.global_variable().is_some()),
                    near,
                    far,
                    because: decides.or(address).or(id),
                });
            }
        }
    }
    claims
}

fn name(instruction: Instruction<'_>) -> String {
    let opcode = format!("{:?}", instruction.opcode());
    let opcode = opcode.strip_prefix("LLVM").unwrap_or(&opcode).to_lowercase();
    match instruction.callee() {
        Some(callee) if callee.is_function() => format!("{opcode} {}", callee.name()),
        _ => opcode,
    }
}

fn addresses(fact: &Fact) -> Addresses {
    match (fact.class(), fact.stride(), fact.affine()) {
        (Class::Uniform, ..) => Addresses::Uniform,
        (Class::Affine, Some(stride), _) => Addresses::Stride(stride),
        // Threads of a processor are numbered in one dimension.
        (Class::Affine, None, Some(affine)) if affine.strides[1..].iter().all(|s| s.is_zero()) => Addresses::Affine,
        _ => Addresses::Divergent,
    }
}

/// What is read, and what is written.
fn accesses(facts: &FunctionFacts<'_>, instruction: Instruction<'_>) -> (Option<Addresses>, Option<Addresses>) {
    let address = || facts.address(instruction).map(|fact| addresses(&fact));
    match instruction.opcode() {
        Opcode::LLVMLoad => (address(), None),
        Opcode::LLVMStore => (None, address()),
        Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => (address(), address()),
        Opcode::LLVMCall => {
            let name = instruction.callee().map(Value::name).unwrap_or_default();
            let id = facts.id(instruction.as_value());
            let operands = id.map(|id| facts.analysis().operands(id)).unwrap_or_default();
            // Without knowledge of them, there is no claim.
            let argument = |i: usize| operands.get(i).map_or(Addresses::Divergent, |(_, fact)| addresses(fact));
            if name.starts_with("llvm.memset.") {
                (None, Some(argument(0)))
            } else if name.starts_with("llvm.memcpy.") || name.starts_with("llvm.memmove.") {
                (Some(argument(1)), Some(argument(0)))
            } else {
                (None, None)
            }
        }
        _ => (None, None),
    }
}

fn address_of(instruction: Instruction<'_>) -> Option<Value<'_>> {
    match instruction.opcode() {
        Opcode::LLVMLoad | Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => Some(instruction.operand(0)),
        Opcode::LLVMStore => Some(instruction.operand(1)),
        // Copies have two; one of them is enough.
        Opcode::LLVMCall => instruction.arguments().into_iter().find(|a| may_be_local(*a, LOCAL_DEPTH)),
        _ => None,
    }
}

/// How far an address is followed to where it comes from.
const LOCAL_DEPTH: u32 = 8;

/// Whether an address may be one of the function's own frame: that of a variable there.
fn may_be_local(address: Value<'_>, depth: u32) -> bool {
    let Some(instruction) = address.as_instruction() else { return false };
    match instruction.opcode() {
        Opcode::LLVMAlloca => true,
        _ if depth == 0 => true,
        Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast => {
            may_be_local(instruction.operand(0), depth - 1)
        }
        Opcode::LLVMPHI => instruction.incoming().into_iter().any(|(v, _)| may_be_local(v, depth - 1)),
        Opcode::LLVMSelect => instruction.operands().into_iter().any(|v| may_be_local(v, depth - 1)),
        _ => false,
    }
}

/// Of a branch or switch. One by `a && b` may become two branches, one by each.
fn decided(facts: &FunctionFacts<'_>, end: Instruction<'_>, class: Class) -> Direction {
    match class {
        Class::Uniform => match end.condition() {
            Some(condition) if !parts_are_uniform(facts, condition) => Direction::Parts,
            _ => Direction::Uniform,
        },
        _ => Direction::Divergent,
    }
}

fn parts_are_uniform(facts: &FunctionFacts<'_>, condition: Value<'_>) -> bool {
    let Some(instruction) = condition.as_instruction() else { return true };
    let joins = matches!(
        instruction.opcode(),
        Opcode::LLVMAnd | Opcode::LLVMOr | Opcode::LLVMXor | Opcode::LLVMSelect | Opcode::LLVMFreeze
    );
    if !joins {
        return true;
    }
    let Some(id) = facts.id(condition) else { return true };
    facts.analysis().operands(id).iter().all(|(_, fact)| fact.is_uniform())
        && instruction.operands().into_iter().all(|operand| parts_are_uniform(facts, operand))
}

/// Of branches in the code of something that does not branch itself: a `select`, a division with a short cut. They
/// depend on the operands, unless memory or a call takes part.
fn lowered(facts: &FunctionFacts<'_>, instruction: Instruction<'_>) -> Option<Direction> {
    use crate::llvm::Opcode::*;
    let plain = match instruction.opcode() {
        LLVMLoad | LLVMStore | LLVMAtomicRMW | LLVMAtomicCmpXchg | LLVMPHI | LLVMInvoke | LLVMVAArg | LLVMAlloca
        | LLVMFence | LLVMLandingPad => false,
        LLVMCall => {
            let intrinsic = instruction.callee().is_some_and(Value::is_intrinsic);
            intrinsic && instruction.memory_effects() == Some(0)
        }
        _ => true,
    };
    if !plain {
        return None;
    }
    let id = facts.id(instruction.as_value())?;
    let all = facts.analysis().operands(id);
    // The operands of the abstract form may be fewer than those of the instruction.
    let whole = all.len() >= instruction.operands().iter().filter(|v| !v.is_constant()).count();
    Some(match whole && !all.is_empty() && all.iter().all(|(_, fact)| fact.is_uniform()) {
        true => Direction::Uniform,
        false => Direction::Divergent,
    })
}

/// How far code generation looks for a load to fold: a load, an extension of it, an operation with that, a comparison,
/// a branch.
const FOLDED_DEPTH: u32 = 4;

/// Loads of the same block that may become a part of an instruction's code.
struct Folds<'m, 'a> {
    of: Instruction<'m>,
    numbers: &'a FxHashMap<Value<'m>, usize>,
    near: Vec<usize>,
    far: Vec<usize>,
}

impl<'m> Folds<'m, '_> {
    fn add(&mut self, load: Value<'m>, near: bool) {
        let list = if near { &mut self.near } else { &mut self.far };
        list.extend(self.numbers.get(&load).filter(|n| !list.contains(n)).copied().into_iter().collect::<Vec<_>>());
    }

    /// Looks at the operands of its operands; `near` while that is itself, or the same in another width.
    fn look(&mut self, user: Instruction<'m>, depth: u32, near: bool) {
        use crate::llvm::Opcode::*;
        if depth == 0 || user.is_phi() {
            return;
        }
        for operand in user.operands() {
            let within = operand.as_instruction().filter(|i| i.block() == self.of.block());
            let Some(instruction) = within else { continue };
            match instruction.opcode() {
                LLVMLoad => self.add(operand, near),
                LLVMCall | LLVMInvoke | LLVMPHI | LLVMExtractElement | LLVMAtomicRMW | LLVMAtomicCmpXchg => {}
                LLVMZExt | LLVMSExt | LLVMTrunc | LLVMBitCast => self.look(instruction, depth - 1, near),
                _ => self.look(instruction, depth - 1, false),
            }
        }
    }

    /// Looks at what loads from the address that it is, or is a part of.
    fn look_at_users(&mut self, part: Instruction<'m>, depth: u32) {
        use crate::llvm::Opcode::*;
        let makes_address = matches!(
            part.opcode(),
            LLVMGetElementPtr | LLVMZExt | LLVMSExt | LLVMAdd | LLVMSub | LLVMMul | LLVMShl | LLVMAnd | LLVMOr
        );
        if depth == 0 || !makes_address {
            return;
        }
        for used in part.as_value().uses() {
            let user = used.user;
            if user.block() != self.of.block() {
                continue;
            }
            match user.opcode() {
                LLVMLoad => self.add(user.as_value(), part == self.of),
                _ => self.look_at_users(user, depth - 1),
            }
        }
    }
}
