//! A function of LLVM IR as a function of the crate `divergence`.

use divergence::{Binary, Builder, Cast, Decision, Fact, Gated, Kind, Memory, Op, Predicate, Promise, Return, ValueId};
use flowgraph::NodeId;
use rustc_hash::FxHashMap;

use super::library::{Known, known};
use super::options::{MARK, Machine};
use crate::flow::Flow;
use crate::llvm::{Comparison, Function, Instruction, Opcode, Shape, Value};

/// A call of a function that has a body.
pub(super) struct Site<'m> {
    pub(super) callee: Function<'m>,
    /// The call as a value.
    pub(super) value: ValueId,
}

/// A function, its abstract form and how the two belong together.
pub(super) struct Body<'m> {
    pub(super) function: Function<'m>,
    pub(super) flow: Flow<'m>,
    pub(super) values: FxHashMap<Value<'m>, ValueId>,
    /// By value: the instruction.
    pub(super) instructions: FxHashMap<ValueId, Instruction<'m>>,
    /// What is returned, where something is.
    pub(super) result: Option<ValueId>,
    pub(super) sites: Vec<Site<'m>>,
    /// The gated form, with parameters as they were last given.
    pub(super) gated: Option<Gated>,
}

struct Maker<'m, 'a> {
    builder: Builder,
    machine: Machine,
    numbers: &'a FxHashMap<Value<'m>, Fact>,
    stable: &'a dyn Fn(Value<'m>, (usize, usize)) -> bool,
    values: FxHashMap<Value<'m>, ValueId>,
    sites: Vec<Site<'m>>,
}

impl<'m> Body<'m> {
    /// Reads a function. `numbers` has values that stand for a thread's number in it; `stable` tells of addresses,
    /// and of the load's block and place, whether nobody writes there from then on.
    pub(super) fn of(
        function: Function<'m>,
        machine: Machine,
        numbers: &FxHashMap<Value<'m>, Fact>,
        stable: &dyn Fn(Value<'m>, (usize, usize)) -> bool,
    ) -> Body<'m> {
        let flow = Flow::of(function);
        let returns: Vec<(NodeId, Instruction<'m>)> = flow
            .blocks()
            .iter()
            .enumerate()
            .map(|(i, block)| (NodeId(i as u32), block.terminator()))
            .filter(|(_, end)| end.opcode() == Opcode::LLVMRet)
            .collect();
        let count = flow.blocks().len();
        let joined = returns.len() > 1;
        let mut maker = Maker {
            builder: Builder::new(count + usize::from(joined)),
            machine,
            numbers,
            stable,
            values: FxHashMap::default(),
            sites: Vec::new(),
        };
        // Parameters come first, so that a callee's symbols are the arguments of its calls.
        for parameter in function.parameters() {
            let id = maker.builder.free(kind_of(parameter), Op::Uniform, named(parameter));
            maker.values.insert(parameter, id);
        }
        let mut instructions: Vec<(ValueId, Instruction<'m>, (usize, usize))> = Vec::new();
        for (i, block) in flow.blocks().iter().enumerate() {
            for (place, instruction) in block.instructions().into_iter().enumerate() {
                if !instruction.is_terminator() || instruction.opcode() == Opcode::LLVMInvoke {
                    let value = instruction.as_value();
                    let id = maker.builder.add(NodeId(i as u32), kind_of(value), Op::Undefined, named(value));
                    maker.values.insert(value, id);
                    instructions.push((id, instruction, (i, place)));
                }
            }
        }
        for &(id, instruction, at) in &instructions {
            let op = match maker.numbers.get(&instruction.as_value()) {
                Some(fact) => Op::Given(*fact),
                None => maker.operation(id, instruction, &flow, at),
            };
            maker.builder.set(id, op);
        }
        for (i, block) in flow.blocks().iter().enumerate() {
            let node = NodeId(i as u32);
            let end = block.terminator();
            for next in end.successors() {
                maker.builder.edge(node, flow.node(next));
            }
            maker.decide(node, end);
        }
        let result = maker.returned(&returns, NodeId(count as u32));
        let Maker { builder, values, sites, .. } = maker;
        let instructions = instructions.into_iter().map(|(id, instruction, _)| (id, instruction)).collect();
        let gated = Gated::of(&builder.build());
        Body { function, flow, values, instructions, result, sites, gated: Some(gated) }
    }
}

/// What a value is.
fn kind_of(value: Value<'_>) -> Kind {
    match value.type_of().bits() {
        Some(bits @ 1..=64) => Kind::Bits(bits as u8),
        _ => Kind::Opaque,
    }
}

fn named(value: Value<'_>) -> String {
    let name = value.name();
    if name.is_empty() { name } else { format!("%{name}") }
}

impl<'m> Maker<'m, '_> {
    fn value(&mut self, value: Value<'m>) -> ValueId {
        if let Some(&id) = self.values.get(&value) {
            return id;
        }
        // Constant addresses are counted from what they are within.
        if let Some(parts) = value.address_parts().filter(|parts| value.is_constant() && parts.terms.is_empty()) {
            let base = self.value(parts.base);
            let op = Op::Address { base, terms: Vec::new(), offset: parts.offset };
            let id = self.builder.free(kind_of(value), op, "");
            self.values.insert(value, id);
            return id;
        }
        let op = match value.as_number() {
            _ if value.is_undefined() => Op::Undefined,
            Some(number) => Op::Number(number),
            None if value.as_address_number().is_some() => Op::Number(value.as_address_number().unwrap_or_default()),
            None if value.is_thread_local() => Op::Divergent,
            None if value.is_constant() || value.is_inline_assembly() => Op::Uniform,
            // Metadata and blocks.
            None => Op::Uniform,
        };
        let name =
            if value.is_constant() && !value.name().is_empty() { format!("@{}", value.name()) } else { String::new() };
        let id = self.builder.free(kind_of(value), op, name);
        self.values.insert(value, id);
        id
    }

    fn all(&mut self, values: &[Value<'m>]) -> Vec<ValueId> {
        values.iter().map(|&value| self.value(value)).collect()
    }

    fn operation(&mut self, id: ValueId, i: Instruction<'m>, flow: &Flow<'m>, at: (usize, usize)) -> Op {
        use crate::llvm::Opcode::*;
        let operands = i.operands();
        let scalar = kind_of(i.as_value()) != Kind::Opaque;
        let promise = || {
            let (signed, unsigned) = i.promises();
            Promise { signed, unsigned }
        };
        let arithmetic = match i.opcode() {
            LLVMAdd => Some(Binary::Add),
            LLVMSub => Some(Binary::Sub),
            LLVMMul => Some(Binary::Mul),
            LLVMShl => Some(Binary::Shl),
            LLVMLShr => Some(Binary::Lshr),
            LLVMAShr => Some(Binary::Ashr),
            LLVMAnd => Some(Binary::And),
            LLVMOr if i.is_disjoint_or() => Some(Binary::DisjointOr),
            LLVMOr => Some(Binary::Or),
            LLVMXor => Some(Binary::Xor),
            LLVMUDiv => Some(Binary::Udiv),
            LLVMSDiv => Some(Binary::Sdiv),
            LLVMURem => Some(Binary::Urem),
            LLVMSRem => Some(Binary::Srem),
            _ => None,
        };
        if let Some(arithmetic) = arithmetic.filter(|_| scalar) {
            let (a, b) = (self.value(operands[0]), self.value(operands[1]));
            return Op::Binary(arithmetic, a, b, promise());
        }
        match i.opcode() {
            LLVMPHI => {
                let mut seen: Vec<(NodeId, ValueId)> = Vec::new();
                for (value, block) in i.incoming() {
                    let from = flow.node(block);
                    let value = self.value(value);
                    if !seen.iter().any(|(b, _)| *b == from) {
                        seen.push((from, value));
                    }
                }
                Op::Phi(seen)
            }
            LLVMTrunc | LLVMZExt | LLVMSExt | LLVMPtrToInt | LLVMIntToPtr | LLVMBitCast | LLVMFreeze
            | LLVMAddrSpaceCast => {
                let from = self.value(operands[0]);
                cast(i, kind_of(operands[0]), promise()).map_or(Op::General(vec![from]), |cast| match cast {
                    None => Op::Copy(from),
                    Some(cast) => Op::Cast(cast, from),
                })
            }
            LLVMICmp if kind_of(operands[0]) != Kind::Opaque && scalar => {
                let (a, b) = (self.value(operands[0]), self.value(operands[1]));
                match i.comparison() {
                    Some(comparison) => Op::Compare(predicate(comparison), a, b),
                    None => Op::General(vec![a, b]),
                }
            }
            LLVMSelect if kind_of(operands[0]) != Kind::Opaque => {
                let all = self.all(&operands);
                Op::Select(all[0], all[1], all[2])
            }
            LLVMGetElementPtr if scalar => match i.address_parts() {
                Some(parts) => {
                    let base = self.value(parts.base);
                    let terms = parts.terms.into_iter().map(|(index, stride)| (self.value(index), stride));
                    Op::Address { base, terms: terms.collect(), offset: parts.offset }
                }
                None => Op::General(self.all(&operands)),
            },
            LLVMLoad if i.is_atomic_access() => Op::Atomic(self.all(&operands)),
            LLVMLoad if i.is_volatile() => Op::Load(self.value(operands[0]), Memory::Private),
            LLVMLoad => {
                let memory = self.memory(i, operands[0], at);
                Op::Load(self.value(operands[0]), memory)
            }
            LLVMStore => {
                let (value, address) = (self.value(operands[0]), self.value(operands[1]));
                Op::Store(address, value)
            }
            // A processor's threads have stacks of their own; on a GPU each thread's is at the same private address.
            LLVMAlloca if self.machine == Machine::Threads => Op::Divergent,
            LLVMAlloca => Op::Uniform,
            LLVMAtomicRMW | LLVMAtomicCmpXchg => Op::Atomic(self.all(&operands)),
            LLVMFence => Op::Undefined,
            LLVMCall => self.call(id, i, flow),
            LLVMFNeg | LLVMAdd | LLVMFAdd | LLVMSub | LLVMFSub | LLVMMul | LLVMFMul | LLVMUDiv | LLVMSDiv
            | LLVMFDiv | LLVMURem | LLVMSRem | LLVMFRem | LLVMShl | LLVMLShr | LLVMAShr | LLVMAnd | LLVMOr
            | LLVMXor | LLVMFPToUI | LLVMFPToSI | LLVMUIToFP | LLVMSIToFP | LLVMFPTrunc | LLVMFPExt | LLVMICmp
            | LLVMFCmp | LLVMSelect | LLVMGetElementPtr | LLVMExtractElement | LLVMInsertElement
            | LLVMShuffleVector | LLVMExtractValue | LLVMInsertValue => Op::General(self.all(&operands)),
            _ => Op::Divergent,
        }
    }

    /// The memory that a load reads.
    fn memory(&self, load: Instruction<'m>, address: Value<'m>, at: (usize, usize)) -> Memory {
        if load.has_metadata("invariant.load") || address.global_variable().is_some_and(Value::is_constant_global) {
            return Memory::Stable;
        }
        match (self.machine, address.type_of().address_space()) {
            (Machine::Threads, _) if (self.stable)(address, at) => Memory::Stable,
            (Machine::Amd | Machine::OpenCl, 4) | (Machine::OpenCl, 2) => Memory::Stable,
            // Generic addresses may be private ones.
            (Machine::Amd | Machine::Nvidia, 0 | 5) => Memory::Private,
            (Machine::OpenCl, 0) => Memory::Private,
            _ => Memory::Shared,
        }
    }

    fn call(&mut self, id: ValueId, call: Instruction<'m>, flow: &Flow<'m>) -> Op {
        let arguments = call.arguments();
        let Some(callee) = call.callee() else { return Op::Divergent };
        let all = self.all(&arguments);
        if let Some(text) = callee.assembly() {
            return match text.contains(MARK) && all.len() == 1 {
                true => {
                    Op::Given(Fact::of_thread(0, divergence::Form::number(1), divergence::Form::ZERO).exact(true, true))
                }
                false => Op::Divergent,
            };
        }
        let name = callee.name();
        if let Some(function) = callee.as_defined_function().filter(|function| !function.may_be_replaced()) {
            self.sites.push(Site { callee: function, value: id });
            return Op::Call(Return::Divergent, all);
        }
        let number = |i: usize| arguments.get(i).and_then(|v| v.as_number());
        let silent = name.starts_with("llvm.dbg.") || name.starts_with("llvm.lifetime.") || name == "llvm.assume";
        let effects = call.memory_effects();
        match known(&name, &number) {
            _ if !callee.is_function() => Op::Call(Return::Divergent, all),
            _ if silent => Op::Undefined,
            Some(Known::Fact(fact)) => Op::Given(fact),
            Some(Known::Uniform) => Op::Uniform,
            Some(Known::Pure) => Op::General(all),
            Some(Known::Product) => {
                let kind = kind_of(call.as_value());
                let product = |a, b| Op::Binary(Binary::Mul, a, b, Promise::default());
                match (all.as_slice(), call.block(), kind) {
                    (&[a, b], _, Kind::Bits(_)) => product(a, b),
                    (&[a, b, c], Some(block), Kind::Bits(_)) => {
                        let first = self.builder.add(flow.node(block), kind, product(a, b), "");
                        Op::Binary(Binary::Add, first, c, Promise::default())
                    }
                    _ => Op::General(all),
                }
            }
            Some(Known::Reads) if self.machine != Machine::Threads => Op::General(all),
            Some(Known::Reads | Known::Divergent) => Op::Call(Return::Divergent, all),
            // What touches no memory depends on its arguments alone, unless it looks at other lanes.
            None if effects == Some(0) && (name.starts_with("llvm.") || !call.call_has("convergent")) => {
                Op::General(all)
            }
            None => Op::Call(Return::Divergent, all),
        }
    }

    fn decide(&mut self, node: NodeId, end: Instruction<'m>) {
        use crate::llvm::Opcode::*;
        let several = {
            let mut next = end.successors();
            next.dedup();
            next.len() > 1
        };
        let decision = match end.opcode() {
            _ if !several => Decision::None,
            LLVMBr => end.condition().map_or(Decision::None, |by| Decision::By(self.value(by))),
            LLVMSwitch => Decision::By(self.value(end.operand(0))),
            _ => Decision::Unknown,
        };
        self.builder.decide(node, decision);
        if end.opcode() == LLVMUnreachable {
            self.builder.dead_end(node);
        }
    }

    /// Joins what the returns give.
    fn returned(&mut self, returns: &[(NodeId, Instruction<'m>)], exit: NodeId) -> Option<ValueId> {
        let mut given: Vec<(NodeId, ValueId, Kind)> = Vec::new();
        for (node, end) in returns {
            if let Some(&value) = end.operands().first() {
                given.push((*node, self.value(value), kind_of(value)));
            }
        }
        if returns.len() > 1 {
            for (node, _) in returns {
                self.builder.edge(*node, exit);
            }
        }
        match given.as_slice() {
            [] => None,
            [(node, value, kind)] if returns.len() == 1 => {
                Some(self.builder.add(*node, *kind, Op::Copy(*value), "return"))
            }
            [(_, _, kind), ..] => {
                let incoming = given.iter().map(|(node, value, _)| (*node, *value)).collect();
                Some(self.builder.add(exit, *kind, Op::Phi(incoming), "return"))
            }
        }
    }
}

/// A cast of scalars: none where it is no integer's or address's, an inner none where no bit changes.
#[allow(clippy::option_option, reason = "the outer says that there is a rule, the inner that it is a copy")]
fn cast(i: Instruction<'_>, from: Kind, promise: Promise) -> Option<Option<Cast>> {
    use crate::llvm::Opcode::*;
    let (Kind::Bits(from), Kind::Bits(to)) = (from, kind_of(i.as_value())) else {
        let same = i.type_of() == i.operand(0).type_of();
        return (i.opcode() == LLVMFreeze && same).then_some(None);
    };
    Some(match i.opcode() {
        LLVMTrunc => Some(Cast::Truncate(promise)),
        LLVMZExt => Some(Cast::Zero { non_negative: i.is_non_negative_extension() }),
        LLVMSExt => Some(Cast::Sign),
        // An address of another space may be another number.
        LLVMAddrSpaceCast if from != to => return None,
        LLVMBitCast if !matches!(i.operand(0).type_of().shape(), Shape::Integer(_) | Shape::Pointer) => return None,
        _ if to < from => Some(Cast::Truncate(Promise::default())),
        _ if to > from => Some(Cast::Zero { non_negative: false }),
        _ => None,
    })
}

fn predicate(comparison: Comparison) -> Predicate {
    use Comparison::*;
    let order = |signed, less, or_equal| Predicate::Order { signed, less, or_equal };
    match comparison {
        Equal => Predicate::Equality { equal: true },
        NotEqual => Predicate::Equality { equal: false },
        ULess => order(false, true, false),
        ULessEqual => order(false, true, true),
        UGreater => order(false, false, false),
        UGreaterEqual => order(false, false, true),
        SLess => order(true, true, false),
        SLessEqual => order(true, true, true),
        SGreater => order(true, false, false),
        SGreaterEqual => order(true, false, true),
    }
}
