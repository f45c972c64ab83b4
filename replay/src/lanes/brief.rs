//! Segments in few bytes: what a run of them needs to know of each.

use heuristics::{PlaceId, Segment, SegmentId, SegmentTable};

/// What a GPU has for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GpuCost {
    /// Its instructions, in tenths.
    pub tenths: u32,
    /// Loads of 16 bytes from the table of a mathematical function that the segment calls.
    pub table_loads: u8,
    /// Whether it calls a mathematical function whose inside is left out.
    pub calls_mathematics: bool,
}

impl GpuCost {
    /// As many instructions as the segment has here.
    #[must_use]
    pub fn as_here(segment: &Segment) -> GpuCost {
        GpuCost { tenths: 10 * segment.len() as u32, ..GpuCost::default() }
    }
}

/// What a run of segments needs to know of each, packed.
#[derive(Clone, Copy)]
pub struct Brief {
    /// Where it begins.
    pub(crate) start: trace_format::Pc,
    /// Its last instruction.
    pub(crate) last: trace_format::Pc,
    pub(crate) place: PlaceId,
    pub(crate) instructions: u32,
    pub(crate) gpu: GpuCost,
    pub(crate) addresses: u32,
    pub(crate) sp: i32,
    pub(crate) level: i8,
    pub(crate) recorded: bool,
    pub(crate) transfers: bool,
    pub(crate) in_stub: bool,
}

impl Brief {
    /// The briefs of all segments, by number, as a GPU's instructions count one by one.
    #[must_use]
    pub fn all(segments: &SegmentTable) -> Vec<Brief> {
        Brief::with_costs(segments, &|id| GpuCost::as_here(&segments[id]))
    }

    /// The briefs of all segments, by number, with their costs.
    #[must_use]
    pub fn with_costs(segments: &SegmentTable, cost: &dyn Fn(SegmentId) -> GpuCost) -> Vec<Brief> {
        segments
            .iter()
            .map(|(id, segment)| {
                let (sp, recorded) = match segment.sp {
                    trace_format::SpEffect::Add(change) => (change, false),
                    trace_format::SpEffect::Recorded => (0, true),
                };
                let level = level_change(segment);
                let (instructions, addresses) = (segment.len() as u32, segment.addresses);
                let transfers = segment.last().kind.transfers_control();
                Brief {
                    start: segment.start(),
                    last: segment.last().pc,
                    place: segment.place,
                    instructions,
                    gpu: cost(id),
                    addresses,
                    sp,
                    level,
                    recorded,
                    transfers,
                    in_stub: segment.in_stub,
                }
            })
            .collect()
    }
}

/// How a segment changes the call level of a lane.
pub(crate) fn level_change(segment: &Segment) -> i8 {
    match segment.last().kind {
        kind if kind.is_call() => 1,
        trace_format::Kind::Return => -1,
        _ => 0,
    }
}
