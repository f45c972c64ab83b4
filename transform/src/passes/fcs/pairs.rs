//! Which two calls could become one, and whether they should.

use flowgraph::{Dominators, Loops, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::NAME;
use super::sites::Site;
use crate::candidate::place;
use crate::cost::Callees;
use crate::flow::Flow;
use crate::llvm::{Block, Function, Instruction, Opcode, Value};
use crate::registry::Options;
use crate::{Candidate, Verdict};

/// Among how many following calls of the same function a partner is looked for: enough for any branch that a person
/// wrote, and it keeps the work linear in functions with thousands of calls of one function.
pub(super) const WINDOW: usize = 64;

/// Two calls of one callee on different paths from a branch.
pub(super) struct Pair<'m> {
    pub(super) one: Site<'m>,
    pub(super) other: Site<'m>,
    branch: NodeId,
    branch_block: Block<'m>,
    /// Whether one of them is run after the other, behind the join of the branch.
    behind: bool,
    /// What a call costs.
    gain: i64,
    /// Blocks that every path from the branch to the calls goes through, of both sides.
    distance: u32,
    depth: u32,
}

/// A function as it is now, and its pairs.
pub(super) struct Round<'m> {
    flow: Flow<'m>,
    dominators: Dominators,
    loops: Loops,
    pairs: Vec<Pair<'m>>,
}

/// How control leaves the fused block.
pub(super) enum Guard<'m> {
    /// By the branch's own condition; whether it holds for the first call.
    Condition(Value<'m>, bool),
    /// By a phi that says where control came from.
    Phi,
}

/// Finds the pairs: those of the innermost branches first, there those of the most expensive callee, since fusing
/// others could stand in the way; of one callee the nearest.
pub(super) fn of<'m>(function: Function<'m>, sites: &[Site<'m>], costs: &mut Callees<'m>) -> Round<'m> {
    let flow = Flow::of(function);
    let (dominators, loops) = (flow.dominators(), flow.loops());
    let mut by_callee: FxHashMap<Value<'m>, Vec<Site<'m>>> = FxHashMap::default();
    for site in sites {
        by_callee.entry(site.callee).or_default().push(*site);
    }
    let mut round = Round { flow, dominators, loops, pairs: Vec::new() };
    let mut reached = FxHashMap::default();
    let mut seen = FxHashSet::default();
    for site in sites.iter().filter(|site| by_callee[&site.callee].len() > 1) {
        if seen.insert(site.callee) {
            round.pair_up(&by_callee[&site.callee], costs.of(site.callee), &mut reached);
        }
    }
    // Stable, so that equals stay in the order of the blocks.
    round.pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.depth), std::cmp::Reverse(pair.gain), pair.distance));
    round
}

impl<'m> Round<'m> {
    pub(super) fn pairs(&self) -> &[Pair<'m>] {
        &self.pairs
    }

    fn pair_up(&mut self, sites: &[Site<'m>], gain: i64, reached: &mut FxHashMap<(NodeId, NodeId), Vec<bool>>) {
        let mut behind_some = FxHashSet::default();
        for (i, one) in sites.iter().enumerate() {
            for other in sites[i + 1..].iter().take(WINDOW) {
                let (a, b) = (self.flow.node(one.block), self.flow.node(other.block));
                let Some(branch) = self.dominators.nearest_common(a, b) else { continue };
                if branch == a || branch == b {
                    continue;
                }
                let mut leads = |from: NodeId, to: NodeId| {
                    let after = reached.entry((from, branch)).or_insert_with(|| self.flow.reached(from, branch));
                    after[to.index()]
                };
                let (first, second) = (leads(a, b), leads(b, a));
                let behind = first || second;
                // Of all that follow an arm, only what its branch decides on comes into question, and that once.
                let after = if first { b } else { a };
                let joined = self.dominators.idom(after) == Some(branch) && first != second;
                if behind && !(joined && behind_some.insert(after)) {
                    continue;
                }
                let depth = |node| self.dominators.depth(node).unwrap_or(0);
                self.pairs.push(Pair {
                    one: *one,
                    other: *other,
                    branch,
                    branch_block: self.flow.block(branch),
                    behind,
                    gain,
                    distance: depth(a) + depth(b) - 2 * depth(branch),
                    depth: depth(branch),
                });
            }
        }
    }

    /// The profit of fusing the pair, in instructions; why not, where it cannot or should not be fused.
    pub(super) fn judge(&self, pair: &Pair<'m>, costs: &mut Callees<'m>, options: &Options) -> Result<i64, String> {
        self.shape(pair)?;
        alike(pair)?;
        let (gain, cost) = (costs.of(pair.one.callee), self.surgery(pair)?);
        let profit = gain - cost;
        if profit < options.threshold {
            return Err(format!("no profit: the callee costs about {gain} instructions, the fusion {cost}"));
        }
        Ok(profit)
    }

    /// Whether the control flow allows the fusion.
    fn shape(&self, pair: &Pair<'m>) -> Result<(), String> {
        if pair.behind {
            return Err("one call stands behind the join, where the other's path comes by too".to_owned());
        }
        if !pair.branch_block.ends_with_branch() {
            return Err("the paths do not part at a branch".to_owned());
        }
        let (a, b) = (self.flow.node(pair.one.block), self.flow.node(pair.other.block));
        let around = (self.loops.innermost(a), self.loops.innermost(b));
        if around.0 != around.1 || around.0.is_some_and(|id| !self.loops.contains(id, pair.branch)) {
            return Err("a call is in a loop that does not contain the branch or the other call".to_owned());
        }
        if around.0.is_some_and(|id| self.loops.is_irreducible(id)) {
            return Err("the loop around the branch has several entries".to_owned());
        }
        let obstacles =
            [pair.one.obstacle, pair.other.obstacle, pair.one.split_obstacle(), pair.other.split_obstacle()];
        obstacles.into_iter().flatten().next().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    /// How many instructions the fusion adds on each path, about: a jump on each side, the guard, a phi for each
    /// argument that differs, and two moves for each value that must be carried past the call.
    fn surgery(&self, pair: &Pair<'m>) -> Result<i64, String> {
        let arguments = pair.one.call.arguments();
        let differing = arguments.iter().zip(pair.other.call.arguments()).filter(|(a, b)| **a != *b).count();
        let guard = match self.guard(pair) {
            Guard::Condition(..) => 2,
            Guard::Phi => 3,
        };
        let carried = self.carried(pair, pair.one)? + self.carried(pair, pair.other)?;
        Ok(1 + guard + differing as i64 + 2 * carried)
    }

    /// How many values, made between the branch and the call of this side, are used after the call: they no longer
    /// dominate those uses.
    fn carried(&self, pair: &Pair<'m>, site: Site<'m>) -> Result<i64, String> {
        let end = self.flow.node(site.block);
        let mut count = 0;
        let mut node = end;
        while node != pair.branch {
            let block = self.flow.block(node);
            for instruction in block.instructions().into_iter().take_while(|&i| i != site.call) {
                if instruction.type_of().is_void() || !self.is_used_after(instruction, site) {
                    continue;
                }
                if !instruction.type_of().is_first_class() {
                    return Err("a value that cannot be stored is used after a call".to_owned());
                }
                if instruction.opcode() == Opcode::LLVMInvoke && instruction.successors()[0].entering().len() > 1 {
                    return Err("the result of a call that may throw is used after a call".to_owned());
                }
                count += 1;
            }
            node = self.dominators.idom(node).unwrap_or(pair.branch);
        }
        Ok(count)
    }

    fn is_used_after(&self, instruction: Instruction<'m>, site: Site<'m>) -> bool {
        let call_block = self.flow.node(site.block);
        let uses = instruction.as_value().uses();
        uses.into_iter().any(|u| {
            let Some(block) = u.needed_in() else { return false };
            if block != site.block || u.user.is_phi() {
                return self.dominators.dominates(call_block, self.flow.node(block));
            }
            let mut rest = block.instructions().into_iter().skip_while(|&i| i != site.call).skip(1);
            rest.any(|i| i == u.user)
        })
    }

    /// How control finds back after the fused call.
    pub(super) fn guard(&self, pair: &Pair<'m>) -> Guard<'m> {
        let terminator = pair.branch_block.terminator();
        let Some(condition) = terminator.condition() else { return Guard::Phi };
        let sides: Vec<NodeId> = terminator.successors().into_iter().map(|b| self.flow.node(b)).collect();
        let by = |side: NodeId, site: Site<'m>| {
            self.flow.edge_dominates(&self.dominators, pair.branch, side, self.flow.node(site.block))
        };
        if by(sides[0], pair.one) && by(sides[1], pair.other) {
            return Guard::Condition(condition, true);
        }
        if by(sides[1], pair.one) && by(sides[0], pair.other) {
            return Guard::Condition(condition, false);
        }
        Guard::Phi
    }
}

/// Whether both calls pass the same kinds of values in the same way.
fn alike(pair: &Pair<'_>) -> Result<(), String> {
    let (one, other) = (pair.one.call, pair.other.call);
    if one.called_type() != other.called_type() || one.arguments().len() != other.arguments().len() {
        return Err("the calls use different function types".to_owned());
    }
    let types = one.arguments().into_iter().zip(other.arguments());
    if types.into_iter().any(|(a, b)| a.type_of() != b.type_of()) {
        return Err("the calls pass values of different types".to_owned());
    }
    let mut arguments = one.arguments().into_iter().zip(other.arguments()).enumerate();
    if arguments.any(|(i, (a, b))| a != b && one.must_stay_constant(i)) {
        return Err("the calls differ in an argument that must be a constant".to_owned());
    }
    if one.calling_convention() != other.calling_convention() {
        return Err("the calls have different calling conventions".to_owned());
    }
    if !one.is_as_fast_as(other) {
        return Err("the calls promise different things about floating point".to_owned());
    }
    match one.call_differs_from(other) {
        Some(name) => Err(format!("the calls differ in the attribute {name}")),
        None => Ok(()),
    }
}

impl<'m> Pair<'m> {
    /// The block whose branch parts the paths.
    pub(super) fn branch_block(&self) -> Block<'m> {
        self.branch_block
    }

    /// The pair as one that is left.
    pub(super) fn candidate(&self, function: Function<'m>, why: String) -> Candidate {
        self.with(function, Verdict::Left(why))
    }

    /// The pair as one that is taken.
    pub(super) fn taken(&self, function: Function<'m>, round: &Round<'m>, costs: &mut Callees<'m>) -> Candidate {
        let guard = match round.guard(self) {
            Guard::Condition(..) => "guarded by the branch's condition",
            Guard::Phi => "guarded by a phi",
        };
        let (gain, cost) = (costs.of(self.one.callee), round.surgery(self).unwrap_or_default());
        let how = format!("the callee costs about {gain} instructions, the fusion {cost}; {guard}");
        self.with(function, Verdict::Taken(how))
    }

    fn with(&self, function: Function<'m>, verdict: Verdict) -> Candidate {
        let callee = self.one.callee;
        let subject = if callee.is_function() { callee.name() } else { "a function pointer".to_owned() };
        let places = vec![place(self.one.call), place(self.other.call)];
        Candidate { pass: NAME, function: function.name(), subject, places, verdict }
    }
}
