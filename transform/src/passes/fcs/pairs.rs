//! Which two calls could be fused, and whether they should be.

use std::rc::Rc;

use flowgraph::{Dominators, Loops, NodeId, PostDominators};
use rustc_hash::{FxHashMap, FxHashSet};

use super::reach::Reach;
use super::sites::Site;
use crate::alike;
use crate::context::{Context, Convergent};
use crate::cost::CostModel;
use crate::flow::{Flow, reached};
use crate::llvm::{Block, Instruction, Opcode, Use, Value};
use crate::remark::{GuardKind, Reason};
use crate::waits::{Code, InFunction};

/// Among how many following calls of the same function a partner is looked for: enough for any branch that a person
/// wrote, and it keeps the work linear in functions with thousands of calls of one function.
pub(super) const WINDOW: usize = 64;

/// So many blocks of a search are visited in the time in which a pair is looked at, about.
const VISITS_OF_A_LOOK: usize = 16;

/// Two calls of one callee on different paths from a branch.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    /// Their numbers among the sites, in order.
    sites: [u32; 2],
    branch: NodeId,
    /// Whether one of them is run after the other, behind the join of the branch.
    behind: bool,
    /// Blocks that every path from the branch to the calls goes through, of both sides.
    distance: u32,
    depth: u32,
    /// What a call costs.
    gain: i64,
}

/// A function as it is now, and its pairs.
pub(super) struct Round<'m> {
    flow: Rc<Flow<'m>>,
    dominators: Rc<Dominators>,
    post: Rc<PostDominators>,
    loops: Rc<Loops>,
    waits: InFunction<'m>,
    costs: &'static dyn CostModel,
    sites: Vec<Site<'m>>,
    /// The blocks of the sites.
    nodes: Vec<NodeId>,
    /// Why a site cannot be fused with any other, if so.
    obstacles: Vec<Option<Reason>>,
    convergent: Convergent,
    pairs: Vec<Pair>,
    /// How much work it was, in pairs of sites that were looked at.
    looks: usize,
}

/// What the fusion of a pair adds.
#[derive(Clone, Copy)]
pub(super) struct Fusion {
    /// On each path.
    pub(super) fetches: i64,
    /// In the function.
    pub(super) phis: usize,
}

/// How control leaves the fused block.
#[derive(Clone, Copy)]
pub(super) enum Guard {
    /// By the branch's own condition; whether it holds for the first call.
    Condition(bool),
    /// By a phi that says where control came from.
    Phi,
}

impl Guard {
    fn kind(self) -> GuardKind {
        match self {
            Guard::Condition(..) => GuardKind::Condition,
            Guard::Phi => GuardKind::Phi,
        }
    }
}

/// Which pairs are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    /// Those whose calls and branch could be fused, wherever they stand.
    Possible,
}

/// Finds the pairs: those of the innermost branches first, there those of the most expensive callee, since fusing
/// others could stand in the way; of one callee the nearest.
///
/// Pairs that cannot be fused are found for [`Wanted::All`], for remarks; the search for those costs the most.
pub(super) fn of<'m>(context: &mut Context<'m>, sites: Vec<Site<'m>>, wanted: Wanted) -> Round<'m> {
    let (flow, dominators, loops) = (context.flow(), context.dominators(), context.loops());
    let (post, waits) = (context.post_dominators(), context.waits());
    let mut by_callee: FxHashMap<Value<'m>, Vec<u32>> = FxHashMap::default();
    let mut callees = Vec::new();
    for (number, site) in sites.iter().enumerate() {
        let of_callee = by_callee.entry(site.callee).or_default();
        if of_callee.is_empty() {
            callees.push(site.callee);
        }
        of_callee.push(number as u32);
    }
    let mut reach = Reach::new(flow.clone(), dominators.clone(), loops.clone());
    let looks = flow.blocks().len();
    let nodes = sites.iter().map(|site| flow.node(site.block)).collect();
    let obstacles = sites.iter().map(|site| site.obstacle()).collect();
    let costs = context.costs();
    let convergent = Convergent::of(context);
    let pairs = Vec::new();
    let mut round =
        Round { flow, dominators, post, loops, waits, costs, sites, nodes, obstacles, convergent, pairs, looks };
    for callee in callees {
        let numbers = &by_callee[&callee];
        if numbers.len() > 1 {
            let gain = context.cost_of_call(callee).fetches;
            round.pair_up(numbers, gain, wanted, &mut reach);
        }
    }
    round.looks += reach.visits() / VISITS_OF_A_LOOK;
    // Stable, so that equals stay in the order of the blocks.
    round.pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.depth), std::cmp::Reverse(pair.gain), pair.distance));
    round
}

impl<'m> Round<'m> {
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// How much work finding them was, in pairs of sites that were looked at; a block counts as one.
    pub(super) fn looks(&self) -> usize {
        self.looks
    }

    /// The two sites of a pair.
    pub(super) fn sites(&self, pair: &Pair) -> [Site<'m>; 2] {
        pair.sites.map(|number| self.sites[number as usize])
    }

    /// The block whose branch parts the paths.
    pub(super) fn branch_block(&self, pair: &Pair) -> Block<'m> {
        self.flow.block(pair.branch)
    }

    fn pair_up(&mut self, numbers: &[u32], gain: i64, wanted: Wanted, reach: &mut Reach<'m>) {
        let obstacle =
            |round: &Round<'m>, site: u32| wanted == Wanted::Possible && round.obstacles[site as usize].is_some();
        let mut behind_some = FxHashSet::default();
        for (i, &one) in numbers.iter().enumerate() {
            if obstacle(self, one) {
                continue;
            }
            reach.forget();
            let a = self.nodes[one as usize];
            // A block that `one` leads to and that has the same branch above it: all that it dominates is behind too.
            let mut behind_it = None;
            for &other in numbers[i + 1..].iter().take(WINDOW) {
                let b = self.nodes[other as usize];
                if obstacle(self, other) {
                    continue;
                }
                if behind_it.is_some_and(|join| join != b && self.dominators.dominates(join, b)) {
                    continue;
                }
                self.looks += 1;
                let Some(branch) = self.dominators.nearest_common(a, b) else { continue };
                if branch == a || branch == b {
                    continue;
                }
                if wanted == Wanted::Possible && !self.flow.block(branch).ends_with_branch() {
                    continue;
                }
                let (first, second) = (reach.leads(a, b, branch), reach.leads(b, a, branch));
                if first {
                    behind_it = self.dominators.child_towards(branch, b);
                }
                let behind = first || second;
                // Of all that follow an arm, only what its branch decides on comes into question, and that once.
                let after = if first { b } else { a };
                let joined = self.dominators.idom(after) == Some(branch) && first != second;
                if behind && !(joined && behind_some.insert(after)) {
                    continue;
                }
                let depth = |node| self.dominators.depth(node).unwrap_or(0);
                let distance = depth(a) + depth(b) - 2 * depth(branch);
                self.pairs.push(Pair { sites: [one, other], branch, behind, distance, depth: depth(branch), gain });
            }
        }
    }

    /// What the fusion of the pair adds; why not, where it cannot or should not be fused. Where it would add more than
    /// `most` phis, or has no profit, it may add more than is said.
    pub(super) fn judge(&self, pair: &Pair, most: usize, context: &Context<'m>) -> Result<Fusion, Reason> {
        self.shape(pair)?;
        let [one, other] = self.sites(pair);
        alike::calls(one.call, other.call)?;
        let mut arguments = one.call.arguments().into_iter().zip(other.call.arguments()).enumerate();
        if arguments.any(|(i, (a, b))| a != b && one.call.must_stay_constant(i)) {
            return Err(Reason::ConstantArgument);
        }
        if self.waits.any() && self.holds_up(pair) {
            return Err(Reason::HeldUp);
        }
        let worth = if most == usize::MAX { i64::MAX } else { pair.gain - context.threshold() };
        let fusion = self.surgery(pair, most, worth)?;
        if pair.gain - fusion.fetches < context.threshold() {
            return Err(Reason::CallsWithoutProfit { callee: pair.gain, fusion: fusion.fetches });
        }
        let together = context.only_divergent()
            && context.lanes_stay_together(&self.flow, &self.dominators, [one.block, other.block]);
        if together { Err(Reason::LanesAgree) } else { Ok(fusion) }
    }

    /// Whether the control flow allows the fusion.
    fn shape(&self, pair: &Pair) -> Result<(), Reason> {
        if pair.behind {
            return Err(Reason::BehindJoin);
        }
        if !self.branch_block(pair).ends_with_branch() {
            return Err(Reason::NoBranch);
        }
        let [one, other] = self.sites(pair);
        let around = (self.loops.innermost(self.node(one)), self.loops.innermost(self.node(other)));
        if around.0 != around.1 || around.0.is_some_and(|id| !self.loops.contains(id, pair.branch)) {
            return Err(Reason::InLoop);
        }
        if around.0.is_some_and(|id| self.loops.is_irreducible(id)) {
            return Err(Reason::IrreducibleLoop);
        }
        let [one, other] = pair.sites.map(|site| self.obstacles[site as usize].clone());
        one.or(other).map_or(Ok(()), Err)?;
        // The fused call's guard would be one more branch around it.
        if self.convergent.is_parted_at(pair.branch) { Err(Reason::Convergent) } else { Ok(()) }
    }

    /// Whether lanes could hold each other up where both sides come together for the call.
    fn holds_up(&self, pair: &Pair) -> bool {
        let (graph, sites) = (self.flow.graph(), self.sites(pair));
        let ends: Vec<NodeId> = self.post.ipdom(pair.branch).into_iter().chain([pair.branch]).collect();
        let (mut front, mut behind, mut bypassed) = ([Code::default(); 2], [Code::default(); 2], false);
        for (side, site) in sites.into_iter().enumerate() {
            let home = self.node(site);
            let before = reached(&[home], &[pair.branch], |node| graph.predecessors(node));
            let leads_there = |node: NodeId| graph.successors(node).iter().all(|to| before.contains(to));
            bypassed |= before.iter().any(|&node| node != home && !leads_there(node));
            let after = reached(graph.successors(home), &ends, |node| graph.successors(node));
            let blocks = |nodes: FxHashSet<NodeId>| {
                nodes.into_iter().filter(|&node| node != home).map(|node| self.flow.block(node)).collect::<Vec<_>>()
            };
            let body = site.block.instructions();
            let at = body.iter().position(|&i| i == site.call).unwrap_or(body.len());
            let code = |part: &[Instruction<'m>]| self.waits.code(part.iter().copied());
            front[side] = code(&body[..at]) | self.waits.blocks(blocks(before));
            behind[side] = code(&body[at + 1..]) | self.waits.blocks(blocks(after));
        }
        let common = self.waits.code([sites[0].call]);
        // Lanes that pass a call by met the others of their side behind it. They do so no more.
        let all = || {
            let nodes = reached(graph.successors(pair.branch), &ends, |node| graph.successors(node));
            self.waits.blocks(nodes.into_iter().map(|node| self.flow.block(node)))
        };
        Code::holds_up(front, common, behind) || bypassed && all().waits_for(all())
    }

    /// How many instructions the fusion adds on each path, about: a jump on each side, the guard, a phi for each
    /// argument that differs, and two moves for each value that must be carried across the call. These are counted up
    /// to where they are more than `most`, or take more fetches than are `worth` it.
    fn surgery(&self, pair: &Pair, most: usize, worth: i64) -> Result<Fusion, Reason> {
        let [one, other] = self.sites(pair);
        let arguments = one.call.arguments();
        let differing = arguments.iter().zip(other.call.arguments()).filter(|(a, b)| **a != *b).count();
        let guard = match self.guard(pair) {
            Guard::Condition(..) => self.costs.guard(),
            // And a constant on each side, by which control is told apart.
            Guard::Phi => self.costs.guard() + 1,
        };
        let mut carried = FxHashSet::default();
        let fixed = self.costs.jump() + guard + differing as i64;
        let most = most.min(usize::try_from((worth - fixed).max(0) / 2).unwrap_or(usize::MAX));
        self.carried(pair, one, most, &mut carried)?;
        self.carried(pair, other, most, &mut carried)?;
        let fetches = fixed + 2 * carried.len() as i64;
        Ok(Fusion { fetches, phis: carried.len() + differing })
    }

    /// The values made between the branch and the call that are used after it, before control comes by the branch
    /// again: after the fusion, control reaches those uses from the other side too, so that they no longer dominate
    /// those uses. Past calls that were fused before, it reaches this call from several sides already, and values of
    /// any of them may have to be carried on.
    fn carried(
        &self,
        pair: &Pair,
        site: Site<'m>,
        most: usize,
        found: &mut FxHashSet<Instruction<'m>>,
    ) -> Result<(), Reason> {
        if found.len() > most {
            return Ok(());
        }
        let (graph, home) = (self.flow.graph(), self.node(site));
        let body = site.block.instructions();
        let at = body.iter().position(|&i| i == site.call).unwrap_or(body.len());
        let rest: FxHashSet<Instruction<'m>> = body.iter().skip(at + 1).copied().collect();
        let behind = reached(graph.successors(home), &[pair.branch], |node| graph.successors(node));
        let is_behind = |u: Use<'m>| match u.needed_in() {
            Some(block) if block == site.block => u.user.is_phi() || rest.contains(&u.user),
            block => block.and_then(|block| self.flow.find(block)).is_some_and(|node| behind.contains(&node)),
        };
        for node in reached(&[home], &[pair.branch], |node| graph.predecessors(node)) {
            for instruction in self.flow.block(node).instructions().into_iter().take_while(|&i| i != site.call) {
                if instruction.type_of().is_void() || !instruction.as_value().uses().into_iter().any(is_behind) {
                    continue;
                }
                if !instruction.type_of().is_first_class() {
                    return Err(Reason::UnstorableValue);
                }
                if instruction.opcode() == Opcode::LLVMInvoke && instruction.successors()[0].entering().len() > 1 {
                    return Err(Reason::ResultOfInvoke);
                }
                found.insert(instruction);
                if found.len() > most {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How control returns after the fused call.
    pub(super) fn guard(&self, pair: &Pair) -> Guard {
        let terminator = self.branch_block(pair).terminator();
        if terminator.condition().is_none() {
            return Guard::Phi;
        }
        let sides: Vec<NodeId> = terminator.successors().into_iter().map(|b| self.flow.node(b)).collect();
        let [one, other] = self.sites(pair);
        let by = |side: NodeId, site: Site<'m>| {
            self.flow.edge_dominates(&self.dominators, pair.branch, side, self.node(site))
        };
        if by(sides[0], one) && by(sides[1], other) {
            return Guard::Condition(true);
        }
        if by(sides[1], one) && by(sides[0], other) {
            return Guard::Condition(false);
        }
        Guard::Phi
    }

    fn node(&self, site: Site<'m>) -> NodeId {
        self.flow.node(site.block)
    }

    /// Says that a pair is left.
    pub(super) fn remark(&self, pair: &Pair, reason: Reason, context: &mut Context<'m>) {
        let gain = match reason {
            Reason::CallsFused { callee, fusion, .. } | Reason::CallsWithoutProfit { callee, fusion } => {
                Some(callee - fusion)
            }
            _ => None,
        };
        let [one, other] = self.sites(pair);
        let subject = if one.callee.is_function() { one.callee.name() } else { "a function pointer".to_owned() };
        context.remark(subject, vec![one.call.place(), other.call.place()], reason, gain);
    }

    /// Says that a pair is taken.
    pub(super) fn remark_on_taken(&self, pair: &Pair, fusion: Fusion, context: &mut Context<'m>) {
        let guard = self.guard(pair).kind();
        self.remark(pair, Reason::CallsFused { callee: pair.gain, fusion: fusion.fetches, guard }, context);
    }

    /// The pairs that can be fused side by side: those that `allow` accepts, in order, each if the two sides of its
    /// branch hold nothing of a pair taken before.
    pub(super) fn side_by_side(&self, mut allow: impl FnMut(&Pair) -> Option<Fusion>) -> Vec<(Pair, Fusion)> {
        let mut taken = Vec::new();
        // Blocks that dominate a site of a taken pair: with a block, all that dominate it.
        let mut busy = vec![false; self.flow.blocks().len()];
        for pair in &self.pairs {
            let nodes = self.sites(pair).map(|site| self.node(site));
            let sides = nodes.map(|node| self.dominators.child_towards(pair.branch, node).unwrap_or(node));
            if sides.iter().any(|side| busy[side.index()]) {
                continue;
            }
            let Some(fusion) = allow(pair) else { continue };
            taken.push((*pair, fusion));
            for node in nodes {
                let mut above = Some(node);
                while let Some(node) = above.filter(|node| !std::mem::replace(&mut busy[node.index()], true)) {
                    above = self.dominators.idom(node);
                }
            }
        }
        taken
    }
}
