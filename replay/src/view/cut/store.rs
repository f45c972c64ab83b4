//! The streams of lanes that were cut from those of threads, one thread's lanes one after another: an index of 16 bytes
//! a lane over pieces that are kept as they are, packed, or in a temporary file.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lanes::kept::{Keeper, Packing, Piece, Unpacker};
use crate::{Batch, Code, Control, Entry, LaneStream, Result};

/// A piece ends with the first code behind so many: small enough that reading one lane of many costs little more than
/// the lane, large enough that loops pack well.
const PIECE_CODES: usize = 8 << 10;

/// Pieces that each thread of this process remembers unpacked: the lanes of a warp mostly lie in one or two.
const REMEMBERED: usize = 8;

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
    store: Store,
}

impl<'k> Writer<'k> {
    pub(super) fn new(keeper: &'k Keeper) -> Writer<'k> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let id = STORES.fetch_add(1, Ordering::Relaxed);
        let store = Store { id, pieces: Vec::new(), begins: Vec::new() };
        Writer { keeper, packing: Packing::default(), batch: Batch::default(), store }
    }

    /// A lane begins: what is written from now on is its own.
    pub(super) fn begin(&mut self) -> Result<()> {
        if self.batch.codes.len() >= PIECE_CODES {
            self.flush()?;
        }
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
        let controls = self.batch.codes[begin.code as usize..].iter().filter(|code| code.as_segment().is_none());
        let controls = self.batch.controls.len() - controls.count();
        self.batch.codes.truncate(begin.code as usize);
        self.batch.controls.truncate(controls);
        self.batch.sps.truncate(begin.sp as usize);
        self.batch.addresses.truncate(begin.address as usize);
    }

    /// The lane runs a segment, with the stack pointer after it where it was recorded, and its addresses.
    pub(super) fn segment(&mut self, code: Code, sp: Option<i64>, addresses: &[u64]) {
        self.batch.codes.push(code);
        self.batch.sps.extend(sp);
        self.batch.addresses.extend_from_slice(addresses);
    }

    /// The lane will not be taken back any more.
    pub(super) fn is_sure(&mut self) -> Result<()> {
        if self.batch.codes.len() >= 2 * PIECE_CODES { self.flush() } else { Ok(()) }
    }

    /// A control comes next.
    pub(super) fn control(&mut self, control: Control) {
        self.batch.codes.push(Code::control(self.batch.controls.len()));
        self.batch.controls.push(control);
    }

    fn flush(&mut self) -> Result<()> {
        self.store.pieces.push(self.keeper.keep(&self.batch, &mut self.packing)?);
        self.batch.clear();
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
    /// The lane of this number.
    pub(super) fn stream(&self, lane: usize) -> Lane<'_> {
        Lane { store: self, at: self.begins[lane], end: self.begins[lane + 1] }
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
    at: Begin,
    end: Begin,
}

impl LaneStream for Lane<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        while batch.codes.is_empty() && (self.at.piece, self.at.code) < (self.end.piece, self.end.code) {
            let (at, end) = (self.at, self.end);
            self.store.piece(at.piece, |whole| {
                let is_last = at.piece == end.piece;
                let to = |own: u32, all: usize| if is_last { own as usize } else { all };
                let codes = &whole.codes[at.code as usize..to(end.code, whole.codes.len())];
                // The controls of a lane lie in a row, too: moved by what lies before the first.
                let before = codes.iter().find_map(|code| match code.entry() {
                    Entry::Control(index) => Some(index),
                    Entry::Segment(_) => None,
                });
                batch.codes.extend(codes.iter().map(|code| match code.entry() {
                    Entry::Control(index) => {
                        batch.controls.push(whole.controls[index]);
                        Code::control(index - before.unwrap_or(index))
                    }
                    Entry::Segment(_) => *code,
                }));
                batch.sps.extend_from_slice(&whole.sps[at.sp as usize..to(end.sp, whole.sps.len())]);
                let addresses = at.address as usize..to(end.address, whole.addresses.len());
                batch.addresses.extend_from_slice(&whole.addresses[addresses]);
            })?;
            self.at =
                if at.piece == end.piece { end } else { Begin { piece: at.piece + 1, code: 0, sp: 0, address: 0 } };
        }
        Ok(!batch.codes.is_empty())
    }
}
