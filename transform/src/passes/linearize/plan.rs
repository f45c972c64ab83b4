//! The control flow of a linearized region, before any code is made: which guards there are, and where each leads.

use flowgraph::{Builder, DepthFirst, Graph, Loops, NodeId, Reduction};

/// One step of a plan. Numbers of steps are indices into [`Plan::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Goes to `yes` when it is this part's turn, else to `no`.
    Guard { part: usize, yes: usize, no: usize },
    /// Runs a part. It says whose turn is next, and goes on here.
    Body { part: usize, next: usize },
    /// Runs a part that control never leaves: a loop without a way out.
    Endless { part: usize },
    /// At the end of a loop: goes back to `yes` when it is the turn of the loop's head, else to `no`.
    Back { head: usize, yes: usize, no: usize },
    /// What follows the region.
    End,
}

impl Step {
    /// Where it leads.
    pub(super) fn ways(self) -> Vec<usize> {
        match self {
            Step::Guard { yes, no, .. } | Step::Back { yes, no, .. } => vec![yes, no],
            Step::Body { next, .. } => vec![next],
            Step::Endless { .. } | Step::End => Vec::new(),
        }
    }
}

/// The parts of a region in one row, each behind its guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// In the order in which code is laid out; [`Step::End`] is the last.
    pub(super) steps: Vec<Step>,
    /// Where control comes in.
    pub(super) start: usize,
    /// Whether something leads back to part 0.
    pub(super) comes_back: bool,
    /// Steps that control always passes, and must: lanes of both arms meet there in between.
    pub(super) meets: Vec<usize>,
}

impl Plan {
    /// The row for the parts of a region: part 0 is where control comes in, and all edges between parts are in `graph`,
    /// those that leave the region not. `leads` says by part whose turn may be next; parts that lead nowhere come last,
    /// where nothing else has to be reached from their guards.
    ///
    /// The order is topological with loops contiguous, each after its head ([`Loops::order`]), so that what follows a
    /// loop lies after its end. An edge against the order leads to the head of a loop around its start; it is taken at
    /// the end of that loop, together with all such edges. So no jump crosses another loop's bounds, which the paper
    /// achieves by moving targets up to the next head.
    pub(super) fn of(graph: &Graph, leads: &[Vec<usize>]) -> Plan {
        let loops = Loops::of(graph);
        let (on, endless): (Vec<NodeId>, Vec<NodeId>) =
            loops.order().iter().copied().partition(|part| !leads[part.index()].is_empty());
        let mut steps = Vec::new();
        let mut guards = vec![0; graph.node_count()];
        // Loops that are not at their end yet, inner ones last: their head, and how many members are to come.
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        for node in on {
            if let Some(id) = loops.headed_by(node) {
                open.push((node, loops.members(id).len()));
            }
            let part = node.index();
            guards[part] = steps.len();
            // Part 0 needs no guard where nothing leads back to it.
            if part != 0 || loops.headed_by(node).is_some() {
                steps.push(Step::Guard { part, yes: steps.len() + 1, no: steps.len() + 2 });
            }
            steps.push(Step::Body { part, next: steps.len() + 1 });
            open.iter_mut().for_each(|(_, left)| *left -= 1);
            while let Some((head, _)) = open.pop_if(|(_, left)| *left == 0) {
                steps.push(Step::Back { head: head.index(), yes: guards[head.index()], no: steps.len() + 1 });
            }
        }
        for part in endless.into_iter().map(NodeId::index) {
            if part != 0 {
                steps.push(Step::Guard { part, yes: steps.len() + 1, no: steps.len() + 2 });
            }
            steps.push(Step::Endless { part });
        }
        steps.push(Step::End);
        let comes_back = matches!(steps[0], Step::Guard { .. });
        Plan { steps, start: 0, comes_back, meets: Vec::new() }
    }

    /// How many guards of parts control can reach, and how many at the ends of loops.
    pub(super) fn guards(&self) -> (usize, usize) {
        let entries = self.entries();
        let reached = || self.steps.iter().zip(&entries).filter(|(_, entries)| **entries > 0).map(|(step, _)| step);
        let of_parts = reached().filter(|step| matches!(step, Step::Guard { .. })).count();
        (of_parts, reached().filter(|step| matches!(step, Step::Back { .. })).count())
    }

    /// By step: how many edges lead there, that by which control comes in included.
    pub(super) fn entries(&self) -> Vec<usize> {
        let mut entries = vec![0; self.steps.len()];
        let (graph, _) = self.graph();
        entries[self.start] = 1;
        for &from in DepthFirst::of(&graph).preorder() {
            self.steps[from.index()].ways().into_iter().for_each(|to| entries[to] += 1);
        }
        entries
    }

    /// Whether all of it is structured.
    pub(super) fn is_structured(&self) -> bool {
        let (graph, end) = self.graph();
        Reduction::of(&graph, &[end]).is_structured()
    }

    /// Whether control comes by all of the steps that it has to.
    pub(super) fn keeps_meets(&self) -> bool {
        let end = self.steps.len() - 1;
        self.meets.iter().all(|&meet| {
            let (mut seen, mut open) = (vec![false; self.steps.len()], vec![self.start]);
            while let Some(step) = open.pop().filter(|_| !seen[end]) {
                if step != meet && !std::mem::replace(&mut seen[step], true) {
                    open.extend(self.steps[step].ways());
                }
            }
            !seen[end]
        })
    }

    /// The plan as a graph, with where control leaves.
    pub(super) fn graph(&self) -> (Graph, NodeId) {
        let mut builder = Builder::new(self.steps.len());
        for (from, step) in self.steps.iter().enumerate() {
            for to in step.ways() {
                builder.edge(NodeId(from as u32), NodeId(to as u32));
            }
        }
        (builder.build(NodeId(self.start as u32)), NodeId(self.steps.len() as u32 - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::needless;
    use super::*;

    /// All graphs of four parts with at most two sides each. One of a side's targets may be what follows, number 4. All
    /// parts are reached. A part without a successor is an endless loop.
    fn of_four(mut visit: impl FnMut(&[Vec<usize>])) {
        let ways: Vec<Vec<usize>> =
            (0_u32..32).filter(|w| w.count_ones() <= 2).map(|w| (0..5).filter(|i| w >> i & 1 == 1).collect()).collect();
        for number in 0..ways.len().pow(4) {
            let edges: Vec<Vec<usize>> =
                (0..4).map(|from| ways[number / ways.len().pow(from) % ways.len()].clone()).collect();
            if DepthFirst::of(&graph(&edges)).preorder().len() == 4 {
                visit(&edges);
            }
        }
    }

    fn graph(edges: &[Vec<usize>]) -> Graph {
        let mut builder = Builder::new(edges.len());
        for (from, to) in edges.iter().enumerate() {
            for &to in to.iter().filter(|&&to| to < edges.len()) {
                builder.edge(NodeId(from as u32), NodeId(to as u32));
            }
        }
        builder.build(NodeId(0))
    }

    /// By part: whose turn may be next, 4 for what follows.
    fn leads(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
        edges.iter().map(|to| to.iter().map(|&to| to.min(edges.len())).collect()).collect()
    }

    /// The parts that run when each takes the way that a row of coins says, as the edges have it.
    fn run(edges: &[Vec<usize>], coins: u32) -> Vec<usize> {
        let (mut ran, mut at) = (Vec::new(), 0);
        while at < edges.len() && ran.len() < 24 {
            let coin = (coins >> ran.len() & 1) as usize;
            ran.push(at);
            if edges[at].is_empty() {
                break;
            }
            at = edges[at][coin % edges[at].len()];
        }
        ran
    }

    /// The same as the plan has it, and how often a guard looks whose turn it is.
    fn run_plan(plan: &Plan, edges: &[Vec<usize>], coins: u32) -> (Vec<usize>, usize) {
        let (mut ran, mut turn, mut at, mut looks) = (Vec::new(), 0, plan.start, 0);
        while ran.len() < 24 {
            at = match plan.steps[at] {
                Step::Guard { part, yes, no } | Step::Back { head: part, yes, no } => {
                    looks += 1;
                    if turn == part { yes } else { no }
                }
                Step::Body { part, next } => {
                    assert_eq!(part, turn, "a part runs when it is its turn");
                    let coin = (coins >> ran.len() & 1) as usize;
                    ran.push(part);
                    turn = edges[part][coin % edges[part].len()];
                    next
                }
                Step::Endless { part } => {
                    assert_eq!(part, turn, "a part runs when it is its turn");
                    ran.push(part);
                    break;
                }
                Step::End => break,
            };
        }
        (ran, looks)
    }

    #[test]
    fn every_plan_is_structured_runs_the_same_parts_and_has_a_guard_for_each_part_or_edge_back() {
        let (mut all, mut coins, mut checks) = (0, 1_u32, [0; 5]);
        of_four(|edges| {
            let graph = graph(edges);
            let plan = Plan::of(&graph, &leads(edges));
            // Claim 1.
            assert!(plan.is_structured(), "{plan:?} of {edges:?}");
            // Claim 3, of blocks.
            let order = Loops::of(&graph).order().to_vec();
            let place = |node: NodeId| order.iter().position(|&other| other == node);
            let back = |from: NodeId| graph.successors(from).iter().filter(|&&to| place(to) <= place(from)).count();
            let (of_parts, at_ends) = plan.guards();
            assert!(of_parts <= 4 && at_ends <= graph.nodes().map(back).sum::<usize>(), "{plan:?} of {edges:?}");
            // Claim 2, and that no level undoes claim 1.
            let levels = if all % 8 == 0 { 0..=4 } else { 4..=4 };
            let seed = coins;
            for level in levels {
                coins = seed;
                let mut plan = plan.clone();
                needless::take_away(&mut plan, &graph, &leads(edges), level);
                assert!(plan.is_structured(), "level {level}: {plan:?} of {edges:?}");
                for _ in 0..4 {
                    coins = coins.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let (ran, looks) = run_plan(&plan, edges, coins >> 8);
                    assert_eq!(ran, run(edges, coins >> 8), "{level}: {plan:?} of {edges:?}");
                    checks[level as usize] += if all % 8 == 0 { looks } else { 0 };
                }
            }
            all += 1;
        });
        assert_eq!(all, 14_544);
        // Looks of guards in the runs of every eighth graph: no level adds any, and level 3 moves code only.
        assert!(checks.is_sorted_by(|a, b| a >= b), "{checks:?}");
        assert!(checks[0] > checks[1] && checks[2] == checks[3] && checks[3] > checks[4], "{checks:?}");
    }

    #[test]
    fn what_follows_a_loop_lies_behind_its_end() {
        // Figure 5: 0 leads to 1; 1, 2 and 3 are a loop, which 1 leaves to 4 and 2 to what follows.
        let edges = [vec![1], vec![2, 4], vec![3, 5], vec![1], vec![5]];
        let plan = Plan::of(&graph(&edges), &leads(&edges));
        let bodies = plan.steps.iter().filter_map(|step| match step {
            Step::Body { part, .. } => Some(*part),
            Step::Back { .. } => Some(99),
            _ => None,
        });
        assert_eq!(bodies.collect::<Vec<_>>(), [0, 1, 2, 3, 99, 4]);
    }
}
