//! What threads were started for, and the tasks of pools of threads.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use trace_format::{Pc, SyncFunction, Trace};

use super::outermost;
use super::part_names::{calling, name_of};
use crate::view::code::filter::{Class, Classifier};
use crate::view::first_look::survey::ThreadSurvey;

/// A start routine that threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Routine {
    pub(super) object: u64,
    /// Whether threads start with it; else a library's routine calls it for them.
    pub(super) starts: bool,
    /// The first function of the program that it calls, where its own name says nothing.
    pub(super) calls: Option<u64>,
    /// Whether its threads are those of a pool, which run tasks.
    pub(super) is_pool: bool,
    pub(super) threads: usize,
    pub(super) instructions: u64,
}

/// The routine that holds most: among those that several threads ran, unless it is less than a tenth of all. What a
/// thread runs alone makes no warp.
pub(super) fn greatest(routines: &[Routine]) -> Option<Routine> {
    let all: u64 = routines.iter().map(|routine| routine.instructions).sum();
    let of = |least: usize| {
        let such = routines.iter().filter(|routine| routine.threads >= least);
        such.max_by_key(|r| (r.instructions, r.threads, std::cmp::Reverse(r.object))).copied()
    };
    of(2).filter(|routine| routine.instructions >= all / 10).or_else(|| of(1))
}

/// Why there is no start routine.
pub(super) fn no_threads(trace: &Trace) -> String {
    let threads = trace.threads().len();
    let is_go = trace.symbols().iter().any(|symbol| symbol.name.starts_with("runtime.mstart"));
    match threads {
        ..=1 => "the program started no threads".into(),
        _ if is_go => format!(
            "the {threads} threads belong to Go's scheduler, which runs goroutines on any of them, so what each was \
             started for is unknown; the program started no others"
        ),
        _ => format!(
            "none of the {threads} threads was started by pthread_create, so their start routines are not known"
        ),
    }
}

/// The functions of tasks, with all that threads ran of each.
pub(super) fn tasks(threads: &[ThreadSurvey]) -> Vec<Routine> {
    let mut all: BTreeMap<u64, Routine> = BTreeMap::new();
    for task in threads.iter().flat_map(|thread| &thread.tasks) {
        let new =
            Routine { object: task.function, starts: false, calls: None, is_pool: true, threads: 0, instructions: 0 };
        let routine = all.entry(task.function).or_insert(new);
        routine.calls = routine.calls.or(task.calls);
        routine.threads += 1;
        routine.instructions += task.instructions;
    }
    all.into_values().collect()
}

/// The program's own start routines, by address; those of a thread runtime (libgomp's workers), and of
/// sanitizers, are none.
pub(super) fn start_routines(trace: &Trace, threads: &[ThreadSurvey]) -> Vec<Routine> {
    let classifier = Classifier::new(trace, crate::view::CodeFilter::All);
    let mut routines: Vec<Routine> = Vec::new();
    let mut last_thread: FxHashMap<u64, (usize, usize)> = FxHashMap::default();
    for (thread, body) in outermost(threads, SyncFunction::ThreadBody) {
        if matches!(classifier.class(Pc(body.callable)), Class::SyncRuntime | Class::Checks) {
            continue;
        }
        let (at, last) = last_thread.entry(body.callable).or_insert_with(|| {
            let starts = body.callable == body.object;
            let (object, calls) = (body.callable, body.calls);
            routines.push(Routine { object, starts, calls, is_pool: false, threads: 0, instructions: 0 });
            (routines.len() - 1, usize::MAX)
        });
        routines[*at].instructions += body.instructions;
        routines[*at].threads += usize::from(*last != thread);
        routines[*at].is_pool |= !threads[thread].tasks.is_empty();
        *last = thread;
    }
    routines
}

/// A routine's name, and what it calls where that says more.
pub(super) fn label(routine: &Routine, trace: &Trace) -> String {
    let calls = routine.calls.map_or_else(String::new, |pc| calling(pc, trace));
    name_of(routine.object, trace) + &calls
}

/// The threads whose start routine is another than the one chosen.
pub(super) fn other_routines(
    trace: &Trace,
    threads: &[ThreadSurvey],
    routines: &[Routine],
    chosen: Option<u64>,
) -> FxHashMap<usize, String> {
    outermost(threads, SyncFunction::ThreadBody)
        .filter(|(_, b)| Some(b.callable) != chosen && routines.iter().any(|r| r.object == b.callable))
        .map(|(thread, b)| {
            let routine = routines.iter().find(|r| r.object == b.callable);
            let label = routine.map_or_else(|| name_of(b.callable, trace), |routine| label(routine, trace));
            (thread, format!("start routine {label}"))
        })
        .collect()
}
