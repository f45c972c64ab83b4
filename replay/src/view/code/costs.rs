//! How many instructions a GPU has for each segment of a program.

use heuristics::{SegmentId, SegmentTable};
use rustc_hash::FxHashSet;
use trace_format::{Kind, Pc, Trace};

use super::filter::Classifier;
use super::mathematics::Mathematics;
use crate::GpuCost;
use crate::view::CodeFilter;

/// By segment. Where `lockstep cc` has noted what blocks cost, that is what is counted: a segment of such a function
/// without a note is the rest of a block, or what a GPU does not have. A segment that calls a mathematical function, or
/// ends with it, has that function's with it, unless its inside is replayed.
pub(in crate::view) fn of_segments(trace: &Trace, table: &SegmentTable, code: CodeFilter) -> Vec<GpuCost> {
    let classifier = Classifier::new(trace, code);
    let function = |id: SegmentId| trace.symbol_of(table[id].start()).map(|symbol| symbol.pc);
    let is_noted = |id: &SegmentId| table.block_cost(*id).is_some();
    let noted: FxHashSet<Pc> = table.iter().map(|(id, _)| id).filter(is_noted).filter_map(function).collect();
    let is_of_noted = |id| !noted.is_empty() && function(id).is_some_and(|function| noted.contains(&function));
    let of = |id: SegmentId| {
        let listing = table.listing(id);
        let own: u32 = match (table.block_cost(id), listing.iter().next()) {
            (Some(noted), _) => noted,
            (None, _) if is_of_noted(id) => 0,
            (None, Some(Some(_))) => listing.iter().flatten().map(machine::Instruction::gpu_tenths).sum(),
            // Its code is not known.
            (None, _) => 10 * table[id].len() as u32,
        };
        let leaves = table[id].last().kind.is_call() || table[id].last().kind == Kind::Jump;
        let target = || listing.last()?.target();
        let inside = leaves.then(|| target().and_then(|target| classifier.mathematics(target))).flatten();
        let Mathematics { instructions, table_loads } = inside.unwrap_or_default();
        GpuCost { tenths: own + 10 * instructions, table_loads, calls_mathematics: inside.is_some() }
    };
    table.iter().map(|(id, _)| of(id)).collect()
}
