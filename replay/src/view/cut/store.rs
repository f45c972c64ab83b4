//! The streams of lanes that were cut from those of threads: each thread's in *stretches*, one after another, over
//! pieces that are kept as they are, packed, or in a temporary file. Nearly all lanes have one stretch, which takes 16
//! bytes of an index; of the others a list says which stretch comes behind which ([`Link`]).

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

/// A stretch: its thread's store, and its number there.
pub(super) type Stretch = (u32, u32);

/// Of lanes of several stretches: a stretch, and the one that the lane goes on with behind it. Sorted.
pub(super) type Link = (Stretch, Stretch);

/// Where a stretch begins.
#[derive(Clone, Copy, Debug)]
struct Begin {
    piece: u32,
    code: u32,
    sp: u32,
    address: u32,
}

/// The stretches of one thread.
pub(super) struct Store {
    /// Told apart from others where pieces are remembered.
    id: u64,
    pieces: Vec<Piece>,
    /// Where each stretch begins, and where the last one ends.
    begins: Vec<Begin>,
    /// Stretches with which a lane goes on, and behind which.
    pub links: Vec<(u32, u32)>,
}

/// Writes the stretches of one thread.
pub(super) struct Writer<'k> {
    keeper: &'k Keeper,
    packing: Packing,
    batch: Batch,
    /// Segments of the stretch in this piece.
    segments: usize,
    store: Store,
}

impl<'k> Writer<'k> {
    pub(super) fn new(keeper: &'k Keeper) -> Writer<'k> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let id = STORES.fetch_add(1, Ordering::Relaxed);
        let store = Store { id, pieces: Vec::new(), begins: Vec::new(), links: Vec::new() };
        Writer { keeper, packing: Packing::default(), batch: Batch::default(), segments: 0, store }
    }

    /// A stretch begins: what is written from now on is its own. Its number.
    pub(super) fn begin(&mut self) -> Result<u32> {
        if size(&self.batch) >= PIECE_BYTES {
            self.flush()?;
        }
        self.segments = 0;
        let begin = self.here();
        self.store.begins.push(begin);
        Ok(self.store.begins.len() as u32 - 1)
    }

    /// A lane goes on behind one of its stretches: with another one, whose number this is.
    pub(super) fn go_on(&mut self, behind: u32) -> Result<u32> {
        let number = self.begin()?;
        self.store.links.push((behind, number));
        Ok(number)
    }

    /// A lane is left for another, in this stretch, which began last. Behind which it will go on: the one before where
    /// nothing was written of this one.
    pub(super) fn leave(&mut self, stretch: u32) -> u32 {
        let here = (self.store.pieces.len() as u32, self.batch.codes.len() as u32);
        let is_empty = self.store.begins.last().is_some_and(|begin| (begin.piece, begin.code) == here);
        match self.store.links.pop_if(|(_, number)| is_empty && *number == stretch) {
            Some((behind, _)) => {
                self.store.begins.pop();
                behind
            }
            None => stretch,
        }
    }

    fn here(&self) -> Begin {
        Begin {
            piece: self.store.pieces.len() as u32,
            code: self.batch.codes.len() as u32,
            sp: self.batch.sps.len() as u32,
            address: self.batch.addresses.len() as u32,
        }
    }

    /// Takes the stretch that began last back, with all of it.
    pub(super) fn take_back(&mut self) {
        let Some(begin) = self.store.begins.pop() else { return };
        debug_assert_eq!(begin.piece as usize, self.store.pieces.len(), "a stretch that is held lies in one piece");
        let controls = self.batch.codes[begin.code as usize..].iter().filter(|code| code.is_control());
        let controls = self.batch.controls.len() - controls.count();
        self.batch.codes.truncate(begin.code as usize);
        self.batch.controls.truncate(controls);
        self.batch.sps.truncate(begin.sp as usize);
        self.batch.addresses.truncate(begin.address as usize);
    }

    /// The stretch runs so many segments, for which the code stands, with the stack pointers after those where they
    /// were recorded, and their addresses.
    #[inline]
    pub(super) fn ran(&mut self, code: Code, segments: usize, sps: impl Iterator<Item = i64>, addresses: &[u64]) {
        self.batch.codes.push(code);
        self.batch.sps.extend(sps);
        self.batch.addresses.extend_from_slice(addresses);
        self.segments += segments;
    }

    /// The stretch will not be taken back any more.
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

    /// All stretches.
    pub(super) fn finish(mut self) -> Result<Store> {
        self.flush()?;
        let end = self.here();
        self.store.begins.push(end);
        self.store.begins.shrink_to_fit();
        Ok(self.store)
    }
}

/// Of these stores' lanes, sorted.
pub(super) fn links_of(stores: &[Store]) -> Vec<Link> {
    let of_store = |(store, Store { links, .. }): (u32, &Store)| {
        links.iter().map(move |(behind, stretch)| ((store, *behind), (store, *stretch))).collect::<Vec<_>>()
    };
    let mut all: Vec<Link> = (0..).zip(stores).flat_map(of_store).collect();
    all.sort_unstable();
    all
}

impl Store {
    /// Where the stretch of this number begins and ends.
    fn ends(&self, number: u32) -> (Begin, Begin) {
        (self.begins[number as usize], self.begins[number as usize + 1])
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

/// What lanes are read from: the threads' stores, which stretches come behind others, and the rows that codes name.
pub(super) type Source<'a> = (&'a [Store], &'a [Link], &'a Arc<Rows>);

/// Reads a lane.
pub(in crate::view) struct Lane<'a> {
    from: Source<'a>,
    stretch: Stretch,
    at: Begin,
    end: Begin,
}

impl<'a> Lane<'a> {
    /// The lane whose first stretch this is.
    pub(super) fn new(from: Source<'a>, stretch: Stretch) -> Lane<'a> {
        let (at, end) = from.0[stretch.0 as usize].ends(stretch.1);
        Lane { from, stretch, at, end }
    }

    /// Goes to where something is left of it; false at its end.
    fn is_left(&mut self) -> bool {
        while (self.at.piece, self.at.code) >= (self.end.piece, self.end.code) {
            let links = self.from.1;
            match links.binary_search_by_key(&self.stretch, |(before, _)| *before) {
                Ok(link) => *self = Lane::new(self.from, links[link].1),
                Err(_) => return false,
            }
        }
        true
    }

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
        // A stretch may end with a control, a batch only with the lane.
        while batch.codes.last().is_none_or(|code| code.is_control()) && self.is_left() {
            let (at, end) = (self.at, self.end);
            self.from.0[self.stretch.0 as usize].piece(at.piece, |whole| {
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
        let rows = self.from.2;
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
        Arc::clone(self.from.2)
    }
}
