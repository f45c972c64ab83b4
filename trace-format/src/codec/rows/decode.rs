//! Reads rows.

use std::collections::HashMap;

use super::{Kind, MAX_COLUMNS, MAX_ROW_VALUES, Special, Tracks, context_of, context_surprised, low, plan};
use crate::BlockId;
use crate::codec::bytes::{Cursor, unzigzag};

/// The rows of a chunk that is being read.
#[derive(Debug, Default)]
pub struct RowDecoder {
    tracks: Tracks,
    /// The columns of the starts that have some that are not stepping.
    plans: HashMap<u32, Vec<Special>>,
    /// Where the column of misses is in the payload: the next byte, and the end.
    misses: (usize, usize),
    /// The same for the column of offsets, with the next bit.
    offsets: (usize, usize),
    /// Rows as expected until the next one that is not; none if there is none.
    gap: Option<u64>,
    /// How many rows there are still.
    left: u32,
    differences: Vec<u64>,
    /// Where the values of the current row are.
    row: (usize, usize),
}

impl RowDecoder {
    /// Reads what a chunk has of rows, up to its payload's end. `start_of`: the number of a block's start, if its
    /// values are in rows. Returns how many values the rows have.
    pub fn load(
        &mut self,
        payload: &[u8],
        position: usize,
        start_of: impl Fn(BlockId) -> Option<u32>,
    ) -> Result<u32, String> {
        *self = RowDecoder { differences: std::mem::take(&mut self.differences), ..RowDecoder::default() };
        if position == payload.len() {
            return Ok(0);
        }
        let mut cursor = Cursor::new(payload);
        cursor.take(position)?;
        let values = cursor.word()?;
        let [plans, misses, offsets] = [cursor.word()? as usize, cursor.word()? as usize, cursor.word()? as usize];
        if values > MAX_ROW_VALUES {
            return Err(format!("{values} values in rows; the most is {MAX_ROW_VALUES}"));
        }
        let mut planned = Cursor::new(cursor.take(plans)?);
        self.misses = (cursor.position(), cursor.position() + misses);
        cursor.take(misses)?;
        self.offsets = (8 * cursor.position(), cursor.position() + offsets);
        cursor.take(offsets)?;
        cursor.end()?;
        while planned.remaining() > 0 {
            let (block, specials) = plan::get(&mut planned)?;
            let start = start_of(block).ok_or_else(|| format!("block {} has no rows", block.0))?;
            if self.plans.insert(start, specials).is_some() {
                return Err(format!("the columns of the rows of block {} are given twice", block.0));
            }
        }
        self.next_gap(payload)?;
        Ok(values)
    }

    /// The chunk has so many rows.
    pub fn expect(&mut self, rows: u32) -> Result<(), String> {
        self.left = rows;
        if rows == 0 { self.check_end() } else { Ok(()) }
    }

    fn check_end(&self) -> Result<(), String> {
        if self.gap.is_some() || self.offsets.0.div_ceil(8) != self.offsets.1 {
            return Err("there are fewer rows than values for them".into());
        }
        Ok(())
    }

    fn next_gap(&mut self, payload: &[u8]) -> Result<(), String> {
        let mut cursor = Cursor::new(&payload[self.misses.0..self.misses.1]);
        self.gap = if cursor.remaining() == 0 { None } else { Some(cursor.varint()?) };
        self.misses.0 += cursor.position();
        Ok(())
    }

    /// The next row, of a block whose start has this number, with so many values (1 at least).
    #[inline]
    pub fn next(&mut self, payload: &[u8], start: u32, len: usize) -> Result<(), String> {
        let found = self.tracks.find(start).filter(|&track| self.tracks.tracks[track].columns >= len);
        let place = match found {
            Some(place) => place,
            None => self.enter(start, len)?,
        };
        let surprise = match &mut self.gap {
            Some(0) => true,
            Some(gap) => {
                *gap -= 1;
                false
            }
            None => false,
        };
        self.row = (self.tracks.tracks[place].start, len);
        if surprise {
            self.surprise(payload, place, len)?;
        } else {
            self.expected(payload, place, len)?;
        }
        self.left -= 1;
        if self.left == 0 { self.check_end() } else { Ok(()) }
    }

    /// The values of the current row.
    #[inline]
    pub fn values(&self) -> &[u64] {
        &self.tracks.numbers[self.row.0..][..self.row.1]
    }

    #[cold]
    fn enter(&mut self, start: u32, len: usize) -> Result<usize, String> {
        let place = match self.tracks.find(start) {
            Some(place) => place,
            None => self.tracks.open(start, self.plans.remove(&start).unwrap_or_default().into_iter()),
        };
        if self.tracks.columns + len - self.tracks.tracks[place].columns > MAX_COLUMNS {
            return Err(format!("the rows have more than {MAX_COLUMNS} columns"));
        }
        self.tracks.widen(place, len);
        Ok(place)
    }

    /// A row in which all is as expected.
    #[inline]
    fn expected(&mut self, payload: &[u8], place: usize, len: usize) -> Result<(), String> {
        let Tracks { tracks, numbers, specials, contexts, .. } = &mut self.tracks;
        let track = &mut tracks[place];
        let row = track.numbers(numbers, len);
        let added = if track.jumps() { &*row.jump } else { &*row.step };
        let special = track.specials;
        if special.0 == special.1 {
            for (last, added) in row.last.iter_mut().zip(added) {
                *last = last.wrapping_add(*added);
            }
        } else {
            for ((last, added), mask) in row.last.iter_mut().zip(added).zip(&*row.mask) {
                *last = last.wrapping_add(added & mask);
            }
            for &Special { column, kind } in &specials[special.0 as usize..special.1 as usize] {
                let column = column as usize;
                if column >= len {
                    break;
                }
                row.last[column] = match kind {
                    Kind::Offset { base, shift, bits } => {
                        base.wrapping_add(offset(payload, &mut self.offsets, bits)? << shift)
                    }
                    Kind::Context => {
                        let followed = &mut contexts[context_of(row.last[column - 1])];
                        *followed = followed.wrapping_add(row.step[column]);
                        *followed
                    }
                };
            }
        }
        track.as_expected(numbers, len);
        Ok(())
    }

    /// A row in which some value is not.
    fn surprise(&mut self, payload: &[u8], place: usize, len: usize) -> Result<(), String> {
        let Tracks { tracks, numbers, specials, contexts, .. } = &mut self.tracks;
        let track = &mut tracks[place];
        let mut row = track.numbers(numbers, len);
        let mut specials = specials[track.specials.0 as usize..track.specials.1 as usize].iter().peekable();
        let mut cursor = Cursor::new(&payload[self.misses.0..self.misses.1]);
        let count = cursor.varint()?;
        if count == 0 || count > len as u64 {
            return Err(format!("{count} values of a row of {len} are not as expected"));
        }
        let (mut left, mut next) = (count, cursor.varint()?);
        self.differences.clear();
        let (jumps, mut stepping) = (track.jumps(), false);
        for column in 0..len {
            let last = row.last[column];
            let special = specials.next_if(|special| special.column as usize == column);
            let kind = special.map(|special| special.kind);
            let mut followed = 0;
            let expected = match kind {
                None if jumps => last.wrapping_add(row.jump[column]),
                None => last.wrapping_add(row.step[column]),
                Some(Kind::Offset { base, shift, bits }) => {
                    base.wrapping_add(offset(payload, &mut self.offsets, bits)? << shift)
                }
                Some(Kind::Context) => {
                    followed = contexts[context_of(row.last[column - 1])];
                    followed.wrapping_add(row.step[column])
                }
            };
            let missed = left > 0 && next == column as u64;
            let value = if missed { expected.wrapping_add(unzigzag(cursor.varint()?) as u64) } else { expected };
            if missed {
                left -= 1;
                if left > 0 {
                    next = (column as u64 + 1).saturating_add(cursor.varint()?);
                }
                stepping |= kind.is_none();
                if kind == Some(Kind::Context) {
                    context_surprised(&mut row, column, value.wrapping_sub(followed));
                }
            }
            if kind == Some(Kind::Context) {
                contexts[context_of(row.last[column - 1])] = value;
            }
            self.differences.push(value.wrapping_sub(last));
            row.last[column] = value;
        }
        if left > 0 {
            return Err(format!("a row of {len} values has no column {next}"));
        }
        self.misses.0 += cursor.position();
        match stepping {
            true => track.surprised(&mut row, &self.differences),
            false => track.as_expected(numbers, len),
        }
        self.next_gap(payload)
    }
}

/// The next number of the column of offsets.
#[inline]
fn offset(payload: &[u8], place: &mut (usize, usize), bits: u8) -> Result<u64, String> {
    let (byte, bit) = (place.0 / 8, place.0 % 8);
    let left = &payload[byte.min(place.1)..place.1];
    place.0 += usize::from(bits);
    if place.0 > 8 * place.1 {
        return Err("the column of offsets is too short".into());
    }
    let word = match left.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => left.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    Ok(word >> bit & low(bits))
}
