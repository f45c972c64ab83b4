//! How many instructions a GPU has for each segment of a program.

use heuristics::{SegmentId, SegmentTable};
use trace_format::{Kind, Trace};

use super::filter::Classifier;
use super::mathematics::Mathematics;
use crate::GpuCost;
use crate::view::CodeFilter;

/// By segment. A segment that calls a mathematical function, or ends with it, has that function's with it, unless its
/// inside is replayed.
pub(in crate::view) fn of_segments(trace: &Trace, table: &SegmentTable, code: CodeFilter) -> Vec<GpuCost> {
    let classifier = Classifier::new(trace, code);
    let of = |id: SegmentId| {
        let listing = table.listing(id);
        let own: u32 = match listing.iter().next() {
            Some(Some(_)) => listing.iter().flatten().map(machine::Instruction::gpu_tenths).sum(),
            // Its code is not known.
            _ => 10 * table[id].len() as u32,
        };
        let leaves = table[id].last().kind.is_call() || table[id].last().kind == Kind::Jump;
        let target = || listing.last()?.target();
        let inside = leaves.then(|| target().and_then(|target| classifier.mathematics(target))).flatten();
        let Mathematics { instructions, table_loads } = inside.unwrap_or_default();
        GpuCost { tenths: own + 10 * instructions, table_loads }
    };
    table.iter().map(|(id, _)| of(id)).collect()
}
