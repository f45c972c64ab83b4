//! Which part of each thread is replayed.

mod part_names;
mod routines;
mod taking_part;

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Marker, Pc, Symbol, SyncFunction, Trace, names};

use self::part_names::{KINDS, known_name, name_of, nameless, typed, words_of_tasks};
use self::routines::{Routine, greatest, label, no_threads, other_routines, start_routines, tasks};
use self::taking_part::{Beside, StandsFor};
use crate::view::first_look::callable::is_given_work;
use crate::view::first_look::code::{bodies, ends, marks, recorded_part, taskloops};
use crate::view::first_look::leagues::is_of_construct;
use crate::view::first_look::survey::ThreadSurvey;
use crate::view::summary::Share;
use crate::view::{Lanes, Region, ViewOptions, WhichLoops};
use crate::{Error, Result};

/// Where the region begins. It ends where what began it ends.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(in crate::view) struct RegionRule {
    whole: bool,
    /// It begins when this function is entered (with this object, where one is given).
    on_enter: Option<(SyncFunction, Option<u64>)>,
    /// Or when one of these bodies of teams is, which run their part alone.
    teams: Vec<u64>,
    /// Or when one of these bodies of taskloops is, on a thread that is in none of the above.
    taskloops: Vec<u64>,
    /// Or when any task's is: threads run them while they wait behind a parallel region.
    tasks: bool,
    /// It begins at these instructions, and lasts until the function that they begin has returned.
    pub entries: Vec<Pc>,
    /// It ends for a while where the thread goes on with another stack.
    pub by_stack: bool,
    /// Where these are given, it lasts until as many of them were reached as of the entries.
    pub exits: Option<Vec<Pc>>,
}

impl RegionRule {
    /// Whether it is the whole thread.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether it begins when this function is entered.
    pub fn begins_with(&self, function: SyncFunction, object: u64) -> bool {
        let is_construct = matches!(function, SyncFunction::TeamsBody | SyncFunction::TargetBody);
        self.on_enter.is_some_and(|(f, o)| f == function && o.is_none_or(|o| o == object))
            || is_construct && self.teams.contains(&object)
            || function == SyncFunction::TaskBody && (self.tasks || self.taskloops.contains(&object))
    }

    /// Whether it is each OpenMP task.
    pub fn is_tasks(&self) -> bool {
        self.on_enter == Some((SyncFunction::TaskBody, None))
    }

    /// Whether it is OpenMP's parallel regions.
    pub fn is_parallel(&self) -> bool {
        self.on_enter.is_some_and(|(function, _)| function == SyncFunction::ParallelBody)
    }
}

/// A region, chosen.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Choice {
    pub rule: RegionRule,
    /// What it is, for people.
    pub words: String,
    /// Threads that run something else, by their index, and what.
    pub others: FxHashMap<usize, String>,
    /// All that could have been taken, the greatest first.
    pub shares: Vec<Share>,
    /// Where iterations are marked, if those are the lanes.
    pub marks: FxHashMap<Pc, Marker>,
    /// What is not sure of it, for people.
    pub doubts: Vec<String>,
}

/// The ways out of a region that cannot be had.
const WAYS_OUT: &str = "take the iterations of a loop as lanes (`replay --loops` lists loops, `--loop PLACE` takes one), name the function \
     that the lanes run with `--region SYMBOL`, or take whole threads with `--region all`";

impl Choice {
    /// The region. Where each turn of a loop is a lane, a program without threads is all region.
    pub fn of(options: &ViewOptions, trace: &Trace, threads: &[ThreadSurvey]) -> Result<Choice> {
        let is_text = trace.meta().engine == "text";
        if options.lanes == Lanes::Marks {
            return marked(trace, threads, &options.region);
        }
        if (&options.lanes, &options.region) == (&Lanes::Tasks, &Region::Auto) {
            return tasks_of_openmp(trace, threads, &bodies(threads));
        }
        let is_of_teams = options.lanes == Lanes::Iterations(WhichLoops::Worksharing);
        let mut chosen = match (&options.region, is_of_teams && team_bodies(threads).next().is_some()) {
            // Whoever else runs, OpenMP's loops are those of its teams.
            (Region::Auto, true) => Ok(parallel_bodies(trace, threads, &start_routines(trace, threads))),
            _ => choose(&options.region, trace, threads, is_text),
        };
        if let (Lanes::Calls, Ok(Choice { rule, .. })) = (&options.lanes, &mut chosen) {
            rule.by_stack = !rule.entries.is_empty() && rule.exits.is_none();
        }
        if let (Region::Auto, Ok(choice)) = (&options.region, &mut chosen)
            && choice.rule.is_parallel()
        {
            choice.add_tasks(&options.lanes, threads);
        }
        match (&options.lanes, &options.region) {
            (Lanes::Iterations(WhichLoops::At(_) | WhichLoops::Near(_)), Region::Auto) if chosen.is_err() => {
                choose(&Region::All, trace, threads, is_text)
            }
            _ => chosen,
        }
    }

    /// Of a start routine: threads that never enter it and take part in its work all the same.
    fn add_beside(&mut self, routine: &Routine, trace: &Trace, threads: &[ThreadSurvey]) -> Result<()> {
        let runs = outermost(threads, SyncFunction::ThreadBody).filter(|(_, body)| body.callable == routine.object);
        let runs: BTreeSet<usize> = runs.map(|(thread, _)| thread).collect();
        let mut beside = Beside::of(threads, &runs, routine.instructions);
        let stands_for = beside.stands_for(trace, Pc(routine.object), &runs)?;
        if let Some(StandsFor { function, others, locks }) = stands_for {
            let name = name_of(function.0, trace);
            self.rule = RegionRule { entries: vec![function], ..RegionRule::default() };
            let threads = if others == 1 { "thread" } else { "threads" };
            self.words = format!("function {name}, called by {} and by {others} other {threads}", self.words);
            if locks > 0 {
                self.doubts.push(format!(
                    "threads take locks {locks} times around {name}, which are no part of the lanes: the thread that \
                     started the others runs them in other code"
                ));
            }
        } else {
            self.doubts.extend(beside.may_be_lanes());
        }
        Ok(())
    }

    /// OpenMP's parallel regions are also what threads run while they wait behind one: of threads tasks, where turns of
    /// loops are lanes pieces of taskloops.
    fn add_tasks(&mut self, lanes: &Lanes, threads: &[ThreadSurvey]) {
        let (tasks, instructions) = tasks_behind(threads);
        match lanes {
            Lanes::Iterations(_) => self.rule.taskloops = taskloops(threads).iter().map(|body| body.0).collect(),
            Lanes::Threads if instructions > 0 => {
                self.rule.tasks = true;
                self.words += " with the tasks that threads ran behind them";
            }
            _ => {}
        }
        if instructions > 0 {
            let is_taken = self.rule.tasks;
            let region = TASKS.to_owned();
            self.shares.push(Share { region, name: None, is_of_tasks: true, threads: tasks, instructions, is_taken });
            self.shares = in_order(std::mem::take(&mut self.shares));
        }
    }
}

/// What tasks are called that threads ran behind parallel regions.
const TASKS: &str = "OpenMP tasks behind parallel regions";

/// How many threads ran tasks behind the bodies of their teams, and the instructions of those.
fn tasks_behind(threads: &[ThreadSurvey]) -> (usize, u64) {
    let of_thread = |thread: &ThreadSurvey| {
        thread.task_runs.iter().filter(|run| run.is_behind).map(|run| run.instructions).sum::<u64>()
    };
    let each = threads.iter().map(of_thread).filter(|instructions| *instructions > 0);
    each.fold((0, 0), |(threads, all), instructions| (threads + 1, all + instructions))
}

/// Chooses what was asked for.
fn choose(region: &Region, trace: &Trace, threads: &[ThreadSurvey], verbatim: bool) -> Result<Choice> {
    match region {
        Region::Symbol(_) if verbatim => Err(Error::Request(
            "a trace read from text has no function names: use `--region auto` or `--region all`".into(),
        )),
        Region::Markers if verbatim => Err(Error::Request(
            "a trace read from text has no code, and so no markers: use `--region auto` or `--region all`".into(),
        )),
        Region::Markers => markers(trace),
        Region::Auto if verbatim => Ok(whole()),
        Region::All => Ok(whole()),
        Region::Symbol(name) => function(name, trace),
        Region::Auto => automatic(trace, threads),
    }
}

fn whole() -> Choice {
    let rule = RegionRule { whole: true, ..RegionRule::default() };
    Choice { rule, words: "whole threads".into(), ..Choice::default() }
}

/// Iterations that are marked: on all threads, unless only a part of their run was asked for. Teams are told apart.
fn marked(trace: &Trace, threads: &[ThreadSurvey], region: &Region) -> Result<Choice> {
    let marks = marks(trace);
    if marks.is_empty() {
        return Err(Error::Request(
            "the program reached no marks of iterations: build it with `lockstep cc --mark-iterations` (--shape gpu \
             implies it) or take --lanes iterations"
                .into(),
        ));
    }
    let mut choice = choose(if *region == Region::Auto { &Region::All } else { region }, trace, threads, false)?;
    if choice.rule.whole {
        choice.rule.on_enter = Some((SyncFunction::ParallelBody, None));
        choice.rule.teams = alone(threads);
    }
    Ok(Choice { marks, ..choice })
}

/// What lies between the markers of `lockstep.h`.
fn markers(trace: &Trace) -> Result<Choice> {
    let [entries, exits] = ends(trace);
    if entries.is_empty() {
        return Err(Error::Request(format!(
            "the program reached no LOCKSTEP_BEGIN of lockstep.h, so `--region markers` finds nothing to replay: \
             {WAYS_OUT}{}",
            recorded_part(trace)
        )));
    }
    let rule = RegionRule { entries, exits: Some(exits), ..RegionRule::default() };
    Ok(Choice { rule, words: "between markers".into(), ..Choice::default() })
}

/// The function of that name.
fn function(name: &str, trace: &Trace) -> Result<Choice> {
    let name = typed(name);
    let mut entries: Vec<Pc> =
        trace.symbols().iter().filter(|s| names::is_called(&s.name, name)).map(|s| s.pc).collect();
    entries.extend(nameless(name, trace));
    if !entries.is_empty() {
        let rule = RegionRule { entries, ..RegionRule::default() };
        return Ok(Choice { rule, words: format!("function {}", names::demangled(name)), ..Choice::default() });
    }
    if trace.symbols().is_empty() {
        return Err(Error::Request(format!(
            "the trace has no function names (was the program stripped?), so `--region {name}` finds nothing: \
             use `--region auto` or `--region all`"
        )));
    }
    let known: Vec<&str> = trace.symbols().iter().map(|s| s.name.as_str()).collect();
    let similar = names::similar(name, &known);
    let similar = match similar.len() {
        0 => String::new(),
        _ => format!("; similar names: {}", similar.join(", ")),
    };
    Err(Error::Request(format!(
        "no function named `{name}` ran{similar} (only functions that ran are known, by their names in the symbol table){}",
        recorded_part(trace)
    )))
}

/// The bodies of OpenMP tasks. A trace that does not say which these are (version 3, a runtime that is not known) has
/// functions that compilers make for OpenMP, by their names, and that no team was started for.
fn tasks_of_openmp(trace: &Trace, threads: &[ThreadSurvey], bodies: &[Pc]) -> Result<Choice> {
    let mut kinds: Vec<u64> = threads.iter().flat_map(|thread| &thread.task_runs).map(|run| run.object).collect();
    kinds.sort_unstable();
    kinds.dedup();
    if !kinds.is_empty() {
        let rule = RegionRule { on_enter: Some((SyncFunction::TaskBody, None)), ..RegionRule::default() };
        return Ok(Choice { rule, words: words_of_tasks(kinds.len()), ..Choice::default() });
    }
    let is_task = |symbol: &&Symbol| {
        let is_outlined = symbol.name.contains("._omp_fn.") || symbol.name.starts_with(".omp_task_entry.");
        is_outlined && !bodies.contains(&symbol.pc)
    };
    let entries: Vec<Pc> = trace.symbols().iter().filter(is_task).map(|symbol| symbol.pc).collect();
    if entries.is_empty() {
        let text = "no OpenMP task with a name in the program's symbol table ran: for tasks of another kind, name \
                    the function that runs one with --lanes calls --region FUNCTION";
        return Err(Error::Request(text.to_owned()));
    }
    let words = words_of_tasks(entries.len());
    Ok(Choice { rule: RegionRule { entries, ..RegionRule::default() }, words, ..Choice::default() })
}

/// The start routine of the threads, or the bodies of the parallel regions, or tasks of a pool of threads.
fn automatic(trace: &Trace, threads: &[ThreadSurvey]) -> Result<Choice> {
    let routines = start_routines(trace, threads);
    if let Some(choice) = tasks_of_pool(trace, threads, &routines) {
        return Ok(choice);
    }
    let main = greatest(&routines);
    let in_teams = team_bodies(threads).map(|(_, b)| b.instructions).sum::<u64>() + tasks_behind(threads).1;
    let has_teams = team_bodies(threads).next().is_some();
    match main {
        Some(main) if !has_teams || in_teams <= main.instructions => {
            let mut choice = start_routine(main, trace, threads, &routines);
            choice.add_beside(&main, trace, threads)?;
            if has_teams {
                choice.words += " (OpenMP parallel regions run too, but hold fewer instructions)";
            }
            Ok(choice)
        }
        _ if has_teams => {
            let mut choice = parallel_bodies(trace, threads, &routines);
            if main.is_some() {
                choice.words += " (threads with start routines of their own run too, but hold fewer instructions)";
            }
            Ok(choice)
        }
        _ => Err(Error::Request(format!(
            "{} and ran no OpenMP parallel regions while it was traced, so `--region auto` finds nothing to replay: \
             {WAYS_OUT}{}",
            no_threads(trace),
            recorded_part(trace)
        ))),
    }
}

/// Tasks of a pool of threads, of the function whose tasks hold most, where the tasks hold more than what other threads
/// were started for and than parallel regions do.
fn tasks_of_pool(trace: &Trace, threads: &[ThreadSurvey], routines: &[Routine]) -> Option<Choice> {
    let tasks = tasks(threads);
    let in_tasks: u64 = tasks.iter().map(|task| task.instructions).sum();
    let in_others = routines.iter().filter(|r| !r.is_pool).map(|r| r.instructions).max().unwrap_or(0);
    let in_teams: u64 = team_bodies(threads).map(|(_, b)| b.instructions).sum();
    let greatest = tasks.iter().max_by_key(|task| (task.instructions, std::cmp::Reverse(task.object)))?;
    if in_tasks <= in_others.max(in_teams) {
        return None;
    }
    let rule = RegionRule { entries: vec![Pc(greatest.object)], ..RegionRule::default() };
    let mut words = format!("tasks of a pool of threads: {}", label(greatest, trace));
    if tasks.len() > 1 {
        words += &format!(" (one of {} kinds of tasks: see --by region)", tasks.len());
    }
    let others: Vec<Routine> = routines.iter().filter(|r| !r.is_pool).copied().collect();
    let mut all = shares(trace, threads, &others, Some(greatest.object));
    all.extend(tasks.iter().map(|task| share(KINDS[2], task, trace, Some(greatest.object))));
    let left_out = other_routines(trace, threads, &others, None);
    Some(Choice { rule, words, others: left_out, shares: in_order(all), ..Choice::default() })
}

fn outermost(
    threads: &[ThreadSurvey],
    function: SyncFunction,
) -> impl Iterator<Item = (usize, &crate::view::first_look::survey::Body)> {
    let bodies = threads.iter().enumerate().flat_map(|(t, s)| s.bodies.iter().map(move |b| (t, b)));
    bodies.filter(move |(_, b)| b.function == function && b.outermost)
}

/// The bodies of teams, and of league's teams, that run their part alone.
fn team_bodies(threads: &[ThreadSurvey]) -> impl Iterator<Item = (usize, &crate::view::first_look::survey::Body)> {
    let alone = alone(threads);
    let bodies = threads.iter().enumerate().flat_map(|(t, s)| s.bodies.iter().map(move |b| (t, b)));
    bodies.filter(move |(_, b)| {
        b.outermost && (b.function == SyncFunction::ParallelBody || is_of_construct(b) && alone.contains(&b.object))
    })
}

/// The bodies of teams that fork no threads, but run their part alone.
pub(in crate::view) fn alone(threads: &[ThreadSurvey]) -> Vec<u64> {
    let all = || threads.iter().flat_map(|thread| &thread.bodies).filter(|body| is_of_construct(body));
    let forking: FxHashSet<u64> = all().filter(|body| body.forks).map(|body| body.object).collect();
    let mut alone: Vec<u64> = all().filter(|body| body.has_teams).map(|body| body.object).collect();
    alone.retain(|body| !forking.contains(body));
    alone.sort_unstable();
    alone.dedup();
    alone
}

fn start_routine(main: Routine, trace: &Trace, threads: &[ThreadSurvey], routines: &[Routine]) -> Choice {
    let rule = RegionRule {
        whole: false,
        teams: Vec::new(),
        taskloops: Vec::new(),
        tasks: false,
        by_stack: false,
        on_enter: main.starts.then_some((SyncFunction::ThreadBody, Some(main.object))),
        entries: vec![Pc(main.object)],
        exits: None,
    };
    let mut words = format!("start routine {}", label(&main, trace));
    if main.threads > 1 && main.starts {
        words += match trace.symbol_of(Pc(main.object)) {
            _ if is_given_work(trace, Pc(main.object)) => {
                ", a library's: what it was given to run is unknown, and may differ from thread to thread"
            }
            None => ", without a name: if it is a library's, what it runs may differ from thread to thread",
            Some(_) => "",
        };
    }
    let others = other_routines(trace, threads, routines, Some(main.object));
    let shares = shares(trace, threads, routines, Some(main.object));
    Choice { rule, words, others, shares, ..Choice::default() }
}

fn parallel_bodies(trace: &Trace, threads: &[ThreadSurvey], routines: &[Routine]) -> Choice {
    let on_enter = Some((SyncFunction::ParallelBody, None));
    let rule = RegionRule { on_enter, teams: alone(threads), ..RegionRule::default() };
    let of_rule =
        |fork: &&crate::view::first_look::survey::Fork| !fork.makes_construct || rule.teams.contains(&fork.object);
    let forks = threads.iter().flat_map(|t| &t.forks).filter(of_rule).count();
    let words = match forks {
        1 => "OpenMP parallel regions (1 fork)".into(),
        forks => format!("OpenMP parallel regions ({forks} forks)"),
    };
    let others = other_routines(trace, threads, routines, None);
    Choice { rule, words, others, shares: shares(trace, threads, routines, None), ..Choice::default() }
}

/// What threads were started for and the bodies of parallel regions, with what each holds, the greatest first. Taken is
/// the routine that was chosen, or all bodies where none was.
fn shares(trace: &Trace, threads: &[ThreadSurvey], routines: &[Routine], chosen: Option<u64>) -> Vec<Share> {
    let mut shares: Vec<Share> = routines.iter().map(|routine| share(KINDS[0], routine, trace, chosen)).collect();
    let mut bodies: FxHashMap<u64, (FxHashSet<usize>, u64)> = FxHashMap::default();
    for (thread, body) in team_bodies(threads) {
        let (of, instructions) = bodies.entry(body.object).or_default();
        of.insert(thread);
        *instructions += body.instructions;
    }
    shares.extend(bodies.into_iter().map(|(object, (threads, instructions))| Share {
        region: format!("{} {}", KINDS[1], name_of(object, trace)),
        name: known_name(object, trace),
        is_of_tasks: false,
        threads: threads.len(),
        instructions,
        is_taken: chosen.is_none(),
    }));
    in_order(shares)
}

fn share(kind: &str, routine: &Routine, trace: &Trace, chosen: Option<u64>) -> Share {
    Share {
        region: format!("{kind} {}", label(routine, trace)),
        name: known_name(routine.object, trace),
        is_of_tasks: false,
        threads: routine.threads,
        instructions: routine.instructions,
        is_taken: chosen == Some(routine.object),
    }
}

/// The one that is taken first, then the greatest.
fn in_order(mut shares: Vec<Share>) -> Vec<Share> {
    shares.sort_by(|a, b| (b.is_taken, b.instructions, &a.region).cmp(&(a.is_taken, a.instructions, &b.region)));
    shares
}
