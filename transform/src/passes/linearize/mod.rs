//! `linearize`: unstructured control flow made structured, without copies of code.
//!
//! ```text
//! before: if (a || b) x; y            after, at level 0
//!   branch a, X, B                      turn = a ? X : B
//! B:                                  guard of B:
//!   branch b, X, Y                      branch turn == B, B, guard of X
//! X:                                  B:
//!   x                                   turn = b ? X : Y
//!   goto Y                            guard of X:
//! Y:                                    branch turn == X, X, Y
//!   y                                 X:
//!                                       x
//!                                       goto Y
//!                                     Y:
//!                                       y
//! ```
//!
//! Lanes for which a holds wait until the others have tested b, and run X together with those that reach it. Before, a
//! machine whose lanes wait at immediate post-dominators ran X twice.
//!
//! # Steps
//! 1. Switches become branches, and the places where control leaves the function become one (`prepare.rs`): where the
//!    control flow is not structured already, by [`Reduction`].
//! 2. What reduces to one node is a *part*, which stays unchanged. In the graph of the parts, the smallest regions with
//!    one entry and one exit are taken; if there is none, the whole graph.
//! 3. The parts of a region are put in a row, each behind a guard that asks whether it is its turn (`plan.rs`). A loop
//!    ends with one more guard, which leads back to the loop's head.
//! 4. Each part sets the turn, which names the part that runs next, and goes on in the row (`surgery.rs`). The *turn*
//!    is a variable, and so is each value that phis join; the context turns them into values.
//! 5. Checks whose answer is known are removed first (`needless.rs`), as far as the parameter `level` says and the
//!    result stays structured.
//! 6. Again from step 2, with what became structured as a part, until all is.
//! 7. At level 4, where a branch of a part is kept, the next turn is a constant on each side of it (`by_way.rs`).
//! 8. Loops that share a header get one each (`headers.rs`).
//!
//! # What is linearized
//! Regions in which a warp saves `threshold` fetches, by a prediction for the machine (`prediction.rs`). A GPU lets
//! lanes meet behind short circuits, breaks and early returns by itself, so there a row only adds guards; it gains
//! where lanes go round a loop apart that they entered at several places. Of 62 kernels of workloads/gpu-kernels 53
//! take more under `hanoi` with all regions in rows, and none with those that gain. `threshold=-1000` linearizes all,
//! as the paper does. `merge-loops` is held against the trip counts of a trace; what `max-depth` and `interleave` gain
//! is not predicted, and they are applied at a threshold of 0 or less.
//!
//! # Why the meaning is kept
//! A part runs when it is its turn, and only then; it chooses the next turn as its branch decided before. Guards have
//! no other effect. Control passes the same parts in the same order.
//!
//! # Where this differs from the paper
//! Parts that are structured need not lie between two blocks as in the paper's definition 5. Regions are found on the
//! graph of the parts rather than around edges that its definition 1 names, since that misses graphs. A loop has one
//! guard at its end for all edges back to its head, not one after each block with such an edge: lanes that continue
//! early wait for the others, and loops do not overlap, so that no target has to be moved. A region whose first block
//! has no edge back to it needs no guard for that block, and none at its end.
//!
//! # Limitation
//! Guards, and phis for values that parts have in common, would make some functions tens of times their size: those
//! that would become more than `growth` times it by estimate (`estimate.rs`) are left, their switches included. So are
//! functions with exceptions, jumps to addresses of blocks, `setjmp` or calls that must be jumps, and those in which a
//! switch decides about a call that must not depend on more branches than before (`convergent`: barriers of GPUs); and
//! regions with such calls, and what lies around them. So are regions in which lanes wait for what others do in them
//! (`crate::waits`): in a row they would be held for each other. Each has a remark. A switch costs a comparison for
//! each target.
//! The optimiser would turn the result back into something close to the original. So the pass has to run last, and
//! `lockstep cc` makes code generation keep the branches of a file in which something was linearized. The prediction
//! knows no trip counts, and not whether lanes part at all; and it is of the machine's meetings alone: that a row lets
//! a GPU's compiler predicate more (`bitonic` on an H200: 1.18 times as fast) is not in it.
//!
//! Source: Anantpur and Govindarajan, *Taming control divergence in GPUs through control flow linearization*, CC 2014,
//! algorithm 1.

mod applications;
mod by_way;
mod equality;
pub(crate) mod estimate;
mod headers;
mod needless;
mod plan;
mod prediction;
pub(crate) mod prepare;
mod surgery;

use flowgraph::{Builder, Dominators, Graph, NodeId, PostDominators, Reduction, Regions, unstructured_edges};
use parameters::{Parameter, Values};
use rustc_hash::{FxHashMap, FxHashSet};

use self::plan::Plan;
use self::surgery::{Part, Region};
use crate::context::{Context, Convergent, THRESHOLD};
use crate::flow::Flow;
use crate::llvm::{Block, Function, Instruction, Opcode};
use crate::pass::{Pass, Run};
use crate::remark::{Added, Linearized, Reason};

/// Of passes that structure functions.
pub(crate) const GROWTH: Parameter = Parameter {
    name: "growth",
    values: Values::Number(1, 1_000_000),
    default: 2,
    help: "how many times its instructions a function may have afterwards: what would take more is left",
};

/// With this threshold or a lower one all is linearized, whatever is gained, as in the paper.
pub(crate) const ALL: i64 = -1000;

/// Of this pass.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "level",
        values: Values::Number(0, 4),
        default: 4,
        help: "how many needless checks are removed: 0 none; 1 those that one path alone needs or does not need; 2 \
               also those under other checks; 3 a check also joins the block before it; 4 all whose answer is known, \
               and no choice is made twice",
    },
    Parameter {
        help: "the least that a region must gain to be linearized: fetches that a warp saves that goes through it once, \
               by prediction for the default machine; -1000: all regions are, and all that is asked for is applied",
        ..THRESHOLD
    },
    GROWTH,
    Parameter {
        name: "only-divergent",
        values: Values::YesNo,
        default: 0,
        help: "whether parts are left alone if the divergence analysis of the module proves their branches uniform",
    },
    Parameter {
        name: "merge-loops",
        values: Values::YesNo,
        default: 0,
        help: "whether an inner loop and the loop around it share one back edge, so that lanes that need fewer inner \
               iterations go on to their next outer iteration",
    },
    Parameter {
        name: "max-depth",
        values: Values::Number(0, 1000),
        default: 0,
        help: "how many branches may be nested: what is nested deeper is put in a row even where it is structured; 0 \
               means no limit",
    },
    Parameter {
        name: "interleave",
        values: Values::YesNo,
        default: 0,
        help: "whether the blocks of two arms alternate, so that values that one arm loads are used as late as \
             possible",
    },
];

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "linearize",
    summary: "makes unstructured control flow structured, by guards in one row instead of copies; it has to run last",
    source: "Anantpur, Govindarajan, CC 2014",
    parameters: PARAMETERS,
    structures: true,
    run: Run::each(run),
};

/// Linearizes what is not structured in a function.
fn run<'m>(function: &mut Function<'m>, context: &mut Context<'m>) {
    if linearize(function, context) {
        prepare::keep_returns(*function);
    }
}

/// Whether the function is to keep its shape from here on: if not, nothing was changed.
fn linearize<'m>(function: &mut Function<'m>, context: &mut Context<'m>) -> bool {
    let only_divergent = context.settings().number("only-divergent") == 1;
    let agree = |context: &Context<'m>, block: Block<'m>| only_divergent && context.lanes_agree(block);
    let switches = prepare::switches(*function);
    let parting = switches.iter().any(|&block| !agree(context, block));
    let applied = applications::is_asked(context);
    let all = applied || context.threshold() <= ALL;
    let structured = !parting && !applied && is_structured(&context.flow());
    if let Some((at, reason)) = prepare::obstacle(*function) {
        if !structured {
            context.remark("control flow".to_owned(), vec![at.place()], reason, None);
        }
        return all;
    }
    let flow = context.flow();
    if let Some(reason) = estimate::obstacle(&flow, context.settings().number(GROWTH.name)).filter(|_| !structured) {
        context.remark("control flow".to_owned(), Vec::new(), reason, None);
        return all;
    }
    let convergent = Convergent::of(context);
    if let Some(at) = switches.iter().find(|&&block| !structured && convergent.is_parted_at(flow.node(block))) {
        context.remark("control flow".to_owned(), vec![at.terminator().place()], Reason::Convergent, None);
        return all;
    }
    let ends = function.blocks().into_iter();
    let cold: Vec<Block<'m>> = ends.filter(|block| block.terminator().opcode() == Opcode::LLVMUnreachable).collect();
    if !all {
        let best = if structured { None } else { prediction::best(&cold, context) };
        if best.is_none_or(|[apart, row]| apart - row < context.threshold()) {
            if let Some([apart, row]) = best {
                context.remark("control flow".to_owned(), Vec::new(), Reason::RowsWithoutProfit { apart, row }, None);
            }
            return false;
        }
    }
    let before = counts(*function);
    let agreeing: Vec<Block<'m>> = context.flow().blocks().iter().copied().filter(|&b| agree(context, b)).collect();
    let equalities = equality::make_values(*function, |block| agreeing.contains(&block));
    if structured && equalities == 0 {
        headers::separate(context);
        return true;
    }
    let switches = if structured { Vec::new() } else { switches };
    let mut done = Linearized { switches: switches.len(), equalities, ..Linearized::default() };
    switches.into_iter().for_each(|block| prepare::lower_switch(block.terminator()));
    // Lowered switches have become branches: the flow is another.
    let (flow, loops) = (context.flow(), context.loops());
    let edges = unstructured_edges(flow.graph(), &loops, &context.dominators(), &context.post_dominators());
    let first = edges.first().map(|edge| flow.block(edge.from).terminator().place());
    done.edges = edges.len();
    let (mut left_alone, mut choices) = (0, Vec::new());
    if !is_structured(&context.flow()) {
        prepare::one_end(*function);
        left_alone = rounds(*function, (!all).then_some(&cold[..]), &agreeing, &mut done, &mut choices, context);
    }
    if applied && is_structured(&context.flow()) {
        applications::run(&agreeing, &mut done, &mut choices, context);
    }
    context.settle();
    by_way::settle(&choices, context);
    headers::separate(context);
    let left = Parts::of(&context.flow(), &[]).left.len();
    if done.regions > 0 || done.switches > 0 || done.equalities > 0 {
        let after = counts(*function);
        done.added = Added {
            blocks: after.blocks - before.blocks,
            compares: after.compares - before.compares,
            branches: after.branches - before.branches,
            selects: after.selects - before.selects,
            phis: after.phis - before.phis,
        };
        let places = first.into_iter().collect();
        let gain = (!all).then_some(done.apart - done.row);
        context.remark("control flow".to_owned(), places, Reason::Linearized(done), gain);
    }
    if left > 1 && left_alone == 0 {
        context.remark("control flow".to_owned(), Vec::new(), Reason::GoneOver { left }, None);
    }
    true
}

/// Whether the control flow of a function reduces to one part.
pub(crate) fn is_structured(flow: &Flow<'_>) -> bool {
    Parts::of(flow, &[]).left.len() == 1
}

/// Counts of what guards consist of in a function, and of what they cost besides: phis.
fn counts(function: Function<'_>) -> Added {
    let blocks = function.blocks();
    let mut counts = Added { blocks: blocks.len() as i64, ..Added::default() };
    for instruction in blocks.into_iter().flat_map(Block::instructions) {
        match instruction.opcode() {
            Opcode::LLVMICmp => counts.compares += 1,
            Opcode::LLVMBr => counts.branches += 1,
            Opcode::LLVMSelect => counts.selects += 1,
            Opcode::LLVMPHI => counts.phis += 1,
            _ => {}
        }
    }
    counts
}

/// Linearizes regions until all is structured, or until the rest is uniform, or has calls that must not depend on more
/// branches, or gains nothing, where `cold` says to which blocks no lane comes. Returns how many regions were left.
fn rounds<'m>(
    function: Function<'m>,
    cold: Option<&[Block<'m>]>,
    agreeing: &[Block<'m>],
    done: &mut Linearized,
    choices: &mut Vec<Instruction<'m>>,
    context: &mut Context<'m>,
) -> usize {
    let mut left_alone: Vec<Vec<Block<'m>>> = Vec::new();
    loop {
        let flow = context.flow();
        let parts = Parts::of(&flow, &left_alone);
        if parts.left.len() < 2 {
            return left_alone.len();
        }
        let mut found = false;
        let waits = context.waits();
        let priced = cold.map(|cold| prediction::Priced::of(cold, context));
        let mut regions = parts.regions(&flow, function);
        while let Some(region) = regions.pop() {
            let blocks = || region.parts.iter().flat_map(|part| part.blocks.iter().copied());
            let parting = blocks().any(|block| block.terminator().successors().len() > 1 && !agreeing.contains(&block));
            let convergent = blocks().find_map(prepare::convergent);
            let nodes = |part: &Part<'m>| part.blocks.iter().map(|&block| flow.node(block)).collect::<Vec<_>>();
            let predicted = priced
                .as_ref()
                .map(|priced| priced.predict(&region.parts.iter().map(nodes).collect::<Vec<_>>(), context));
            let loss = predicted.filter(|[apart, row]| apart - row < context.threshold());
            let held = waits.hold_up_anywhere(blocks());
            if !parting || convergent.is_some() || held || loss.is_some() {
                let at = convergent.unwrap_or_else(|| region.parts[0].entry.terminator());
                let reason = match loss {
                    _ if !parting => Reason::LanesAgree,
                    _ if convergent.is_some() => Reason::Convergent,
                    Some([apart, row]) if !held => Reason::RowsWithoutProfit { apart, row },
                    _ => Reason::HeldUp,
                };
                context.remark("control flow".to_owned(), vec![at.place()], reason, None);
                let mut members: Vec<Block<'m>> = blocks().collect();
                members.retain(|block| *block != region.parts[0].entry);
                members.insert(0, region.parts[0].entry);
                left_alone.push(members);
                found = true;
                continue;
            }
            let level = context.settings().number("level");
            let (graph, leads) = (graph_of(&region), region.leads());
            let mut plan = Plan::of(&graph, &leads);
            needless::take_away(&mut plan, &graph, &leads, level);
            let (guards, backs) = plan.guards();
            let [apart, row] = predicted.unwrap_or_default();
            (done.apart, done.row) = (done.apart + apart, done.row + row);
            done.regions += 1;
            done.parts += region.parts.len();
            done.guards += guards;
            done.backs += backs;
            if let Some(enter) = surgery::linearize(&region, &plan, level, true, choices, context) {
                let ends_here = |other: &&mut Region<'m>| other.behind == region.parts[0].entry;
                regions.iter_mut().filter(ends_here).for_each(|other| other.behind = enter);
            }
            found = true;
        }
        if !found {
            return left_alone.len();
        }
    }
}

/// The edges between the parts of a region.
fn graph_of(region: &Region<'_>) -> Graph {
    let mut number: FxHashMap<Block<'_>, u32> = FxHashMap::default();
    for (part, blocks) in region.parts.iter().map(|part| &part.blocks).enumerate() {
        number.extend(blocks.iter().map(|&block| (block, part as u32)));
    }
    let mut builder = Builder::new(region.parts.len());
    for (part, blocks) in region.parts.iter().map(|part| &part.blocks).enumerate() {
        for to in blocks.iter().flat_map(|block| block.terminator().successors()) {
            if let Some(&to) = number.get(&to).filter(|&&to| to != part as u32) {
                builder.edge(NodeId(part as u32), NodeId(to));
            }
        }
    }
    builder.build(NodeId(0))
}

/// A function as parts that are structured.
pub(crate) struct Parts {
    /// By block: the block at which its part begins.
    pub(crate) of: Vec<NodeId>,
    /// Where parts begin, the function's entry first. One is left when all is structured.
    pub(crate) left: Vec<NodeId>,
}

impl Parts {
    /// The parts of a function, where some blocks are one part whatever is in them: of each list, which begins with the
    /// block where control comes in.
    pub(crate) fn of<'m>(flow: &Flow<'m>, whole: &[Vec<Block<'m>>]) -> Parts {
        let nodes = |blocks: &Vec<Block<'m>>| blocks.iter().map(|&block| flow.node(block)).collect();
        Parts::of_graph(flow.graph(), &whole.iter().map(nodes).collect::<Vec<_>>())
    }

    /// As [`Parts::of`], of any control flow.
    pub(crate) fn of_graph(control: &Graph, whole: &[Vec<NodeId>]) -> Parts {
        let mut of: Vec<NodeId> = control.nodes().collect();
        for nodes in whole {
            for &node in nodes {
                of[node.index()] = nodes[0];
            }
        }
        let graph = quotient(control, &of, !whole.is_empty());
        let ends = control.nodes().filter(|&node| control.successors(node).is_empty());
        let exits: Vec<NodeId> = ends.map(|node| of[node.index()]).collect();
        let reduction = Reduction::of(&graph, &exits);
        let of = of.into_iter().map(|part| reduction.of_node(part)).collect();
        let left = if reduction.is_structured() { vec![graph.entry()] } else { reduction.left().to_vec() };
        Parts { of, left }
    }

    /// The smallest regions that are not structured.
    fn regions<'m>(&self, flow: &Flow<'m>, function: Function<'m>) -> Vec<Region<'m>> {
        let mut blocks: FxHashMap<NodeId, Vec<Block<'m>>> = FxHashMap::default();
        for (node, part) in self.of.iter().enumerate() {
            blocks.entry(*part).or_default().push(flow.block(NodeId(node as u32)));
        }
        let part = |node: &NodeId| Part { entry: flow.block(*node), blocks: blocks[node].clone() };
        let region = |(members, behind): (Vec<NodeId>, Option<NodeId>)| Region {
            parts: members.iter().map(part).collect(),
            // Control may never leave: then what follows is a block that it does not reach.
            behind: behind.map_or_else(|| prepare::nowhere(function), |node| flow.block(node)),
        };
        self.regions_of_graph(flow.graph()).into_iter().map(region).collect()
    }

    /// The smallest regions that are not structured: the parts of each, the one where control comes in first, and what
    /// follows, where control may leave.
    fn regions_of_graph(&self, control: &Graph) -> Vec<(Vec<NodeId>, Option<NodeId>)> {
        let graph = quotient(control, &self.of, true);
        let exits: Vec<NodeId> = self.left.iter().copied().filter(|&n| graph.successors(n).is_empty()).collect();
        let post = PostDominators::of(&graph, &exits);
        let regions = Regions::of(&graph, &Dominators::of(&graph), &post);
        let ordered = |members: &[NodeId], first: NodeId| {
            let mut order: Vec<NodeId> = members.to_vec();
            order.sort_by_key(|&node| (node != first, node));
            order
        };
        let is_leaf = |id| regions.ids().all(|other| regions.parent(other) != Some(id));
        let found: Vec<_> = regions
            .ids()
            .filter(|&id| regions.members(id).len() > 1 && is_leaf(id))
            .map(|id| (ordered(regions.members(id), regions.entry(id)), Some(regions.exit(id))))
            .collect();
        if !found.is_empty() {
            return found;
        }
        let ends: FxHashSet<NodeId> =
            control.nodes().filter(|&node| control.successors(node).is_empty()).map(|n| self.of[n.index()]).collect();
        let last = exits.iter().copied().find(|exit| *exit != graph.entry() && ends.contains(exit));
        let members: Vec<NodeId> = self.left.iter().copied().filter(|&node| Some(node) != last).collect();
        vec![(ordered(&members, graph.entry()), last)]
    }
}

/// The graph of parts; a part's number is that of the block where it begins. What is no part's beginning has no edges.
/// Edges inside of a part are left out, if so told.
pub(crate) fn quotient(graph: &Graph, of: &[NodeId], without_inner: bool) -> Graph {
    let mut builder = Builder::new(graph.node_count());
    for from in graph.nodes() {
        for &to in graph.successors(from) {
            let ends = (of[from.index()], of[to.index()]);
            if !without_inner || ends.0 != ends.1 {
                builder.edge(ends.0, ends.1);
            }
        }
    }
    builder.build(of[graph.entry().index()])
}
