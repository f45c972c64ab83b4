//! Streams that are kept, so that the view of a thread is made once. They are kept folded: a block that was run whole
//! is one code. What does not fit into memory as it is, is packed: the streams of loops shrink to a hundredth, and
//! unpacking them costs a fraction of making them again. What does not fit even so goes to a temporary file.

mod spill;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trace_format::Seq;
use zstd::bulk::{Compressor, Decompressor};

use self::spill::{Spill, Spilled};
use crate::{Batch, Code, Control, EpisodeId, Error, LaneStream, LockId, Result, Rows};

/// Streams are kept as they are while all of them together stay below this many bytes.
pub const KEEP_BYTES: usize = 384 << 20;

/// Those beyond are packed while what they are packed to stays below this many bytes.
pub const PACKED_BYTES: usize = 128 << 20;

/// The level of zstd: swaptions' streams (1.1 G thread instructions) are no smaller at a higher one.
const LEVEL: i32 = 1;

/// A stream that is kept.
#[derive(Default)]
pub struct Kept {
    pieces: Vec<Piece>,
    rows: Arc<Rows>,
}

pub(crate) enum Piece {
    Plain(Batch),
    Packed(Packed),
    Spilled(Spilled),
}

/// A batch, packed.
pub(crate) struct Packed {
    /// Codes, stack pointers, addresses and controls, one after another.
    bytes: Vec<u8>,
    lengths: Lengths,
}

/// How many of each a packed batch holds.
#[derive(Clone, Copy)]
pub(crate) struct Lengths {
    codes: usize,
    sps: usize,
    addresses: usize,
    controls: usize,
}

impl Kept {
    /// These batches, as they are.
    pub(crate) fn plain(batches: Vec<Batch>) -> Kept {
        Kept { pieces: batches.into_iter().map(Piece::Plain).collect(), rows: Arc::default() }
    }

    /// Reads it from its beginning.
    #[must_use]
    pub fn stream(&self) -> Box<dyn LaneStream + '_> {
        Box::new(Reading { kept: self, at: 0, unpacker: Unpacker::default(), folded: Batch::default() })
    }

    /// The rows that its batches name.
    pub(crate) fn rows(&self) -> &Arc<Rows> {
        &self.rows
    }

    /// Looks at all batches in order, folded.
    ///
    /// # Errors
    /// When one cannot be unpacked (a bug), or read from its file.
    pub(crate) fn for_each(&self, mut see: impl FnMut(&Batch)) -> Result<()> {
        let (mut unpacker, mut batch) = (Unpacker::default(), Batch::default());
        for piece in &self.pieces {
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
        self.pieces.iter().fold((0, 0), |(plain, packed), piece| match piece {
            Piece::Plain(batch) => (plain + size(batch), packed),
            Piece::Packed(one) => (plain, packed + one.size()),
            Piece::Spilled(_) => (plain, packed),
        })
    }
}

impl Packed {
    fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The bytes of a control: which one it is, then a number of 8 bytes, then one of 4.
const CONTROL_BYTES: usize = 13;

fn control_to_bytes(control: Control) -> [u8; CONTROL_BYTES] {
    let (which, large, small) = match control {
        Control::Sp(sp) => (0, sp as u64, 0),
        Control::Level(level) => (1, 0, level),
        Control::Stack { zero, above } => (2, zero, above),
        Control::Meet(episode) => (3, 0, episode.0),
        Control::MeetAll => (4, 0, 0),
        Control::Post(episode) => (17, 0, episode.0),
        Control::Await(episode) => (18, 0, episode.0),
        Control::Acquire(lock) => (5, 0, lock.0),
        Control::AcquireShared(lock) => (6, 0, lock.0),
        Control::AcquireOneOf { lock, most } => (16, most.into(), lock.0),
        Control::Release(lock) => (7, 0, lock.0),
        Control::Begin { after, part } => (8, after.0, part),
        Control::Leave(place) => (19, 0, place),
        Control::GoOn(place) => (20, 0, place),
        Control::Chunk { first, stride } => (9, first as u64, stride),
        Control::Team { league, order } => (10, league.0.into(), order),
        Control::Piece { first, taskloop } => (11, first as u64, taskloop),
        Control::Iterations(number) => (12, number, 0),
        Control::Turns(turns) => (15, turns, 0),
        Control::Part(team) => (13, team.is_some().into(), team.map_or(0, |team| team.0)),
        Control::PartEnd => (14, 0, 0),
    };
    let mut bytes = [which; CONTROL_BYTES];
    bytes[1..9].copy_from_slice(&large.to_le_bytes());
    bytes[9..].copy_from_slice(&small.to_le_bytes());
    bytes
}

fn control_of_bytes(bytes: &[u8; CONTROL_BYTES]) -> Option<Control> {
    let [which, large @ .., s0, s1, s2, s3] = bytes;
    let (large, small) = (u64::from_le_bytes(*large), u32::from_le_bytes([*s0, *s1, *s2, *s3]));
    Some(match which {
        0 => Control::Sp(large as i64),
        1 => Control::Level(small),
        2 => Control::Stack { zero: large, above: small },
        3 => Control::Meet(EpisodeId(small)),
        4 => Control::MeetAll,
        17 => Control::Post(EpisodeId(small)),
        18 => Control::Await(EpisodeId(small)),
        5 => Control::Acquire(LockId(small)),
        6 => Control::AcquireShared(LockId(small)),
        16 => Control::AcquireOneOf { lock: LockId(small), most: large as u32 },
        7 => Control::Release(LockId(small)),
        8 => Control::Begin { after: Seq(large), part: small },
        19 => Control::Leave(small),
        20 => Control::GoOn(small),
        9 => Control::Chunk { first: large as i64, stride: small },
        10 => Control::Team { league: EpisodeId(large as u32), order: small },
        11 => Control::Piece { first: large as i64, taskloop: small },
        12 => Control::Iterations(large),
        15 => Control::Turns(large),
        13 => Control::Part((large > 0).then_some(EpisodeId(small))),
        14 => Control::PartEnd,
        _ => return None,
    })
}

/// Keeps streams while they fit, whatever threads make them.
pub(crate) struct Keeper {
    /// What is kept now as it is, and packed.
    plain: AtomicUsize,
    packed: AtomicUsize,
    spill: Spill,
}

impl Keeper {
    /// Besides what is kept already.
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

    /// For one stream, whose batches name these rows.
    pub(crate) fn stream(&self, rows: Arc<Rows>) -> Keeping<'_> {
        Keeping { keeper: self, kept: Kept { pieces: Vec::new(), rows }, packing: Packing::default() }
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
    kept: Kept,
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
    ///
    /// # Errors
    /// As [`Keeper::keep`].
    pub(crate) fn add(&mut self, batch: &Batch) -> Result<()> {
        self.kept.pieces.push(self.keeper.keep(batch, &mut self.packing)?);
        Ok(())
    }

    /// The whole stream.
    pub(crate) fn finish(self) -> Kept {
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
        batch.controls.iter().for_each(|control| self.bytes.extend_from_slice(&control_to_bytes(*control)));
        if self.packer.is_none() {
            self.packer = Compressor::new(LEVEL).ok();
        }
        let mut bytes = self.packer.as_mut()?.compress(&self.bytes).ok()?;
        bytes.shrink_to_fit();
        let (codes, controls) = (batch.codes.len(), batch.controls.len());
        let lengths = Lengths { codes, sps: batch.sps.len(), addresses: batch.addresses.len(), controls };
        Some(Packed { bytes, lengths })
    }
}

/// What a batch takes in memory, in bytes.
pub(crate) fn size(batch: &Batch) -> usize {
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
        let Lengths { codes, sps, addresses, controls } = packed.lengths;
        let length = codes * 4 + (sps + addresses) * 8 + controls * CONTROL_BYTES;
        if self.decompressor.is_none() {
            self.decompressor = Decompressor::new().ok();
        }
        self.bytes.clear();
        self.bytes.reserve(length);
        let unpacked = self.decompressor.as_mut().map(|d| d.decompress_to_buffer(&packed.bytes, &mut self.bytes));
        let failed = || Error::Bug("a stream that was packed cannot be unpacked".to_owned());
        if !matches!(unpacked, Some(Ok(got)) if got == length) {
            return Err(failed());
        }
        let (codes, rest) = self.bytes.split_at(codes * 4);
        let (sps, rest) = rest.split_at(sps * 8);
        let (addresses, controls) = rest.split_at(addresses * 8);
        batch.codes.extend(codes.as_chunks().0.iter().map(|bytes| Code::of_bits(u32::from_le_bytes(*bytes))));
        batch.sps.extend(sps.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)));
        batch.addresses.extend(addresses.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
        for bytes in controls.as_chunks().0 {
            batch.controls.push(control_of_bytes(bytes).ok_or_else(failed)?);
        }
        Ok(())
    }
}

/// Reads what was kept.
struct Reading<'a> {
    kept: &'a Kept,
    at: usize,
    unpacker: Unpacker,
    folded: Batch,
}

impl LaneStream for Reading<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        let rows = &self.kept.rows;
        match self.kept.pieces.get(self.at) {
            Some(Piece::Plain(kept)) => rows.unfold(kept, batch),
            Some(piece) => {
                self.unpacker.piece(piece, &mut self.folded)?;
                rows.unfold(&self.folded, batch);
            }
            None => {
                batch.clear();
                return Ok(false);
            }
        }
        self.at += 1;
        Ok(true)
    }

    fn next_folded(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let Some(piece) = self.kept.pieces.get(self.at) else { return Ok(false) };
        self.unpacker.piece(piece, batch)?;
        self.at += 1;
        Ok(true)
    }

    fn rows(&self) -> Arc<Rows> {
        Arc::clone(&self.kept.rows)
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
        let controls = vec![
            Control::Sp(-8),
            Control::Level(3),
            Control::Stack { zero: 1 << 63, above: 7 },
            Control::Meet(EpisodeId(1)),
            Control::Post(EpisodeId(2)),
            Control::Await(EpisodeId(3)),
            Control::MeetAll,
            Control::Acquire(LockId(2)),
            Control::AcquireShared(LockId(3)),
            Control::AcquireOneOf { lock: LockId(4), most: 5 },
            Control::Release(LockId(u32::MAX)),
            Control::Begin { after: Seq(1 << 40), part: 3 },
            Control::Leave(7),
            Control::GoOn(8),
            Control::Team { league: EpisodeId(u32::MAX), order: 7 },
            Control::Chunk { first: -7, stride: 1 << 31 },
            Control::Piece { first: 1 << 40, taskloop: u32::MAX },
            Control::Iterations(1 << 40),
            Control::Turns(1 << 33),
            Control::Part(Some(EpisodeId(0))),
            Control::Part(None),
            Control::PartEnd,
        ];
        Batch { codes, controls, sps, addresses }
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
        let mut keeping = keeper.stream(Arc::default());
        all.iter().for_each(|batch| keeping.add(batch).unwrap());
        let kept = keeping.finish();
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
        // In any order, as warps reach them.
        for at in [2, 0, 1, 0] {
            let mut batch = Batch::default();
            Unpacker::default().piece(&pieces[at], &mut batch).unwrap();
            assert!(batch == all[at]);
        }
    }
}
