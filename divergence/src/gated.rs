//! Gated SSA form: the function with an η for each value that leaves a loop, and gates for its joins.

use std::fmt::Write;
use std::sync::Arc;

use flowgraph::NodeId;
use rustc_hash::FxHashMap;

use crate::dependents::Dependents;
use crate::gates::{Choice, Selection};
use crate::{Decision, Fact, Function, GateId, Gates, Kind, Memory, Op, Return, ScopeId, ValueId};

/// A value of the gated form: numbered from 0, first the function's values, then the η functions.
pub type NodeRef = ValueId;

/// The value that leaves a loop: the one of the last iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eta {
    /// What it leaves.
    pub scope: ScopeId,
    /// The value inside.
    pub of: NodeRef,
}

/// A function in gated SSA form.
///
/// Source: Ottenstein, Ballance and MacCabe, *The program dependence web*, PLDI 1990, for γ, μ and η; [`Gates`] for
/// where their predicates come from.
#[derive(Clone, Debug)]
pub struct Gated {
    function: Arc<Function>,
    gates: Gates,
    /// By node; operands are nodes.
    ops: Vec<Op>,
    etas: Vec<Eta>,
    decisions: Vec<Decision>,
    dependents: Arc<Dependents>,
}

impl Gated {
    /// The gated form of `function`.
    #[must_use]
    pub fn of(function: &Arc<Function>) -> Gated {
        let gates = Gates::of(function);
        let mut ops: Vec<Op> = function.values().iter().map(|v| v.op.clone()).collect();
        let mut etas = Etas { function, gates: &gates, all: Vec::new(), known: FxHashMap::default() };
        for (i, op) in ops.iter_mut().enumerate() {
            let Some(block) = function.values()[i].block else { continue };
            for (operand, end) in op.operands_mut() {
                *operand = etas.at(*operand, end.unwrap_or(block), block);
            }
        }
        let decisions = function.graph().nodes().map(|block| match function.decision(block) {
            Decision::By(value) => Decision::By(etas.at(value, block, block)),
            other => other,
        });
        let decisions = decisions.collect();
        let etas = etas.all;
        ops.extend(etas.iter().map(|eta| Op::Copy(eta.of)));
        let mut gated = Gated { function: function.clone(), gates, ops, etas, decisions, dependents: Arc::default() };
        gated.dependents = Arc::new(Dependents::of(&gated));
        gated
    }

    /// The function.
    #[must_use]
    pub fn function(&self) -> &Arc<Function> {
        &self.function
    }

    /// Its gates.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// How many nodes there are: values and η functions.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ops.len()
    }

    /// What makes a node, with nodes as operands; an η is a copy.
    #[must_use]
    pub fn op(&self, node: NodeRef) -> &Op {
        &self.ops[node.index()]
    }

    /// The η function that a node is.
    #[must_use]
    pub fn eta(&self, node: NodeRef) -> Option<Eta> {
        node.index().checked_sub(self.function.values().len()).map(|i| self.etas[i])
    }

    /// Replaces what is known about a parameter: a value without operands stays one.
    ///
    /// # Panics
    /// When the value has operands.
    pub fn give(&mut self, value: ValueId, fact: Fact) {
        self.ops[value.index()].each_operand(|_| panic!("a parameter has no operands"));
        self.ops[value.index()] = Op::Given(fact);
    }

    /// Replaces which memory a load reads.
    ///
    /// # Panics
    /// When the value is no load.
    pub fn set_memory(&mut self, value: ValueId, memory: Memory) {
        match &mut self.ops[value.index()] {
            Op::Load(_, old) => *old = memory,
            other => panic!("{other:?} is no load"),
        }
    }

    /// Replaces what a call returns.
    ///
    /// # Panics
    /// When the value is no call.
    pub fn set_return(&mut self, value: ValueId, result: Return) {
        match &mut self.ops[value.index()] {
            Op::Call(old, _) => *old = result,
            other => panic!("{other:?} is no call"),
        }
    }

    pub(crate) fn dependents(&self) -> &Arc<Dependents> {
        &self.dependents
    }

    /// What decides where control goes from a block, as a node.
    #[must_use]
    pub fn decision(&self, block: NodeId) -> Decision {
        self.decisions[block.index()]
    }

    /// The value that a node is, or whose η it is.
    #[must_use]
    pub fn value_of(&self, mut node: NodeRef) -> ValueId {
        while let Some(eta) = self.eta(node) {
            node = eta.of;
        }
        node
    }

    /// What a node is.
    #[must_use]
    pub fn kind(&self, node: NodeRef) -> Kind {
        self.function.value(self.value_of(node)).kind
    }

    /// The block in which a node is made; for an η, that of its value.
    #[must_use]
    pub fn block(&self, node: NodeRef) -> Option<NodeId> {
        self.function.value(self.value_of(node)).block
    }

    /// The gate of a phi, or of an η.
    #[must_use]
    pub fn gate(&self, node: NodeRef) -> Option<GateId> {
        if let Some(eta) = self.eta(node) {
            return Some(self.gates.scope(eta.scope).gate);
        }
        let phi = matches!(self.op(node), Op::Phi(_));
        self.block(node).filter(|_| phi).and_then(|block| self.gates.arrival(block)).map(|arrival| arrival.gate)
    }

    /// A node's name in texts.
    #[must_use]
    pub fn name(&self, node: NodeRef) -> String {
        match self.eta(node) {
            Some(eta) => format!("{}'", self.name(eta.of)),
            None => self.function.name(node),
        }
    }

    /// The predicate of a gate in texts.
    #[must_use]
    pub fn predicates(&self, gate: GateId) -> String {
        let names = self.gates.deciders(gate).iter().map(|&block| self.predicate(block));
        names.collect::<Vec<_>>().join(", ")
    }

    fn predicate(&self, block: NodeId) -> String {
        match self.decision(block) {
            Decision::By(node) => self.name(node),
            Decision::None | Decision::Unknown => format!("?{}", block.0),
        }
    }

    /// A phi as γ and μ functions: nested, as in the program, each decider once.
    fn phi(&self, block: NodeId, incoming: &[(NodeId, NodeRef)]) -> String {
        let plain = |edges: &mut dyn Iterator<Item = &(NodeId, NodeRef)>| {
            edges.map(|(_, v)| self.name(*v)).collect::<Vec<_>>().join(", ")
        };
        let Some(arrival) = self.gates.arrival(block) else {
            return plain(&mut incoming.iter());
        };
        let Some(turn) = &arrival.turn else { return self.selected(&arrival.enter, incoming) };
        format!("μ({}, {})", self.selected(&arrival.enter, incoming), self.selected(turn, incoming))
    }

    /// A selection, without recursion: the text of each decider is made once, and named where it is used again.
    fn selected(&self, selection: &Selection, incoming: &[(NodeId, NodeRef)]) -> String {
        let value = |choice: Choice| match choice {
            Choice::Edge(from) => {
                incoming.iter().find(|(b, _)| *b == from).map_or_else(|| "?".to_owned(), |(_, v)| self.name(*v))
            }
            Choice::Decider(block) => format!("γ{}", block.0),
        };
        match selection.root {
            Choice::Edge(_) => value(selection.root),
            Choice::Decider(root) => {
                let mut all: Vec<_> = selection.deciders.iter().collect();
                all.sort_by_key(|(block, _)| (*block != root, *block));
                let texts = all.iter().map(|(block, ways)| {
                    let values: Vec<String> = ways.iter().map(|(_, choice)| value(*choice)).collect();
                    let own = if *block == root { String::new() } else { format!("γ{} = ", block.0) };
                    format!("{own}γ({}; {})", self.predicate(*block), values.join(", "))
                });
                texts.collect::<Vec<_>>().join(" where ")
            }
        }
    }

    /// The form as text: a line for each block, value and η.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in self.function.graph().nodes() {
            let _ = writeln!(text, "block {}:", block.0);
            for &value in self.function.contents(block) {
                let made = match self.op(value) {
                    Op::Phi(incoming) => self.phi(block, incoming),
                    op => self.operation(op),
                };
                let _ = writeln!(text, "  {} = {made}", self.name(value));
            }
            if let Decision::By(node) = self.decision(block) {
                let _ = writeln!(text, "  branch {}", self.name(node));
            }
        }
        for (i, eta) in self.etas.iter().enumerate() {
            let node = ValueId((self.function.values().len() + i) as u32);
            let gate = self.gates.scope(eta.scope).gate;
            let _ = writeln!(text, "{} = η({}; {})", self.name(node), self.predicates(gate), self.name(eta.of));
        }
        text
    }

    /// What makes a node, as text.
    pub(crate) fn operation(&self, op: &Op) -> String {
        let mut names = Vec::new();
        op.each_operand(|v| names.push(self.name(v)));
        let joined = names.join(", ");
        match op {
            Op::Number(n) => n.to_string(),
            Op::Uniform => "uniform".to_owned(),
            Op::Undefined => "undefined".to_owned(),
            Op::Divergent => "divergent".to_owned(),
            Op::Thread { dimension, scale, .. } => format!("{scale}·thread({dimension})"),
            Op::Given(fact) => format!("given {fact}"),
            Op::Copy(_) => joined,
            Op::Binary(binary, ..) => format!("{} {binary} {}", names[0], names[1]),
            Op::Cast(cast, _) => format!(
                "{}({joined})",
                match cast {
                    crate::Cast::Truncate(_) => "truncate",
                    crate::Cast::Zero { .. } => "zero-extend",
                    crate::Cast::Sign => "sign-extend",
                }
            ),
            Op::Compare(predicate, ..) => format!(
                "{} {} {}",
                names[0],
                match predicate {
                    crate::Predicate::Equality { equal: true } => "==",
                    crate::Predicate::Equality { equal: false } => "!=",
                    crate::Predicate::Order { less: true, .. } => "<",
                    crate::Predicate::Order { less: false, .. } => ">",
                },
                names[1]
            ),
            Op::Select(..) => format!("select({joined})"),
            Op::Address { terms, offset, .. } => {
                let mut text = names[0].clone();
                for (name, (_, stride)) in names[1..].iter().zip(terms) {
                    let _ = write!(text, " + {stride}·{name}");
                }
                if *offset != 0 {
                    let _ = write!(text, " {offset:+}");
                }
                text
            }
            Op::Load(..) => format!("↓{joined}"),
            Op::Store(..) => format!("↑{} = {}", names[0], names[1]),
            Op::Atomic(_) => format!("atomic({joined})"),
            Op::General(_) => format!("⊕({joined})"),
            Op::Call(..) => format!("call({joined})"),
            Op::Phi(_) => format!("φ({joined})"),
        }
    }
}

/// The η functions made so far.
struct Etas<'a> {
    function: &'a Function,
    gates: &'a Gates,
    all: Vec<Eta>,
    known: FxHashMap<(NodeRef, ScopeId), NodeRef>,
}

impl Etas<'_> {
    /// The node that stands for a value where it is read at the end of `end` for use in `block`.
    fn at(&mut self, value: ValueId, end: NodeId, block: NodeId) -> NodeRef {
        let Some(made) = self.function.value(value).block else { return value };
        if made == block && made == end {
            return value;
        }
        let mut node = value;
        for scope in self.gates.left(made, &[end, block]) {
            node = *self.known.entry((node, scope)).or_insert_with(|| {
                self.all.push(Eta { scope, of: node });
                ValueId((self.function.values().len() + self.all.len() - 1) as u32)
            });
        }
        node
    }
}
