//! Writes rows.

use super::by_kind::{ByKind, within};
use super::plan::{ColumnUse, Plans};
use super::room::{Bits, Bytes};
use super::{CONTEXTS, MAX_COLUMNS, MAX_ROW_VALUES, Pages, Track, Tracks, context_of, context_surprised};
use crate::BlockId;
use crate::codec::bytes::{MAX_VARINT, write_varint, zigzag};
use crate::codec::shape::Shape;
use crate::layout::TARGET_RAW;

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
    /// For each track its columns by kind.
    kinds: Vec<ByKind>,
    /// The track of each block, plus 1.
    blocks: Pages<u32>,
    /// Whether it has so many bytes or columns that it should become a chunk.
    crowded: bool,
    /// How many values there are in all rows.
    values: u32,
    /// Rows that were as expected since the last one that was not.
    gap: u64,
    plans: Vec<u8>,
    misses: Bytes,
    offsets: Bits,
    /// Room for the differences of a row to the one before.
    differences: Vec<u64>,
    /// Room for what to add to those expected values of a row that were wrong.
    missed: Vec<u64>,
    /// The differences of the contexts of the current row to what followed the last time.
    context_differences: Vec<u64>,
}

impl RowEncoder {
    /// How many bytes it adds to the chunk's payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.plans.len() + self.value_bytes()
    }

    /// About how many bytes of memory it takes besides them.
    #[inline]
    pub fn held(&self) -> usize {
        self.tracks.held() + self.blocks.held()
    }

    /// How many bytes of the payload are values.
    #[inline]
    pub fn value_bytes(&self) -> usize {
        self.misses.len + self.offsets.len()
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
            let place = place as usize;
            return match values {
                [a] => self.push_short_surprise(place, &[*a]),
                [a, b] => self.push_short_surprise(place, &[*a, *b]),
                [a, b, c] => self.push_short_surprise(place, &[*a, *b, *c]),
                [a, b, c, d] => self.push_short_surprise(place, &[*a, *b, *c, *d]),
                values => self.push_surprise(place, values),
            };
        }
        track.as_expected(numbers, values.len());
        self.gap += 1;
    }

    /// Adds a row of a track with columns that are not stepping: column by column of each kind, and looks for wrong
    /// values only at the end.
    fn push_special<V: Wide>(&mut self, place: usize, values: &[V]) {
        let len = values.len();
        let Tracks { tracks, numbers, contexts, .. } = &mut self.tracks;
        let track = &mut tracks[place];
        let row = track.numbers(numbers, len);
        let kinds = &self.kinds[place];
        let added = if track.jumps() { &*row.jump } else { &*row.step };
        let mut wrong = 0;
        for column in within(&kinds.stepping, len) {
            wrong |= values[column].wide().wrapping_sub(row.last[column]) ^ added[column];
        }
        wrong |= kinds.put_offsets(values, self.offsets.writer(kinds.offsets.len()));
        if let Ok(contexts) = <&mut [u64; CONTEXTS]>::try_from(&mut contexts[..]) {
            for (column, difference) in within(&kinds.contexts, len).zip(&mut self.context_differences) {
                let value = values[column].wide();
                let followed = std::mem::replace(&mut contexts[context_of(values[column - 1].wide())], value);
                *difference = value.wrapping_sub(followed);
                wrong |= *difference ^ row.step[column];
            }
        }
        self.crowded |= self.offsets.bytes.len >= MOST_BYTES;
        if wrong != 0 {
            return self.push_surprise(place, values);
        }
        for column in within(&kinds.stepping, len) {
            row.last[column] = values[column].wide();
        }
        track.as_expected(numbers, len);
        self.gap += 1;
    }

    /// Makes a track for a block of such a shape, if there is none, and returns it.
    #[cold]
    pub fn enter(&mut self, block: BlockId, shape: &Shape, plans: &Plans) -> u32 {
        let (start, len) = (shape.start.expect("a block with rows has a start"), shape.values as usize);
        let place = self.tracks.find(start).unwrap_or_else(|| {
            let specials = plans.specials(start);
            if !specials.is_empty() {
                super::plan::put(&mut self.plans, block, specials);
            }
            self.uses.push((start, Vec::new()));
            self.kinds.push(ByKind::default());
            self.tracks.open(start, specials.iter().copied())
        });
        if self.tracks.tracks[place].columns < len {
            self.tracks.widen(place, len);
            self.uses[place].1.resize(len, ColumnUse::default());
            self.kinds[place] = ByKind::of(self.tracks.specials_of(place), len);
            let contexts = self.context_differences.len().max(self.kinds[place].contexts.len());
            self.context_differences.resize(contexts, 0);
        }
        self.blocks.set(block.0, place as u32 + 1);
        self.crowded |= self.tracks.columns >= MAX_COLUMNS / 2;
        place as u32
    }

    /// Ends a row in which some value is not as expected. Its offsets, and the new entries of its contexts, are already
    /// stored.
    #[inline(never)]
    fn push_surprise<V: Wide>(&mut self, place: usize, values: &[V]) {
        let (mut missed, mut differences) = (std::mem::take(&mut self.missed), std::mem::take(&mut self.differences));
        if missed.len() < values.len() {
            missed.resize(values.len(), 0);
            differences.resize(values.len(), 0);
        }
        self.surprise(place, values, &mut missed[..values.len()], &mut differences[..values.len()]);
        (self.missed, self.differences) = (missed, differences);
    }

    /// The same for a short row.
    #[inline(never)]
    fn push_short_surprise<V: Wide, const N: usize>(&mut self, place: usize, values: &[V; N]) {
        self.surprise(place, values, &mut [0; N], &mut [0; N]);
    }

    /// The same with this room for what was missed, and for the differences to the row before.
    #[inline(always)]
    fn surprise<V: Wide>(&mut self, place: usize, values: &[V], missed: &mut [u64], differences: &mut [u64]) {
        let len = values.len();
        let Tracks { tracks, numbers, .. } = &mut self.tracks;
        let track = &mut tracks[place];
        let mut row = track.numbers(numbers, len);
        let added = if track.jumps() { &*row.jump } else { &*row.step };
        let mut wrong = 0;
        for column in 0..len {
            let value = values[column].wide();
            differences[column] = value.wrapping_sub(row.last[column]);
            missed[column] = differences[column].wrapping_sub(added[column]) & row.mask[column];
            wrong |= missed[column];
            row.last[column] = value;
        }
        let kinds = &self.kinds[place];
        for offset in kinds.offsets.iter().take_while(|offset| (offset.column as usize) < len) {
            let column = offset.column as usize;
            missed[column] = offset.miss(values[column].wide());
        }
        for (column, difference) in within(&kinds.contexts, len).zip(&self.context_differences) {
            missed[column] = difference.wrapping_sub(row.step[column]);
            if missed[column] != 0 {
                context_surprised(&mut row, column, *difference);
            }
        }
        match wrong {
            0 => track.as_expected(numbers, len),
            _ => track.surprised(&mut row, differences),
        }
        let uses = &mut self.uses[place].1;
        let out = self.misses.room(MAX_VARINT * (2 + 2 * len));
        let mut at = write_varint(out, std::mem::take(&mut self.gap));
        let count = missed.iter().map(|&miss| u64::from(miss != 0)).sum();
        at += write_varint(&mut out[at..], count);
        let mut next = 0;
        for (column, &miss) in missed.iter().enumerate().filter(|(_, miss)| **miss != 0) {
            at += write_varint(&mut out[at..], (column - next) as u64);
            at += write_varint(&mut out[at..], zigzag(miss.cast_signed()));
            uses[column].note(values[column].wide());
            next = column + 1;
        }
        self.misses.len += at;
        self.crowded |= self.misses.len >= MOST_BYTES;
    }

    /// Its part of the payload; nothing if there are no rows. The plans learn from it.
    pub fn take(self, payload: &mut Vec<u8>, plans: &mut Plans) {
        if self.values == 0 {
            return;
        }
        let offsets = self.offsets.done();
        for len in [self.values as usize, self.plans.len(), self.misses.len, offsets.len] {
            payload.extend((len as u32).to_le_bytes());
        }
        payload.extend(&self.plans);
        payload.extend(self.misses.all());
        payload.extend(offsets.all());
        for (place, (start, columns)) in self.uses.iter().enumerate() {
            plans.learn(*start, self.tracks.tracks[place].rows, columns, self.tracks.specials_of(place));
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
