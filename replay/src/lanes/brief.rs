//! Segments in few bytes: what a run of them needs to know of each.

use heuristics::{PlaceId, Segment, SegmentId, SegmentTable};

/// What a run of segments needs to know of each, packed.
#[derive(Clone, Copy)]
pub struct Brief {
    /// Where it begins.
    pub(crate) start: trace_format::Pc,
    /// Its last instruction.
    pub(crate) last: trace_format::Pc,
    pub(crate) place: PlaceId,
    pub(crate) instructions: u32,
    /// How many instructions a GPU has for it, in tenths.
    pub(crate) gpu_tenths: u32,
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
        Brief::with_costs(segments, &|id| 10 * segments[id].len() as u32)
    }

    /// The briefs of all segments, by number; `gpu_tenths`: see [`LaneSource::gpu_tenths`](crate::LaneSource).
    #[must_use]
    pub fn with_costs(segments: &SegmentTable, gpu_tenths: &dyn Fn(SegmentId) -> u32) -> Vec<Brief> {
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
                    gpu_tenths: gpu_tenths(id),
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
