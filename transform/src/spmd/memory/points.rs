//! Which memory an address may point at, and whether it is written late: classes of memory, which are joined if one
//! address may point at both (Steensgaard, *Points-to analysis in almost linear time*, POPL 1996).
//!
//! Each value has a class, the memory that it may point at; each class has one for what the addresses in it point at.
//! Class 0 is the memory that code may reach which is not seen here: it is written at any time, and points at itself.

use rustc_hash::FxHashMap;

use super::library::{Effect, effect};
use super::phases::{Phases, is_pure};
use crate::llvm::{Function, Instruction, Module, Shape, Value};
use crate::spmd::sources::{Sources, Start, all_callers_known};

/// A class of memory, to be looked up before it is used.
pub(super) type Class = usize;

/// The memory that unknown code may reach.
const OUTSIDE: Class = 0;

pub(super) struct Points<'m> {
    by_value: FxHashMap<Value<'m>, Class>,
    by_return: FxHashMap<Function<'m>, Class>,
    /// By class: the one that it was joined to, or itself.
    joined: Vec<Class>,
    /// By class: what the addresses in it point at.
    content: Vec<Option<Class>>,
    written: Vec<bool>,
    writes: Vec<Write<'m>>,
    whole: bool,
}

/// An instruction that writes.
#[derive(Clone, Copy)]
pub(super) struct Write<'m> {
    class: Class,
    pub(super) early: bool,
    pub(super) by: Instruction<'m>,
    pub(super) to: Value<'m>,
    /// How many bytes, where that is known.
    pub(super) bytes: Option<u64>,
}

impl<'m> Points<'m> {
    pub(super) fn of(module: &'m Module, whole: bool, sources: &Sources<'m>, phases: &Phases<'m>) -> Points<'m> {
        let mut points = Points {
            by_value: FxHashMap::default(),
            by_return: FxHashMap::default(),
            joined: vec![OUTSIDE],
            content: vec![Some(OUTSIDE)],
            written: vec![true],
            writes: Vec::new(),
            whole,
        };
        for (i, function) in module.functions().into_iter().enumerate() {
            let known = all_callers_known(function, whole, sources);
            if !known {
                function.parameters().into_iter().for_each(|parameter| points.keep(parameter));
                let returned = points.returned(function);
                points.join(returned, OUTSIDE);
            }
            for (b, block) in function.blocks().into_iter().enumerate() {
                for (place, instruction) in block.instructions().into_iter().enumerate() {
                    let early = phases.is_early(i, (b, place));
                    points.read(function, instruction, early, sources);
                }
            }
        }
        // What is found later may join classes whose flags were set before; all is told when all was read.
        for class in 0..points.joined.len() {
            let root = points.find(class);
            points.written[root] |= points.written[class];
        }
        points
    }

    /// Whether nobody writes late where an address points.
    pub(super) fn is_unwritten(&self, address: Value<'m>) -> bool {
        let address = address.global_variable().unwrap_or(address);
        self.by_value.get(&address).is_some_and(|&class| {
            let root = self.root(class);
            !self.written[root] && root != self.root(OUTSIDE)
        })
    }

    /// All that writes behind the first start, and what, where that is not memory that unknown code may reach.
    pub(super) fn late_writes(&self) -> impl Iterator<Item = (Instruction<'m>, Class)> {
        let known = |write: &Write<'m>| (write.by, self.root(write.class));
        self.writes.iter().filter(|write| !write.early).map(known)
    }

    /// The memory that an address points at; none where unknown code may reach it.
    pub(super) fn class_of(&self, address: Value<'m>) -> Option<Class> {
        let address = address.global_variable().unwrap_or(address);
        let root = self.root(*self.by_value.get(&address)?);
        (root != self.root(OUTSIDE)).then_some(root)
    }

    /// All that writes where an address points; none where code may write that is not seen here.
    pub(super) fn writes(&self, address: Value<'m>) -> Option<Vec<Write<'m>>> {
        let root = self.root(*self.by_value.get(&address)?);
        let own = |write: &&Write<'m>| self.root(write.class) == root;
        (root != self.root(OUTSIDE)).then(|| self.writes.iter().filter(own).copied().collect())
    }

    fn root(&self, mut class: Class) -> Class {
        while self.joined[class] != class {
            class = self.joined[class];
        }
        class
    }

    fn find(&mut self, class: Class) -> Class {
        let root = self.root(class);
        let mut next = class;
        while self.joined[next] != root {
            next = std::mem::replace(&mut self.joined[next], root);
        }
        root
    }

    fn fresh(&mut self) -> Class {
        self.joined.push(self.joined.len());
        self.content.push(None);
        self.written.push(false);
        self.joined.len() - 1
    }

    /// Joins two classes, and what they point at.
    fn join(&mut self, a: Class, b: Class) {
        let mut todo = vec![(a, b)];
        while let Some((a, b)) = todo.pop() {
            let (a, b) = (self.find(a), self.find(b));
            if a == b {
                continue;
            }
            self.joined[b] = a;
            self.written[a] |= self.written[b];
            match (self.content[a], self.content[b]) {
                (Some(one), Some(other)) => todo.push((one, other)),
                (None, other) => self.content[a] = other,
                _ => {}
            }
        }
    }

    /// What the addresses in a class point at.
    fn behind(&mut self, class: Class) -> Class {
        let root = self.find(class);
        match self.content[root] {
            Some(content) => content,
            None => {
                let content = self.fresh();
                self.content[root] = Some(content);
                content
            }
        }
    }

    /// `by` writes what `to` points at, or what lies in a class that is reached from there.
    fn write(&mut self, class: Class, early: bool, by: Instruction<'m>, to: Value<'m>, bytes: Option<u64>) {
        let root = self.find(class);
        self.written[root] |= !early;
        self.writes.push(Write { class, early, by, to, bytes });
    }

    /// Unknown code gets a value.
    fn keep(&mut self, value: Value<'m>) {
        let class = self.class(value);
        self.join(class, OUTSIDE);
    }

    fn returned(&mut self, function: Function<'m>) -> Class {
        if let Some(&class) = self.by_return.get(&function) {
            return class;
        }
        let class = self.fresh();
        self.by_return.insert(function, class);
        class
    }

    /// The memory that a value may point at.
    fn class(&mut self, value: Value<'m>) -> Class {
        if let Some(&class) = self.by_value.get(&value) {
            return class;
        }
        let class = self.fresh();
        // Constants are one value wherever they are used: null would join all that it is put into.
        if !value.is_constant() || value.is_global_variable() {
            self.by_value.insert(value, class);
        }
        if value.is_global_variable() {
            let own = (value.is_internal_global() || self.whole) && !value.is_thread_local();
            match value.initializer() {
                Some(first) if own => {
                    let (first, content) = (self.class(first), self.behind(class));
                    self.join(first, content);
                }
                _ => self.join(class, OUTSIDE),
            }
        } else if value.is_constant() && !value.is_function() {
            for part in value.constant_operands() {
                if may_hold_address(part) {
                    let part = self.class(part);
                    self.join(class, part);
                }
            }
            if value.is_opaque_constant() {
                self.join(class, OUTSIDE);
            }
        }
        class
    }

    fn read(&mut self, function: Function<'m>, i: Instruction<'m>, early: bool, sources: &Sources<'m>) {
        use crate::llvm::Opcode::*;
        let own = i.as_value();
        match i.opcode() {
            LLVMLoad => self.copy_from(own, i.operand(0)),
            LLVMStore => {
                self.copy_to(i.operand(1), i.operand(0));
                self.write_at(i.operand(1), early, i);
            }
            LLVMAtomicRMW | LLVMAtomicCmpXchg => {
                self.copy_from(own, i.operand(0));
                i.operands().into_iter().skip(1).for_each(|value| self.copy_to(i.operand(0), value));
                self.write_at(i.operand(0), early, i);
            }
            // Memory that is allocated while threads run may have been another object's before.
            LLVMAlloca => self.write_at(own, early, i),
            LLVMGetElementPtr => self.same(own, i.operand(0)),
            LLVMSelect => i.operands().into_iter().skip(1).for_each(|value| self.same(own, value)),
            LLVMPHI => i.incoming().into_iter().for_each(|(value, _)| self.same(own, value)),
            LLVMRet => {
                for value in i.operands() {
                    let (value, returned) = (self.class(value), self.returned(function));
                    self.join(value, returned);
                }
            }
            LLVMCall => self.call(i, early, sources),
            LLVMICmp | LLVMFCmp | LLVMFence | LLVMBr | LLVMSwitch | LLVMUnreachable => {}
            LLVMInvoke | LLVMCallBr | LLVMVAArg | LLVMLandingPad | LLVMResume | LLVMIndirectBr | LLVMCatchPad
            | LLVMCleanupPad => {
                self.keep(own);
                i.operands().into_iter().filter(|v| may_hold_address(*v)).for_each(|value| self.keep(value));
            }
            _ if may_hold_address(own) => {
                let parts = i.operands().into_iter().filter(|v| may_hold_address(*v));
                parts.for_each(|value| self.same(own, value));
            }
            _ => {}
        }
    }

    fn same(&mut self, a: Value<'m>, b: Value<'m>) {
        let (a, b) = (self.class(a), self.class(b));
        self.join(a, b);
    }

    /// `value` is what lies at `address`.
    fn copy_from(&mut self, value: Value<'m>, address: Value<'m>) {
        let (value, address) = (self.class(value), self.class(address));
        let content = self.behind(address);
        self.join(value, content);
    }

    fn copy_to(&mut self, address: Value<'m>, value: Value<'m>) {
        self.copy_from(value, address);
    }

    fn write_at(&mut self, address: Value<'m>, early: bool, by: Instruction<'m>) {
        let class = self.class(address);
        self.write(class, early, by, address, by.access_size());
    }

    fn call(&mut self, call: Instruction<'m>, early: bool, sources: &Sources<'m>) {
        let (own, arguments) = (call.as_value(), call.arguments());
        let Some(callee) = call.callee() else { return self.keep(own) };
        if callee.is_inline_assembly() {
            self.keep(own);
            return arguments.into_iter().for_each(|value| self.keep(value));
        }
        if let Some(function) = callee.as_defined_function().filter(|f| !f.may_be_replaced()) {
            let parameters = function.parameters();
            for (i, argument) in arguments.into_iter().enumerate() {
                match parameters.get(i) {
                    Some(&parameter) => self.same(parameter, argument),
                    None => self.keep(argument),
                }
            }
            let (own, returned) = (self.class(own), self.returned(function));
            return self.join(own, returned);
        }
        let starts: Vec<&Start<'m>> = sources.starts.iter().filter(|start| start.call == call).collect();
        if !starts.is_empty() {
            return self.start(call, &arguments, &starts);
        }
        let name = callee.name();
        let effect = if callee.is_function() { effect(&name) } else { Effect::Unknown };
        let first = arguments.first().copied();
        match effect {
            Effect::None => {}
            Effect::Within => first.into_iter().for_each(|first| self.same(own, first)),
            Effect::Writes => {
                arguments.iter().for_each(|&argument| self.write_at(argument, early, call));
                first.into_iter().for_each(|first| self.same(own, first));
            }
            Effect::Copies => {
                if let [to, from, ..] = arguments.as_slice() {
                    let (to, from) = (self.class(*to), self.class(*from));
                    let (a, b) = (self.behind(to), self.behind(from));
                    self.join(a, b);
                    self.write(to, early, call, arguments[0], None);
                }
                first.into_iter().for_each(|first| self.same(own, first));
            }
            Effect::Parses => {
                if let [text, end, ..] = arguments.as_slice() {
                    self.copy_to(*end, *text);
                    self.write_at(*end, early, call);
                }
            }
            Effect::Allocates => self.write_at(own, early, call),
            Effect::Reallocates => {
                first.into_iter().for_each(|first| self.same(own, first));
                self.write_at(own, early, call);
            }
            Effect::Places => {
                if let Some(place) = first {
                    let class = self.class(place);
                    let content = self.behind(class);
                    self.write(content, early, call, place, None);
                    self.write(class, early, call, place, None);
                }
            }
            Effect::Unknown if callee.is_function() && is_pure(&name) => {}
            // Intrinsics that touch no memory give what they are given.
            Effect::Keeps if call.memory_effects() == Some(0) => {
                arguments.into_iter().filter(|v| may_hold_address(*v)).for_each(|value| self.same(own, value));
            }
            Effect::Keeps | Effect::Unknown => {
                self.keep(own);
                arguments.into_iter().for_each(|value| self.keep(value));
            }
        }
    }

    /// A call that starts threads: what it passes to which parameters.
    fn start(&mut self, call: Instruction<'m>, arguments: &[Value<'m>], starts: &[&Start<'m>]) {
        let mut passed = vec![false; arguments.len()];
        if let (true, [handle, attributes, ..]) = (call.calls("pthread_create"), arguments) {
            // The library writes the thread's name there, and forgets both addresses.
            let class = self.class(*handle);
            self.write(class, false, call, *handle, Some(8));
            _ = self.class(*attributes);
            passed[0..2].fill(true);
        }
        for start in starts {
            for (parameter, from) in start.runs.parameters().into_iter().zip(&start.passes) {
                match from.and_then(|i| arguments.get(i as usize).map(|argument| (i, *argument))) {
                    Some((i, argument)) => {
                        self.same(parameter, argument);
                        passed[i as usize] = true;
                    }
                    None => self.keep(parameter),
                }
            }
            let returned = self.returned(start.runs);
            self.join(returned, OUTSIDE);
        }
        for (argument, _) in arguments.iter().zip(passed).filter(|(a, passed)| !passed && !a.is_function()) {
            self.keep(*argument);
        }
    }
}

/// Whether a value has room for an address: integers of fewer than 64 bits and functions' blocks have not.
fn may_hold_address(value: Value<'_>) -> bool {
    match value.type_of().shape() {
        Shape::Integer(bits) => bits >= 64,
        _ => value.type_of().is_sized(),
    }
}
