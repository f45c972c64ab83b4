//! `meld`: similar code on the two sides of a branch, run once, whatever its control flow.
//!
//! ```text
//! before                                  after
//!   branch c, then, else                    p = select c, a, b
//! then:                                     x = load p
//!   x = load a                              t = x > 0
//!   branch (x > 0), t1, join                branch t, t1, join
//! t1:                                     t1:
//!   store 0, a                              store 0, p
//!   goto join                               goto join
//! else:
//!   y = load b
//!   branch (y > 0), e1, join
//! e1:
//!   store 0, b
//!   goto join
//! ```
//!
//! `fcs` joins two calls, and `branch-fusion` two blocks. This pass joins whole parts of the control flow with one
//! entry and one exit: ifs, loops, and blocks with them.
//!
//! # Steps
//! 1. [`region`]: a branch with such *subgraphs* on both of its paths. A path's subgraphs are those that only one edge
//!    of the branch leads to, in the order of its post-dominators.
//! 2. [`pairs`]: two subgraphs can be one where they are isomorphic, where both are blocks, and where one is a block:
//!    then its lanes follow the other side's branches to the block with which it saves most, and on to the exit, by
//!    constants in the place of conditions. Beyond the paper, one side may lack an empty block. The *score* of a pair
//!    is the paper's FP_S: the share of both sides' cycles that one would save if all instructions of the same kind
//!    were one. `align` says how pairs are taken: the best first, or all by Needleman and Wunsch's alignment.
//! 3. [`plan`]: the instructions of paired blocks, aligned by what a pair saves less the choices between its operands,
//!    and less a branch for each gap. Then all is counted: what a GPU issues for both sides apart and melded, with
//!    choices, branches and their barriers, for x86-64 by way of the processor's instructions (`cost/on_gpu.rs`); for
//!    a GPU's code also what loads and stores take ([`traffic`]). A pair that does not save more than the time of an
//!    instruction and a twentieth is left unchanged, whatever its score. So is one in front of which, or in which,
//!    lanes of one side alone make a call that may wait for others (`crate::waits`): those could be held where
//!    both sides meet, with a lock, or before a barrier. And so is one where they wait in a loop, or which has a lock
//!    that both sides take.
//! 4. [`surgery`]. Values from outside of both subgraphs meet in phis before the melded one; after it the paths part
//!    again, unless both go on to one block.
//! 5. Again, until nothing is left that can be melded; regions inside of others come after them. Then once more with
//!    arms that leave to two blocks, and the first blocks of others without one exit ([`arms`]; not with `once=yes`).
//!    The pipeline gives each use a definition that dominates it; choices between the same values are made once.
//!
//! # Its place
//! The optimiser sinks what both sides end with into one block, after which there is nothing left to meld, or a part of
//! an arm that other code leads to as well. `lockstep cc` has it leave that undone (`-sink-common-insts=false`), and
//! SimplifyCFG does it right behind this pass; a pair for which that does all is left to it. Bitcode for `lockstep
//! transform` must be made with that option.
//!
//! # Why the meaning is kept
//! A lane that passes the melded subgraph came from one side of the branch, which dominates both sides, so that its
//! condition says which. It takes that side's path through the blocks, since each branch there decides by that side's
//! condition. It runs that side's instructions in their order, and a pair with that side's operands. It runs
//! instructions of the other side only if they change nothing and cannot trap; their results from values that the lane
//! does not have are never chosen. Everything else stands under a branch on the condition, even with `unpredicate=no`.
//!
//! # Limitation
//! Lanes that stay together pay for choices and branches, unless the divergence analysis proves it (`only-divergent`);
//! it sees one file, and needs thread numbers in it. Two loops whose accesses have the same places in the source are
//! the optimiser's versions of one, with a test (of arrays that overlap, of counts) that is taken to be one for all
//! lanes; without a line table they are not known. The remark says how many fetches of the processor lanes lose at
//! most that stay together, each time and for each iteration of a loop inside (`loss.rs` explains that bound).
//! Subgraphs with switches, calls that may unwind into a handler, allocas and convergent calls are left unchanged. Of
//! arms that return each by itself, or leave to more than two blocks together, only the first block up to that point is
//! melded: the rest has no single exit. Costs assume that loops inside of a subgraph run ten iterations, that each side
//! of a branch inside of it runs, and that lanes come by on both sides. What accesses of
//! memory cost in time is not in them in a processor's code: the trace of a run says that.
//!
//! Source: Saumya, Sundararajah, Kulkarni, *CFM: SIMT thread divergence reduction by melding similar control-flow
//! regions in GPGPU programs*, 2021. It runs instructions of one side for all lanes first and splits them out after, if
//! at all; here what may trap never runs for the wrong lanes.

mod arms;
mod count;
mod gather;
mod lives;
mod loss;
mod matching;
mod pairs;
mod plan;
mod region;
mod surgery;
mod traffic;

use flowgraph::{DepthFirst, NodeId};
use parameters::{Parameter, Values};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::{Context, ONLY_DIVERGENT};
use crate::cost::Cost;
use crate::flow::reached;
use crate::llvm::{Block, Function, Instruction, Value};
use crate::pass::{Pass, Run};
use crate::remark::{Reason, Unmeldable};
use crate::waits::{Code, InFunction};

/// So many blocks are looked at, sweep after sweep over a function and region inside of region, before it is given up:
/// some seconds.
const MOST_LOOKS: usize = 1 << 20;

/// Blocks are aligned in time and space of the product of their lengths, up to so many pairs, which take some
/// milliseconds; of longer ones what stands near the diagonal.
const MOST_PAIRS: usize = 250_000;

/// More than one instruction (ten tenths) must be saved, and one part of so many: a prediction is not more certain.
/// Two pairs of fluidanimate (PARSEC), of 120 and 122 instructions, save 4 and 5 each time that lanes part, and it runs
/// 2.3% more instructions by them, as its lanes mostly agree. What gains in the workloads saves a quarter or more.
const MARGIN: i64 = 15;
const LEAST_SHARE: i64 = 20;

/// How pairs of subgraphs are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alignment {
    Greedy,
    NeedlemanWunsch,
}

/// The values of `align`, in the order of [`Alignment`].
const ALIGNMENTS: &[&str] = &["greedy", "needleman-wunsch"];

/// The parameters, as numbers.
#[derive(Clone, Copy)]
struct Options {
    align: Alignment,
    unpredicate: bool,
    once: bool,
    only_divergent: bool,
    /// What both sides end with is taken out of them behind this pass.
    sinks_behind: bool,
    /// Of the score, in percent. Below zero all that can be melded is, whatever it costs.
    threshold: i64,
}

impl Options {
    fn of(context: &Context<'_>) -> Options {
        let settings = context.settings();
        let align = if settings.number("align") == 0 { Alignment::Greedy } else { Alignment::NeedlemanWunsch };
        let unpredicate = settings.number("unpredicate") == 1;
        let once = settings.number("once") == 1;
        let only_divergent = context.only_divergent();
        let sinks_behind = context.sinks_behind();
        Options { align, unpredicate, once, only_divergent, sinks_behind, threshold: context.threshold() }
    }
}

/// A remark that is made when nothing is melded any more.
struct Left<'m> {
    first: [Option<Instruction<'m>>; 2],
    reason: Reason,
    gain: Option<i64>,
}

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "meld",
    summary: "melds similar parts of the control flow on the two sides of a branch: ifs, loops, blocks",
    source: "Saumya, Sundararajah, Kulkarni, CFM 2021",
    parameters: PARAMETERS,
    structures: false,
    run: Run::each(run),
};

/// Its parameters.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "threshold",
        values: Values::Number(-1_000_000_000, 1_000_000_000),
        default: 10,
        help: "the least share of both sides' cycles, in percent, that melding must save by estimate; below 0, \
               everything that can be melded is, whatever it costs",
    },
    Parameter {
        name: "align",
        values: Values::OneOf(ALIGNMENTS),
        default: 0,
        help: "how pairs of subgraphs are chosen: the best first, or the best alignment of both paths",
    },
    ONLY_DIVERGENT,
    Parameter {
        name: "unpredicate",
        values: Values::YesNo,
        default: 1,
        help: "whether instructions without a partner are put under a branch; those that may trap or have effects \
             always are",
    },
    Parameter {
        name: "once",
        values: Values::YesNo,
        default: 0,
        help: "whether a function is processed only once, so that melded code is not melded again",
    },
];

/// Melds what is worth it in a function.
fn run<'m>(function: &mut Function<'m>, context: &mut Context<'m>) {
    let options = Options::of(context);
    let mut looks = 0;
    let mut changed = false;
    let mut split: Option<arms::Split<'m>> = None;
    loop {
        looks += function.blocks().len();
        let (melded, left) = sweep(context, options, &mut looks);
        changed |= melded > 0;
        let give_up = looks > MOST_LOOKS;
        if melded == 0 && split.is_none() && !options.once && !give_up {
            let made = arms::split(context);
            let again = !made.is_empty();
            split = Some(made);
            if again {
                continue;
            }
        }
        if melded == 0 || options.once || give_up {
            for Left { first, reason, gain } in left {
                let places = first.map(|i| i.and_then(|i| i.place())).to_vec();
                context.remark("subgraphs".to_owned(), places, reason, gain);
            }
            if melded > 0 && give_up {
                context.remark("subgraphs".to_owned(), Vec::new(), Reason::GoneOver { left: melded }, None);
            }
            split.unwrap_or_default().join_again();
            if changed {
                gather::choose_once(context);
            }
            return;
        }
    }
}

/// The remarks about parts of a branch's two arms that are no subgraphs: one where the reason is one.
fn unmeldable<'m>(parts: &[(Block<'m>, Unmeldable)]) -> Vec<Left<'m>> {
    let reason = |why| if why == Unmeldable::TooLarge { Reason::MeldTooLarge } else { Reason::NoSubgraph(why) };
    match *parts {
        [(one, why), (other, same)] if why == same => {
            vec![Left { first: [one, other].map(Block::first), reason: reason(why), gain: None }]
        }
        _ => {
            let alone = |&(part, why): &(Block<'m>, Unmeldable)| Left {
                first: [part.first(), None],
                reason: reason(why),
                gain: None,
            };
            parts.iter().map(alone).collect()
        }
    }
}

/// Looks at each branch, those around others first, and melds regions that have no block in common; how many pairs of
/// subgraphs were melded, and what was left.
fn sweep<'m>(context: &mut Context<'m>, options: Options, looks: &mut usize) -> (usize, Vec<Left<'m>>) {
    let (flow, dominators, post, loops) =
        (context.flow(), context.dominators(), context.post_dominators(), context.loops());
    let analyses = region::Analyses { flow: &flow, dominators: &dominators, post: &post };
    let costs = context.costs();
    let whole = plan::busy_with(context);
    let mut changed: FxHashSet<Block> = FxHashSet::default();
    let (mut left, waits) = (Vec::new(), context.waits());
    let mut melded = 0;
    for &node in DepthFirst::of(flow.graph()).preorder() {
        // What was melded before may have new blocks behind a region that was not: its turn comes in the next sweep.
        let is_known = |block: Block<'m>| {
            !changed.contains(&block) && block.terminator().successors().into_iter().all(|to| flow.find(to).is_some())
        };
        if !is_known(flow.block(node)) {
            continue;
        }
        let found = region::Region::at(&analyses, node);
        let uniform = options.only_divergent && context.lanes_stay_together_at(flow.block(node));
        if !uniform {
            left.extend(unmeldable(&found.left));
        }
        let Some(region) = found.region.filter(|region| region.blocks().all(is_known)) else { continue };
        // Each region that holds others looks at their blocks again.
        *looks += region.blocks().count();
        if *looks > MOST_LOOKS {
            left.push(Left { first: [Some(region.head.terminator()), None], reason: Reason::MeldTooLarge, gain: None });
            break;
        }
        let reason = match () {
            () if uniform => Some(Reason::LanesAgree),
            () if options.threshold >= 0 && region.has_versions(&flow, &loops) => Some(Reason::VersionsOfCode),
            () => None,
        };
        if let Some(reason) = reason {
            left.push(Left { first: [Some(region.head.terminator()), None], reason, gain: None });
            continue;
        }
        let callees = callees(&region, context);
        let depth = loops.depth(node);
        let weights =
            plan::Weights { flow: &flow, loops: &loops, dominators: &dominators, callees: &callees, depth, whole };
        let (mut taken, mut behind) = (Vec::new(), [0, 0]);
        let candidates = pairs::choose(&region, &flow, costs, &callees, options);
        let mut known = plan::Known::default();
        let places: Vec<[usize; 2]> = candidates.iter().map(|candidate| candidate.places).collect();
        for (number, candidate) in candidates.into_iter().enumerate() {
            let first = [0, 1].map(|side| {
                let block = region.paths[side][candidate.places[side]].blocks[0];
                block.instructions().into_iter().find(|i| !i.is_phi())
            });
            let around = plan::Around {
                is_first: taken.is_empty(),
                known: std::mem::take(&mut known),
                goes_on: places.get(number + 1).is_some_and(|next| *next == candidate.places.map(|place| place + 1)),
            };
            let plan = plan::plan(&region, &candidate, &weights, around, costs, options);
            let gain = plan.melding.saved;
            if plan.melding.pairs == 0 {
                continue;
            }
            // Whoever waits on one side alone may wait for lanes that are held where both meet.
            let around = around_pair(&analyses, &region, candidate.places, behind);
            let before = around.iter().flat_map(|[before, _]| before).flat_map(|block| block.instructions());
            if before.chain(plan.apart()).any(|i| waits.may_wait(i)) {
                left.push(Left { first, reason: Reason::WaitsApart, gain: None });
                continue;
            }
            if waits.any() && holds_up(&region, candidate.places, &plan, &around, &waits) {
                left.push(Left { first, reason: Reason::HeldUp, gain: None });
                continue;
            }
            let gains = plan.saved > MARGIN && plan.saved * LEAST_SHARE > plan.issued[0];
            if !gains && options.threshold >= 0 {
                left.push(Left { first, reason: Reason::MeldWithoutProfit(plan.melding), gain: Some(gain) });
                continue;
            }
            let places = first.map(|i| i.and_then(|i| i.place())).to_vec();
            context.remark("subgraphs".to_owned(), places, Reason::Melded(plan.melding), Some(gain));
            known.clone_from(&plan.known);
            behind = candidate.places.map(|place| place + 1);
            taken.push((candidate, plan));
        }
        if !taken.is_empty() {
            changed.extend(region.blocks());
        }
        let mut replaced = FxHashMap::default();
        for (candidate, plan) in taken {
            surgery::meld(&region, candidate, plan, &flow, &mut replaced, context);
            melded += 1;
        }
    }
    (melded, left)
}

/// Of each side: the blocks in front of a pair of subgraphs, from the branch on or from the pair that was taken before,
/// and those behind it, up to where the sides would meet otherwise.
fn around_pair<'m>(
    analyses: &region::Analyses<'_, 'm>,
    region: &region::Region<'m>,
    places: [usize; 2],
    behind: [usize; 2],
) -> [[Vec<Block<'m>>; 2]; 2] {
    let (flow, graph) = (analyses.flow, analyses.flow.graph());
    let head = flow.node(region.head);
    let ends: Vec<NodeId> = analyses.post.ipdom(head).into_iter().chain([head]).collect();
    [0, 1].map(|side| {
        let path = &region.paths[side];
        let own = &path[places[side]];
        let taken = behind[side].checked_sub(1).map_or(&[][..], |last| &path[last].blocks);
        let begins: Vec<NodeId> =
            taken.iter().chain(&own.blocks).map(|&block| flow.node(block)).chain([head]).collect();
        let before = reached(graph.predecessors(own.entry), &begins, |node| graph.predecessors(node));
        let after = reached(&[own.exit], &ends, |node| graph.successors(node));
        [before, after].map(|nodes| nodes.into_iter().map(|node| flow.block(node)).collect())
    })
}

/// Whether lanes could hold each other up where both sides meet for a pair of subgraphs, or in it.
fn holds_up<'m>(
    region: &region::Region<'m>,
    places: [usize; 2],
    plan: &plan::Plan<'m>,
    around: &[[Vec<Block<'m>>; 2]; 2],
    waits: &InFunction<'m>,
) -> bool {
    let alone: FxHashSet<Instruction<'m>> = plan.apart().collect();
    let apart = waits.code(alone.iter().copied());
    let own = [0, 1].map(|side| &region.paths[side][places[side]].blocks);
    let paired = own.into_iter().flatten().flat_map(|block| block.instructions()).filter(|i| !alone.contains(i));
    let loops = own.map(|blocks| waits.loops(blocks.iter().copied()));
    let goes_on_together = [0, 1].map(|side| region.paths[side][places[side]].exit);
    let shared = if goes_on_together[0] == goes_on_together[1] { &around[0][1][..] } else { &[] };
    let common = waits.code(paired) | loops[0] | loops[1] | waits.blocks(shared.iter().copied());
    let [front, behind] = [0, 1].map(|end| [0, 1].map(|side| waits.blocks(around[side][end].iter().copied()) | apart));
    Code::holds_up(front, common, behind)
}

/// What each function that a region's calls run takes.
fn callees<'m>(region: &region::Region<'m>, context: &mut Context<'m>) -> FxHashMap<Value<'m>, Cost> {
    let calls = region.blocks().flat_map(Block::instructions).filter_map(Instruction::callee);
    let called: FxHashSet<Value<'m>> =
        calls.filter(|callee| !callee.is_intrinsic() && !callee.is_inline_assembly()).collect();
    called.into_iter().map(|callee| (callee, context.cost_of_call(callee))).collect()
}
