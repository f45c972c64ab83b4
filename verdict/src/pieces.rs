//! Pieces of work as lanes, found automatically where threads took pieces of work whenever they were free.
//!
//! Tried in this order: the iterations of OpenMP's loops, or its tasks where those hold more; the calls of a function
//! that is called at least [`TIMES`] times for each lane and holds most of what was run; the iterations of a loop of
//! the same kind. Where threads ran about as many of these, as where they all go through the same steps, loops are
//! tried that take a lock or a number in each iteration: what threads took unlike numbers of are the pieces. The
//! program's own functions are preferred to those of libraries. Among functions that hold as much,
//! the one called least is preferred, since it is the outermost.

use std::collections::BTreeMap;

use attribution::{Place, Source};
use heuristics::Spec;
use replay::metrics::Causes;
use replay::view::{Lanes, LoopRan, Region, Summary, View, ViewOptions, WhichLoops};
use replay::{Prepared, ReplayOptions};
use trace_format::{ModuleRole, Pc, STUB_NAME, Trace, names};

use crate::lanes::is_go;

/// The least number of pieces of work for each lane.
pub(crate) const TIMES: usize = 2;

/// The least share of the instructions that the pieces hold together.
pub(crate) const MOST_OF_IT: f64 = 0.4;

/// Functions that hold this share of what the greatest holds are its wrappers, or it is their wrapper.
pub(crate) const ABOUT_AS_MUCH: f64 = 0.9;

/// An iteration of fewer instructions is a step of a computation, not a piece of work, unless something is taken in it.
const INSTRUCTIONS_OF_A_TURN: f64 = 50.0;

/// What is tried.
pub(crate) struct Candidate {
    /// What of the trace they are.
    pub(crate) lanes: ViewOptions,
    /// What is typed for it.
    pub(crate) typed: String,
    /// What they are, for people.
    pub(crate) what: String,
}

/// The iterations of OpenMP's loops.
pub(crate) fn iterations(asked: &ViewOptions) -> Candidate {
    Candidate {
        lanes: ViewOptions { lanes: Lanes::Iterations(WhichLoops::Worksharing), ..asked.clone() },
        typed: "--lanes iterations".to_owned(),
        what: "the iterations".to_owned(),
    }
}

/// OpenMP's tasks.
pub(crate) fn tasks(asked: &ViewOptions) -> Candidate {
    Candidate {
        lanes: ViewOptions { lanes: Lanes::Tasks, ..asked.clone() },
        typed: "--lanes tasks".to_owned(),
        what: "the tasks".to_owned(),
    }
}

/// Whether OpenMP's tasks hold most of what the lanes ran.
pub(crate) fn are_tasks(summary: &Summary) -> bool {
    summary.tasks.1 as f64 >= MOST_OF_IT * summary.kept as f64 && summary.tasks.0 > 0
}

/// The calls of functions that could be pieces of work, the best first. `causes` are those of these lanes, where they
/// are known.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn calls(
    trace: &Trace,
    view: &View,
    causes: Option<&Causes>,
    asked: &ViewOptions,
) -> replay::Result<Vec<Candidate>> {
    /// The most functions that are tried.
    const MOST: usize = 3;
    let profile = match causes {
        Some(causes) => profile(causes),
        None => profile_alone(view)?,
    };
    let total: u64 = profile.values().map(|function| function.own).sum();
    let lanes = view.lanes().len();
    let is_piece = |function: &Function| {
        function.calls >= (TIMES * lanes) as u64 && function.whole as f64 >= MOST_OF_IT * total as f64
    };
    let mut pieces: Vec<(String, Function)> = Vec::new();
    for (entry, function) in profile.into_iter().filter(|(_, function)| is_piece(function)) {
        let is_own = trace.module_of(entry).is_some_and(|module| module.role == ModuleRole::Main);
        let Some(symbol) = trace.symbol_of(entry).filter(|symbol| is_own && symbol.pc == entry) else { continue };
        let name = names::demangled(&symbol.name).into_owned();
        if !is_of_runtime(&name) && !name.ends_with(STUB_NAME) {
            pieces.push((name, function));
        }
    }
    let is_go = is_go(trace);
    let is_own = |name: &str| !(is_of_library(name) || is_go && is_of_go(name));
    if pieces.iter().any(|(name, _)| is_own(name)) {
        pieces.retain(|(name, _)| is_own(name));
    }
    let most = pieces.iter().map(|(_, function)| function.whole).max().unwrap_or(0);
    pieces.sort_by_key(|(name, function)| {
        let holds_less = (function.whole as f64) < ABOUT_AS_MUCH * most as f64;
        (holds_less, if holds_less { u64::MAX - function.whole } else { function.calls }, name.clone())
    });
    pieces.truncate(MOST);
    let candidate = |(name, _): (String, Function)| Candidate {
        typed: format!("--lanes calls --region {}", quoted(&name)),
        what: format!("the calls of {}", shortened(&name)),
        lanes: ViewOptions { lanes: Lanes::Calls, region: Region::Symbol(name), ..asked.clone() },
    };
    Ok(pieces.into_iter().map(candidate).collect())
}

/// The iterations of a loop, at a place as it is typed: of all copies that the compiler made of it.
pub(crate) struct Turns {
    place: String,
    /// How many loops of its function are around it, itself included.
    depth: u32,
    turns: u64,
    instructions: u64,
    /// How often lanes took a lock in them, or the next number of a counter.
    takes: u64,
}

impl Turns {
    /// Those that could be pieces of work: so many and so much of all, and so long or taken one by one. Those that hold
    /// most come first.
    pub(crate) fn of(view: &View, loops: &[LoopRan], source: &mut Source) -> Vec<Turns> {
        /// Of all instructions: loops that hold less are no matter, nor are copies.
        const LEAST: f64 = 0.01;
        let (total, lanes) = (view.summary().kept as f64, view.lanes().len());
        let is_own = |ran: &&LoopRan| {
            view.module_role(ran.header) == Some(ModuleRole::Main) && ran.instructions as f64 >= LEAST * total
        };
        let mut all: Vec<Turns> = Vec::new();
        for ran in loops.iter().filter(is_own) {
            let line = source.loop_line(ran.back, ran.header);
            let place = line.map_or_else(|| ran.header.to_string(), |line| line.short());
            match all.iter_mut().find(|one| one.place == place && one.depth == ran.depth) {
                Some(one) => {
                    one.turns += ran.turns;
                    one.instructions += ran.instructions;
                    one.takes += ran.takes;
                }
                None => {
                    let LoopRan { depth, turns, instructions, takes, .. } = *ran;
                    all.push(Turns { place, depth, turns, instructions, takes });
                }
            }
        }
        all.retain(|one| {
            let is_long = one.instructions as f64 >= INSTRUCTIONS_OF_A_TURN * one.turns as f64;
            let are_many = one.turns >= (TIMES * lanes) as u64;
            (is_long || one.takes_each()) && are_many && one.instructions as f64 >= MOST_OF_IT * total
        });
        all.sort_by_key(|one| std::cmp::Reverse(one.instructions));
        all
    }

    /// Those to try, the best first: the outermost loop that holds most, and those in each of whose iterations a lock
    /// is taken or a common counter counted up, the most iterations first; of each, whether something is taken.
    pub(crate) fn to_try(all: &[Turns]) -> Vec<(&Turns, bool)> {
        /// The most loops in which something is taken.
        const MOST: usize = 2;
        let outermost = all.iter().position(|one| one.depth == 1);
        let others = all.iter().enumerate().filter(|(place, _)| Some(*place) != outermost).map(|(_, one)| one);
        let mut taken: Vec<&Turns> = others.filter(|one| one.takes_each()).collect();
        taken.sort_by_key(|one| std::cmp::Reverse(one.turns));
        taken.truncate(MOST);
        let outermost = outermost.map(|place| &all[place]);
        outermost.into_iter().chain(taken).map(|one| (one, one.takes_each())).collect()
    }

    /// Whether lanes took something in each of them; a thread's last one may only find that nothing is left.
    fn takes_each(&self) -> bool {
        2 * self.takes >= self.turns
    }

    /// What is tried.
    pub(crate) fn candidate(&self, trace: &Trace, asked: &ViewOptions, source: &mut Source) -> Option<Candidate> {
        let at: Vec<Pc> = self.place.parse::<Place>().ok()?.code(trace, source).into_iter().collect();
        (!at.is_empty()).then(|| Candidate {
            lanes: ViewOptions { lanes: Lanes::Iterations(WhichLoops::At(at)), ..asked.clone() },
            typed: format!("--loop {}", self.place),
            what: format!("the iterations of the loop at {}", self.place),
        })
    }
}

/// What was run of a function.
#[derive(Clone, Copy, Debug, Default)]
struct Function {
    /// How often it was called.
    calls: u64,
    /// The instructions of it and of what it calls.
    whole: u64,
    /// Its own.
    own: u64,
}

/// What lanes ran, by where functions begin.
fn profile_alone(view: &View) -> replay::Result<BTreeMap<Pc, Function>> {
    let alone = ReplayOptions { warp_size: Some(1), measures: vec![Causes::measure()], ..ReplayOptions::default() };
    // A lane that is alone runs the same under every model.
    let model = Spec::parse("minsp-pc").expect("a model's name");
    let prepared = Prepared::new(view, true)?;
    let outcome = prepared.replay(&[model], &alone, None, &|_, _| {})?.into_iter().next();
    Ok(outcome.as_ref().and_then(|outcome| outcome.found::<Causes>()).map(profile).unwrap_or_default())
}

/// The same of lanes whose causes are known.
fn profile(causes: &Causes) -> BTreeMap<Pc, Function> {
    let mut all: BTreeMap<Pc, Function> = BTreeMap::new();
    for ((pc, path), issued) in &causes.issued {
        let entries = causes.paths.entries(*path);
        let ran = issued.thread_instructions;
        for (depth, entry) in entries.iter().enumerate() {
            if !entries[..depth].contains(entry) {
                all.entry(*entry).or_default().whole += ran;
            }
        }
        if let Some(innermost) = entries.last() {
            let function = all.entry(*innermost).or_default();
            function.own += ran;
            function.calls += if pc == innermost { ran } else { 0 };
        }
    }
    all
}

/// Whether a function of this name is a library's.
fn is_of_library(name: &str) -> bool {
    let path = names::without_result(name).trim_start_matches(['<', '&']);
    let libraries = ["std::", "core::", "alloc::", "boost::", "__gnu_cxx::", "rayon::", "tbb::", "__once_proxy"];
    libraries.iter().any(|library| path.starts_with(library))
}

/// Whether a function of this name is Go's own: a package whose path begins with no domain and is not `main`.
fn is_of_go(name: &str) -> bool {
    let path = name.split(['(', '[']).next().unwrap_or(name);
    let is_foreign = path.split_once('/').is_some_and(|(domain, _)| domain.contains('.'));
    let (package, rest) = name.split_once('.').unwrap_or((name, ""));
    let is_path = package.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '/');
    !rest.is_empty() && is_path && !is_foreign && package != "main"
}

/// Whether a function of this name hands out the work, or starts threads. Its calls are not pieces of work then.
fn is_of_runtime(name: &str) -> bool {
    let path = name.trim_start_matches(['<', '&']);
    let runtimes = [
        "rayon_core::",
        "rayon::iter::plumbing::",
        "crossbeam",
        "std::thread",
        "std::sys",
        "std::panic",
        "std::rt",
        "runtime.",
        "_rt0",
    ];
    runtimes.iter().any(|runtime| path.starts_with(runtime)) || path.contains("__rust_begin_short_backtrace")
}

/// Quoted so that a shell takes it for one word.
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || "_.:/-+".contains(c));
    if is_plain { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// With its middle left out where it is long.
fn shortened(name: &str) -> String {
    const MOST: usize = 60;
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= MOST {
        return name.to_owned();
    }
    let half = MOST / 2;
    let (head, tail) = (&characters[..half], &characters[characters.len() - half..]);
    format!("{}...{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libraries_and_of_runtimes_are_told_by_their_names() {
        let of_template = "std::enable_if<true, int>::type tbb::detail::d1::start_for<Body>::execute<Body>(int)";
        for name in ["std::_Function_handler<void ()>::_M_invoke", "<core::ops::Range as X>::next", of_template] {
            assert!(is_of_library(name) && !is_of_runtime(name), "{name}");
        }
        assert!(is_of_go("fmt.Println") && is_of_go("math/big.nat.mul"));
        assert!(!is_of_go("main.main.func1") && !is_of_go("github.com/someone/thing.Work"));
        for name in ["runtime.mstart", "<rayon_core::job::StackJob<L,F,R> as rayon_core::job::Job>::execute"] {
            assert!(is_of_runtime(name), "{name}");
        }
        for name in ["main.main.func1", "github.com/someone/thing.Work", "collatz", "Pool::run()", "is_prime.part.0"] {
            assert!(!is_of_library(name) && !is_of_runtime(name), "{name}");
        }
    }

    #[test]
    fn names_are_typed_as_one_word() {
        assert_eq!(quoted("main.work"), "main.work");
        assert_eq!(quoted("f(int)"), "'f(int)'");
        let long = "a".repeat(200);
        assert_eq!(shortened(&long).len(), 63);
    }
}
