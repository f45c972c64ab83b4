//! Which loads see memory that no thread writes between two barriers.
//!
//! ```c
//! if (id == 0) count = next();            // written between these barriers
//! pthread_barrier_wait(&all);
//! for (int i = 0; i < count; i++) …       // and read between those: the same for all threads
//! pthread_barrier_wait(&all);
//! ```
//!
//! All threads that wait at one barrier go on together. So while one of them is between two barriers, the others have
//! passed the same call of the barrier, if the path from barrier to barrier is the same for all: every branch that
//! decides whether a barrier is reached is uniform. Then a load gives the same to all threads if no store to that
//! memory can be reached from that call without another barrier in between. Paths through callees are followed, and
//! return to every place that calls.
//!
//! This applies to programs that start threads once, on one routine, which main may run as well; with one barrier, set
//! up once. A write after the first start, by code that threads do not run, counts as happening at any time.
//!
//! *Assumption*: a barrier at which all threads wait equally often is one of all of them. Its number is not looked at.

use flowgraph::{ControlDependence, Loops, NodeId, PostDominators};
use rustc_hash::{FxHashMap, FxHashSet};

use super::MemoryFacts;
use super::points::Class;
use crate::flow::Flow;
use crate::llvm::{Function, Instruction, Module, Opcode, Value};
use crate::spmd::sources::{Sources, runs_once};

/// Calls that wait for all threads of a team.
const TEAM: [&str; 2] = ["__kmpc_barrier", "GOMP_barrier"];

/// More barriers than these are not looked at: each is a walk over the code.
const MOST_BARRIERS: usize = 64;

/// A run of instructions without a barrier or a call of the module's functions in between.
struct Segment {
    next: Vec<usize>,
    writes: Vec<Class>,
}

/// The code that threads run, cut at barriers.
struct Cut<'m> {
    segments: Vec<Segment>,
    /// The segment of each instruction.
    at: FxHashMap<Instruction<'m>, usize>,
    /// Where control goes on behind a barrier, and where threads begin.
    sources: Vec<usize>,
}

/// The loads that see what nobody writes between two barriers. `is_uniform` tells of a block's branch whether all
/// threads go one way there.
pub(crate) fn quiet_loads<'m>(
    memory: &MemoryFacts<'m>,
    module: &'m Module,
    whole: bool,
    sources: &Sources<'m>,
    is_uniform: &dyn Fn(Function<'m>, NodeId) -> bool,
) -> FxHashSet<Instruction<'m>> {
    loads(memory, module, whole, sources, is_uniform).unwrap_or_default()
}

fn loads<'m>(
    memory: &MemoryFacts<'m>,
    module: &'m Module,
    whole: bool,
    sources: &Sources<'m>,
    is_uniform: &dyn Fn(Function<'m>, NodeId) -> bool,
) -> Option<FxHashSet<Instruction<'m>>> {
    let routine = one_generation(whole, sources)?;
    if !memory.phases.all_known() || !has_one_barrier(module) {
        return None;
    }
    let functions: Vec<Function<'m>> =
        module.functions().into_iter().filter(|f| memory.phases.is_run_by_threads(*f)).collect();
    let flows: FxHashMap<Function<'m>, Flow<'m>> = functions.iter().map(|&f| (f, Flow::of(f))).collect();
    if !is_aligned(&functions, &flows, is_uniform) {
        return None;
    }
    let mut cut = cut(&functions, &flows, routine)?;
    let elsewhere = also_run_elsewhere(memory, module, routine);
    let mut spoilt: FxHashSet<Class> = FxHashSet::default();
    for (write, class) in memory.points.late_writes() {
        match cut.at.get(&write) {
            Some(&segment) if !write.block().is_some_and(|b| elsewhere.contains(&b.function())) => {
                cut.segments[segment].writes.push(class);
            }
            _ => _ = spoilt.insert(class),
        }
    }
    let mut noisy: Vec<FxHashSet<Class>> = vec![FxHashSet::default(); cut.segments.len()];
    let mut reached = vec![false; cut.segments.len()];
    for &source in &cut.sources {
        let interval = cut.from(source);
        let written: FxHashSet<Class> =
            interval.iter().flat_map(|&segment| &cut.segments[segment].writes).copied().collect();
        for segment in interval {
            noisy[segment].extend(&written);
            reached[segment] = true;
        }
    }
    let is_quiet = |load: &Instruction<'m>, segment: usize| {
        let class = memory.points.class_of(load.operand(0));
        reached[segment] && class.is_some_and(|class| !spoilt.contains(&class) && !noisy[segment].contains(&class))
    };
    let all = cut.at.iter().filter(|(load, _)| load.opcode() == Opcode::LLVMLoad);
    let plain = all.filter(|(load, _)| !load.is_volatile() && !load.is_atomic_access());
    Some(plain.filter(|(load, segment)| is_quiet(load, **segment)).map(|(load, _)| *load).collect())
}

/// The routine that all threads run, where they are started once: then all that run it wait at the same barriers.
fn one_generation<'m>(whole: bool, sources: &Sources<'m>) -> Option<Function<'m>> {
    let routine = sources.starts.first()?.runs;
    let shared = sources.starts.first()?.shared;
    if sources.roots().any(|root| root != routine) || (shared && sources.starts.len() > 1) {
        return None;
    }
    let (users, complete) = routine.as_value().users_in_code();
    let starts = |call: &Instruction<'m>| sources.starts.iter().any(|start| start.call == *call);
    for user in users {
        let block = user.block()?;
        let flow = Flow::of(block.function());
        let loops = Loops::of(flow.graph());
        // Threads that start when others have ended, or when the routine was run, are another generation.
        let ends = |call: &Instruction<'m>| {
            call.calls("pthread_join") || callee(*call).is_some_and(|callee| callee == routine || may_join(callee))
        };
        let ended = calls_of([block.function()]).filter(ends).filter(|call| !starts(call));
        if ended.into_iter().any(|call| leads_to(&flow, call, &starts)) {
            return None;
        }
        let starts = starts(&user);
        let around = loops.innermost(flow.node(block));
        // Threads are started in one loop, and a team by one call; main runs the routine once.
        let often = around.is_some_and(|id| !starts || shared || loops.parent(id).is_some());
        if often || !runs_once(block.function(), whole, sources) || block.function() == routine {
            return None;
        }
    }
    complete.then_some(routine)
}

/// Whether a function, or one that it calls, waits for threads to end.
fn may_join(function: Function<'_>) -> bool {
    let all = reached(calls_of([function])).into_iter().chain([function]);
    calls_of(all).any(|call| call.calls("pthread_join"))
}

/// Whether control may come from a call to one that is asked for.
fn leads_to<'m>(flow: &Flow<'m>, call: Instruction<'m>, asked: &dyn Fn(&Instruction<'m>) -> bool) -> bool {
    let Some(block) = call.block() else { return true };
    let behind = block.instructions().into_iter().skip_while(|other| *other != call).skip(1);
    if behind.into_iter().any(|other| asked(&other)) {
        return true;
    }
    let mut seen = vec![false; flow.blocks().len()];
    let mut todo: Vec<NodeId> = flow.graph().successors(flow.node(block)).to_vec();
    while let Some(node) = todo.pop() {
        if !std::mem::replace(&mut seen[node.index()], true) {
            if flow.block(node).instructions().iter().any(asked) {
                return true;
            }
            todo.extend(flow.graph().successors(node));
        }
    }
    false
}

/// Whether barriers of a program are teams' own, or one variable that is set up once.
fn has_one_barrier(module: &Module) -> bool {
    let mut places: Vec<Value<'_>> = Vec::new();
    let (mut set_up, mut teams) = (0, 0);
    for call in calls_of(module.functions()) {
        let name = call.callee().filter(|callee| callee.is_function()).map(Value::name).unwrap_or_default();
        match (name.as_str(), call.arguments().first()) {
            ("pthread_barrier_init", Some(&place)) => {
                set_up += 1;
                places.push(place);
            }
            ("pthread_barrier_wait", Some(&place)) => places.push(place),
            (name, _) if TEAM.contains(&name) => teams += 1,
            _ => {}
        }
    }
    places.dedup();
    match places.as_slice() {
        [] => teams > 0,
        [place] => set_up == 1 && teams == 0 && place.is_global_variable(),
        _ => false,
    }
}

fn calls_of<'m>(functions: impl IntoIterator<Item = Function<'m>>) -> impl Iterator<Item = Instruction<'m>> {
    let instructions = functions.into_iter().flat_map(Function::blocks).flat_map(crate::llvm::Block::instructions);
    instructions.filter(|instruction| instruction.opcode() == Opcode::LLVMCall)
}

/// The functions that calls lead to, through each other's calls as well.
fn reached<'m>(from: impl Iterator<Item = Instruction<'m>>) -> FxHashSet<Function<'m>> {
    let mut todo: Vec<Function<'m>> = from.filter_map(callee).collect();
    let mut found = FxHashSet::default();
    while let Some(function) = todo.pop() {
        if found.insert(function) {
            todo.extend(calls_of([function]).filter_map(callee));
        }
    }
    found
}

fn is_barrier(call: Instruction<'_>) -> bool {
    call.calls("pthread_barrier_wait") || TEAM.iter().any(|name| call.calls(name))
}

/// Whether all threads reach the same barriers in the same order: no branch parts them that decides whether a barrier,
/// or a function that has one, is reached.
fn is_aligned<'m>(
    functions: &[Function<'m>],
    flows: &FxHashMap<Function<'m>, Flow<'m>>,
    is_uniform: &dyn Fn(Function<'m>, NodeId) -> bool,
) -> bool {
    let mut waits: FxHashSet<Function<'m>> = FxHashSet::default();
    let has_wait = |call: &Instruction<'m>, waits: &FxHashSet<Function<'m>>| {
        is_barrier(*call) || callee(*call).is_some_and(|callee| waits.contains(&callee))
    };
    loop {
        let more: Vec<Function<'m>> = functions
            .iter()
            .filter(|f| !waits.contains(f) && calls_of([**f]).any(|call| has_wait(&call, &waits)))
            .copied()
            .collect();
        if more.is_empty() {
            break;
        }
        waits.extend(more);
    }
    for &function in &waits {
        let flow = &flows[&function];
        let exits: Vec<NodeId> = (0..flow.blocks().len() as u32)
            .map(NodeId)
            .filter(|&node| flow.block(node).terminator().opcode() == Opcode::LLVMRet)
            .collect();
        let depends = ControlDependence::of(flow.graph(), &PostDominators::of(flow.graph(), &exits));
        let calls = calls_of([function]).filter(|call| has_wait(call, &waits));
        let mut todo: Vec<NodeId> = calls.filter_map(|call| call.block().map(|block| flow.node(block))).collect();
        let mut seen = vec![false; flow.blocks().len()];
        while let Some(node) = todo.pop() {
            if !std::mem::replace(&mut seen[node.index()], true) {
                let branches = depends.branches(node);
                if branches.iter().any(|&branch| !is_uniform(function, branch)) {
                    return false;
                }
                todo.extend(branches);
            }
        }
    }
    // A function that waits and calls itself could be at different depths.
    !waits.iter().any(|&function| reached(calls_of([function])).contains(&function))
}

/// Whether control may go where the graph does not say, or code runs that another module may replace.
fn leaves_the_path(call: Instruction<'_>) -> bool {
    let Some(callee) = call.callee() else { return true };
    let replaced = callee.as_defined_function().is_some_and(Function::may_be_replaced);
    replaced || (callee.is_function() && callee.name().contains("jmp"))
}

fn callee<'m>(call: Instruction<'m>) -> Option<Function<'m>> {
    call.callee().and_then(Value::as_defined_function).filter(|f| !f.may_be_replaced())
}

/// Cuts what threads run.
fn cut<'m>(
    functions: &[Function<'m>],
    flows: &FxHashMap<Function<'m>, Flow<'m>>,
    routine: Function<'m>,
) -> Option<Cut<'m>> {
    let mut cut = Cut { segments: Vec::new(), at: FxHashMap::default(), sources: Vec::new() };
    // By function and block: its first segment and its last.
    let mut ends: FxHashMap<(Function<'m>, usize), (usize, usize)> = FxHashMap::default();
    let mut calls: Vec<(usize, Function<'m>, usize)> = Vec::new();
    for &function in functions {
        for (b, block) in flows[&function].blocks().iter().enumerate() {
            let first = cut.segment();
            let mut last = first;
            for instruction in block.instructions() {
                cut.at.insert(instruction, last);
                if matches!(instruction.opcode(), Opcode::LLVMInvoke | Opcode::LLVMCallBr) {
                    return None;
                }
                if instruction.opcode() != Opcode::LLVMCall {
                    continue;
                }
                if leaves_the_path(instruction) {
                    return None;
                }
                if is_barrier(instruction) {
                    last = cut.segment();
                    cut.sources.push(last);
                } else if let Some(callee) = callee(instruction) {
                    let behind = cut.segment();
                    calls.push((last, callee, behind));
                    last = behind;
                }
            }
            ends.insert((function, b), (first, last));
        }
    }
    for &function in functions {
        let flow = &flows[&function];
        for b in 0..flow.blocks().len() {
            let next = flow.graph().successors(NodeId(b as u32)).iter();
            let next: Vec<usize> = next.map(|node| ends[&(function, node.index())].0).collect();
            cut.segments[ends[&(function, b)].1].next.extend(next);
        }
    }
    for (from, callee, behind) in calls {
        let flow = flows.get(&callee)?;
        cut.segments[from].next.push(ends.get(&(callee, 0))?.0);
        for (b, block) in flow.blocks().iter().enumerate() {
            if block.terminator().opcode() == Opcode::LLVMRet {
                cut.segments[ends[&(callee, b)].1].next.push(behind);
            }
        }
    }
    cut.sources.push(ends.get(&(routine, 0))?.0);
    (2..=MOST_BARRIERS).contains(&cut.sources.len()).then_some(cut)
}

impl Cut<'_> {
    fn segment(&mut self) -> usize {
        self.segments.push(Segment { next: Vec::new(), writes: Vec::new() });
        self.segments.len() - 1
    }

    /// What is reached without a barrier.
    fn from(&self, source: usize) -> Vec<usize> {
        let mut seen = vec![false; self.segments.len()];
        let (mut todo, mut reached) = (vec![source], Vec::new());
        while let Some(segment) = todo.pop() {
            if !std::mem::replace(&mut seen[segment], true) {
                reached.push(segment);
                todo.extend(&self.segments[segment].next);
            }
        }
        reached
    }
}

/// Functions that threads run, and others as well after the first start, not through the routine.
fn also_run_elsewhere<'m>(
    memory: &MemoryFacts<'m>,
    module: &'m Module,
    routine: Function<'m>,
) -> FxHashSet<Function<'m>> {
    let others = module.functions().into_iter().filter(|f| !memory.phases.is_run_by_threads(*f));
    reached(calls_of(others).filter(|call| callee(*call) != Some(routine)))
}
