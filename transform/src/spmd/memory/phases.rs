//! Which code may run after the first call that may start threads, and which before.

use rustc_hash::{FxHashMap, FxHashSet};

use super::library::{Effect, effect};
use crate::flow::Flow;
use crate::llvm::{Function, Instruction, Module, Opcode, Value};
use crate::spmd::library::{Known, known};
use crate::spmd::sources::{Sources, all_callers_known};

/// A call within a function.
struct Site {
    /// Block and place in it.
    at: (usize, usize),
    /// What it calls: functions of the module, by their numbers.
    callees: Vec<usize>,
    /// Whether it may start threads itself.
    starts: bool,
}

/// When the functions of a module run.
pub(super) struct Phases<'m> {
    numbers: FxHashMap<Function<'m>, usize>,
    /// By function: whether it may run after a start, in the thread that started.
    late: Vec<bool>,
    /// By function: whether threads may run it that were started.
    threaded: Vec<bool>,
    /// By function: whether it may run before the first start.
    early: Vec<bool>,
    /// Whether nobody calls the module's functions that is not seen, and nobody starts what is not seen.
    all_known: bool,
    /// By function and block: from which instruction on a start may have happened in the same call.
    after: Vec<Vec<usize>>,
}

impl<'m> Phases<'m> {
    pub(super) fn of(module: &'m Module, whole: bool, sources: &Sources<'m>) -> Phases<'m> {
        let functions = module.functions();
        let numbers: FxHashMap<_, _> = functions.iter().enumerate().map(|(i, &f)| (f, i)).collect();
        let main = functions.iter().position(|f| f.name() == "main");
        // Those that code may call which is not seen here: by their address, or by their name.
        let open = |i: &usize| Some(*i) != main && !all_callers_known(functions[*i], whole, sources);
        let open: Vec<usize> = (0..functions.len()).filter(open).collect();
        let flows: Vec<Flow<'m>> = functions.iter().map(|&f| Flow::of(f)).collect();
        let all_known = open.is_empty();
        let sites: Vec<Vec<Site>> = flows.iter().map(|flow| sites(flow, &numbers, &open, sources)).collect();
        let starting = starting(&sites);
        let after: Vec<Vec<usize>> =
            flows.iter().zip(&sites).map(|(flow, sites)| behind_starts(flow, sites, &starting)).collect();
        let mut phases = Phases {
            late: vec![false; functions.len()],
            threaded: vec![false; functions.len()],
            early: vec![false; functions.len()],
            numbers,
            all_known,
            after,
        };
        let roots = sources.roots().filter_map(|f| phases.numbers.get(&f).copied());
        let mut todo: Vec<usize> = roots.chain(open).collect();
        while let Some(i) = todo.pop() {
            if !std::mem::replace(&mut phases.threaded[i], true) {
                todo.extend(sites[i].iter().flat_map(|site| &site.callees));
            }
        }
        phases.find_late(&sites);
        phases.find_early(&sites, main);
        phases
    }

    fn find_late(&mut self, sites: &[Vec<Site>]) {
        let mut todo: Vec<usize> = (0..sites.len()).filter(|&i| self.threaded[i]).collect();
        for (i, sites) in sites.iter().enumerate() {
            for site in sites.iter().filter(|site| self.is_behind(i, site.at)) {
                todo.extend(&site.callees);
            }
        }
        while let Some(i) = todo.pop() {
            if !std::mem::replace(&mut self.late[i], true) {
                todo.extend(sites[i].iter().flat_map(|site| &site.callees));
            }
        }
    }

    fn find_early(&mut self, sites: &[Vec<Site>], main: Option<usize>) {
        let mut todo: Vec<usize> = main.into_iter().collect();
        while let Some(i) = todo.pop() {
            if !std::mem::replace(&mut self.early[i], true) {
                let before = sites[i].iter().filter(|site| !self.is_behind(i, site.at));
                todo.extend(before.flat_map(|site| &site.callees));
            }
        }
    }

    /// Whether a start may have happened in the same call.
    fn is_behind(&self, function: usize, (block, place): (usize, usize)) -> bool {
        place >= self.after[function][block]
    }

    /// Whether an instruction, by block and place, runs only before the first start.
    pub(super) fn is_early(&self, function: usize, at: (usize, usize)) -> bool {
        self.early[function] && !self.late[function] && !self.threaded[function] && !self.is_behind(function, at)
    }

    /// Whether an instruction, by block and place, runs only behind the last of those that run early: a start may have
    /// happened in the same call before it, and once one may have, nothing early runs any more.
    pub(super) fn is_late(&self, function: Function<'m>, at: (usize, usize)) -> bool {
        self.numbers.get(&function).is_some_and(|&i| self.is_behind(i, at))
    }

    /// Whether all calls of the module's functions are seen.
    pub(super) fn all_known(&self) -> bool {
        self.all_known
    }

    /// Whether threads may run a function.
    pub(super) fn is_run_by_threads(&self, function: Function<'m>) -> bool {
        self.numbers.get(&function).is_some_and(|&i| self.threaded[i])
    }

    /// Whether threads may run a function, and nobody before the first start.
    pub(super) fn runs_late_only(&self, function: Function<'m>) -> bool {
        self.numbers.get(&function).is_some_and(|&i| self.threaded[i] && !self.early[i])
    }
}

/// The calls of a function.
fn sites<'m>(
    flow: &Flow<'m>,
    numbers: &FxHashMap<Function<'m>, usize>,
    open: &[usize],
    sources: &Sources<'m>,
) -> Vec<Site> {
    let mut sites = Vec::new();
    for (b, block) in flow.blocks().iter().enumerate() {
        for (place, instruction) in block.instructions().into_iter().enumerate() {
            let callee = instruction.callee().or_else(|| instruction.invoked());
            let is_call = matches!(instruction.opcode(), Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr);
            if !is_call || callee.is_some_and(Value::is_inline_assembly) {
                continue;
            }
            let defined = callee.and_then(Value::as_defined_function).filter(|f| !f.may_be_replaced());
            let site = match defined.and_then(|f| numbers.get(&f)) {
                Some(&callee) => Site { at: (b, place), callees: vec![callee], starts: false },
                None if is_quiet(instruction, callee, sources) => continue,
                None => Site { at: (b, place), callees: open.to_vec(), starts: true },
            };
            sites.push(site);
        }
    }
    sites
}

/// Whether a call of what has no body starts no threads and calls nothing of the program.
pub(super) fn is_quiet<'m>(call: Instruction<'m>, callee: Option<Value<'m>>, sources: &Sources<'m>) -> bool {
    let Some(callee) = callee.filter(|callee| callee.is_function()) else { return false };
    let name = callee.name();
    let starts = sources.starts.iter().any(|start| start.call == call);
    !starts && (effect(&name) != Effect::Unknown || is_pure(&name))
}

/// Whether a declared function reads and writes nothing.
pub(super) fn is_pure(name: &str) -> bool {
    matches!(known(name, &|_| None), Some(Known::Pure | Known::Uniform | Known::Fact(_)))
}

/// By function: whether a call of it may start threads.
fn starting(sites: &[Vec<Site>]) -> Vec<bool> {
    let mut callers: Vec<FxHashSet<usize>> = vec![FxHashSet::default(); sites.len()];
    let mut todo = Vec::new();
    for (i, sites) in sites.iter().enumerate() {
        for site in sites {
            site.callees.iter().for_each(|&callee| _ = callers[callee].insert(i));
            if site.starts {
                todo.push(i);
            }
        }
    }
    let mut starting = vec![false; sites.len()];
    while let Some(i) = todo.pop() {
        if !std::mem::replace(&mut starting[i], true) {
            todo.extend(&callers[i]);
        }
    }
    starting
}

/// By block: the first place at which a start may have happened in this call of the function.
fn behind_starts(flow: &Flow<'_>, sites: &[Site], starting: &[bool]) -> Vec<usize> {
    let mut after = vec![usize::MAX; flow.blocks().len()];
    let mut todo: Vec<flowgraph::NodeId> = Vec::new();
    for site in sites.iter().filter(|site| site.starts || site.callees.iter().any(|&callee| starting[callee])) {
        let (block, place) = site.at;
        after[block] = after[block].min(place + 1);
        todo.extend(flow.graph().successors(flowgraph::NodeId(block as u32)));
    }
    while let Some(block) = todo.pop() {
        if std::mem::replace(&mut after[block.index()], 0) != 0 {
            todo.extend(flow.graph().successors(block));
        }
    }
    after
}
