//! What a pass gets besides the function: analyses, costs, settings. And what it leaves there: remarks, and what the
//! pipeline has to repair.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use flowgraph::{ControlDependence, Dominators, Graph, Loops, NodeId, PostDominators, Regions};
use parameters::{Parameter, Settings, Values};
use rustc_hash::FxHashSet;

use crate::alike;
use crate::cost::{Callees, Cost, CostModel};
use crate::flow::Flow;
use crate::llvm::{Block, Function, Slot, Value};
use crate::spmd::{self, Class, Program};
use crate::trips::{PredictedPlace, Trips};
use crate::waits::{InFunction, Waits};
use crate::{Reason, Remark, ssa};

/// The least profit of a pass.
pub(crate) const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    values: Values::Number(-1_000_000_000, 1_000_000_000),
    default: 1,
    help: "the least profit for which code is changed: fetches that a warp saves where its lanes part, less those \
         added",
};

/// Whether branches are left at which lanes stay together.
pub(crate) const ONLY_DIVERGENT: Parameter = Parameter {
    name: "only-divergent",
    values: Values::YesNo,
    default: 1,
    help: "whether branches are left alone at which no warp parts, by the divergence analysis of the module; if it \
           knows no thread number there, no branch is",
};

/// A branch whose paths a pass joined, and the block in which all of them come together.
#[derive(Clone, Copy)]
pub(crate) struct Joined<'m> {
    pub(crate) branch: Block<'m>,
    pub(crate) meets: Block<'m>,
}

/// What belongs to one run of one pass over one module; analyses are those of the function that the pass looks at.
pub struct Context<'m> {
    pass: &'static str,
    settings: Settings,
    costs: &'static dyn CostModel,
    trips: Option<Trips>,
    /// Where lanes are to wait, and whether such code was met.
    places: Vec<(PredictedPlace, bool)>,
    /// Whether what both sides of a branch end with is sunk behind the pass.
    sinks_behind: bool,
    function: Option<Function<'m>>,
    analyses: Analyses<'m>,
    callees: Callees<'m>,
    /// What divergence analysis says about the module as it was when a pass first asked.
    program: OnceCell<Option<Rc<Program<'m>>>>,
    has_threads: OnceCell<bool>,
    joined: Vec<Joined<'m>>,
    variables: Vec<Slot<'m>>,
    remarks: Vec<Remark>,
    waits: Rc<RefCell<Waits<'m>>>,
}

/// Analyses of one function at one state of its control flow.
#[derive(Default)]
struct Analyses<'m> {
    /// The number of the module's changes when they were made.
    changes: u64,
    flow: OnceCell<Rc<Flow<'m>>>,
    dominators: OnceCell<Rc<Dominators>>,
    post_dominators: OnceCell<Rc<PostDominators>>,
    control_dependence: OnceCell<Rc<ControlDependence>>,
    loops: OnceCell<Rc<Loops>>,
    regions: OnceCell<Rc<Regions>>,
}

/// The calls of a function that must not depend on more branches than before, such as barriers of GPUs: they are made
/// by lanes together, and with one branch more around them by other lanes together.
pub(crate) struct Convergent {
    /// Where they stand.
    blocks: Vec<NodeId>,
    /// Where there is one: the control flow, and where paths meet.
    around: Option<(Graph, Rc<PostDominators>)>,
}

impl Convergent {
    /// Those of the function that the pass looks at.
    pub(crate) fn of(context: &mut Context<'_>) -> Convergent {
        let flow = context.flow();
        let holds = |block: &&Block<'_>| block.instructions().into_iter().any(alike::is_convergent);
        let blocks: Vec<NodeId> = flow.blocks().iter().filter(holds).map(|block| flow.node(*block)).collect();
        let around = (!blocks.is_empty()).then(|| (flow.graph().clone(), context.post_dominators()));
        Convergent { blocks, around }
    }

    /// Whether one stands between a branch and where all of its paths meet again.
    pub(crate) fn is_parted_at(&self, branch: NodeId) -> bool {
        let Some((graph, post)) = &self.around else { return false };
        let meets = post.ipdom(branch);
        let mut seen: FxHashSet<NodeId> = meets.into_iter().collect();
        let mut open = graph.successors(branch).to_vec();
        while let Some(node) = open.pop() {
            if seen.insert(node) {
                if self.blocks.contains(&node) {
                    return true;
                }
                open.extend(graph.successors(node));
            }
        }
        false
    }
}

impl<'m> Context<'m> {
    pub(crate) fn new(pass: &'static str, settings: &Settings, costs: &'static dyn CostModel) -> Context<'m> {
        Context {
            pass,
            settings: settings.clone(),
            costs,
            trips: None,
            places: Vec::new(),
            sinks_behind: false,
            function: None,
            analyses: Analyses::default(),
            callees: Callees::by(costs),
            program: OnceCell::new(),
            has_threads: OnceCell::new(),
            joined: Vec::new(),
            variables: Vec::new(),
            remarks: Vec::new(),
            waits: Rc::default(),
        }
    }

    /// Has the pass know the trip counts of a trace.
    pub(crate) fn know(&mut self, trips: Option<Trips>) {
        self.trips = trips;
    }

    /// Has the pass know where lanes are to wait.
    pub(crate) fn predict(&mut self, places: &[PredictedPlace]) {
        self.places = places.iter().map(|place| (place.clone(), false)).collect();
    }

    /// Where lanes are to wait, and whether the pass met code of that place.
    pub(crate) fn places(&mut self) -> &mut Vec<(PredictedPlace, bool)> {
        &mut self.places
    }

    /// Has the pass know that LLVM sinks behind it what both sides of a branch end with.
    pub(crate) fn expect_sinking(&mut self, sinks: bool) {
        self.sinks_behind = sinks;
    }

    /// Whether LLVM sinks behind the pass what both sides of a branch end with.
    pub(crate) fn sinks_behind(&self) -> bool {
        self.sinks_behind
    }

    /// The trip counts of a trace, if one was given.
    pub(crate) fn trips(&self) -> Option<&Trips> {
        self.trips.as_ref()
    }

    /// Turns to a function.
    pub(crate) fn begin(&mut self, function: Function<'m>) {
        self.function = Some(function);
        self.analyses = Analyses::default();
    }

    /// Gives each use of the function a definition that dominates it, where the pass joined paths, and turns variables
    /// into values. The pipeline does so when the pass is done; a pass that looks at its own result does so itself.
    pub(crate) fn settle(&mut self) {
        let joined = std::mem::take(&mut self.joined);
        let variables = std::mem::take(&mut self.variables);
        if !joined.is_empty() || !variables.is_empty() {
            ssa::repair(self, &joined);
            ssa::promote(self, &variables);
        }
    }

    /// The remarks.
    pub(crate) fn finish(self) -> Vec<Remark> {
        self.remarks
    }

    fn function(&self) -> Function<'m> {
        self.function.expect("a pass asks about the function that it is given")
    }

    /// The analyses of the present control flow: those made before a change are thrown away here.
    fn analyses(&mut self) -> &Analyses<'m> {
        let changes = self.function().module().flow_changes();
        if self.analyses.changes != changes {
            self.analyses = Analyses { changes, ..Analyses::default() };
        }
        &self.analyses
    }

    /// The control flow.
    #[must_use]
    pub fn flow(&mut self) -> Rc<Flow<'m>> {
        let function = self.function();
        self.analyses().flow.get_or_init(|| Rc::new(Flow::of(function))).clone()
    }

    /// The dominators.
    #[must_use]
    pub fn dominators(&mut self) -> Rc<Dominators> {
        let flow = self.flow();
        self.analyses().dominators.get_or_init(|| Rc::new(Dominators::of(flow.graph()))).clone()
    }

    /// The post-dominators, where control leaves at returns, at calls that unwind further, and at `unreachable`.
    #[must_use]
    pub fn post_dominators(&mut self) -> Rc<PostDominators> {
        let flow = self.flow();
        let of = || {
            let leaves = |(_, block): &(usize, &Block<'m>)| block.terminator().successors().is_empty();
            let exits = flow.blocks().iter().enumerate().filter(leaves).map(|(i, _)| NodeId(i as u32));
            Rc::new(PostDominators::of(flow.graph(), &exits.collect::<Vec<_>>()))
        };
        self.analyses().post_dominators.get_or_init(of).clone()
    }

    /// Which branches decide about which blocks.
    #[must_use]
    pub fn control_dependence(&mut self) -> Rc<ControlDependence> {
        let (flow, post) = (self.flow(), self.post_dominators());
        self.analyses().control_dependence.get_or_init(|| Rc::new(ControlDependence::of(flow.graph(), &post))).clone()
    }

    /// The loops.
    #[must_use]
    pub fn loops(&mut self) -> Rc<Loops> {
        let flow = self.flow();
        self.analyses().loops.get_or_init(|| Rc::new(Loops::of(flow.graph()))).clone()
    }

    /// The parts with one way in and one way out.
    #[must_use]
    pub fn regions(&mut self) -> Rc<Regions> {
        let (flow, dominators, post) = (self.flow(), self.dominators(), self.post_dominators());
        self.analyses().regions.get_or_init(|| Rc::new(Regions::of(flow.graph(), &dominators, &post))).clone()
    }

    /// Whether all lanes that reach the branch of a block together are known to take the same side: by the divergence
    /// analysis of the module as it was when this was first asked.
    #[must_use]
    pub(crate) fn lanes_agree(&self, block: Block<'m>) -> bool {
        let function = self.function();
        let facts = self.program(function).and_then(|program| program.function(function));
        let condition = || block.terminator().condition();
        let class = facts.and_then(|f| f.branch(block).or_else(|| condition().and_then(|value| f.class(value))));
        class == Some(Class::Uniform)
    }

    /// What divergence analysis says about the whole module. It is of the code as it was when a pass first asked, so
    /// values, branches and accesses that were made later are not in it. None if no thread number is known: then only
    /// constants would be uniform.
    #[must_use]
    pub fn divergence(&self) -> Option<Rc<Program<'m>>> {
        let function = self.function();
        let known = self.thread_numbers_are_known();
        self.program(function).filter(|program| known && program.has_threads()).cloned()
    }

    /// As [`Context::lanes_agree`] for the lanes of each warp, where warps are runs of threads. What is made of it must
    /// be right for other warps, too.
    fn warps_agree(&self, block: Block<'m>) -> bool {
        let function = self.function();
        self.program(function).is_some_and(|program| program.agree_in_warps(block, function))
    }

    /// Whether lanes that are together never reach both of two blocks in one pass of their common branch: all take the
    /// same side there, and each block is on one side alone. False if no thread number is known. `flow` is that of the
    /// function, `dominators` are its.
    #[must_use]
    pub(crate) fn lanes_stay_together(&self, flow: &Flow<'m>, dominators: &Dominators, blocks: [Block<'m>; 2]) -> bool {
        let both = || -> Option<bool> {
            let [a, b] = blocks.map(|block| flow.find(block));
            let (a, b) = (a?, b?);
            let top = dominators.nearest_common(a, b)?;
            let (one, other) = (dominators.child_towards(top, a)?, dominators.child_towards(top, b)?);
            let behind = |way, node| flow.edge_dominates(dominators, top, way, node);
            Some(one != other && behind(one, a) && behind(other, b) && self.lanes_stay_together_at(flow.block(top)))
        };
        both().unwrap_or(false)
    }

    /// Whether all lanes of a warp that reach the branch of a block together take the same side. False if no thread
    /// number is known.
    #[must_use]
    pub(crate) fn lanes_stay_together_at(&self, block: Block<'m>) -> bool {
        self.thread_numbers_are_known() && (self.lanes_agree(block) || self.warps_agree(block))
    }

    /// Whether branches are left alone at which lanes stay together: a parameter of most passes.
    #[must_use]
    pub(crate) fn only_divergent(&self) -> bool {
        self.settings.number(ONLY_DIVERGENT.name) == 1
    }

    /// Whether the module says where threads get their numbers or start.
    fn thread_numbers_are_known(&self) -> bool {
        let module = self.function().module();
        *self.has_threads.get_or_init(|| spmd::has_thread_source(module))
    }

    fn program(&self, function: Function<'m>) -> Option<&Rc<Program<'m>>> {
        let options = spmd::Options { linked_with_others: true, ..spmd::Options::default() };
        let analyse = || Program::of(function.module(), &options).ok().map(Rc::new);
        self.program.get_or_init(analyse).as_ref()
    }

    /// The estimated cost of a call of this function: of its code as it was when this was first asked.
    #[must_use]
    pub(crate) fn cost_of_call(&mut self, callee: Value<'m>) -> Cost {
        self.callees.of(callee)
    }

    /// Where lanes of the function may wait for others.
    #[must_use]
    pub(crate) fn waits(&mut self) -> InFunction<'m> {
        let (flow, loops) = (self.flow(), self.loops());
        InFunction::of(&self.waits, &flow, &loops)
    }

    /// What code costs.
    #[must_use]
    pub fn costs(&self) -> &'static dyn CostModel {
        self.costs
    }

    /// The values of the pass's parameters.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The least profit, in fetches, for which code is changed: a parameter of most passes.
    #[must_use]
    pub fn threshold(&self) -> i64 {
        self.settings.number(THRESHOLD.name)
    }

    /// Records that all paths from a branch now meet in a block, though values may be used there that only some of them
    /// define: the pipeline carries these. Either may be erased later.
    pub fn joined(&mut self, branch: Block<'m>, meets: Block<'m>) {
        self.joined.push(Joined { branch, meets });
    }

    /// Lets the pipeline turn a variable into values when the pass is done with the function, and carry other values as
    /// [`Context::joined`] says. In a block that stores to it, loads come before the store, which is the only one.
    pub(crate) fn promote(&mut self, variable: Slot<'m>) {
        self.variables.push(variable);
    }

    /// A remark about the function that the pass looks at.
    pub fn remark(&mut self, subject: String, places: Vec<Option<crate::Place>>, reason: Reason, gain: Option<i64>) {
        let function = self.function().name();
        self.remarks.push(Remark { pass: self.pass, function, subject, places, reason, gain });
    }

    /// A remark about the module.
    pub(crate) fn remark_on_module(&mut self, source: String, subject: String, reason: Reason) {
        let (pass, places) = (self.pass, Vec::new());
        self.remarks.push(Remark { pass, function: source, subject, places, reason, gain: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::Module;

    const LOOP: &str = "define void @f(i1 %c) {
entry:
  br label %head
head:
  br i1 %c, label %body, label %end
body:
  br label %head
end:
  ret void
}
";

    fn context(function: Function<'_>) -> Context<'_> {
        let mut context = Context::new("none", &Settings::of(&[]), &crate::cost::X86_64);
        context.begin(function);
        context
    }

    #[test]
    fn analyses_are_made_once_as_long_as_the_control_flow_stays() {
        let module = Module::parse(LOOP.as_bytes(), "loop.ll").unwrap();
        let function = module.functions()[0];
        let mut context = context(function);
        let before = (context.flow(), context.dominators(), context.post_dominators(), context.control_dependence());
        let parts = (context.loops(), context.regions());
        // A change that adds or removes no edge leaves the analyses valid.
        let slot = function.add_slot(function.truth_type());
        slot.store_before(function.truth(true), function.blocks()[2].terminator());
        assert!(Rc::ptr_eq(&before.0, &context.flow()) && Rc::ptr_eq(&before.1, &context.dominators()));
        assert!(Rc::ptr_eq(&before.2, &context.post_dominators()));
        assert!(Rc::ptr_eq(&before.3, &context.control_dependence()));
        assert!(Rc::ptr_eq(&parts.0, &context.loops()) && Rc::ptr_eq(&parts.1, &context.regions()));
        assert_eq!(
            (parts.0.count(), before.2.ipdom(NodeId(1)), before.1.idom(NodeId(3))),
            (1, Some(NodeId(3)), Some(NodeId(1)))
        );
    }

    #[test]
    fn divergence_is_analysed_once_and_only_where_threads_have_numbers() {
        let module = Module::parse(LOOP.as_bytes(), "loop.ll").unwrap();
        assert!(context(module.functions()[0]).divergence().is_none());
        let text = "declare i32 @omp_get_thread_num()
define i1 @f() {
  %id = call i32 @omp_get_thread_num()
  %c = icmp ult i32 %id, 3
  ret i1 %c
}";
        let module = Module::parse(text.as_bytes(), "threads.ll").unwrap();
        let function = module.functions()[0];
        let context = context(function);
        let program = context.divergence().unwrap();
        assert!(Rc::ptr_eq(&program, &context.divergence().unwrap()));
        let classes: Vec<_> = function.blocks()[0]
            .instructions()
            .iter()
            .filter_map(|i| program.function(function)?.class(i.as_value()))
            .collect();
        assert_eq!(classes, [spmd::Class::Affine, spmd::Class::Divergent]);
    }

    #[test]
    fn every_change_of_the_control_flow_throws_the_analyses_away() {
        type Change = (&'static str, fn(Function<'_>));
        let changes: [Change; 7] = [
            ("an edge", |f| f.blocks()[2].terminator().set_successor(0, f.blocks()[3])),
            ("all edges into a block", |f| f.blocks()[2].move_entries_to(f.blocks()[3])),
            ("a new block", |f| _ = f.add_block("new")),
            ("a block before another", |f| _ = f.blocks()[3].insert_before("new")),
            ("the order", |f| f.blocks()[2].move_after(f.blocks()[3])),
            ("a jump that is gone", |f| f.blocks()[2].terminator().erase()),
            ("a jump that is new", |f| _ = f.blocks()[2].branch_to(f.blocks()[3])),
        ];
        for (what, change) in changes {
            let module = Module::parse(LOOP.as_bytes(), "loop.ll").unwrap();
            let before = module.flow_changes();
            change(module.functions()[0]);
            assert!(module.flow_changes() > before, "{what}");
        }
        let module = Module::parse(LOOP.as_bytes(), "loop.ll").unwrap();
        let mut context = context(module.functions()[0]);
        assert_eq!(context.loops().count(), 1);
        changes[0].1(module.functions()[0]);
        assert_eq!((context.loops().count(), context.dominators().idom(NodeId(3))), (0, Some(NodeId(1))));
    }
}
