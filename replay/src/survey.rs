//! One reading of all lanes before any replay: how much each lane runs and how like the others it is, who meets whom, and, where a
//! heuristic asks for it, the control-flow graph. What fits into memory is kept, so that later readings are cheap.

use std::sync::atomic::{AtomicUsize, Ordering};

use heuristics::{ControlFlow, Observer, SegmentId, SegmentTable};
use rayon::prelude::*;
use trace_format::Kind;

use crate::lanes_source::Kept;
use crate::{Batch, Control, Entry, LaneSource, LaneStream, MeetingId, Result};

/// Streams are kept in memory while all of them together stay below this many bytes.
pub const KEEP_BYTES: usize = 256 << 20;

/// Buckets of a lane's profile: places are counted by hash, so that a profile has the same size for every program.
pub(crate) const PROFILE: usize = 256;

/// What the survey found of one lane.
pub(crate) struct LaneSurvey {
    /// Instructions that it runs.
    pub instructions: u64,
    /// Instructions by place, hashed.
    pub profile: Vec<u64>,
    /// The meetings in its stream, each once.
    pub meetings: Vec<MeetingId>,
    /// How often it waits for all others ([`Control::MeetAll`]).
    pub meet_alls: u64,
    kept: Option<Vec<Batch>>,
}

/// What the survey found.
pub struct Survey<'a> {
    source: &'a dyn LaneSource,
    pub(crate) lanes: Vec<LaneSurvey>,
    /// The control-flow graph, where it was asked for.
    pub(crate) control_flow: ControlFlow,
}

impl<'a> Survey<'a> {
    /// Reads every lane once.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn new(source: &'a dyn LaneSource, with_control_flow: bool) -> Result<Survey<'a>> {
        let kept_bytes = AtomicUsize::new(0);
        let read: Vec<(LaneSurvey, Observer)> = (0..source.lanes())
            .into_par_iter()
            .map(|lane| survey_lane(source, lane, with_control_flow, &kept_bytes))
            .collect::<Result<_>>()?;
        let mut all = Observer::default();
        let mut lanes = Vec::with_capacity(read.len());
        for (lane, observer) in read {
            lanes.push(lane);
            all.merge(observer);
        }
        let control_flow = if with_control_flow { all.control_flow(source.segments()) } else { ControlFlow::default() };
        Ok(Survey { source, lanes, control_flow })
    }

    /// The lane's stream from its beginning.
    pub(crate) fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_> {
        match &self.lanes[lane].kept {
            Some(batches) => Box::new(Kept::new(batches)),
            None => self.source.stream(lane),
        }
    }

    /// Where the lanes come from.
    pub(crate) fn source(&self) -> &'a dyn LaneSource {
        self.source
    }
}

fn survey_lane(
    source: &dyn LaneSource,
    lane: usize,
    with_control_flow: bool,
    kept_bytes: &AtomicUsize,
) -> Result<(LaneSurvey, Observer)> {
    let segments = source.segments();
    let mut stream = source.stream(lane);
    let mut survey = LaneSurvey {
        instructions: 0,
        profile: vec![0; PROFILE],
        meetings: Vec::new(),
        meet_alls: 0,
        kept: Some(Vec::new()),
    };
    let mut observer = Observer::default();
    let mut level = 1;
    let mut batch = Batch::default();
    while stream.next_batch(&mut batch)? {
        for code in &batch.codes {
            match code.entry() {
                Entry::Segment(id) => {
                    let segment = &segments[id];
                    survey.instructions += segment.len() as u64;
                    survey.profile[segment.place.0 as usize * 0x9E37 % PROFILE] += segment.len() as u64;
                    if with_control_flow {
                        observer.segment(segments, id, level);
                        level = level_after(segments, id, level);
                    }
                }
                Entry::Control(index) => match batch.controls[index] {
                    Control::Meet(meeting) => survey.meetings.push(meeting),
                    Control::MeetAll => survey.meet_alls += 1,
                    Control::Level(new) => level = new,
                    _ => {}
                },
            }
        }
        keep(&mut survey.kept, &batch, kept_bytes);
    }
    observer.end();
    survey.meetings.sort_unstable();
    survey.meetings.dedup();
    Ok((survey, observer))
}

/// The call level after a segment that began at `level`.
pub(crate) fn level_after(segments: &SegmentTable, id: SegmentId, level: u32) -> u32 {
    match segments[id].last().kind {
        kind if kind.is_call() => level + 1,
        Kind::Return => level.saturating_sub(1).max(1),
        _ => level,
    }
}

fn keep(kept: &mut Option<Vec<Batch>>, batch: &Batch, kept_bytes: &AtomicUsize) {
    let Some(batches) = kept else { return };
    let bytes = kept_size(batch);
    if kept_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > KEEP_BYTES {
        let given_back = bytes + batches.iter().map(kept_size).sum::<usize>();
        kept_bytes.fetch_sub(given_back, Ordering::Relaxed);
        *kept = None;
        return;
    }
    // A copy has just the size that it needs, and the batch keeps its memory for the next piece.
    batches.push(batch.clone());
}

/// What a batch takes in memory, in bytes.
fn kept_size(batch: &Batch) -> usize {
    batch.codes.len() * 4 + batch.controls.len() * 16 + (batch.sps.len() + batch.addresses.len()) * 8
}
