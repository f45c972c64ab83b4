//! How many instructions a GPU has for each segment of a program.

use heuristics::{SegmentId, SegmentTable};
use trace_format::{Kind, Trace};

use super::filter::Classifier;
use crate::view::CodeFilter;

/// By segment, in tenths. A segment that calls a mathematical function, or ends with it, has that function's with it,
/// unless its inside is replayed.
pub(in crate::view) fn of_segments(trace: &Trace, table: &SegmentTable, code: CodeFilter) -> Vec<u32> {
    let classifier = Classifier::new(trace, code);
    let of = |id: SegmentId| {
        let listing = table.listing(id);
        let own = match listing.iter().next() {
            Some(Some(_)) => listing.iter().flatten().map(machine::Instruction::gpu_tenths).sum(),
            // Its code is not known.
            _ => 10 * table[id].len() as u32,
        };
        let leaves = table[id].last().kind.is_call() || table[id].last().kind == Kind::Jump;
        let target = || listing.last()?.target();
        let inside = leaves.then(|| target().and_then(|target| classifier.mathematics(target))).flatten();
        own + 10 * inside.unwrap_or(0)
    };
    table.iter().map(|(id, _)| of(id)).collect()
}
