//! Which branches decide the value at a join, at a loop's end or in an irreducible loop: the predicates of γ, μ and η.
//!
//! For a join J let D be its immediate dominator. The predicates of its γ functions are the *deciders*: the branches on
//! paths from D to J from which two paths lead to J that have nothing else in common. They follow from the
//! post-dominators of the part of the graph between D and J, in which each edge into J becomes a node of its own. A
//! node of that part decides when nothing before J post-dominates it. Any other post-dominator of a node before J is
//! either one edge into J or the next decider. So nested γ functions are a graph with shared nodes, as in Tu and Padua,
//! *Efficient building and placing of gating functions*, PLDI 1995, which gets the same functions from path
//! expressions.
//!
//! A header of a loop has two such parts: from D to the edges that enter, and from the header to those that return. The
//! deciders of a loop's end (of η) are the branches in it from which one path leads out and another back to the header:
//! where they part threads, threads leave in different iterations.
//!
//! # Turns that meet inside of a loop
//! In `for (;;) { x = f(i++); if (x < limit) continue; use(x); if (done) break; }` threads that continue meet the
//! others at `use(x)`, not at the header, since control cannot leave the loop before it. They are in different
//! iterations then. The part of the loop that they can repeat is a loop of its own as far as η is concerned: an *inner
//! turn*.
//!
//! In `outer: for (;;) for (i = 0;; i++) if (f()) continue outer;` both sides of the branch lead to the inner loop's
//! header: threads that came anew, with `i` = 0, meet there those that went on. The branch decides about its φs, too.
//!
//! The time is that of post-dominators for each join's part. An if with one entry and one exit costs only what it does
//! not share with nested ones, however deep they are nested: outer ones jump over them. Where loops, or ifs with other
//! exits, are nested d deep, it is O(d (n + m) log n).

use flowgraph::{Builder, Dominators, Graph, LoopId, Loops, NodeId, PostDominators};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Function;
use crate::parts::Part;

/// A set of deciders: a dense index, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateId(pub u32);

impl GateId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of the graph that threads repeat, and that they may leave in different iterations: a loop, or an inner turn
/// of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(pub u32);

impl ScopeId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where control goes next, as far as a selection is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// To the join, by the edge from this block.
    Edge(NodeId),
    /// To this block, which decides.
    Decider(NodeId),
}

/// How the edge by which control reaches a join is chosen: a graph of γ functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Where the choice begins.
    pub root: Choice,
    /// Each branch that decides, with the blocks it leads to and what follows there.
    pub deciders: Vec<(NodeId, Vec<(NodeId, Choice)>)>,
}

/// How control reaches a block with more than one predecessor.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// From the block's dominator.
    pub enter: Selection,
    /// In the header of a reducible loop: from the header itself, around.
    pub turn: Option<Selection>,
    /// All deciders of both, and branches behind which threads that left the loop and entered it again meet the others.
    pub gate: GateId,
}

/// Of a join: from its dominator, and around its loop.
type Selections = (Selection, Option<Selection>);

/// A loop, or an inner turn of one.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The loop.
    pub of: LoopId,
    /// For an inner turn: the members, and for each whether control can return to it without passing the header, from
    /// where threads of several iterations have met. A loop's members are those of the loop.
    turn: Option<FxHashMap<NodeId, bool>>,
    /// The branches that decide between another iteration and the end.
    pub gate: GateId,
}

/// All gates of a function.
#[derive(Clone, Debug)]
pub struct Gates {
    dominators: Dominators,
    loops: Loops,
    /// By gate: the blocks that decide.
    deciders: Vec<Vec<NodeId>>,
    /// By block.
    arrivals: Vec<Option<Arrival>>,
    scopes: Vec<Scope>,
    /// By loop: its scope; none for irreducible ones.
    of_loop: Vec<Option<ScopeId>>,
    /// Inner turns.
    turns: Vec<ScopeId>,
    /// By loop: for irreducible ones the branches in them and those that decide where they are entered.
    irreducible: Vec<Option<GateId>>,
    visited: u64,
}

impl Gates {
    /// The gates of `function`.
    #[must_use]
    pub fn of(function: &Function) -> Gates {
        let graph = function.graph();
        let mut gates = Gates {
            dominators: Dominators::of(graph),
            loops: Loops::of(graph),
            deciders: Vec::new(),
            arrivals: vec![None; graph.node_count()],
            scopes: Vec::new(),
            of_loop: Vec::new(),
            turns: Vec::new(),
            irreducible: Vec::new(),
            visited: 0,
        };
        let mut part = Part::new(graph);
        let is_join = |&block: &NodeId| gates.dominators.depth(block).is_some() && graph.predecessors(block).len() > 1;
        let joins: Vec<NodeId> = graph.nodes().filter(is_join).collect();
        // Inner parts first: outer ones jump over them.
        let mut inner_first = joins.clone();
        let depth = |block: NodeId| gates.dominators.idom(block).and_then(|top| gates.dominators.depth(top));
        inner_first.sort_by_key(|&block| std::cmp::Reverse(depth(block)));
        let mut selections: Vec<Option<Selections>> = vec![None; graph.node_count()];
        for block in inner_first {
            selections[block.index()] = Some(gates.selections(&mut part, block));
        }
        for block in joins {
            let (enter, turn) = selections[block.index()].take().expect("each join has its own");
            let all = enter.deciders.iter().chain(turn.iter().flat_map(|t| &t.deciders)).map(|(b, _)| *b).collect();
            let gate = gates.gate(all);
            gates.arrivals[block.index()] = Some(Arrival { enter, turn, gate });
        }
        gates.find_scopes(function, &mut part);
        gates.visited = part.visited;
        gates
    }

    /// The dominators.
    #[must_use]
    pub fn dominators(&self) -> &Dominators {
        &self.dominators
    }

    /// The loops.
    #[must_use]
    pub fn loops(&self) -> &Loops {
        &self.loops
    }

    /// How many blocks were visited to find the gates, counting repeats: the work, independent of any clock.
    #[must_use]
    pub fn visited(&self) -> u64 {
        self.visited
    }

    /// How many gates there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.deciders.len()
    }

    /// The blocks that decide.
    #[must_use]
    pub fn deciders(&self, gate: GateId) -> &[NodeId] {
        &self.deciders[gate.index()]
    }

    /// How control reaches a block; none if it has at most one way in.
    #[must_use]
    pub fn arrival(&self, block: NodeId) -> Option<&Arrival> {
        self.arrivals[block.index()].as_ref()
    }

    /// A scope.
    #[must_use]
    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.index()]
    }

    /// The scope that a loop is; none for irreducible ones.
    #[must_use]
    pub fn scope_of(&self, id: LoopId) -> Option<ScopeId> {
        self.of_loop[id.index()]
    }

    /// Whether a block is a member.
    #[must_use]
    pub fn contains(&self, id: ScopeId, block: NodeId) -> bool {
        let scope = self.scope(id);
        match &scope.turn {
            Some(members) => members.contains_key(&block),
            None => self.loops.contains(scope.of, block),
        }
    }

    /// Whether a scope is an inner turn.
    #[must_use]
    pub fn is_inner_turn(&self, id: ScopeId) -> bool {
        self.scope(id).turn.is_some()
    }

    /// The scopes that a value leaves if it is made in `from` and used in all of `to`, the innermost first.
    #[must_use]
    pub fn left(&self, from: NodeId, to: &[NodeId]) -> Vec<ScopeId> {
        let mut left = Vec::new();
        // A value leaves an inner turn also if it is used after the meeting, but still in the turn.
        let leaves = |id: ScopeId| match &self.scope(id).turn {
            Some(members) if members.contains_key(&from) => {
                to.iter().any(|&b| b != from && members.get(&b).is_none_or(|&again| again))
            }
            _ => false,
        };
        let mut around = self.loops.innermost(from);
        if !self.turns.is_empty() {
            left.extend(self.turns.iter().copied().filter(|&id| leaves(id)));
        }
        while let Some(id) = around {
            if to.iter().all(|&block| self.loops.contains(id, block)) {
                break;
            }
            left.extend(self.of_loop[id.index()]);
            around = self.loops.parent(id);
        }
        left
    }

    /// The gate by which all values of a block are divergent: that of the outermost irreducible loop around it.
    #[must_use]
    pub fn irreducible(&self, block: NodeId) -> Option<GateId> {
        let mut found = None;
        let mut around = self.loops.innermost(block);
        while let Some(id) = around {
            found = self.irreducible[id.index()].or(found);
            around = self.loops.parent(id);
        }
        found
    }

    fn gate(&mut self, mut deciders: Vec<NodeId>) -> GateId {
        deciders.sort_unstable();
        deciders.dedup();
        self.deciders.push(deciders);
        GateId(self.deciders.len() as u32 - 1)
    }

    /// How control reaches a join: see [`Arrival`].
    fn selections(&self, part: &mut Part, join: NodeId) -> Selections {
        let graph = part.graph;
        let reached = |&&b: &&NodeId| self.dominators.depth(b).is_some();
        let edges: Vec<NodeId> = graph.predecessors(join).iter().filter(reached).copied().collect();
        let natural = self.loops.headed_by(join).filter(|&id| !self.loops.is_irreducible(id));
        let (latches, entering): (Vec<NodeId>, Vec<NodeId>) =
            edges.iter().partition(|&&b| natural.is_some_and(|id| self.loops.contains(id, b)));
        // The only edges into the function's entry are those of its own loop.
        let enter = match self.dominators.idom(join) {
            Some(top) if !entering.is_empty() => part.selection(top, join, &entering),
            _ => Selection { root: Choice::Decider(join), deciders: Vec::new() },
        };
        let turn = (!latches.is_empty()).then(|| part.selection(join, join, &latches));
        (enter, turn)
    }

    fn find_scopes(&mut self, function: &Function, part: &mut Part) {
        let graph = function.graph();
        let afters = post_dominators(function);
        let ids: Vec<LoopId> = self.loops.ids().collect();
        for id in ids {
            let members = self.loops.members(id).to_vec();
            if self.loops.is_irreducible(id) {
                let mut deciders: Vec<NodeId> =
                    members.iter().copied().filter(|&b| graph.successors(b).len() > 1).collect();
                deciders.extend(self.entry_deciders(part, id, &members));
                let gate = self.gate(deciders);
                self.irreducible.push(Some(gate));
                self.of_loop.push(None);
                continue;
            }
            self.irreducible.push(None);
            let header = self.loops.header(id);
            let round = part.round(header, &members);
            let gate = self.gate(round.deciders());
            let again =
                round.deciders().into_iter().filter(|&b| afters.iter().any(|after| after.ipdom(b) == Some(header)));
            self.meet_at_header(header, again.collect());
            self.scopes.push(Scope { of: id, turn: None, gate });
            self.of_loop.push(Some(ScopeId(self.scopes.len() as u32 - 1)));
            let mut meets = FxHashSet::default();
            for &block in members.iter().filter(|&&b| graph.successors(b).len() > 1) {
                for meet in afters.iter().filter_map(|after| after.ipdom(block)) {
                    let inside = meet != header && self.loops.contains(id, meet);
                    if inside && !round.post_dominates(meet, block) {
                        meets.insert(meet);
                    }
                }
            }
            let mut meets: Vec<NodeId> = meets.into_iter().collect();
            meets.sort_unstable();
            for meet in meets {
                let inner = self.inner_turn(graph, id, meet);
                let gate = self.gate(part.round(header, &inner).deciders());
                self.scopes.push(Scope { of: id, turn: Some(self.again(graph, id, &inner)), gate });
                self.turns.push(ScopeId(self.scopes.len() as u32 - 1));
            }
        }
    }

    /// Branches between another iteration and the end, behind both of which control comes to the header: threads that
    /// leave, and enter the loop again in a further iteration of an outer one, meet those that went on there.
    fn meet_at_header(&mut self, header: NodeId, branches: Vec<NodeId>) {
        let Some(arrival) = self.arrivals[header.index()].as_ref().filter(|_| !branches.is_empty()) else { return };
        let all = self.deciders[arrival.gate.index()].iter().copied().chain(branches).collect();
        let gate = self.gate(all);
        if let Some(arrival) = &mut self.arrivals[header.index()] {
            arrival.gate = gate;
        }
    }

    /// The members of a loop from which control can return to the header without reaching `meet`.
    fn inner_turn(&self, graph: &Graph, id: LoopId, meet: NodeId) -> Vec<NodeId> {
        let header = self.loops.header(id);
        let mut found = vec![header];
        let mut seen: FxHashSet<NodeId> = [header, meet].into_iter().collect();
        let mut next = 0;
        while next < found.len() {
            for &before in graph.predecessors(found[next]) {
                if self.loops.contains(id, before) && seen.insert(before) {
                    found.push(before);
                }
            }
            next += 1;
        }
        found
    }

    /// By member of an inner turn: whether control returns to it from outside of the turn, but not through the header.
    fn again(&self, graph: &Graph, id: LoopId, inner: &[NodeId]) -> FxHashMap<NodeId, bool> {
        let mut members: FxHashMap<NodeId, bool> = inner.iter().map(|&b| (b, false)).collect();
        let mut seen: FxHashSet<NodeId> = [self.loops.header(id)].into_iter().collect();
        let mut todo: Vec<NodeId> = Vec::new();
        for &block in inner {
            todo.extend(graph.successors(block).iter().filter(|b| !members.contains_key(b)));
        }
        while let Some(block) = todo.pop() {
            if self.loops.contains(id, block) && seen.insert(block) {
                members.entry(block).and_modify(|again| *again = true);
                todo.extend(graph.successors(block));
            }
        }
        members
    }

    /// The branches that decide at which block an irreducible loop is entered.
    fn entry_deciders(&self, part: &mut Part, id: LoopId, members: &[NodeId]) -> Vec<NodeId> {
        let graph = part.graph;
        let outside = |b: &&NodeId| self.dominators.depth(**b).is_some() && !self.loops.contains(id, **b);
        let mut top: Option<NodeId> = None;
        let mut edges = Vec::new();
        for &block in members {
            for &before in graph.predecessors(block).iter().filter(outside) {
                edges.push((before, block));
                top = match top {
                    None => Some(before),
                    Some(top) => self.dominators.nearest_common(top, before),
                };
            }
        }
        top.map_or_else(Vec::new, |top| part.entries(top, &edges))
    }
}

/// Post-dominators with and without the paths on which control must not come.
fn post_dominators(function: &Function) -> Vec<PostDominators> {
    let graph = function.graph();
    let ends: Vec<NodeId> = graph.nodes().filter(|&b| graph.successors(b).is_empty()).collect();
    let good: Vec<NodeId> = ends.iter().copied().filter(|&b| !function.is_dead_end(b)).collect();
    let mut all = vec![PostDominators::of(graph, &ends)];
    if good.len() < ends.len() && !good.is_empty() {
        let mut live = vec![false; graph.node_count()];
        let mut todo = good.clone();
        while let Some(block) = todo.pop() {
            if !std::mem::replace(&mut live[block.index()], true) {
                todo.extend(graph.predecessors(block));
            }
        }
        let mut builder = Builder::new(graph.node_count());
        for block in graph.nodes() {
            for &next in graph.successors(block) {
                if live[next.index()] || !live[block.index()] {
                    builder.edge(block, next);
                }
            }
        }
        all.push(PostDominators::of(&builder.build(graph.entry()), &good));
    }
    all
}
