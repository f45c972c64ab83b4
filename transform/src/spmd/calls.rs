//! Calls: what callees return, and what callers pass.

use divergence::{Analysis, Class, DIMENSIONS, Fact, Form, Gated, Memory, Mode, Op, Return, ValueId};
use flowgraph::{Builder, Components, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::body::Body;
use super::facts::FunctionFacts;
use super::meets::{beside, for_threads, met, numbered, one_for_all, passed};
use super::memory::{MemoryFacts, Record, quiet_loads, records};
use super::options::Machine;
use super::sources::{Sources, all_callers_known, runs_once};

use crate::llvm::{Function, Module, Value};

/// After so many rounds, whatever still changes may be anything.
const MOST_ROUNDS: usize = 8;

struct Solver<'m, 'a> {
    bodies: Vec<Body<'m>>,
    numbers: FxHashMap<Function<'m>, usize>,
    /// By function: its parameters.
    given: Vec<Vec<Fact>>,
    /// By function: what its calls return.
    summaries: Vec<Return>,
    /// What threads find in their records: the function that fills them and the store, the function that reads and the
    /// load, what the load gives, and the room that a record takes.
    found: Vec<Found>,
    /// By function: whether it is run once at most, so that what is unknown in it is one number.
    once: Vec<bool>,
    options: divergence::Options,
    sources: &'a Sources<'m>,
}

/// A load from a record: see [`Record`].
struct Found {
    /// The function that fills it.
    within: usize,
    /// Stores, and the calls that pass what they fill.
    filled: Vec<(ValueId, ValueId)>,
    read: (usize, ValueId),
    extent: Option<u64>,
    gives: Fact,
}

/// Analyses all functions of a module.
pub(super) fn solve<'m>(
    module: &'m Module,
    machine: Machine,
    mode: Mode,
    options: &super::Options,
    sources: &Sources<'m>,
) -> Vec<FunctionFacts<'m>> {
    let functions = module.functions();
    let none = FxHashMap::default();
    let whole = !options.linked_with_others && functions.iter().any(|f| f.name() == "main");
    let is_async = machine == Machine::Threads && mode == Mode::Async && sources.has_threads();
    let memory = is_async.then(|| MemoryFacts::of(module, whole, sources));
    let body = |&f: &Function<'m>| {
        let stable = |address: Value<'m>, at| memory.as_ref().is_some_and(|memory| memory.is_stable(f, address, at));
        Body::of(f, machine, sources.counters.get(&f).unwrap_or(&none), &stable)
    };
    let bodies: Vec<Body<'m>> = functions.iter().map(body).collect();
    let numbers: FxHashMap<_, _> = functions.iter().enumerate().map(|(i, &f)| (f, i)).collect();
    let known: Vec<Record<'m>> = memory.as_ref().map(|memory| records(memory, whole, sources)).unwrap_or_default();
    let found = known.iter().filter_map(|record| Found::of(record, &bodies, &numbers)).collect();
    let first = || functions.iter().map(|&f| at_first(f, machine, whole, sources)).collect();
    let divergence::Options { bounds, .. } = divergence::Options::default();
    let mut solver = Solver {
        summaries: vec![Return::Fact(Fact::Top); bodies.len()],
        bodies,
        numbers,
        given: first(),
        found,
        once: functions.iter().map(|&f| runs_once(f, whole, sources)).collect(),
        options: divergence::Options {
            mode,
            // There may be any number of iterations.
            bounds: if options.iterations { [None; DIMENSIONS] } else { bounds },
            no_wrap: options.no_wrap,
            broken: options.broken,
        },
        sources,
    };
    let order = solver.callees_first();
    solver.sum_up(&order);
    let mut analyses = solver.pass_on(&order);
    if let Some(memory) = memory {
        let is_uniform = |function: Function<'m>, block: NodeId| {
            let analysis = solver.numbers.get(&function).map(|&i| &analyses[i]);
            analysis.is_some_and(|analysis| analysis.branch(block).is_none_or(|class| class == Class::Uniform))
        };
        let quiet = quiet_loads(&memory, module, whole, sources, &is_uniform);
        // Which loads are quiet follows from what is uniform, and makes more so. Facts only fall, so all is worked out
        // anew from the top.
        if !quiet.is_empty() {
            for (body, analysis) in solver.bodies.iter_mut().zip(analyses) {
                let mut gated = analysis.into_gated();
                for (&id, instruction) in &body.instructions {
                    if quiet.contains(instruction) && matches!(gated.op(id), Op::Load(_, Memory::Shared)) {
                        gated.set_memory(id, Memory::Stable);
                    }
                }
                body.gated = Some(gated);
            }
            solver.given = first();
            solver.summaries.fill(Return::Fact(Fact::Top));
            solver.found.iter_mut().for_each(|found| found.gives = Fact::Divergent);
            solver.sum_up(&order);
            analyses = solver.pass_on(&order);
        }
    }
    let threads = solver.run_by_threads();
    let Solver { bodies, .. } = solver;
    let is_root: FxHashSet<Function<'m>> = sources.roots().collect();
    let all = bodies.into_iter().zip(analyses).zip(threads);
    let facts = all.map(|((body, analysis), is_run_by_threads)| {
        let function = body.function;
        let is_only_called = !is_root.contains(&function) && all_callers_known(function, whole, sources);
        FunctionFacts { body, analysis, is_run_by_threads, is_only_called }
    });
    facts.collect()
}

/// What is known about parameters before any call site was looked at.
fn at_first(function: Function<'_>, machine: Machine, whole: bool, sources: &Sources<'_>) -> Vec<Fact> {
    let count = function.parameters().len();
    let alone = sources.kernels.contains(&function) || function.name() == "main";
    let callers = if alone {
        Fact::unknown()
    } else if all_callers_known(function, whole, sources) {
        Fact::Top
    } else {
        Fact::Divergent
    };
    let mut facts = vec![callers; count];
    for i in (0..count).filter(|&i| machine == Machine::Threads && is_copy(function, i)) {
        facts[i] = Fact::Divergent;
    }
    for (_, argument) in sources.named.iter().filter(|(named, _)| *named == function) {
        facts[*argument] = Fact::of_thread(0, Form::number(1), Form::ZERO).exact(true, true);
    }
    facts
}

/// Whether a parameter is the address of a copy that the call makes, on a processor's thread's own stack.
fn is_copy(function: Function<'_>, parameter: usize) -> bool {
    function.parameter_has(parameter, "byval")
}

impl<'m> Solver<'m, '_> {
    /// The functions, callees before callers where they do not call each other.
    fn callees_first(&self) -> Vec<Vec<usize>> {
        let mut graph = Builder::new(self.bodies.len().max(1));
        for (i, body) in self.bodies.iter().enumerate() {
            for site in &body.sites {
                graph.edge(NodeId(i as u32), NodeId(self.numbers[&site.callee] as u32));
            }
        }
        // What threads are given is known before what they pass on.
        for start in &self.sources.starts {
            if let (Some(&from), Some(&to)) = (self.numbers.get(&start.within), self.numbers.get(&start.runs)) {
                graph.edge(NodeId(from as u32), NodeId(to as u32));
            }
        }
        let components = Components::of(&graph.build(NodeId(0)));
        let members = |id| components.members(id).iter().map(|n| n.index()).filter(|&i| i < self.bodies.len());
        components.ids().rev().map(|id| members(id).collect()).collect()
    }

    fn analysed(&mut self, i: usize, parameters: &[Fact]) -> Analysis {
        let mut gated: Gated = self.bodies[i].gated.take().expect("a body is analysed once at a time");
        for (p, fact) in parameters.iter().enumerate() {
            gated.give(ValueId(p as u32), *fact);
        }
        for found in self.found.iter().filter(|found| found.read.0 == i) {
            gated.set_memory(found.read.1, Memory::Record(found.gives));
        }
        for site in &self.bodies[i].sites {
            gated.set_return(site.value, self.summaries[self.numbers[&site.callee]]);
        }
        Analysis::of_gated(gated, &self.options)
    }

    /// Sums callees up before callers; those that call each other until nothing changes.
    fn sum_up(&mut self, order: &[Vec<usize>]) {
        for group in order {
            for round in 0..=MOST_ROUNDS {
                let mut changed = false;
                for &i in group {
                    let parameters = self.given[i].len() as u32;
                    let function = self.bodies[i].function;
                    let symbol = |p: u32| match is_copy(function, p as usize) {
                        true => Fact::Divergent,
                        false => Fact::of_argument(p),
                    };
                    let symbols: Vec<Fact> = (0..parameters).map(symbol).collect();
                    let analysis = self.analysed(i, &symbols);
                    let summary = self.summary(i, &analysis, parameters);
                    self.bodies[i].gated = Some(analysis.into_gated());
                    if summary != self.summaries[i] {
                        self.summaries[i] = if round == MOST_ROUNDS { Return::Divergent } else { summary };
                        changed = true;
                    }
                }
                if !changed {
                    break;
                }
            }
        }
    }

    /// What calls of a function return.
    fn summary(&self, i: usize, analysis: &Analysis, parameters: u32) -> Return {
        let Some(result) = self.bodies[i].result else { return Return::Uniform };
        let fact = analysis.fact(result);
        let Fact::Affine(affine) = fact else { return Return::Fact(fact) };
        let width = |id: ValueId| analysis.gated().kind(id);
        // A symbol that is an argument of the same width stands for it whatever it is.
        let is_argument = |form: &Form| match form.as_symbol().and_then(|(_, symbol, _)| symbol.origin()) {
            Some((node, _)) => node < parameters && width(ValueId(node)) == width(result),
            None => form.as_number().is_some(),
        };
        if affine.strides.iter().chain([&affine.base]).all(is_argument) {
            return Return::Fact(fact.exact(false, false));
        }
        match affine.is_uniform() {
            true if parameters == 0 => Return::Uniform,
            true => Return::Function,
            false if parameters == 0 => Return::Fact(passed(fact)),
            false => Return::Divergent,
        }
    }

    /// What a function that starts threads puts into their records, a thread's at a time: those who read it.
    fn fill(&mut self, i: usize, analysis: &Analysis, last: bool) -> Vec<usize> {
        let mut changed = Vec::new();
        let (body, once) = (&self.bodies[i], self.once[i]);
        for found in self.found.iter_mut().filter(|found| found.within == i) {
            let stored = |(store, _): &(ValueId, ValueId)| {
                let stored = analysis.operands(*store).get(1).copied();
                stored.map_or(Fact::Divergent, |(node, fact)| for_threads(body, analysis, once, node, fact))
            };
            let stored = passed(numbered(&found.filled.iter().map(stored).collect::<Vec<_>>()));
            let call = found.filled.first().map(|(_, call)| analysis.operands(*call));
            let address = call.and_then(|operands| operands.get(PASSED).and_then(|(_, fact)| fact.stride()));
            let apart = address.is_some_and(|stride| {
                (1..FAR).contains(&stride.unsigned_abs()) && found.extent.is_some_and(|e| e <= stride.unsigned_abs())
            });
            let mut gives = if found.extent.is_none() || apart { met(found.gives, stored) } else { Fact::Divergent };
            if gives != found.gives {
                if last {
                    gives = Fact::Divergent;
                }
                found.gives = gives;
                changed.push(found.read.0);
            }
        }
        changed
    }

    /// Meets what call sites pass in the parameters, callers first, until nothing changes.
    fn pass_on(&mut self, order: &[Vec<usize>]) -> Vec<Analysis> {
        let mut analyses: Vec<Option<Analysis>> = self.bodies.iter().map(|_| None).collect();
        let mut stale = vec![true; self.bodies.len()];
        let mut started: FxHashMap<(usize, usize), Vec<Fact>> = FxHashMap::default();
        self.found.iter_mut().for_each(|found| found.gives = Fact::Top);
        let mut round = 0;
        while stale.iter().any(|&s| s) {
            for &i in order.iter().rev().flatten() {
                if !std::mem::replace(&mut stale[i], false) {
                    continue;
                }
                if let Some(old) = analyses[i].take() {
                    self.bodies[i].gated = Some(old.into_gated());
                }
                let analysis = self.analysed(i, &self.given[i].clone());
                self.note_starts(i, &analysis, &mut started);
                for reader in self.fill(i, &analysis, round >= MOST_ROUNDS) {
                    stale[reader] = true;
                }
                let starts = self.started_by(i, &started);
                let plain = self.passes(i, &analysis).into_iter().map(|(c, p, fact)| (c, p, fact, false));
                let starts = starts.into_iter().map(|(c, p, fact)| (c, p, fact, true));
                for (callee, parameter, fact, starts) in plain.chain(starts) {
                    let old = self.given[callee][parameter];
                    let own = self.sources.starts.iter().any(|s| Some(&callee) == self.numbers.get(&s.runs));
                    let mut new = match own {
                        true => beside(old, passed(fact), starts),
                        false => met(old, passed(fact)),
                    };
                    if new != old && round >= MOST_ROUNDS {
                        new = Fact::Divergent;
                    }
                    if new != old {
                        self.given[callee][parameter] = new;
                        stale[callee] = true;
                    }
                }
                analyses[i] = Some(analysis);
            }
            round += 1;
        }
        analyses.into_iter().map(|a| a.expect("each function was analysed")).collect()
    }

    /// What a function passes to others: callee, parameter, fact.
    fn passes(&self, i: usize, analysis: &Analysis) -> Vec<(usize, usize, Fact)> {
        let body = &self.bodies[i];
        let mut passes = Vec::new();
        for site in &body.sites {
            let callee = self.numbers[&site.callee];
            let operands = analysis.operands(site.value);
            for parameter in 0..self.given[callee].len() {
                let fact = operands.get(parameter).map_or(Fact::Divergent, |(_, fact)| *fact);
                passes.push((callee, parameter, fact));
            }
        }
        passes
    }

    /// Notes what a function passes where it starts threads: by start and parameter of what is run.
    fn note_starts(&self, i: usize, analysis: &Analysis, started: &mut FxHashMap<(usize, usize), Vec<Fact>>) {
        let body = &self.bodies[i];
        for (s, start) in self.sources.starts.iter().enumerate().filter(|(_, s)| s.within == body.function) {
            let Some(&callee) = self.numbers.get(&start.runs) else { continue };
            let operands = body.values.get(&start.call.as_value()).map(|&id| analysis.operands(id)).unwrap_or_default();
            let facts = (0..self.given[callee].len()).map(|parameter| {
                let argument = start.passes.get(parameter).copied().flatten();
                let given = argument.and_then(|a| operands.get(a as usize)).copied();
                match given {
                    None => Fact::Divergent,
                    // One thread makes the others and passes one value to all.
                    Some((_, fact)) if start.shared => one_for_all(fact),
                    Some((node, fact)) => for_threads(body, analysis, self.once[i], node, fact),
                }
            });
            started.insert((callee, s), facts.collect());
        }
    }

    /// What the threads get that a function starts: all starts of one routine taken together.
    fn started_by(&self, i: usize, started: &FxHashMap<(usize, usize), Vec<Fact>>) -> Vec<(usize, usize, Fact)> {
        let mut found = Vec::new();
        let own = self.sources.starts.iter().filter(|s| s.within == self.bodies[i].function);
        let mut routines: Vec<usize> = own.filter_map(|s| self.numbers.get(&s.runs).copied()).collect();
        routines.sort_unstable();
        routines.dedup();
        for callee in routines {
            let mut keys: Vec<_> = started.keys().filter(|(c, _)| *c == callee).copied().collect();
            keys.sort_unstable();
            for (parameter, _) in self.given[callee].iter().enumerate() {
                let facts: Vec<Fact> = keys.iter().map(|key| started[key][parameter]).collect();
                let shared = keys.iter().all(|(_, s)| self.sources.starts[*s].shared);
                let fact = match shared {
                    true => facts.into_iter().reduce(|a, b| met(passed(a), passed(b))).unwrap_or(Fact::Top),
                    false => numbered(&facts),
                };
                found.push((callee, parameter, fact));
            }
        }
        found
    }

    /// By function: whether threads run it.
    fn run_by_threads(&self) -> Vec<bool> {
        let mut run = vec![false; self.bodies.len()];
        let mut todo: Vec<usize> = self.sources.roots().filter_map(|f| self.numbers.get(&f).copied()).collect();
        while let Some(i) = todo.pop() {
            if !std::mem::replace(&mut run[i], true) {
                todo.extend(self.bodies[i].sites.iter().map(|site| self.numbers[&site.callee]));
            }
        }
        run
    }
}

/// The argument of `pthread_create` that the thread gets.
const PASSED: usize = 3;

/// Records are not so far from each other that 2^22 of them would come round in the address space.
const FAR: u64 = 1 << 40;

impl Found {
    fn of<'m>(record: &Record<'m>, bodies: &[Body<'m>], numbers: &FxHashMap<Function<'m>, usize>) -> Option<Found> {
        let (within, runs) = (*numbers.get(&record.within)?, *numbers.get(&record.runs)?);
        let id = |function: usize, value: Value<'m>| bodies[function].values.get(&value).copied();
        Some(Found {
            within,
            filled: record
                .stores
                .iter()
                .zip(&record.calls)
                .map(|(store, call)| Some((id(within, store.as_value())?, id(within, call.as_value())?)))
                .collect::<Option<Vec<_>>>()?,
            read: (runs, id(runs, record.load.as_value())?),
            extent: record.extent,
            gives: Fact::Divergent,
        })
    }
}
