//! Streams that are kept in memory, so that later readings of them cost no decompression.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Batch, LaneStream, Result};

/// Streams are kept in memory while all of them together stay below this many bytes.
pub const KEEP_BYTES: usize = 256 << 20;

/// Keeps streams while they fit, whatever threads make them.
pub(crate) struct Keeper {
    /// What is kept now.
    bytes: AtomicUsize,
}

impl Keeper {
    /// Beside what is kept already.
    pub(crate) fn beside<'a>(kept: impl Iterator<Item = &'a [Batch]>) -> Keeper {
        Keeper { bytes: AtomicUsize::new(kept.flatten().map(size).sum()) }
    }

    /// For one stream.
    pub(crate) fn stream(&self) -> Keeping<'_> {
        Keeping { keeper: self, batches: Some(Vec::new()) }
    }
}

/// Keeps one stream, or what of it has come.
pub(crate) struct Keeping<'k> {
    keeper: &'k Keeper,
    /// None once it does not fit.
    batches: Option<Vec<Batch>>,
}

impl Keeping<'_> {
    /// The next piece has come.
    pub(crate) fn add(&mut self, batch: &Batch) {
        let Some(batches) = &mut self.batches else { return };
        let bytes = size(batch);
        if self.keeper.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > KEEP_BYTES {
            let given_back = bytes + batches.iter().map(size).sum::<usize>();
            self.keeper.bytes.fetch_sub(given_back, Ordering::Relaxed);
            self.batches = None;
            return;
        }
        // A copy has just the size that it needs, and the batch keeps its memory for the next piece.
        batches.push(batch.clone());
    }

    /// The whole stream; none where it does not fit.
    pub(crate) fn finish(self) -> Option<Vec<Batch>> {
        self.batches
    }
}

/// What a batch takes in memory, in bytes.
fn size(batch: &Batch) -> usize {
    batch.codes.len() * 4 + batch.controls.len() * 16 + (batch.sps.len() + batch.addresses.len()) * 8
}

/// Reads what was kept.
pub(crate) struct Kept<'a> {
    batches: std::slice::Iter<'a, Batch>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(batches: &'a [Batch]) -> Kept<'a> {
        Kept { batches: batches.iter() }
    }
}

impl LaneStream for Kept<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let next = self.batches.next();
        if let Some(kept) = next {
            batch.codes.extend_from_slice(&kept.codes);
            batch.controls.extend_from_slice(&kept.controls);
            batch.sps.extend_from_slice(&kept.sps);
            batch.addresses.extend_from_slice(&kept.addresses);
        }
        Ok(next.is_some())
    }
}
