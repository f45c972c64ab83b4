//! What stands in the code of a program: markers, of `lockstep.h` and of iterations, calls of functions by name, and
//! bodies of parallel regions and of taskloops.

use heuristics::{SegmentId, SegmentTable};
use rustc_hash::FxHashMap;
use trace_format::{Marker, Pc, SyncFunction, Trace};

use super::survey::ThreadSurvey;

/// Where iterations are marked.
pub(in crate::view) fn marks(trace: &Trace) -> FxHashMap<Pc, Marker> {
    in_code(trace).filter(|(_, marker)| marker.is_of_iteration()).collect()
}

/// The markers in code that ran.
fn in_code(trace: &Trace) -> impl Iterator<Item = (Pc, Marker)> {
    trace.blocks().iter().filter(|(_, block)| !block.code.is_empty()).flat_map(|(_, block)| {
        let marker = |at: usize| Marker::in_code(&block.code[block.code_range(at)]);
        block.instructions.iter().enumerate().filter_map(move |(at, one)| Some((one.pc, marker(at)?)))
    })
}

/// Where the markers of `lockstep.h` stand that begin the region, and those that end it.
pub(super) fn ends(trace: &Trace) -> [Vec<Pc>; 2] {
    let (mut entries, mut exits) = (Vec::new(), Vec::new());
    for (pc, marker) in in_code(trace) {
        match marker {
            Marker::Begin => entries.push(pc),
            Marker::End => exits.push(pc),
            Marker::IterationBegin | Marker::IterationEnd => {}
        }
    }
    [entries, exits]
}

/// As the end of a sentence, where not all of the run was to be recorded.
pub(super) fn recorded_part(trace: &Trace) -> String {
    trace
        .meta()
        .window
        .as_ref()
        .map_or_else(String::new, |window| format!(" (only a part of the run was recorded: {window})"))
}

/// The function that a segment calls, or jumps to, with its last instruction, if that names the function's beginning.
pub(in crate::view) fn called<'t>(trace: &'t Trace, table: &SegmentTable, segment: SegmentId) -> Option<&'t str> {
    name_of(trace, table.listing(segment).last()?.target()?)
}

/// The name of the function that begins there: of gcc's runtime, where it is linked in, as its header has it.
pub(in crate::view) fn name_of(trace: &Trace, begin: Pc) -> Option<&str> {
    let name = trace.symbol_of(begin).filter(|symbol| symbol.pc == begin)?.name.as_str();
    Some(name.strip_prefix("gomp_ialias_").unwrap_or(name))
}

/// The segments that call a function, with its name.
pub(in crate::view) fn calls<'a>(
    trace: &'a Trace,
    table: &'a SegmentTable,
) -> impl Iterator<Item = (SegmentId, &'a str)> {
    let calling = table.iter().filter(|(_, segment)| segment.last().kind.is_call());
    calling.filter_map(|(id, _)| Some((id, called(trace, table, id)?)))
}

/// Where the bodies of parallel regions begin, and those of teams that run their part alone.
pub(in crate::view) fn bodies(threads: &[ThreadSurvey]) -> Vec<Pc> {
    let bodies = threads.iter().flat_map(|thread| &thread.bodies);
    let parallel = bodies.filter(|body| body.function == SyncFunction::ParallelBody);
    let alone = super::region::alone(threads).into_iter().map(Pc);
    let mut all: Vec<Pc> = parallel.map(|body| Pc(body.object)).chain(alone).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Where the bodies of taskloops begin whose pieces are known.
pub(in crate::view) fn taskloops(threads: &[ThreadSurvey]) -> Vec<Pc> {
    let runs = threads.iter().flat_map(|thread| &thread.task_runs).filter(|run| run.piece.is_some());
    let mut all: Vec<Pc> = runs.map(|run| Pc(run.object)).collect();
    all.sort_unstable();
    all.dedup();
    all
}
