//! Writes rows.

use super::plan::{ColumnUse, Plans};
use super::{Kind, MAX_COLUMNS, MAX_ROW_VALUES, Pages, Special, Track, Tracks, context_of, context_surprised, low};
use crate::BlockId;
use crate::bytes::{put_varint, zigzag};
use crate::layout::TARGET_RAW;
use crate::shape::Shape;

/// A list of this many bytes is for the next chunk.
const MOST_BYTES: usize = TARGET_RAW / 2;

/// A number of 64 bits, in one piece or in two.
pub trait Wide: Copy {
    /// The number.
    fn wide(self) -> u64;
}

impl Wide for u64 {
    #[inline]
    fn wide(self) -> u64 {
        self
    }
}

/// The lower half first.
impl Wide for [u32; 2] {
    #[inline]
    fn wide(self) -> u64 {
        u64::from(self[0]) | u64::from(self[1]) << 32
    }
}

/// The rows of a chunk that is being filled.
#[derive(Debug, Default)]
pub struct RowEncoder {
    tracks: Tracks,
    /// For each track its start, and what was not as expected, by column.
    uses: Vec<(u32, Vec<ColumnUse>)>,
    /// The track of each block, plus 1.
    blocks: Pages<u32>,
    /// Whether it has so many bytes or columns that it should become a chunk.
    crowded: bool,
    /// How many values there are in all rows.
    values: u32,
    /// Rows that were as expected since the last one that was not.
    gap: u64,
    plans: Vec<u8>,
    misses: Vec<u8>,
    /// The numbers of columns of kind offset, one behind the other, and how many bits they have; behind is room.
    offsets: Vec<u8>,
    offset_bits: usize,
    /// The differences of the current row to the one before.
    differences: Vec<u64>,
    /// The columns of the current row that are not as expected, and what is to be added: those that are not stepping, and all.
    missed: Vec<(u32, u64)>,
    all_missed: Vec<(u32, u64)>,
}

impl RowEncoder {
    /// How many bytes it adds to the chunk's payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.plans.len() + self.misses.len() + self.offset_bytes()
    }

    /// About how many bytes of memory it takes beside them.
    #[inline]
    pub fn held(&self) -> usize {
        self.tracks.held() + self.blocks.held()
    }

    /// How many bytes of the payload are values.
    pub fn value_bytes(&self) -> usize {
        self.misses.len() + self.offset_bytes()
    }

    #[inline]
    fn offset_bytes(&self) -> usize {
        self.offset_bits.div_ceil(8)
    }

    /// Whether the chunk should take no more rows.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.crowded || self.values >= MAX_ROW_VALUES / 2
    }

    /// Adds a row of a block of this shape: one with a start, and one value at least.
    #[inline]
    pub fn push<V: Wide>(&mut self, block: BlockId, shape: &Shape, values: &[V], plans: &Plans) {
        let place = match self.blocks.get(block.0) {
            0 => self.enter(block, shape, plans),
            known => known - 1,
        };
        self.push_at(place, values);
    }

    /// Adds a row there.
    #[inline]
    pub fn push_at<V: Wide>(&mut self, place: u32, values: &[V]) {
        self.values += values.len() as u32;
        let Tracks { tracks, numbers, .. } = &mut self.tracks;
        let track = &mut tracks[place as usize];
        track.rows += 1;
        let as_expected = match values {
            _ if track.specials.0 != track.specials.1 => return self.push_special(place as usize, values),
            [a] => track.take(numbers, &[*a]),
            [a, b] => track.take(numbers, &[*a, *b]),
            [a, b, c] => track.take(numbers, &[*a, *b, *c]),
            [a, b, c, d] => track.take(numbers, &[*a, *b, *c, *d]),
            values => track.take_long(numbers, values),
        };
        if !as_expected {
            self.missed.clear();
            return self.push_surprise(place as usize, values);
        }
        track.as_expected(numbers, values.len());
        self.gap += 1;
    }

    /// Adds a row of a track with columns that are not stepping.
    fn push_special<V: Wide>(&mut self, place: usize, values: &[V]) {
        let len = values.len();
        let Tracks { tracks, numbers, specials, contexts, .. } = &mut self.tracks;
        let track = &mut tracks[place];
        let mut row = track.numbers(numbers, len);
        let added = if track.jumps() { &*row.jump } else { &*row.step };
        let mut wrong = 0;
        for ((value, last), (added, mask)) in values.iter().zip(&*row.last).zip(added.iter().zip(&*row.mask)) {
            wrong |= (value.wide().wrapping_sub(*last) ^ added) & mask;
        }
        let specials = &specials[track.specials.0 as usize..track.specials.1 as usize];
        let room = self.offset_bits / 8 + 4 * specials.len() + 16;
        if self.offsets.len() < room {
            self.offsets.resize(2 * room, 0);
        }
        // Bits that do not fill a byte yet, how many they are, and where they go.
        let (mut at, mut fill) = (self.offset_bits / 8, self.offset_bits % 8);
        let mut word = u64::from(self.offsets[at]);
        self.missed.clear();
        for &Special { column, kind } in specials {
            let Some(value) = values.get(column as usize) else { break };
            let value = value.wide();
            match kind {
                Kind::Offset { base, shift, bits } => {
                    let offset = value.wrapping_sub(base) >> shift & low(bits);
                    word |= offset << fill;
                    self.offsets[at..at + 8].copy_from_slice(&word.to_le_bytes());
                    fill += usize::from(bits);
                    (at, word, fill) = (at + fill / 8, word >> (fill & !7), fill % 8);
                    let expected = base.wrapping_add(offset << shift);
                    if value != expected {
                        self.missed.push((column, value.wrapping_sub(expected)));
                    }
                }
                Kind::Context => {
                    let before = values[column as usize - 1].wide();
                    let followed = std::mem::replace(&mut contexts[context_of(before)], value);
                    let miss = value.wrapping_sub(followed).wrapping_sub(row.step[column as usize]);
                    if miss != 0 {
                        self.missed.push((column, miss));
                        context_surprised(&mut row, column as usize, value.wrapping_sub(followed));
                    }
                }
            }
        }
        self.offset_bits = 8 * at + fill;
        self.crowded |= at >= MOST_BYTES;
        if wrong != 0 {
            return self.push_surprise(place, values);
        }
        for (last, value) in row.last.iter_mut().zip(values) {
            *last = value.wide();
        }
        track.as_expected(numbers, len);
        if self.missed.is_empty() {
            self.gap += 1;
            return;
        }
        self.start_surprise(self.missed.len());
        let mut next = 0;
        for i in 0..self.missed.len() {
            let (column, miss) = self.missed[i];
            self.put_miss(place, column - next, column, miss, values[column as usize].wide());
            next = column + 1;
        }
        self.crowded |= self.misses.len() >= MOST_BYTES;
    }

    fn start_surprise(&mut self, count: usize) {
        put_varint(&mut self.misses, std::mem::take(&mut self.gap));
        put_varint(&mut self.misses, count as u64);
    }

    fn put_miss(&mut self, place: usize, between: u32, column: u32, miss: u64, value: u64) {
        put_varint(&mut self.misses, between.into());
        put_varint(&mut self.misses, zigzag(miss.cast_signed()));
        self.uses[place].1[column as usize].note(value);
    }

    /// Sees to it that there is a track for a block of such a shape, and says which.
    #[cold]
    pub fn enter(&mut self, block: BlockId, shape: &Shape, plans: &Plans) -> u32 {
        let (start, len) = (shape.start.expect("a block with rows has a start"), shape.values as usize);
        let place = self.tracks.find(start).unwrap_or_else(|| {
            let specials = plans.specials(start);
            if !specials.is_empty() {
                super::plan::put(&mut self.plans, block, specials);
            }
            self.uses.push((start, Vec::new()));
            self.tracks.open(start, specials.iter().copied())
        });
        if self.tracks.tracks[place].columns < len {
            self.tracks.widen(place, len);
            self.uses[place].1.resize(len, ColumnUse::default());
        }
        self.blocks.set(block.0, place as u32 + 1);
        self.crowded |= self.tracks.columns >= MAX_COLUMNS / 2;
        place as u32
    }

    /// Ends a row in which some value of a stepping column is not as expected. Those of the others are in the list already.
    #[inline(never)]
    fn push_surprise<V: Wide>(&mut self, place: usize, values: &[V]) {
        let Tracks { tracks, numbers, .. } = &mut self.tracks;
        let track = &mut tracks[place];
        let mut row = track.numbers(numbers, values.len());
        let mut special = std::mem::take(&mut self.missed);
        let mut specials = special.drain(..).peekable();
        self.differences.clear();
        let added = if track.jumps() { &*row.jump } else { &*row.step };
        let mut all = std::mem::take(&mut self.all_missed);
        all.clear();
        for (column, value) in values.iter().enumerate() {
            let difference = value.wide().wrapping_sub(row.last[column]);
            self.differences.push(difference);
            let miss = difference.wrapping_sub(added[column]) & row.mask[column];
            if miss != 0 {
                all.push((column as u32, miss));
            } else if let Some(miss) = specials.next_if(|(special, _)| *special as usize == column) {
                all.push(miss);
            }
            row.last[column] = value.wide();
        }
        track.surprised(&mut row, &self.differences);
        drop(specials);
        self.missed = special;
        self.start_surprise(all.len());
        let mut next = 0;
        for &(column, miss) in &all {
            self.put_miss(place, column - next, column, miss, values[column as usize].wide());
            next = column + 1;
        }
        self.all_missed = all;
        self.crowded |= self.misses.len() >= MOST_BYTES;
    }

    /// What it adds to the payload; nothing where there are no rows. The plans learn from it.
    pub fn take(self, payload: &mut Vec<u8>, plans: &mut Plans) {
        if self.values == 0 {
            return;
        }
        for len in [self.values as usize, self.plans.len(), self.misses.len(), self.offset_bytes()] {
            payload.extend((len as u32).to_le_bytes());
        }
        payload.extend(&self.plans);
        payload.extend(&self.misses);
        payload.extend(&self.offsets[..self.offset_bytes()]);
        for ((start, columns), track) in self.uses.iter().zip(&self.tracks.tracks) {
            plans.learn(*start, track.rows, columns);
        }
    }
}

impl Track {
    /// Takes a short row if it is as expected. For the stepping columns, which all are.
    #[inline]
    fn take<V: Wide, const N: usize>(&self, numbers: &mut [u64], values: &[V; N]) -> bool {
        let added = self.start + self.columns * (1 + usize::from(self.jumps()));
        let added: [u64; N] = std::array::from_fn(|i| numbers[added..added + N][i]);
        let last = &mut numbers[self.start..self.start + N];
        let mut wrong = 0;
        for i in 0..N {
            wrong |= values[i].wide().wrapping_sub(last[i]) ^ added[i];
        }
        if wrong == 0 {
            for i in 0..N {
                last[i] = values[i].wide();
            }
        }
        wrong == 0
    }

    /// The same for any row.
    #[inline]
    fn take_long<V: Wide>(&self, numbers: &mut [u64], values: &[V]) -> bool {
        let row = self.numbers(numbers, values.len());
        let added = if self.jumps() { &*row.jump } else { &*row.step };
        let mut wrong = 0;
        for ((value, last), added) in values.iter().zip(&*row.last).zip(added) {
            wrong |= value.wide().wrapping_sub(*last) ^ added;
        }
        if wrong == 0 {
            for (last, value) in row.last.iter_mut().zip(values) {
                *last = value.wide();
            }
        }
        wrong == 0
    }
}
