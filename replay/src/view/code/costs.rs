//! How many instructions a GPU has for each segment of a program.

use heuristics::{SegmentId, SegmentTable};
use trace_format::Trace;

use super::mathematics;
use crate::view::CodeFilter;
use crate::view::first_look::code::called;

/// By segment, in tenths. A segment that calls a mathematical function has that function's with it, unless its inside
/// is replayed.
pub(in crate::view) fn of_segments(trace: &Trace, table: &SegmentTable, code: CodeFilter) -> Vec<u32> {
    let of = |id: SegmentId| {
        let listing = table.listing(id);
        let own = match listing.iter().next() {
            Some(Some(_)) => listing.iter().flatten().map(machine::Instruction::gpu_tenths).sum(),
            // Its code is not known.
            _ => 10 * table[id].len() as u32,
        };
        let calls = code != CodeFilter::Whole && table[id].last().kind.is_call();
        let inside = calls.then(|| called(trace, table, id).and_then(mathematics::instructions)).flatten();
        own + 10 * inside.unwrap_or(0)
    };
    table.iter().map(|(id, _)| of(id)).collect()
}
