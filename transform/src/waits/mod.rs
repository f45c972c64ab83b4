//! Whether lanes may wait for each other in code: by what a pass makes of it, they must not where one of them waits for
//! another by itself.
//!
//! A lane that is held at a predicted place, or where paths meet, may be the one for which another waits: to give a
//! lock back, to write a flag, to come to a barrier. [`obstacle`] finds whatever could tell a lane that another has
//! done something. Whoever does so by plain loads has a data race, and compilers need not keep that.
//! [`Waits::may_wait`] finds only calls that may not return until another lane has done something, those of what is not
//! known included.
//!
//! # The rule of passes that have paths meet earlier
//! Lanes of one side are held at a new common place until those of the other side come there. They may not come if they
//! wait, in front of that place, for what the held ones do at or behind it, before they would have met otherwise. Nor
//! may lanes go on that wait at the common place together, if one of them has what another waits for. [`Code`] says of
//! a piece of code what there is of this in it, and [`Code::holds_up`] puts the pieces together. It goes by what is
//! known: calls by their names ([`names`]), functions of the module by what is in them, and loops that are left by what
//! another lane writes ([`loops`]). A call of what is not known is taken to return by itself, and to end no wait.

mod loops;
mod names;

use std::cell::RefCell;
use std::ops::BitOr;
use std::rc::Rc;

use flowgraph::{Builder, Components, Loops, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::alike;
use crate::flow::Flow;
use crate::llvm::{Block, Function, Instruction, Module, Opcode, Value};

/// What code has to do with waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    /// A lane may wait there until another has done something, and its coming there ends no other's wait.
    waits: bool,
    /// Lanes wait there until others have come there: at a barrier.
    meets: bool,
    /// Something is done there that may end the wait of another lane.
    frees: bool,
    /// A lane may learn there what another has done.
    tells: bool,
}

impl BitOr for Code {
    type Output = Code;

    fn bitor(self, other: Code) -> Code {
        Code {
            waits: self.waits || other.waits,
            meets: self.meets || other.meets,
            frees: self.frees || other.frees,
            tells: self.tells || other.tells,
        }
    }
}

impl FromIterator<Code> for Code {
    fn from_iter<T: IntoIterator<Item = Code>>(all: T) -> Code {
        all.into_iter().fold(Code::default(), BitOr::bitor)
    }
}

impl Code {
    /// Whether lanes wait there at all.
    pub(crate) fn is_wait(self) -> bool {
        self.waits || self.meets
    }

    /// Whether lanes that wait there may wait for what lanes do in the other.
    pub(crate) fn waits_for(self, other: Code) -> bool {
        self.is_wait() && (other.frees || other.meets)
    }

    /// Whether lanes of two sides could hold each other up by a new common place: `front` is what those of each side
    /// run in front of it, `common` what they run together there, `behind` what those of each side run from there up
    /// to where they would have met otherwise.
    pub(crate) fn holds_up(front: [Code; 2], common: Code, behind: [Code; 2]) -> bool {
        let rest = common | behind[0] | behind[1];
        common.waits && rest.waits_for_itself() || (0..2).any(|side| front[side].waits_for(common | behind[1 - side]))
    }

    /// Whether lanes that run it together could hold each other up, where some ran it before others.
    fn waits_for_itself(self) -> bool {
        self.waits && (self.frees || self.meets)
    }
}

/// Why lanes must not wait for each other in these blocks, if so.
pub(crate) fn obstacle<'a, 'm: 'a>(blocks: impl IntoIterator<Item = &'a Block<'m>>) -> Option<&'static str> {
    let mut seen = FxHashSet::default();
    let mut open: Vec<Function<'m>> = Vec::new();
    for block in blocks {
        if !block.ends_with_branch() {
            return Some("a block of the region ends with what is no branch");
        }
        if let Some(why) = block.instructions().into_iter().find_map(|i| may_wait(i, &mut open)) {
            return Some(why);
        }
    }
    while let Some(function) = open.pop() {
        if seen.insert(function) {
            let mut all = function.blocks().into_iter().flat_map(Block::instructions);
            if let Some(why) = all.find_map(|i| may_wait(i, &mut open)) {
                return Some(why);
            }
        }
    }
    None
}

/// Why an instruction could be part of a wait for another lane; functions that it calls are added to `called`.
fn may_wait<'m>(i: Instruction<'m>, called: &mut Vec<Function<'m>>) -> Option<&'static str> {
    match i.opcode() {
        Opcode::LLVMLoad | Opcode::LLVMStore if !i.is_plain_access() => {
            Some("lanes could wait for each other there: an access is volatile or atomic")
        }
        Opcode::LLVMAtomicCmpXchg => Some("lanes could wait for each other there: memory is compared and exchanged"),
        Opcode::LLVMAtomicRMW if !i.as_value().uses().is_empty() => {
            Some("lanes could wait for each other there: what an atomic operation found is used")
        }
        Opcode::LLVMCall => {
            let callee = i.callee()?;
            if is_note(callee) {
                return None;
            }
            if let Some(function) = callee.as_defined_function().filter(|function| !function.may_be_replaced()) {
                called.push(function);
                return None;
            }
            if alike::is_convergent(i) {
                return Some("lanes act together there: by a barrier, a vote or an exchange");
            }
            if i.call_has("noreturn") && !callee.name().ends_with("trap") {
                return Some("a lane could end there");
            }
            // What touches no memory learns nothing.
            let is_known = callee.is_function() && callee.is_intrinsic() || i.memory_effects() == Some(0);
            (!is_known).then_some("a call there is of what is not known")
        }
        Opcode::LLVMInvoke | Opcode::LLVMCallBr => Some("a call there can go on at two places"),
        _ => None,
    }
}

/// Where lanes may wait for others, in the functions of a module.
#[derive(Default)]
pub(crate) struct Waits<'m> {
    /// Whether a call of what is not known, or anything that tells a lane of others, is in a function.
    known: FxHashMap<Function<'m>, bool>,
    /// By function: what is in it and in what it calls. None as long as nobody asked.
    functions: Option<FxHashMap<Function<'m>, Code>>,
    /// What is known of functions that the module only declares.
    named: FxHashMap<Value<'m>, Code>,
}

impl<'m> Waits<'m> {
    /// Whether a call may wait for another lane, as for a lock or at a barrier: one that need not return, of a function
    /// that is not known or acts on memory that others see.
    pub(crate) fn may_wait(&mut self, i: Instruction<'m>) -> bool {
        let mut open = Vec::new();
        if i.opcode() != Opcode::LLVMCall || i.call_has("willreturn") {
            return false;
        }
        if may_wait(i, &mut open).is_some() {
            return true;
        }
        open.into_iter().any(|function| self.is_wait(function))
    }

    /// What an instruction has to do with waiting, the functions that it calls included.
    fn of(&mut self, i: Instruction<'m>) -> Code {
        match of_instruction(i, &mut self.named) {
            Ok(code) => code,
            Err(called) => {
                let functions = self.functions.get_or_insert_with(|| of_functions(called.module(), &mut self.named));
                functions.get(&called).copied().unwrap_or_default()
            }
        }
    }

    fn is_wait(&mut self, function: Function<'m>) -> bool {
        if let Some(known) = self.known.get(&function) {
            return *known;
        }
        let (mut seen, mut open) = (FxHashSet::default(), vec![function]);
        let mut waits = false;
        while let Some(one) = open.pop().filter(|_| !waits) {
            if self.known.get(&one) != Some(&false) && seen.insert(one) {
                let all = one.blocks().into_iter().flat_map(Block::instructions);
                let mut all = all.filter(|i| i.opcode() != Opcode::LLVMCall || !i.call_has("willreturn"));
                waits = self.known.get(&one) == Some(&true) || all.any(|i| may_wait(i, &mut open).is_some());
            }
        }
        if waits {
            self.known.insert(function, true);
        } else {
            self.known.extend(seen.into_iter().map(|one| (one, false)));
        }
        waits
    }
}

/// Where lanes of one function may wait for others.
pub(crate) struct InFunction<'m> {
    waits: Rc<RefCell<Waits<'m>>>,
    /// The members of each loop in which they do.
    turning: Vec<Vec<Block<'m>>>,
    /// Whether lanes wait in it that could hold each other up.
    any: bool,
}

impl<'m> InFunction<'m> {
    /// Of the function with this control flow.
    pub(crate) fn of(waits: &Rc<RefCell<Waits<'m>>>, flow: &Flow<'m>, loops: &Loops) -> InFunction<'m> {
        let mut known = waits.borrow_mut();
        let all: Code = flow.blocks().iter().flat_map(|block| block.instructions()).map(|i| known.of(i)).collect();
        let turning = if all.tells { loops::turning(flow, loops, |i| known.of(i).tells) } else { Vec::new() };
        drop(known);
        // A program begins with one lane, which has none beside it there.
        let function = flow.block(NodeId(0)).function();
        let alone = function.name() == "main" && function.as_value().uses().is_empty();
        InFunction { waits: waits.clone(), any: !alone && (all.is_wait() || !turning.is_empty()), turning }
    }

    /// Whether lanes wait in it that could hold each other up.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// What instructions have to do with waiting, the functions that they call included.
    pub(crate) fn code(&self, instructions: impl IntoIterator<Item = Instruction<'m>>) -> Code {
        let mut waits = self.waits.borrow_mut();
        instructions.into_iter().map(|i| waits.of(i)).collect()
    }

    /// Whether lanes could hold each other up in these blocks, wherever they come to meet in them. Barriers do not
    /// count: a compiler copies them (workloads/linearization/heartwall), and where lanes wait at one, those below in
    /// the stack run.
    pub(crate) fn hold_up_anywhere(&self, blocks: impl IntoIterator<Item = Block<'m>>) -> bool {
        self.any && {
            let all = self.blocks(blocks);
            all.waits && all.frees
        }
    }

    /// What blocks have to do with waiting; of loops those that lie in them as a whole.
    pub(crate) fn blocks(&self, blocks: impl IntoIterator<Item = Block<'m>>) -> Code {
        let blocks: FxHashSet<Block<'m>> = blocks.into_iter().collect();
        self.code(blocks.iter().flat_map(|block| block.instructions())) | self.loops(blocks)
    }

    /// What of waiting is in the loops that lie in these blocks as a whole.
    pub(crate) fn loops(&self, blocks: impl IntoIterator<Item = Block<'m>>) -> Code {
        let blocks: FxHashSet<Block<'m>> = blocks.into_iter().collect();
        let waits = self.turning.iter().any(|members| members.iter().all(|block| blocks.contains(block)));
        Code { waits, ..Code::default() }
    }

    /// Whether a call may wait for another lane, as for a lock or at a barrier: one that need not return, of a function
    /// that is not known or acts on memory that others see.
    pub(crate) fn may_wait(&self, i: Instruction<'m>) -> bool {
        self.waits.borrow_mut().may_wait(i)
    }
}

/// Whether it is inline assembly without an instruction: a mark, or a note to the compiler.
fn is_note(callee: Value<'_>) -> bool {
    let is_comment = |line: &str| line.trim().is_empty() || line.trim().starts_with("//");
    callee.is_inline_assembly() && callee.assembly().is_some_and(|text| text.lines().all(is_comment))
}

/// What an instruction has to do with waiting; an error is the function that it calls, which decides.
fn of_instruction<'m>(i: Instruction<'m>, named: &mut FxHashMap<Value<'m>, Code>) -> Result<Code, Function<'m>> {
    let none = Code::default();
    let both = Code { frees: true, tells: true, ..none };
    Ok(match i.opcode() {
        Opcode::LLVMLoad => Code { tells: !i.is_plain_access(), ..none },
        Opcode::LLVMStore => Code { frees: !i.is_plain_access(), ..none },
        Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => both,
        Opcode::LLVMCall | Opcode::LLVMInvoke => {
            let Some(callee) = i.callee().or_else(|| i.invoked()) else { return Ok(none) };
            if callee.is_inline_assembly() {
                return Ok(if is_note(callee) { none } else { both });
            }
            if let Some(function) = callee.as_defined_function() {
                return Err(function);
            }
            let by_name = || if callee.is_function() { names::known(&callee.name()) } else { none };
            *named.entry(callee).or_insert_with(by_name)
        }
        _ => none,
    })
}

/// What is in each function of a module and in what it calls.
fn of_functions<'m>(module: &'m Module, named: &mut FxHashMap<Value<'m>, Code>) -> FxHashMap<Function<'m>, Code> {
    let functions = module.functions();
    let numbers: FxHashMap<Function<'_>, usize> = functions.iter().enumerate().map(|(i, f)| (*f, i)).collect();
    // A node before all, from which none leads on, so that there is one where a module has no functions.
    let mut builder = Builder::new(functions.len() + 1);
    let mut own = vec![Code::default()];
    for (caller, function) in functions.iter().enumerate() {
        let mut code = Code::default();
        for i in function.blocks().into_iter().flat_map(Block::instructions) {
            match of_instruction(i, named) {
                Ok(more) => code = code | more,
                Err(called) => {
                    builder.edge(NodeId(caller as u32 + 1), NodeId(numbers[&called] as u32 + 1));
                }
            }
        }
        own.push(code);
    }
    let calls = builder.build(NodeId(0));
    let components = Components::of(&calls);
    // What is called is known before who calls it; a loop waits by what is told by functions that it calls.
    let mut all = own;
    for looks in 0..2 {
        for id in components.ids().rev() {
            let members = components.members(id);
            let called = members.iter().flat_map(|node| calls.successors(*node)).chain(members);
            let code: Code = called.map(|node| all[node.index()]).collect();
            members.iter().for_each(|node| all[node.index()] = code);
        }
        if looks > 0 {
            break;
        }
        let mut tells = |i: Instruction<'m>| match of_instruction(i, named) {
            Ok(code) => code.tells,
            Err(called) => all[numbers[&called] + 1].tells,
        };
        let mut waits = |node: NodeId| {
            let function = functions[node.index() - 1];
            all[node.index()].tells && {
                let flow = Flow::of(function);
                !loops::turning(&flow, &Loops::of(flow.graph()), &mut tells).is_empty()
            }
        };
        // A function that calls itself is a loop.
        let again = |node: NodeId| components.is_cyclic(components.component(node)) && all[node.index()].tells;
        let turning: Vec<NodeId> = calls.nodes().skip(1).filter(|&node| again(node) || waits(node)).collect();
        turning.into_iter().for_each(|node| all[node.index()].waits = true);
    }
    functions.into_iter().zip(all.into_iter().skip(1)).collect()
}
