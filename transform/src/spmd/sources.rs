//! Where threads start, and where they get their numbers.

use divergence::{Fact, Form};
use flowgraph::{Loops, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::iterations;
use super::options::{MARK, Machine, Options};
use crate::flow::Flow;
use crate::llvm::{Function, Instruction, Module, Opcode, Value};

/// A call that starts threads.
pub(super) struct Start<'m> {
    /// The function that has the call.
    pub(super) within: Function<'m>,
    pub(super) call: Instruction<'m>,
    /// What the threads run.
    pub(super) runs: Function<'m>,
    /// Arguments of the call by parameter of the function; none is unknown.
    pub(super) passes: Vec<Option<u32>>,
    /// Whether all threads get the same arguments.
    pub(super) shared: bool,
}

impl<'m> Start<'m> {
    /// What the thread gets, where that is one value.
    pub(super) fn passed(&self) -> Option<Value<'m>> {
        let [Some(argument)] = self.passes[..] else { return None };
        self.call.arguments().get(argument as usize).copied()
    }
}

/// What was found.
#[derive(Default)]
pub(super) struct Sources<'m> {
    pub(super) starts: Vec<Start<'m>>,
    /// Values that count the threads a loop starts, by function.
    pub(super) counters: FxHashMap<Function<'m>, FxHashMap<Value<'m>, Fact>>,
    /// Parameters that the user names.
    pub(super) named: Vec<(Function<'m>, usize)>,
    /// Kernels.
    pub(super) kernels: FxHashSet<Function<'m>>,
    /// Functions in which a thread asks for its number.
    pub(super) asks: FxHashSet<Function<'m>>,
}

impl<'m> Sources<'m> {
    /// Whether anything counts the iterations that lanes are, where they are.
    pub(super) fn has_iterations(&self) -> bool {
        self.counters.values().flat_map(FxHashMap::values).any(|fact| *fact != Fact::Divergent)
    }

    pub(super) fn has_threads(&self) -> bool {
        !(self.starts.is_empty() && self.named.is_empty() && self.kernels.is_empty() && self.asks.is_empty())
    }

    /// Where threads begin.
    pub(super) fn roots(&self) -> impl Iterator<Item = Function<'m>> {
        let starts = self.starts.iter().map(|start| start.runs);
        let named = self.named.iter().map(|(function, _)| *function);
        starts.chain(named).chain(self.kernels.iter().copied()).chain(self.asks.iter().copied())
    }
}

/// LLVM's numbers for calling conventions of kernels: PTX, SPIR, AMDGPU. Clang 19 marks those for NVIDIA in a list of
/// the module's instead.
const KERNELS: [u32; 3] = [71, 76, 91];

pub(super) fn find<'m>(module: &'m Module, machine: Machine, options: &Options) -> crate::Result<Sources<'m>> {
    let mut sources = Sources::default();
    let functions = module.functions();
    for (name, argument) in &options.thread_numbers {
        let function = functions.iter().find(|f| f.name() == *name);
        let there = function.filter(|f| *argument < f.parameters().len());
        let Some(&function) = there else {
            let text = match function {
                None => "the file has no function of this name with a body".to_owned(),
                Some(f) => format!("it has {} arguments, counted from 0", f.parameters().len()),
            };
            return Err(crate::Error::NoArgument { name: format!("{name}:{argument}"), text });
        };
        sources.named.push((function, *argument));
    }
    sources.kernels.extend(module.annotated("nvvm.annotations", "kernel"));
    for function in functions {
        if KERNELS.contains(&function.calling_convention()) {
            sources.kernels.insert(function);
        }
        for instruction in function.blocks().into_iter().flat_map(crate::llvm::Block::instructions) {
            let Some(callee) = instruction.callee() else { continue };
            if callee.assembly().is_some_and(|text| text.contains(MARK)) {
                sources.asks.insert(function);
            }
            match callee.name().as_str() {
                "omp_get_thread_num" if options.iterations => {}
                "omp_get_thread_num" => _ = sources.asks.insert(function),
                "pthread_create" if machine == Machine::Threads => sources.start(function, instruction, 2, &[3], false),
                "GOMP_parallel" => sources.start(function, instruction, 0, &[1], true),
                "__kmpc_fork_call" => sources.fork(function, instruction),
                _ => {}
            }
        }
    }
    if options.iterations {
        // A thread's number says nothing about iterations.
        sources.counters.values_mut().flat_map(FxHashMap::values_mut).for_each(|fact| *fact = Fact::Divergent);
        let of_function = |&function: &Function<'m>| (function, iterations::counters(function));
        for (function, counters) in module.functions().iter().map(of_function) {
            sources.counters.entry(function).or_default().extend(counters);
        }
    }
    Ok(sources)
}

impl<'m> Sources<'m> {
    /// A call whose operand `routine` is what threads run, with these arguments.
    fn start(&mut self, within: Function<'m>, call: Instruction<'m>, routine: usize, passes: &[u32], shared: bool) {
        let Some(&value) = call.arguments().get(routine) else { return };
        let passes: Vec<Option<u32>> = passes.iter().map(|&i| Some(i)).collect();
        for runs in routines(within, value) {
            self.starts.push(Start { within, call, runs, passes: passes.clone(), shared });
        }
        if !shared {
            self.counters.entry(within).or_insert_with(|| counters(within, call));
        }
    }

    /// `__kmpc_fork_call(place, count, region, arguments…)`: the region gets two addresses of numbers first.
    fn fork(&mut self, within: Function<'m>, call: Instruction<'m>) {
        let arguments = call.arguments();
        let Some(runs) = arguments.get(2).and_then(|v| v.as_defined_function()) else { return };
        let passes = [None, None].into_iter().chain((3..arguments.len() as u32).map(Some)).collect();
        self.starts.push(Start { within, call, runs, passes, shared: true });
    }
}

/// Whether a function is run once at most: it is `main`, or is called at one place, in no loop, by one that is.
pub(super) fn runs_once(function: Function<'_>, whole: bool, sources: &Sources<'_>) -> bool {
    let mut function = function;
    for _ in 0..MOST_CALLERS {
        let (users, complete) = function.as_value().users_in_code();
        if function.name() == "main" {
            return users.is_empty() && complete;
        }
        let [call] = users.as_slice() else { return false };
        let within = call.block().map(|block| (block, block.function()));
        let Some((block, caller)) = within.filter(|_| call.callee() == Some(function.as_value())) else { return false };
        let flow = Flow::of(caller);
        let known = all_callers_known(function, whole, sources);
        if !known || Loops::of(flow.graph()).innermost(flow.node(block)).is_some() {
            return false;
        }
        function = caller;
    }
    false
}

/// Whether all that calls a function, or starts threads on it, was found.
pub(super) fn all_callers_known(function: Function<'_>, whole: bool, sources: &Sources<'_>) -> bool {
    let (users, complete) = function.as_value().users_in_code();
    let is_only_called = |user: &Instruction<'_>| {
        let starts = sources.starts.iter().any(|s| s.runs == function && s.call == *user);
        let passed = user.arguments().contains(&function.as_value());
        // A function that passes it on to a call that starts threads was looked into.
        let started = sources.starts.iter().any(|s| s.runs == function && user.callee() == Some(s.within.as_value()));
        let calls = user.callee() == Some(function.as_value()) && !passed;
        starts || calls || started
    };
    (whole || function.is_internal()) && complete && !users.is_empty() && users.iter().all(is_only_called)
}

/// So many functions up are looked at.
const MOST_CALLERS: usize = 16;

/// The functions that a value may be: itself, or what callers pass for it.
fn routines<'m>(within: Function<'m>, value: Value<'m>) -> Vec<Function<'m>> {
    if let Some(function) = value.as_defined_function() {
        return vec![function];
    }
    let Some(place) = within.parameters().iter().position(|p| *p == value) else { return Vec::new() };
    let (users, _) = within.as_value().users_in_code();
    let passed = users.into_iter().filter(|user| user.callee() == Some(within.as_value()));
    let mut found: Vec<_> =
        passed.filter_map(|user| user.arguments().get(place).and_then(|v| v.as_defined_function())).collect();
    found.dedup();
    found
}

/// The values that count the turns of the loop in which threads are started: they begin with a number, or something
/// unknown, and grow by a number each turn. The thread that is started in a turn has the turn's number; one that counts
/// by ones is the thread's number itself.
fn counters<'m>(function: Function<'m>, call: Instruction<'m>) -> FxHashMap<Value<'m>, Fact> {
    let mut found = FxHashMap::default();
    let flow = Flow::of(function);
    let loops = Loops::of(flow.graph());
    let Some(block) = call.block() else { return found };
    let Some(id) = loops.innermost(flow.node(block)) else { return found };
    // What else is carried from turn to turn differs between the threads that are started.
    let mut around = Some(id);
    while let Some(outer) = around {
        let phis = flow.block(loops.header(outer)).phis();
        found.extend(phis.into_iter().map(|phi| (phi.as_value(), Fact::Divergent)));
        around = loops.parent(outer);
    }
    for phi in flow.block(loops.header(id)).phis() {
        let (mut step, mut base) = (None, None);
        let incoming = phi.incoming();
        for (value, from) in &incoming {
            let from: NodeId = flow.node(*from);
            if loops.contains(id, from) {
                step = step_of(phi, *value);
            } else {
                base = Some(value.as_number().map_or(Form::UNKNOWN, Form::number));
            }
        }
        if let (Some(step), Some(base), 2) = (step, base, incoming.len()) {
            let base = if step == 1 { Form::ZERO } else { base };
            found.insert(phi.as_value(), Fact::of_thread(0, Form::number(step), base).exact(true, true));
        }
    }
    found
}

/// By how much `next` is more than `phi`.
pub(super) fn step_of(phi: Instruction<'_>, next: Value<'_>) -> Option<i64> {
    let next = next.as_instruction()?;
    match next.opcode() {
        Opcode::LLVMAdd => {
            let (a, b) = (next.operand(0), next.operand(1));
            if a == phi.as_value() { b.as_number() } else { a.as_number().filter(|_| b == phi.as_value()) }
        }
        Opcode::LLVMGetElementPtr => {
            let parts = next.address_parts()?;
            (parts.base == phi.as_value() && parts.terms.is_empty()).then_some(parts.offset)
        }
        _ => None,
    }
}
