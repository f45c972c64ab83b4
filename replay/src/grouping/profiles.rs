//! Profiles of lanes: how many instructions each runs, by place. Places are counted by hash, so that a profile has the
//! same size for every program.

use std::sync::Arc;

use heuristics::{SegmentId, SegmentTable};

use crate::survey::Survey;
use crate::{Batch, Result, Rows};

/// Buckets of a profile.
pub(super) const PROFILE: usize = 256;

/// Makes profiles, of many lanes one after another: what each row of segments adds is worked out once.
pub(super) struct Profiler<'a> {
    survey: &'a Survey<'a>,
    rows: Arc<Rows>,
    /// By row; empty where it was not seen yet.
    of_rows: Vec<Vec<(u8, u64)>>,
    batch: Batch,
}

impl<'a> Profiler<'a> {
    pub(super) fn new(survey: &'a Survey<'a>) -> Profiler<'a> {
        Profiler { survey, rows: Arc::default(), of_rows: Vec::new(), batch: Batch::default() }
    }

    /// The instructions of a lane, by bucket.
    pub(super) fn of(&mut self, lane: usize) -> Result<[u64; PROFILE]> {
        let segments = self.survey.source().segments();
        let (mut profile, mut stream) = ([0; PROFILE], self.survey.stream(lane));
        let rows = stream.rows();
        if !Arc::ptr_eq(&self.rows, &rows) {
            self.of_rows = vec![Vec::new(); rows.len()];
            self.rows = rows;
        }
        while stream.next_folded(&mut self.batch)? {
            for code in &self.batch.codes {
                if let Some(row) = code.as_row() {
                    let own = &mut self.of_rows[row.0 as usize];
                    if own.is_empty() {
                        *own = of_row(self.rows.segments(row), segments);
                    }
                    own.iter().for_each(|(bucket, more)| profile[usize::from(*bucket)] += more);
                } else if let Some(id) = code.as_segment() {
                    let (bucket, more) = of_segment(id, segments);
                    profile[usize::from(bucket)] += more;
                }
            }
        }
        Ok(profile)
    }
}

fn of_segment(id: SegmentId, segments: &SegmentTable) -> (u8, u64) {
    let segment = &segments[id];
    ((segment.place.0 as usize * 0x9E37 % PROFILE) as u8, segment.len() as u64)
}

fn of_row(row: impl Iterator<Item = SegmentId>, segments: &SegmentTable) -> Vec<(u8, u64)> {
    let mut all: Vec<(u8, u64)> = row.map(|id| of_segment(id, segments)).collect();
    all.sort_unstable();
    all.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        kept.1 += if is_same { next.1 } else { 0 };
        is_same
    });
    all.shrink_to_fit();
    all
}
