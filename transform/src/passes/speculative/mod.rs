//! `speculative`: the marks of `include/lockstep.h` on their way through the compiler.
//!
//! ```text
//! LOCKSTEP_PREDICT(inner);                       b0: join
//! for (…)                                        b0: gives way (of the branch that ends the inner loop)
//!     for (…) { LOCKSTEP_RECONVERGE(inner); … }  b0: wait, rejoin
//! …                                              b0: cancel; b0: meet behind
//! ```
//!
//! It runs after the optimiser, which may have copied marks or removed them. In code for a GPU it has lanes wait; in
//! code for a processor it reports what is left of each mark: where a compiler for GPUs would put operations on
//! barriers, by Damani et al., *Speculative reconvergence for improved SIMT efficiency* (CGO 2020), section 4.2.
//! `lockstep dump --barriers marks` does the same for the machine code, with the same library
//! ([`flowgraph::CollectingRegion`]) on another graph.
//!
//! # Steps
//! 1. Cut blocks after calls, as replays do: lanes that return from a call may wait there.
//! 2. Gather the marks of each function by name; calls count that lead to a function through others. Copies of a place
//!    that lanes reach one after another are one place, at which they meet once ([`flowgraph::copies_of_a_point`]); a
//!    function that was inlined twice has two. Marks whose counterpart is gone or cannot be reached are refused, with a
//!    remark.
//! 3. For a processor: place the operations, check them by the paper's equations, and report them.
//! 4. For a GPU: take what was typed as `--predict` and what [`detection`] finds, too; make one of places that lanes
//!    reach from each other; have each region take [`turns`]; and take the marks out.
//!
//! # Why the meaning is kept
//! For a processor no code is changed: marks are instructions that make no code, and code generation keeps them where
//! they are. For a GPU, see [`turns`].
//!
//! # Limitation
//! If several copies lie on paths past each other, as jump threading makes them, lanes are collected at one only. The
//! barriers of branches are at immediate post-dominators (the placement `binary`). For a GPU no lanes wait where a
//! function begins: `fcs` makes one call of several.

mod detection;
mod marks;
mod pieces;
mod turns;
mod warp;

use flowgraph::{
    BarrierAction, Collecting, CollectingRegion, Copies, Dominators, NodeId, PostDominators, barrier_faults,
    copies_of_a_point, points_apart,
};
use parameters::{Parameter, Settings, Values};
use rustc_hash::FxHashMap;

use self::detection::ByTrace;
use self::marks::{Mark, MarkKind};
use self::pieces::Pieces;
use self::turns::{Made, Wanted};
use self::warp::Warp;
use crate::context::Context;
use crate::llvm::{Block, Function, Instruction, Module, Opcode, Tuning, Value};
use crate::pass::{Pass, Run};
use crate::remark::{BarrierPlace, MarkFault};
use crate::{Place, PredictedPlace, Reason};

/// How conflicts with the barriers of branches are resolved; and places that are found without marks.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "deconflict",
        values: Values::OneOf(&["dynamic", "static"]),
        default: 0,
        help: "what happens to branches whose barriers conflict, in the report on a processor's code: waiting lanes leave \
               those barriers, or the branches get no barrier",
    },
    Parameter {
        name: "detect",
        values: Values::YesNo,
        default: 0,
        help: "whether places without marks are looked for: divergent loops and branches in loops",
    },
    Parameter {
        name: "gain",
        values: Values::Number(0, 1_000_000),
        // Of eight benchmarks what is predicted was up to a fifth off an H200's in seven (docs/speculation.md).
        default: 120,
        help: "the least that such a place gains by estimate: what a warp issues before / after, in percent",
    },
    Parameter {
        name: "risk",
        values: Values::Number(0, 1_000_000),
        default: 1,
        help: "the most that waiting at such a place may cost where no trace (--trips) says how lanes differ: what a warp \
               issues more if they do not, in percent",
    },
];

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "speculative",
    summary: "has lanes wait for each other at marks, in code for GPUs; for a processor it changes nothing and says where \
              a GPU's compiler would have them wait",
    source: "Damani et al., CGO 2020",
    parameters: PARAMETERS,
    structures: false,
    run: Run::Functions { before: Some(reduce), each: run, after: Some(say_what_is_nowhere) },
};

/// Has loops count by addresses, as code generation would: it would find no loops where lanes take turns.
fn reduce(module: &mut Module, settings: &Settings, places: &[PredictedPlace]) {
    let has_marks = || module.functions_to_optimise().into_iter().any(|function| !marks::of(function).is_empty());
    let is_asked = settings.number("detect") == 1 || !places.is_empty() || has_marks();
    if Warp::of(module) == Some(Warp::Nvidia) && is_asked {
        let passes = "function(loop-simplify,lcssa,loop(loop-reduce))";
        module.run_passes_for_gpu(passes, &Tuning::default()).expect("LLVM knows its own passes and this target");
    }
}

/// The trace says so.
const TOO_LITTLE: &str = "the turns of its lanes differ too little";

/// Has the lanes of a function wait at its marks and other places, or reports what is left of the marks.
fn run<'m>(function: &mut Function<'m>, context: &mut Context<'m>) {
    let function = *function;
    let warp = Warp::of(function.module());
    let marks = marks::of(function);
    let asked = typed(function, context);
    let mut detected = Vec::new();
    let least = context.settings().number("gain");
    let risk = context.settings().number("risk");
    let is_asked = context.settings().number("detect") == 1;
    let found = if is_asked { detection::places(context, least, risk) } else { Vec::new() };
    for found in found {
        let by_trace = found.by_trace.as_ref().map(|by_trace| by_trace.gain);
        if found.gain.max(by_trace.unwrap_or(0)) < least {
            continue;
        }
        let (name, place) = (found.pattern.to_owned(), pieces::place_of(&block_from(found.place)));
        let reason = match found.by_trace {
            Some(ByTrace { gain, bodies: [apart, together], at }) => {
                Reason::PlaceRan { gain, enough: found.enough, apart, together, at }
            }
            None => Reason::PlaceFound { gain: found.gain, enough: found.enough },
        };
        context.remark(name.clone(), vec![place.clone()], reason, None);
        let too_little = by_trace.filter(|gain| *gain < least).map(|_| TOO_LITTLE);
        if let Some(why) = found.why_not.or(too_little) {
            context.remark(name, vec![place], Reason::NoTurns(why), None);
            continue;
        }
        let wanted = Wanted { joins: Vec::new(), places: vec![found.place], enough: found.enough };
        detected.push(Asked { name, places: vec![place], wanted });
    }
    let nobody_waits = asked.is_empty() && detected.is_empty() || warp.is_none();
    if marks.is_empty() && nobody_waits {
        return;
    }
    if warp.is_some() {
        begin_with_nothing(function);
    }
    let marked = Marked::new(function, warp.is_some(), context).look_at(&marks);
    let Some(warp) = warp else { return };
    let mut made = Made::default();
    for Asked { name, places, wanted } in grouped(marked.into_iter().chain(asked), context).into_iter().chain(detected)
    {
        let taken = match () {
            () if warp.is_too_old_for(function) => Err("lanes cannot ask each other in a version of PTX before 6.2"),
            () if wanted.places.iter().all(|place| detection::lanes_meet(context, *place)) => Err(detection::MEET),
            () => turns::take(context, warp, wanted, &mut made),
        };
        let reason = taken.map_or_else(Reason::NoTurns, Reason::TakesTurns);
        context.remark(name, places, reason, None);
    }
    marks.iter().for_each(|mark| mark.at.erase());
}

/// Places of one region as one.
fn grouped<'m>(all: impl Iterator<Item = Asked<'m>>, context: &mut Context<'m>) -> Vec<Asked<'m>> {
    let mut groups: Vec<Asked<'m>> = Vec::new();
    for Asked { name, places, wanted } in all {
        let mut left = Some(wanted);
        for group in &mut groups {
            let Some(wanted) = left.take() else { break };
            match group.wanted.takes(wanted, context) {
                Ok(()) => {
                    group.name = format!("{} and {name}", group.name);
                    group.places.extend(places.iter().cloned());
                }
                Err(wanted) => left = Some(wanted),
            }
        }
        groups.extend(left.map(|wanted| Asked { name, places, wanted }));
    }
    groups
}

/// The places of a function that were typed: of each the block in which the first instruction of the line is.
fn typed<'m>(function: Function<'m>, context: &mut Context<'m>) -> Vec<Asked<'m>> {
    let all: Vec<Instruction<'m>> = function.blocks().into_iter().flat_map(Block::instructions).collect();
    let lines: Vec<(Instruction<'m>, Place)> = all.into_iter().filter_map(|i| Some((i, i.place()?))).collect();
    let mut asked = Vec::new();
    for (typed, is_met) in context.places() {
        let Some((at, place)) = lines.iter().find(|(_, place)| typed.is_at(&place.file, place.line)) else { continue };
        let first = at.block().expect("it is in a block").first_insertion_point();
        let wanted = Wanted { joins: Vec::new(), places: vec![first], enough: typed.enough };
        asked.push(Asked { name: place.to_string(), places: vec![Some(place.clone())], wanted });
        *is_met = true;
    }
    asked
}

/// Says which of the places that were typed no function has.
fn say_what_is_nowhere<'m>(module: &'m Module, context: &mut Context<'m>) {
    let missed = context.places().iter().filter(|(_, is_met)| !is_met);
    let names: Vec<String> = missed.map(|(place, _)| format!("{}:{}", place.file, place.line)).collect();
    for name in names {
        context.remark_on_module(module.source_name(), name, Reason::NoTurns("no function has code of this line"));
    }
}

/// An instruction and what stands behind it in its block, without assembly, such as marks.
fn block_from(first: Instruction<'_>) -> Vec<Instruction<'_>> {
    let all = first.block().map(Block::instructions).unwrap_or_default();
    let is_assembly = |i: &Instruction<'_>| i.callee().is_some_and(Value::is_inline_assembly);
    all.into_iter().skip_while(|i| *i != first).filter(|i| !is_assembly(i)).collect()
}

/// Gives a function an entry without code besides the room it takes on the stack: blocks can be put before all others.
fn begin_with_nothing(function: Function<'_>) {
    let first = function.entry();
    let entry = first.insert_before("entry");
    let branch = entry.branch_to(first);
    for room in first.instructions().into_iter().filter(|i| i.opcode() == Opcode::LLVMAlloca) {
        if room.operands().iter().all(|size| size.is_constant()) {
            room.move_before(branch);
        }
    }
}

/// Places at which lanes are to wait.
struct Asked<'m> {
    name: String,
    places: Vec<Option<Place>>,
    wanted: Wanted<'m>,
}

/// A function with marks.
struct Marked<'m, 'a> {
    function: Function<'m>,
    pieces: Pieces<'m>,
    dominators: Dominators,
    post_dominators: PostDominators,
    /// By instruction of the module, for the report of a processor's code.
    numbers: FxHashMap<Instruction<'m>, usize>,
    is_for_gpu: bool,
    is_static: bool,
    barriers: usize,
    asked: Vec<Asked<'m>>,
    context: &'a mut Context<'m>,
}

/// A barrier: what lanes wait at, and how it is called.
struct Barrier<'m, 'a> {
    name: &'a str,
    points: Vec<NodeId>,
    /// The function at whose entry lanes wait, for one of calls.
    callee: Option<Function<'m>>,
    begins: &'a [&'a Mark<'m>],
}

impl<'m, 'a> Marked<'m, 'a> {
    fn new(function: Function<'m>, is_for_gpu: bool, context: &'a mut Context<'m>) -> Marked<'m, 'a> {
        let pieces = Pieces::of(function);
        let graph = pieces.graph();
        let exits: Vec<NodeId> = graph.nodes().filter(|node| graph.successors(*node).is_empty()).collect();
        let (dominators, post_dominators) = (Dominators::of(graph), PostDominators::of(graph, &exits));
        let all = if is_for_gpu { Vec::new() } else { function.module().instructions() };
        Marked {
            function,
            pieces,
            dominators,
            post_dominators,
            numbers: all.into_iter().zip(1..).collect(),
            is_for_gpu,
            is_static: context.settings().choice("deconflict") == 1,
            barriers: 0,
            asked: Vec::new(),
            context,
        }
    }

    /// Names in the order in which they are met, those of places first.
    fn look_at(mut self, marks: &[Mark<'m>]) -> Vec<Asked<'m>> {
        for is_function in [false, true] {
            let of_kind = |mark: &&Mark| (mark.kind == MarkKind::BeginsCalls) == is_function;
            let mut names: Vec<&str> = marks.iter().filter(of_kind).map(|mark| &*mark.name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let own: Vec<&Mark> = marks.iter().filter(of_kind).filter(|mark| mark.name == name).collect();
                let (waits, begins): (Vec<&Mark>, Vec<&Mark>) =
                    own.into_iter().partition(|mark| mark.kind == MarkKind::Waits);
                match is_function {
                    false => self.place(name, &begins, &waits),
                    true => self.calls(name, &begins),
                }
            }
        }
        self.asked
    }

    /// Marks of a place.
    fn place(&mut self, name: &str, begins: &[&Mark<'m>], waits: &[&Mark<'m>]) {
        let fault = match (begins, waits) {
            ([], _) => Some(MarkFault::NoPredict),
            (_, []) => Some(MarkFault::NoReconverge),
            _ => None,
        };
        if let Some(fault) = fault {
            let places = begins.iter().chain(waits).map(|mark| mark.at.place()).collect();
            return self.remark(name, places, Reason::MarkLost(fault));
        }
        let points = self.nodes(waits);
        let all = copies_of_a_point(self.pieces.graph(), &self.dominators, &points, &self.nodes(begins));
        let is_in =
            |node: NodeId| all.iter().any(|c| c.at == node || c.behind.contains(&node) || c.past.contains(&node));
        if let Some(lost) = points.iter().position(|point| !is_in(*point)) {
            self.remark(name, vec![waits[lost].at.place()], Reason::MarkLost(MarkFault::Unreachable));
        }
        for Copies { at, behind, past } in all {
            if !behind.is_empty() || !past.is_empty() {
                let reason = Reason::MarkCopied { behind: behind.len(), past: past.len() };
                self.remark(name, vec![self.place_of(at)], reason);
            }
            let mark = waits.iter().find(|mark| self.pieces.node(mark.at) == at).filter(|_| self.is_for_gpu);
            if let Some(mark) = mark {
                let enough = begins.iter().find_map(|mark| mark.threshold);
                let joins = begins.iter().map(|mark| mark.at).collect();
                let places = vec![self.place_of(at)];
                self.asked.push(Asked {
                    name: name.to_owned(),
                    places,
                    wanted: Wanted { joins, places: vec![mark.at], enough },
                });
            } else {
                self.barrier(&Barrier { name, points: vec![at], callee: None, begins });
            }
        }
    }

    /// Marks of a function.
    fn calls(&mut self, name: &str, begins: &[&Mark<'m>]) {
        if self.is_for_gpu {
            let places = begins.iter().map(|mark| mark.at.place()).collect();
            return self.remark(name, places, Reason::NoTurns("the pass fcs makes one call of several"));
        }
        let callees = marks::called(self.function, name);
        if callees.is_empty() {
            let places = begins.iter().map(|mark| mark.at.place()).collect();
            return self.remark(name, places, Reason::MarkLost(MarkFault::NoCall));
        }
        for (callee, calls) in callees {
            let points: Vec<NodeId> = calls.iter().map(|call| self.pieces.node(*call)).collect();
            let apart = points_apart(self.pieces.graph(), &points, &self.nodes(begins));
            if apart.is_empty() {
                let places = begins.iter().map(|mark| mark.at.place()).collect();
                self.remark(name, places, Reason::MarkLost(MarkFault::Unreachable));
            }
            for points in apart {
                self.barrier(&Barrier { name, points, callee: Some(callee), begins });
            }
        }
    }

    /// The operations on one barrier.
    fn barrier(&mut self, barrier: &Barrier<'m, '_>) {
        let (from, graph) = (self.nodes(barrier.begins), self.pieces.graph());
        let Some(region) = CollectingRegion::of(graph, &barrier.points, &from) else {
            let places = barrier.begins.iter().map(|mark| mark.at.place()).collect();
            return self.remark(barrier.name, places, Reason::MarkLost(MarkFault::Unreachable));
        };
        // Lanes wait for a function in the function itself, whose nodes are others.
        let waits: &[NodeId] = if barrier.callee.is_some() { &[] } else { region.points() };
        let threshold = barrier.begins.iter().find_map(|mark| mark.threshold);
        let how = Collecting { waits, threshold, is_static: self.is_static };
        let operations = region.operations(graph, how, |node| vec![self.post_dominators.ipdom(node)]);
        let faults = barrier_faults(graph, &operations, region.points(), true);
        assert!(faults.is_empty(), "the operations of {} are wrong: {operations:?}: {faults:?}", barrier.name);
        let number = self.barriers;
        self.barriers += 1;
        for (node, action) in operations {
            let (first, last) = self.pieces.ends(node);
            let own = barrier.begins.iter().find(|mark| self.pieces.node(mark.at) == node);
            let place = match (action, own) {
                (BarrierAction::Join, Some(mark)) => mark.at.place(),
                _ => self.place_of(node),
            };
            self.operation(barrier.name, number, action, place, [first, last]);
        }
        if let Some(first) = barrier.callee.and_then(|callee| callee.entry().first()) {
            let action = threshold.map_or(BarrierAction::Wait, BarrierAction::WaitFor);
            let callee = Pieces::of(first.block().expect("it is the first of a block").function());
            let (first, last) = callee.ends(callee.node(first));
            self.operation(barrier.name, number, action, callee.place_of(callee.node(first)), [first, last]);
        }
    }

    fn operation(
        &mut self,
        name: &str,
        barrier: usize,
        action: BarrierAction,
        place: Option<Place>,
        ends: [Instruction<'m>; 2],
    ) {
        let [first, last] = ends.map(|end| self.numbers[&end]);
        self.remark(name, vec![place], Reason::Barrier(BarrierPlace { barrier, action, first, last }));
    }

    fn nodes(&self, marks: &[&Mark<'m>]) -> Vec<NodeId> {
        marks.iter().map(|mark| self.pieces.node(mark.at)).collect()
    }

    fn place_of(&self, node: NodeId) -> Option<Place> {
        self.pieces.place_of(node)
    }

    fn remark(&mut self, name: &str, places: Vec<Option<Place>>, reason: Reason) {
        self.context.remark(name.to_owned(), places, reason, None);
    }
}
