//! What is known, row by row: values, branches and memory accesses with their places in the source.

use divergence::{Class, Fact, Op, ValueId};

use super::{FunctionFacts, Program};
use crate::Place;
use crate::llvm::{Instruction, Opcode};

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A parameter of the function.
    Parameter,
    /// A value.
    Value,
    /// What a branch or switch decides by.
    Branch,
    /// The address of a load.
    Load,
    /// The address of a store.
    Store,
    /// The address of an atomic operation.
    Atomic,
}

impl Subject {
    /// Its name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Subject::Parameter => "parameter",
            Subject::Value => "value",
            Subject::Branch => "branch",
            Subject::Load => "load",
            Subject::Store => "store",
            Subject::Atomic => "atomic",
        }
    }
}

/// A value, a branch or an access, and what is known about it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The function.
    pub function: String,
    /// Whether threads are known to run it.
    pub is_run_by_threads: bool,
    /// Where it is in the source, as far as the module says.
    pub place: Option<Place>,
    /// What the row is about.
    pub subject: Subject,
    /// The value's name in the IR, with what makes it: by this, values of one line are told apart.
    pub name: String,
    /// Its class.
    pub class: Class,
    /// c1·tid + c2; ⊥ for divergent ones.
    pub fact: String,
    /// The stride from one thread to the next, where it is a number: for addresses in bytes.
    pub stride: Option<i64>,
    /// How many bytes an access is wide.
    pub bytes: Option<u64>,
    /// The rule that told.
    pub rule: String,
}

/// The rows of all functions, in the order of the code.
#[must_use]
pub fn rows(program: &Program<'_>) -> Vec<Row> {
    program.functions().iter().flat_map(of_function).collect()
}

/// The rows of a function.
#[must_use]
pub fn of_function(facts: &FunctionFacts<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let function = facts.function();
    let analysis = facts.analysis();
    let row = |place: Option<Place>, subject: Subject, name: String, fact: Fact, node: ValueId| Row {
        function: function.name(),
        is_run_by_threads: facts.is_run_by_threads(),
        place,
        subject,
        name,
        class: fact.class(),
        fact: analysis.text_of(&fact),
        stride: fact.stride(),
        bytes: None,
        rule: analysis.rule(node).name(),
    };
    for (i, parameter) in function.parameters().into_iter().enumerate() {
        let id = ValueId(i as u32);
        let name = parameter.name();
        let name = if name.is_empty() { format!("argument {i}") } else { format!("%{name}") };
        rows.push(row(None, Subject::Parameter, name, analysis.fact(id), id));
    }
    for (block, instruction) in
        function.blocks().into_iter().flat_map(|b| b.instructions().into_iter().map(move |i| (b, i)))
    {
        let place = instruction.place();
        let Some(id) = facts.id(instruction.as_value()) else {
            if let Some(class) = facts.branch(block).filter(|_| instruction.is_terminator()) {
                let node = match analysis.gated().decision(facts.flow().node(block)) {
                    divergence::Decision::By(node) => Some(node),
                    _ => None,
                };
                let name = node.map_or_else(|| "unknown".to_owned(), |node| analysis.gated().name(node));
                let fact = node.map_or(Fact::Divergent, |node| analysis.fact(node));
                let mut made = row(place, Subject::Branch, name, fact, node.unwrap_or(ValueId(0)));
                made.class = class;
                rows.push(made);
            }
            continue;
        };
        if let Some(fact) = analysis.address(id) {
            let node = analysis.gated().op(id).address().unwrap_or(id);
            let subject = match instruction.opcode() {
                Opcode::LLVMLoad if !matches!(analysis.gated().op(id), Op::Atomic(_)) => Subject::Load,
                Opcode::LLVMStore if !instruction.is_atomic_access() => Subject::Store,
                _ => Subject::Atomic,
            };
            let name = analysis.gated().name(node);
            rows.push(Row { bytes: instruction.access_size(), ..row(place.clone(), subject, name, fact, node) });
        }
        if !instruction.type_of().is_void() {
            rows.push(row(
                place,
                Subject::Value,
                label(instruction, &analysis.gated().name(id)),
                analysis.fact(id),
                id,
            ));
        }
    }
    rows
}

/// A value's name and what makes it.
fn label(instruction: Instruction<'_>, name: &str) -> String {
    let opcode = format!("{:?}", instruction.opcode());
    let opcode = opcode.strip_prefix("LLVM").unwrap_or(&opcode).to_lowercase();
    match instruction.callee() {
        Some(callee) if callee.is_function() => format!("{name} = call {}", callee.name()),
        _ => format!("{name} = {opcode}"),
    }
}
