//! Streams that are kept in memory, so that the view of a thread is made once. What does not fit as it is, is packed:
//! the streams of loops shrink to a hundredth, and unpacking them costs a fraction of making them anew. What must be
//! kept in any case goes to a temporary file beyond that.

mod spill;

use std::sync::atomic::{AtomicUsize, Ordering};

use self::spill::{Spill, Spilled};

use zstd::bulk::{Compressor, Decompressor};

use crate::{Batch, Code, Control, Error, LaneStream, Result};

/// Streams are kept as they are while all of them together stay below this many bytes.
pub const KEEP_BYTES: usize = 256 << 20;

/// Those beyond are packed while what they are packed to stays below this many bytes.
pub const PACKED_BYTES: usize = 128 << 20;

/// The level of zstd: swaptions' streams (1.1 G thread instructions) are no smaller at a higher one.
const LEVEL: i32 = 1;

/// A stream that is kept.
#[derive(Default)]
pub struct Kept(Vec<Piece>);

pub(crate) enum Piece {
    Plain(Batch),
    Packed(Packed),
    Spilled(Spilled),
}

/// A batch, packed.
pub(crate) struct Packed {
    /// Codes, stack pointers and addresses, one after another.
    bytes: Vec<u8>,
    codes: usize,
    sps: usize,
    addresses: usize,
    controls: Vec<Control>,
}

impl Kept {
    /// These batches, as they are.
    pub(crate) fn plain(batches: Vec<Batch>) -> Kept {
        Kept(batches.into_iter().map(Piece::Plain).collect())
    }

    /// Reads it from its beginning.
    #[must_use]
    pub fn stream(&self) -> Box<dyn LaneStream + '_> {
        Box::new(Reading { pieces: self.0.iter(), unpacker: Unpacker::default() })
    }

    /// Looks at all batches in order.
    ///
    /// # Errors
    /// When one cannot be unpacked (a bug).
    pub(crate) fn for_each(&self, mut see: impl FnMut(&Batch)) -> Result<()> {
        let (mut unpacker, mut batch) = (Unpacker::default(), Batch::default());
        for piece in &self.0 {
            match piece {
                Piece::Plain(batch) => see(batch),
                _ => {
                    unpacker.piece(piece, &mut batch)?;
                    see(&batch);
                }
            }
        }
        Ok(())
    }

    /// The bytes that it takes as it is, and packed.
    fn sizes(&self) -> (usize, usize) {
        self.0.iter().fold((0, 0), |(plain, packed), piece| match piece {
            Piece::Plain(batch) => (plain + size(batch), packed),
            Piece::Packed(one) => (plain, packed + one.size()),
            Piece::Spilled(_) => (plain, packed),
        })
    }
}

impl Packed {
    fn size(&self) -> usize {
        self.bytes.len() + self.controls.len() * 16
    }
}

/// Keeps streams while they fit, whatever threads make them.
pub(crate) struct Keeper {
    /// What is kept now as it is, and packed.
    plain: AtomicUsize,
    packed: AtomicUsize,
    spill: Spill,
}

impl Keeper {
    /// Beside what is kept already.
    pub(crate) fn beside<'a>(kept: impl Iterator<Item = &'a Kept>) -> Keeper {
        let (plain, packed) = kept.map(Kept::sizes).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        Keeper { plain: AtomicUsize::new(plain), packed: AtomicUsize::new(packed), spill: Spill::default() }
    }

    /// Keeps one batch, whatever it takes: in a temporary file where it does not fit into memory.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn keep(&self, batch: &Batch, packing: &mut Packing) -> Result<Piece> {
        if fits(&self.plain, size(batch), KEEP_BYTES) {
            return Ok(Piece::Plain(batch.clone()));
        }
        let packed = packing.pack(batch).ok_or_else(|| Error::Request("no memory to pack lanes in".to_owned()))?;
        if fits(&self.packed, packed.size(), PACKED_BYTES) {
            return Ok(Piece::Packed(packed));
        }
        self.spill.write(packed).map(Piece::Spilled)
    }

    /// For one stream.
    pub(crate) fn stream(&self) -> Keeping<'_> {
        Keeping { keeper: self, kept: Some(Kept::default()), packing: Packing::default() }
    }
}

/// Whether so much more fits; if not, it is not counted.
fn fits(all: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let does = all.fetch_add(bytes, Ordering::Relaxed) + bytes <= most;
    if !does {
        all.fetch_sub(bytes, Ordering::Relaxed);
    }
    does
}

/// Keeps one stream, or what of it has come.
pub(crate) struct Keeping<'k> {
    keeper: &'k Keeper,
    /// None once it does not fit.
    kept: Option<Kept>,
    packing: Packing,
}

/// Packs batches.
#[derive(Default)]
pub(crate) struct Packing {
    packer: Option<Compressor<'static>>,
    /// What is packed next.
    bytes: Vec<u8>,
}

impl Keeping<'_> {
    /// The next piece has come.
    pub(crate) fn add(&mut self, batch: &Batch) {
        if self.kept.is_none() {
            return;
        }
        let piece = if fits(&self.keeper.plain, size(batch), KEEP_BYTES) {
            // A copy has just the size that it needs, and the batch keeps its memory for the next piece.
            Some(Piece::Plain(batch.clone()))
        } else {
            let packed = self.packing.pack(batch);
            packed.filter(|one| fits(&self.keeper.packed, one.size(), PACKED_BYTES)).map(Piece::Packed)
        };
        match (piece, &mut self.kept) {
            (Some(piece), Some(kept)) => kept.0.push(piece),
            _ => {
                let (plain, packed) = self.kept.take().map_or((0, 0), |kept| kept.sizes());
                self.keeper.plain.fetch_sub(plain, Ordering::Relaxed);
                self.keeper.packed.fetch_sub(packed, Ordering::Relaxed);
            }
        }
    }

    /// The whole stream; none where it does not fit.
    pub(crate) fn finish(self) -> Option<Kept> {
        self.kept
    }
}

impl Packing {
    /// None where there is no memory for it.
    fn pack(&mut self, batch: &Batch) -> Option<Packed> {
        self.bytes.clear();
        batch.codes.iter().for_each(|code| self.bytes.extend_from_slice(&code.bits().to_le_bytes()));
        batch.sps.iter().for_each(|sp| self.bytes.extend_from_slice(&sp.to_le_bytes()));
        batch.addresses.iter().for_each(|address| self.bytes.extend_from_slice(&address.to_le_bytes()));
        if self.packer.is_none() {
            self.packer = Compressor::new(LEVEL).ok();
        }
        let mut bytes = self.packer.as_mut()?.compress(&self.bytes).ok()?;
        bytes.shrink_to_fit();
        let (codes, sps, addresses) = (batch.codes.len(), batch.sps.len(), batch.addresses.len());
        Some(Packed { bytes, codes, sps, addresses, controls: batch.controls.clone() })
    }
}

/// What a batch takes in memory, in bytes.
fn size(batch: &Batch) -> usize {
    batch.codes.len() * 4 + batch.controls.len() * 16 + (batch.sps.len() + batch.addresses.len()) * 8
}

/// Unpacks batches, one after another.
#[derive(Default)]
pub(crate) struct Unpacker {
    decompressor: Option<Decompressor<'static>>,
    bytes: Vec<u8>,
}

impl Unpacker {
    /// Puts what was kept into `batch`.
    pub(crate) fn piece(&mut self, piece: &Piece, batch: &mut Batch) -> Result<()> {
        match piece {
            Piece::Plain(kept) => {
                batch.clear();
                batch.codes.extend_from_slice(&kept.codes);
                batch.controls.extend_from_slice(&kept.controls);
                batch.sps.extend_from_slice(&kept.sps);
                batch.addresses.extend_from_slice(&kept.addresses);
                Ok(())
            }
            Piece::Packed(packed) => self.unpack(packed, batch),
            Piece::Spilled(spilled) => self.unpack(&spilled.read()?, batch),
        }
    }

    fn unpack(&mut self, packed: &Packed, batch: &mut Batch) -> Result<()> {
        batch.clear();
        let length = packed.codes * 4 + (packed.sps + packed.addresses) * 8;
        if self.decompressor.is_none() {
            self.decompressor = Decompressor::new().ok();
        }
        self.bytes.clear();
        self.bytes.reserve(length);
        let unpacked = self.decompressor.as_mut().map(|d| d.decompress_to_buffer(&packed.bytes, &mut self.bytes));
        if !matches!(unpacked, Some(Ok(got)) if got == length) {
            return Err(Error::Bug("a stream that was packed cannot be unpacked".to_owned()));
        }
        let (codes, rest) = self.bytes.split_at(packed.codes * 4);
        let (sps, addresses) = rest.split_at(packed.sps * 8);
        batch.codes.extend(codes.as_chunks().0.iter().map(|bytes| Code::of_bits(u32::from_le_bytes(*bytes))));
        batch.sps.extend(sps.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)));
        batch.addresses.extend(addresses.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
        batch.controls.extend_from_slice(&packed.controls);
        Ok(())
    }
}

/// Reads what was kept.
struct Reading<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    unpacker: Unpacker,
}

impl LaneStream for Reading<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let next = self.pieces.next();
        if let Some(piece) = next {
            self.unpacker.piece(piece, batch)?;
        }
        Ok(next.is_some())
    }
}

#[cfg(test)]
mod tests {
    use heuristics::SegmentId;

    use super::*;

    fn batch(numbers: std::ops::Range<u32>) -> Batch {
        let mut codes: Vec<Code> = numbers.clone().map(|n| Code::segment(SegmentId(n % 1000))).collect();
        codes.insert(1, Code::control(0));
        let sps = numbers.clone().map(|n| -i64::from(n)).collect();
        let addresses = numbers.map(|n| u64::MAX - u64::from(n)).collect();
        Batch { codes, controls: vec![Control::Sp(-8)], sps, addresses }
    }

    fn read(kept: &Kept) -> Vec<Batch> {
        let (mut stream, mut batch) = (kept.stream(), Batch::default());
        std::iter::from_fn(|| stream.next_batch(&mut batch).unwrap().then(|| batch.clone())).collect()
    }

    #[test]
    fn what_does_not_fit_is_packed_and_reads_the_same() {
        let all = [batch(0..5000), batch(7..9), batch(100..20_000)];
        let keeper = Keeper {
            plain: AtomicUsize::new(KEEP_BYTES - size(&all[1])),
            packed: AtomicUsize::new(0),
            spill: Spill::default(),
        };
        let mut keeping = keeper.stream();
        all.iter().for_each(|batch| keeping.add(batch));
        let kept = keeping.finish().unwrap();
        assert_eq!(kept.sizes().0, size(&all[1]));
        assert!(kept.sizes().1 < size(&all[0]) + size(&all[2]));
        assert!(read(&kept) == all);
        let mut seen = Vec::new();
        kept.for_each(|batch| seen.push(batch.clone())).unwrap();
        assert!(seen == all);
        let again = Keeper::beside([&kept, &kept].into_iter());
        assert_eq!((again.plain.into_inner(), again.packed.into_inner()), (2 * kept.sizes().0, 2 * kept.sizes().1));
    }

    #[test]
    fn what_must_be_kept_goes_to_a_file_where_memory_does_not_hold_it() {
        let all = [batch(0..5000), batch(7..9), batch(100..20_000)];
        let (plain, packed) = (AtomicUsize::new(KEEP_BYTES), AtomicUsize::new(PACKED_BYTES));
        let keeper = Keeper { plain, packed, spill: Spill::default() };
        let mut packing = Packing::default();
        let pieces: Vec<Piece> = all.iter().map(|batch| keeper.keep(batch, &mut packing).unwrap()).collect();
        assert!(pieces.iter().all(|piece| matches!(piece, Piece::Spilled(_))));
        // In any order, as warps come to them.
        for at in [2, 0, 1, 0] {
            let mut batch = Batch::default();
            Unpacker::default().piece(&pieces[at], &mut batch).unwrap();
            assert!(batch == all[at]);
        }
    }

    #[test]
    fn a_stream_that_does_not_fit_at_all_gives_its_room_back() {
        let (plain, packed) = (AtomicUsize::new(KEEP_BYTES - 50_000), AtomicUsize::new(PACKED_BYTES));
        let keeper = Keeper { plain, packed, spill: Spill::default() };
        let mut keeping = keeper.stream();
        keeping.add(&batch(0..100));
        keeping.add(&batch(0..20_000));
        keeping.add(&batch(0..100));
        assert!(keeping.finish().is_none());
        assert_eq!((keeper.plain.into_inner(), keeper.packed.into_inner()), (KEEP_BYTES - 50_000, PACKED_BYTES));
    }
}
