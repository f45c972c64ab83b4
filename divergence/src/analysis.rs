//! The solver: a worklist over the dependence graph.
//!
//! Nodes are the values and η functions of the gated form. A phi depends on its operands and on its gate, a gate on the
//! values that decide its branches. Everything begins at ⊤, and a node is evaluated again when something that it
//! depends on has changed. Nodes that come first in the control flow go first, so that code after a loop waits until
//! nothing changes inside the loop. A coefficient changes at most [`MOST_CHANGES`] times; then it becomes an unknown of
//! its own node. A divergent value never changes. So the work is linear in the dependence graph.

use std::sync::Arc;

use flowgraph::NodeId;

use crate::dependents::Dependents;
use crate::fact::{Affine, DIMENSIONS, Symbol};
use crate::rules::{Around, apply, equal, meet};
use crate::worklist::Worklist;
use crate::{Class, Decision, Fact, Form, Function, GateId, Gated, Kind, NodeRef, Op, Rule, ValueId};

/// How to treat loads of memory that threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Threads that are together load together, as on a GPU: one address, one value (the paper's LDUA).
    #[default]
    Simt,
    /// Threads run independently, as on a CPU: another thread may write between two loads. Only loads of
    /// [`crate::Memory::Stable`] are uniform.
    Async,
}

/// What the analysis may assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How loads are taken. Default: [`Mode::Simt`].
    pub mode: Mode,
    /// Upper bounds on thread numbers, by dimension. Default: 2^22, more threads than Linux runs.
    pub bounds: [Option<u64>; DIMENSIONS],
    /// Whether integers are taken for as wide as they need to be, as the paper's are: no sum, product or cast wraps.
    /// Claims then hold for runs in which none does. Default: false.
    pub no_wrap: bool,
    /// A rule to apply wrongly, for tests that must notice. Default: none.
    pub broken: Option<Rule>,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::Simt, bounds: [Some(1 << 22); DIMENSIONS], no_wrap: false, broken: None }
    }
}

/// After so many changes a coefficient becomes an unknown of its own.
const MOST_CHANGES: u8 = 4;

/// What is known about all values of a function.
#[derive(Clone, Debug)]
pub struct Analysis {
    gated: Gated,
    facts: Vec<Fact>,
    rules: Vec<Rule>,
    /// By block: whether threads may part at its end.
    parts: Vec<bool>,
    /// By gate: whether one of its branches parts threads.
    gates: Vec<bool>,
    evaluations: u64,
    options: Options,
}

impl Analysis {
    /// Analyses `function`.
    #[must_use]
    pub fn of(function: &Arc<Function>, options: &Options) -> Analysis {
        Analysis::of_gated(Gated::of(function), options)
    }

    /// Analyses a function, given its gated form. Time linear in the dependence graph.
    #[must_use]
    pub fn of_gated(gated: Gated, options: &Options) -> Analysis {
        let count = gated.count();
        let graph = gated.function().graph();
        let mut analysis = Analysis {
            facts: vec![Fact::Top; count],
            rules: vec![Rule::Asga; count],
            parts: vec![false; graph.node_count()],
            gates: vec![false; gated.gates().count()],
            evaluations: 0,
            options: *options,
            gated,
        };
        let dependents = analysis.gated.dependents().clone();
        analysis.solve(&dependents);
        analysis
    }

    fn solve(&mut self, dependents: &Dependents) {
        let mut queue = Worklist::new(self.facts.len());
        let place = |node: NodeRef| dependents.places[node.index()] as usize;
        let mut changes = vec![0u8; self.facts.len()];
        for block in self.gated.gates().loops().order().to_vec() {
            if self.gated.decision(block) == Decision::Unknown {
                self.part(block, dependents, &mut |_| {});
            }
        }
        let function = self.gated.function().clone();
        let is_reached = |block: &NodeId| self.gated.gates().dominators().depth(*block).is_some();
        for (i, value) in function.values().iter().enumerate() {
            if value.block.as_ref().is_none_or(is_reached) {
                queue.insert(place(ValueId(i as u32)));
            }
        }
        // What is still ⊤ when nothing changes any more depends on an undefined value, which may be taken as uniform.
        let mut undefined = 0;
        loop {
            let Some(node) = queue.pop().map(|place| dependents.order[place]) else {
                let Some(node) = self.next_undefined(&mut undefined) else { break };
                self.facts[node.index()] = Fact::itself(node.0);
                dependents.users.of(node.index()).iter().for_each(|&user| queue.insert(place(ValueId(user))));
                continue;
            };
            let old = self.facts[node.index()];
            if old == Fact::Divergent {
                continue;
            }
            self.evaluations += 1;
            let (mut new, rule) = self.evaluate(node);
            if self.options.broken == Some(rule) {
                new = self.wrong(node, rule, new);
            }
            let new = lowered(node, old, new, &mut changes[node.index()]);
            if new == old {
                continue;
            }
            self.facts[node.index()] = new;
            self.rules[node.index()] = rule;
            let mut wake = |node: NodeRef| queue.insert(place(node));
            for &user in dependents.users.of(node.index()) {
                wake(ValueId(user));
            }
            if !new.is_uniform() && old.is_uniform() {
                for &block in dependents.branches.of(node.index()) {
                    self.part(NodeId(block), dependents, &mut wake);
                }
            }
        }
    }

    /// The next value, from number `from` on, that was computed and is still ⊤.
    fn next_undefined(&self, from: &mut usize) -> Option<NodeRef> {
        while *from < self.facts.len() {
            let node = ValueId(*from as u32);
            *from += 1;
            let computed = self.gated.block(node).is_none_or(|b| self.gated.gates().dominators().depth(b).is_some());
            let op = self.gated.op(node);
            let made = !matches!(op, Op::Undefined | Op::Store(..) | Op::Given(Fact::Top));
            if self.facts[node.index()] == Fact::Top && computed && made && self.gated.eta(node).is_none() {
                return Some(node);
            }
        }
        None
    }

    /// Threads may part at the end of a block.
    fn part(&mut self, block: NodeId, dependents: &Dependents, wake: &mut dyn FnMut(NodeRef)) {
        if std::mem::replace(&mut self.parts[block.index()], true) {
            return;
        }
        for &gate in dependents.gates.of(block.index()) {
            if !std::mem::replace(&mut self.gates[gate as usize], true) {
                for &node in dependents.gated.of(gate as usize) {
                    wake(ValueId(node));
                }
            }
        }
    }

    fn evaluate(&self, node: NodeRef) -> (Fact, Rule) {
        let gated = &self.gated;
        let kind_of = |node: NodeRef| gated.kind(node);
        let around = Around {
            node,
            kind: kind_of(node),
            mode: self.options.mode,
            bounds: self.options.bounds,
            no_wrap: self.options.no_wrap,
            fact: &|node| self.facts[node.index()],
            kind_of: &kind_of,
        };
        let block = gated.block(node);
        if let Some(block) = block {
            let gates = gated.gates();
            if gates.dominators().depth(block).is_none() {
                return (Fact::Top, Rule::Cnta);
            }
            if gates.irreducible(block).is_some_and(|gate| self.gates[gate.index()]) {
                return (Fact::Divergent, Rule::Irra);
            }
        }
        let parted = gated.gate(node).is_some_and(|gate| self.gates[gate.index()]);
        if let Some(eta) = gated.eta(node) {
            let fact = self.facts[eta.of.index()];
            let stays = |form: Form| match form.as_symbol().and_then(|(_, symbol, _)| symbol.origin()) {
                Some((origin, _)) => {
                    gated.block(ValueId(origin)).is_none_or(|block| !gated.gates().contains(eta.scope, block))
                }
                None => true,
            };
            return match fact {
                Fact::Top => (Fact::Top, Rule::Etaa),
                _ if !parted => (fact, Rule::Etaa),
                Fact::Affine(a) if stays(a.base) && a.strides.iter().all(|&s| stays(s)) => (fact, Rule::Idna),
                _ => (Fact::Divergent, Rule::Pdva),
            };
        }
        let Op::Phi(incoming) = gated.op(node) else {
            // All threads may take an undefined value for the same; only joins take the other value instead.
            let chosen = |node: NodeRef| match gated.op(node) {
                Op::Undefined => Fact::itself(node.0),
                _ => self.facts[node.index()],
            };
            let joins = matches!(gated.op(node), Op::Select(..));
            return match joins {
                true => apply(&around, gated.op(node)),
                false => apply(&Around { fact: &chosen, ..around }, gated.op(node)),
            };
        };
        let facts = || incoming.iter().map(|(_, v)| self.facts[v.index()]);
        // A symbol means the same as before if its value is made above the join, and so is not made again on the way
        // there.
        let keeps = |symbol: Symbol| match symbol.origin() {
            Some((origin, _)) => match (gated.block(ValueId(origin)), block) {
                (Some(made), Some(block)) => made != block && gated.gates().dominators().dominates(made, block),
                _ => true,
            },
            None => false,
        };
        if parted {
            return match equal(facts()) {
                Some(Fact::Affine(affine)) if symbols(&affine).all(keeps) => {
                    (meet(&around, std::iter::once(Fact::Affine(affine)), &keeps), Rule::Idna)
                }
                Some(Fact::Top) => (Fact::Top, Rule::Idna),
                _ => (Fact::Divergent, Rule::Pdva),
            };
        }
        let turns = block.and_then(|block| gated.gates().arrival(block)).is_some_and(|arrival| arrival.turn.is_some());
        (meet(&around, facts(), &keeps), if turns { Rule::Rmua } else { Rule::Gama })
    }

    /// The fact that a broken rule gives.
    fn wrong(&self, node: NodeRef, rule: Rule, right: Fact) -> Fact {
        let mut operands = Vec::new();
        self.gated.op(node).each_operand(|v| operands.push(self.facts[v.index()]));
        let opaque = self.gated.kind(node) == Kind::Opaque;
        match (rule, right) {
            (_, Fact::Top) => right,
            (_, Fact::Divergent) => Fact::itself(node.0),
            (Rule::Gama | Rule::Rmua | Rule::Suma, _) => {
                operands.into_iter().find(|o| matches!(o, Fact::Affine(_))).unwrap_or(right)
            }
            (Rule::Tida, Fact::Affine(affine)) => {
                let strides = affine.strides.map(|s| s.plus(s).map_or(s, |(twice, _)| twice));
                Fact::Affine(Affine { strides, ..affine })
            }
            (Rule::Mlca | Rule::Diva, Fact::Affine(affine)) if !affine.is_uniform() => Fact::itself(node.0),
            (_, Fact::Affine(affine)) if !opaque => match affine.base.as_number() {
                Some(n) => Fact::Affine(Affine { base: Form::number(n ^ 1), ..affine }),
                None => Fact::number(5),
            },
            _ => right,
        }
    }

    /// How often a rule was applied until nothing changed: the cost of the analysis, on any machine.
    #[must_use]
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// The gated form.
    #[must_use]
    pub fn gated(&self) -> &Gated {
        &self.gated
    }

    /// Returns the gated form, to be analysed again with other parameters.
    #[must_use]
    pub fn into_gated(self) -> Gated {
        self.gated
    }

    /// What is known about a value where it is made (about a node of the gated form).
    #[must_use]
    pub fn fact(&self, node: NodeRef) -> Fact {
        self.facts[node.index()]
    }

    /// Its class where it is made.
    #[must_use]
    pub fn class(&self, node: NodeRef) -> Class {
        self.fact(node).class()
    }

    /// The rule that decided.
    #[must_use]
    pub fn rule(&self, node: NodeRef) -> Rule {
        self.rules[node.index()]
    }

    /// What is known about an operand where it is used. For a value that left a loop, this may differ from what is
    /// known where it is made. The operand is a node of the gated form.
    #[must_use]
    pub fn operands(&self, value: ValueId) -> Vec<(NodeRef, Fact)> {
        let mut all = Vec::new();
        self.gated.op(value).each_operand(|v| all.push((v, self.facts[v.index()])));
        all
    }

    /// The address that a load, a store or an atomic goes to, where it is used.
    #[must_use]
    pub fn address(&self, value: ValueId) -> Option<Fact> {
        self.gated.op(value).address().map(|node| self.facts[node.index()])
    }

    /// The class of the value that decides a branch; none for blocks with one way out.
    #[must_use]
    pub fn branch(&self, block: NodeId) -> Option<Class> {
        match self.gated.decision(block) {
            Decision::None => None,
            Decision::By(node) => Some(self.class(node)),
            Decision::Unknown => Some(Class::Divergent),
        }
    }

    /// Whether a gate's branches may part threads.
    #[must_use]
    pub fn parts(&self, gate: GateId) -> bool {
        self.gates[gate.index()]
    }

    /// A fact as text, with the names of values for symbols.
    #[must_use]
    pub fn text_of(&self, fact: &Fact) -> String {
        fact.text(&|symbol| match symbol.origin() {
            None => "?".to_owned(),
            Some((node, DIMENSIONS)) if self.facts[node as usize].is_uniform() => self.gated.name(ValueId(node)),
            Some((node, DIMENSIONS)) => format!("base({})", self.gated.name(ValueId(node))),
            Some((node, _)) => format!("stride({})", self.gated.name(ValueId(node))),
        })
    }

    /// Why a value is what it is: one rule on a line, each value once, those it follows from below it; at most `most`
    /// lines.
    #[must_use]
    pub fn explain(&self, value: NodeRef, most: usize) -> String {
        let mut text = String::new();
        let mut seen = vec![value];
        let mut next = 0;
        while next < seen.len() && next < most {
            let node = seen[next];
            next += 1;
            let made = match self.gated.eta(node) {
                Some(eta) => format!("η({})", self.gated.name(eta.of)),
                None => self.gated.operation(self.gated.op(node)),
            };
            let gate = self.gated.gate(node).map(|gate| (self.gated.predicates(gate), gate));
            let by = gate.as_ref().map_or_else(String::new, |(names, gate)| {
                let kind = if self.parts(*gate) { "divergent" } else { "uniform" };
                if names.is_empty() { String::new() } else { format!(" by {kind} [{names}]") }
            });
            text += &format!(
                "{} = {made}{by}: {} ({} by {})\n",
                self.gated.name(node),
                self.text_of(&self.fact(node)),
                self.class(node),
                self.rule(node).name()
            );
            let mut add = |node: NodeRef| {
                let plain = matches!(self.gated.op(node), Op::Number(_));
                if !plain && !seen.contains(&node) {
                    seen.push(node);
                }
            };
            self.gated.op(node).each_operand(&mut add);
            if let Some((_, gate)) = gate {
                for &block in self.gated.gates().deciders(gate) {
                    if let Decision::By(node) = self.gated.decision(block) {
                        add(node);
                    }
                }
            }
        }
        text
    }

    /// The gated form as text, each line with what is known.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.gated.text().lines() {
            text += line;
            text.push('\n');
        }
        for (i, fact) in self.facts.iter().enumerate() {
            let node = ValueId(i as u32);
            if !matches!(self.gated.op(node), Op::Number(_) | Op::Store(..)) {
                text += &format!("[{}] = {} ({})\n", self.gated.name(node), self.text_of(fact), self.rule(node).name());
            }
        }
        text
    }
}

fn symbols(affine: &Affine) -> impl Iterator<Item = Symbol> {
    let forms = affine.strides.into_iter().chain([affine.base]);
    forms.filter_map(|form| form.as_symbol().map(|(_, symbol, _)| symbol))
}

/// The new fact, made not higher than the old one: what has changed too often is an unknown.
fn lowered(node: NodeRef, old: Fact, new: Fact, changes: &mut u8) -> Fact {
    let (Fact::Affine(was), Fact::Affine(is)) = (old, new) else {
        return match (old, new) {
            (Fact::Top, new) => new,
            (old, Fact::Top) => old,
            _ => Fact::Divergent,
        };
    };
    if was == is {
        return old;
    }
    *changes = changes.saturating_add(1);
    let often = *changes > MOST_CHANGES;
    let own = |part: usize| Form::symbol(Symbol::of(node.0, part));
    let one = |was: Form, is: Form, part: usize| {
        let rises = part < DIMENSIONS && is.is_zero() && !was.is_zero();
        if was == own(part) || (was != is && (often || rises)) { own(part) } else { is }
    };
    let strides = std::array::from_fn(|d| one(was.strides[d], is.strides[d], d));
    let base = one(was.base, is.base, DIMENSIONS);
    Fact::Affine(Affine { strides, base, signed: is.signed && was.signed, unsigned: is.unsigned && was.unsigned })
}
