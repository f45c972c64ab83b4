//! The streams of lanes that were cut from those of threads, one thread's lanes one after another: an index of 16 bytes
//! a lane over pieces that are kept as they are, packed, or in a temporary file.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lanes::kept::{Keeper, Packing, Piece, Unpacker, size};
use crate::{Batch, Code, Control, LaneStream, Result, Rows};

/// A piece ends with the first lane behind so many bytes: small enough that reading one lane of many costs little more
/// than the lane, large enough that loops pack well.
const PIECE_BYTES: usize = 64 << 10;

/// A piece ends inside a lane with the first code behind so many segments of it: those of all lanes of a warp stay in
/// the caches when they are unfolded.
const SEGMENTS: usize = 16 << 10;

/// Pieces that each thread of this process remembers unpacked: the lanes of a warp mostly lie in one or two.
const REMEMBERED: usize = 8;

/// So many batches without content each thread of this process keeps for lanes to come: those of the lanes of a warp.
const SPARE: usize = 64;

/// The most codes that there is room for in one of them.
const SPARE_CODES: usize = 16 << 10;

thread_local! {
    /// Lanes are short and many: what one was read into is used again.
    static SPARES: RefCell<Vec<Batch>> = RefCell::default();
}

/// A store and the number of a piece there, and the piece.
type Unpacked = ((u64, u32), Batch);

/// Where a lane begins.
#[derive(Clone, Copy, Debug)]
struct Begin {
    piece: u32,
    code: u32,
    sp: u32,
    address: u32,
}

/// The lanes of one thread.
pub(super) struct Store {
    /// Told apart from others where pieces are remembered.
    id: u64,
    pieces: Vec<Piece>,
    /// Where each lane begins, and where the last one ends.
    begins: Vec<Begin>,
}

/// Writes the lanes of one thread.
pub(super) struct Writer<'k> {
    keeper: &'k Keeper,
    packing: Packing,
    batch: Batch,
    /// Segments of the lane in this piece.
    segments: usize,
    store: Store,
}

impl<'k> Writer<'k> {
    pub(super) fn new(keeper: &'k Keeper) -> Writer<'k> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let id = STORES.fetch_add(1, Ordering::Relaxed);
        let store = Store { id, pieces: Vec::new(), begins: Vec::new() };
        Writer { keeper, packing: Packing::default(), batch: Batch::default(), segments: 0, store }
    }

    /// A lane begins: what is written from now on is its own.
    pub(super) fn begin(&mut self) -> Result<()> {
        if size(&self.batch) >= PIECE_BYTES {
            self.flush()?;
        }
        self.segments = 0;
        let begin = self.here();
        self.store.begins.push(begin);
        Ok(())
    }

    fn here(&self) -> Begin {
        Begin {
            piece: self.store.pieces.len() as u32,
            code: self.batch.codes.len() as u32,
            sp: self.batch.sps.len() as u32,
            address: self.batch.addresses.len() as u32,
        }
    }

    /// Takes the lane that began last back, with all of it.
    pub(super) fn take_back(&mut self) {
        let Some(begin) = self.store.begins.pop() else { return };
        debug_assert_eq!(begin.piece as usize, self.store.pieces.len(), "a lane that is held lies in one piece");
        let controls = self.batch.codes[begin.code as usize..].iter().filter(|code| code.is_control());
        let controls = self.batch.controls.len() - controls.count();
        self.batch.codes.truncate(begin.code as usize);
        self.batch.controls.truncate(controls);
        self.batch.sps.truncate(begin.sp as usize);
        self.batch.addresses.truncate(begin.address as usize);
    }

    /// The lane runs so many segments, for which the code stands, with the stack pointers after those where they were
    /// recorded, and their addresses.
    #[inline]
    pub(super) fn ran(&mut self, code: Code, segments: usize, sps: impl Iterator<Item = i64>, addresses: &[u64]) {
        self.batch.codes.push(code);
        self.batch.sps.extend(sps);
        self.batch.addresses.extend_from_slice(addresses);
        self.segments += segments;
    }

    /// The lane will not be taken back any more.
    #[inline]
    pub(super) fn is_sure(&mut self) -> Result<()> {
        if self.segments >= SEGMENTS || size(&self.batch) >= 2 * PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    /// A control comes next.
    pub(super) fn control(&mut self, control: Control) {
        self.batch.codes.push(Code::control(self.batch.controls.len()));
        self.batch.controls.push(control);
    }

    fn flush(&mut self) -> Result<()> {
        self.store.pieces.push(self.keeper.keep(&self.batch, &mut self.packing)?);
        self.batch.clear();
        self.segments = 0;
        Ok(())
    }

    /// All lanes.
    pub(super) fn finish(mut self) -> Result<Store> {
        self.flush()?;
        let end = self.here();
        self.store.begins.push(end);
        self.store.begins.shrink_to_fit();
        Ok(self.store)
    }
}

impl Store {
    /// The lane of this number; its codes name these rows.
    pub(super) fn stream<'a>(&'a self, lane: usize, rows: &'a Arc<Rows>) -> Lane<'a> {
        Lane { store: self, rows, at: self.begins[lane], end: self.begins[lane + 1] }
    }

    /// Lets `see` look at a piece as it was written.
    fn piece(&self, number: u32, see: impl FnOnce(&Batch)) -> Result<()> {
        thread_local! {
            /// The piece that was asked for last comes last.
            static LATELY: RefCell<(Unpacker, Vec<Unpacked>)> = RefCell::default();
        }
        let piece = &self.pieces[number as usize];
        if let Piece::Plain(batch) = piece {
            see(batch);
            return Ok(());
        }
        LATELY.with_borrow_mut(|(unpacker, lately)| {
            let key = (self.id, number);
            let known = lately.iter().position(|(known, _)| *known == key);
            let mut found = match known {
                Some(index) => lately.remove(index),
                None if lately.len() == REMEMBERED => lately.remove(0),
                None => (key, Batch::default()),
            };
            if known.is_none() {
                found.0 = key;
                unpacker.piece(piece, &mut found.1)?;
            }
            see(&found.1);
            lately.push(found);
            Ok(())
        })
    }
}

/// Reads a lane.
pub(in crate::view) struct Lane<'a> {
    store: &'a Store,
    rows: &'a Arc<Rows>,
    at: Begin,
    end: Begin,
}

impl Lane<'_> {
    /// The next piece, with rows put into the batch's codes by `put`, each of so many codes.
    fn next(
        &mut self,
        batch: &mut Batch,
        codes_of: impl Fn(Code) -> usize,
        put: impl Fn(&mut Vec<Code>, Code),
    ) -> Result<bool> {
        batch.clear();
        if batch.codes.capacity() == 0
            && let Some(spare) = SPARES.with_borrow_mut(Vec::pop)
        {
            *batch = spare;
        }
        while batch.codes.is_empty() && (self.at.piece, self.at.code) < (self.end.piece, self.end.code) {
            let (at, end) = (self.at, self.end);
            self.store.piece(at.piece, |whole| {
                let is_last = at.piece == end.piece;
                let to = |own: u32, all: usize| if is_last { own as usize } else { all };
                let codes = &whole.codes[at.code as usize..to(end.code, whole.codes.len())];
                // Memory is asked for once.
                batch.codes.reserve(codes.iter().map(|code| codes_of(*code)).sum());
                for code in codes {
                    match code.as_control() {
                        Some(index) => {
                            batch.codes.push(Code::control(batch.controls.len()));
                            batch.controls.push(whole.controls[index]);
                        }
                        None => put(&mut batch.codes, *code),
                    }
                }
                batch.sps.extend_from_slice(&whole.sps[at.sp as usize..to(end.sp, whole.sps.len())]);
                let addresses = at.address as usize..to(end.address, whole.addresses.len());
                batch.addresses.extend_from_slice(&whole.addresses[addresses]);
            })?;
            self.at =
                if at.piece == end.piece { end } else { Begin { piece: at.piece + 1, code: 0, sp: 0, address: 0 } };
        }
        let goes_on = !batch.codes.is_empty();
        if !goes_on && (1..=SPARE_CODES).contains(&batch.codes.capacity()) {
            SPARES.with_borrow_mut(|spares| {
                if spares.len() < SPARE {
                    spares.push(std::mem::take(batch));
                }
            });
        }
        Ok(goes_on)
    }
}

impl LaneStream for Lane<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        let rows = self.rows;
        let codes_of = |code: Code| code.as_row().map_or(1, |row| rows.of(row).len());
        self.next(batch, codes_of, |codes, code| match code.as_row() {
            Some(row) => codes.extend_from_slice(rows.of(row)),
            None => codes.push(code),
        })
    }

    fn next_folded(&mut self, batch: &mut Batch) -> Result<bool> {
        self.next(batch, |_| 1, Vec::push)
    }

    fn rows(&self) -> Arc<Rows> {
        Arc::clone(self.rows)
    }
}
