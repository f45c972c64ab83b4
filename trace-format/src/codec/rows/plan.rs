//! Which columns are not stepping: decided by what was seen in the chunks before, and written into each chunk.

use super::{Kind, MAX_COLUMNS, Special, low};
use crate::BlockId;
use crate::codec::bytes::{Cursor, put_varint};

/// A track with fewer rows in a chunk gives no information.
const LEAST_ROWS: u32 = 256;
/// After so many chunks of a start, all its columns are tried as stepping again.
const TRIED_AGAIN: u32 = 64;
/// Offsets of so many bits or more do not belong to a table that fits into a cache; the value before may predict them.
const TABLE_BITS: u32 = 17;

/// What is known about a column's values that were not as expected.
#[derive(Clone, Copy, Debug, Default)]
pub struct ColumnUse {
    missed: u32,
    first: u64,
    low: u64,
    high: u64,
    /// The bits in which they differ from the first.
    differing: u64,
}

impl ColumnUse {
    /// Another one.
    #[inline]
    pub fn note(&mut self, value: u64) {
        if self.missed == 0 {
            (self.first, self.low, self.high) = (value, value, value);
        }
        self.missed += 1;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
        self.differing |= value ^ self.first;
    }
}

#[derive(Debug, Default)]
struct Plan {
    specials: Vec<Special>,
    /// Columns that the column before does not predict.
    without_context: Vec<u32>,
    chunks: u32,
}

/// What is planned for the next chunks, by number of the start.
#[derive(Debug, Default)]
pub struct Plans(Vec<Option<Box<Plan>>>);

impl Plans {
    /// The columns that are not stepping, in their order.
    pub(super) fn specials(&self, start: u32) -> &[Special] {
        self.0.get(start as usize).and_then(Option::as_ref).map_or(&[], |plan| &plan.specials)
    }

    /// Learns from a chunk in which blocks of this start had so many rows, written with these columns not stepping.
    pub(super) fn learn(&mut self, start: u32, rows: u32, columns: &[ColumnUse], used: &[Special]) {
        let place = start as usize;
        let known = self.0.get(place).is_some_and(Option::is_some);
        if rows < LEAST_ROWS || !known && columns.iter().all(|column| column.missed <= rows / 4 * 3) {
            return;
        }
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].get_or_insert_default().learn(rows, columns, used);
    }
}

impl Plan {
    fn learn(&mut self, rows: u32, columns: &[ColumnUse], used: &[Special]) {
        self.chunks += 1;
        if self.chunks.is_multiple_of(TRIED_AGAIN) {
            self.specials.clear();
            self.without_context.clear();
            return;
        }
        let mut before = std::mem::take(&mut self.specials).into_iter().peekable();
        // Threads' chunks overlap: this one may have been begun before what is planned now. And contexts miss where
        // other columns of the same table did not take part.
        let was_context = |column| used.contains(&Special { column, kind: Kind::Context });
        let planned = |number| before.clone().find(|special| special.column == number).map(|special| special.kind);
        let is_context = |number, column: &ColumnUse| match planned(number) {
            None => column.missed > rows / 4 * 3 && self.choose(number, column) == Some(Kind::Context),
            kind => kind == Some(Kind::Context),
        };
        let grows = (0..).zip(columns).any(|(number, column)| is_context(number, column) && !was_context(number));
        for (number, column) in (0..).zip(columns) {
            let was = before.next_if(|special| special.column == number).map(|special| special.kind);
            let kind = match was {
                None if column.missed > rows / 4 * 3 => self.choose(number, column),
                None => None,
                Some(Kind::Context) if column.missed > rows / 2 && was_context(number) && !grows => {
                    self.without_context.push(number);
                    self.choose(number, column)
                }
                Some(Kind::Offset { base, shift, bits }) if column.missed > 0 => {
                    let mut wider = *column;
                    wider.note(base);
                    wider.note(base.wrapping_add(low(bits) << shift));
                    self.choose(number, &wider)
                }
                kept => kept,
            };
            self.specials.extend(kind.map(|kind| Special { column: number, kind }));
        }
        self.specials.extend(before);
    }

    /// The best kind for a column of such values.
    fn choose(&self, number: u32, column: &ColumnUse) -> Option<Kind> {
        let shift = column.differing.trailing_zeros().min(16) as u8;
        let bits = u64::BITS - ((column.high - column.low) >> shift | 1).leading_zeros();
        match bits {
            TABLE_BITS.. if number > 0 && !self.without_context.contains(&number) => Some(Kind::Context),
            1..=32 => Some(Kind::Offset { base: column.low, shift, bits: bits as u8 }),
            _ => None,
        }
    }
}

/// Writes the plan of the track that this block belongs to.
pub(super) fn put(out: &mut Vec<u8>, block: BlockId, specials: &[Special]) {
    put_varint(out, block.0.into());
    put_varint(out, specials.len() as u64);
    let mut next = 0;
    for special in specials {
        put_varint(out, u64::from(special.column - next));
        next = special.column + 1;
        match special.kind {
            Kind::Context => out.push(0),
            Kind::Offset { base, shift, bits } => {
                out.extend([bits, shift]);
                out.extend(base.to_le_bytes());
            }
        }
    }
}

/// Reads what [`put`] has written: the block, and its columns that are not stepping.
pub(super) fn get(cursor: &mut Cursor) -> Result<(BlockId, Vec<Special>), String> {
    let block = BlockId(cursor.varint32()?);
    let count = cursor.count(2)?;
    let (mut specials, mut next) = (Vec::with_capacity(count), 0u64);
    for _ in 0..count {
        let column = next.saturating_add(cursor.varint()?);
        next = column + 1;
        if column >= MAX_COLUMNS as u64 {
            return Err(format!("column {column} of the rows of block {}; there are at most {MAX_COLUMNS}", block.0));
        }
        let kind = match cursor.byte()? {
            0 if column > 0 => Kind::Context,
            bits @ 1..=32 => match cursor.byte()? {
                shift @ 0..64 => Kind::Offset { base: cursor.long()?, shift, bits },
                shift => return Err(format!("column {column} of the rows of block {} is shifted by {shift}", block.0)),
            },
            kind => return Err(format!("column {column} of the rows of block {} cannot be of kind {kind}", block.0)),
        };
        specials.push(Special { column: column as u32, kind });
    }
    Ok((block, specials))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u32 = 1000;

    /// Statistics of columns with so many values that were not as expected: places in a table of megabytes.
    fn columns(missed: &[u32]) -> Vec<ColumnUse> {
        missed.iter().map(|&missed| ColumnUse { missed, first: 0, low: 0, high: 1 << 24, differing: 7 }).collect()
    }

    fn context(column: u32) -> Special {
        Special { column, kind: Kind::Context }
    }

    #[test]
    fn a_context_is_given_up_where_it_does_not_help() {
        let mut plans = Plans::default();
        plans.learn(0, ROWS, &columns(&[0, ROWS]), &[]);
        assert_eq!(plans.specials(0), [context(1)]);
        plans.learn(0, ROWS, &columns(&[0, ROWS]), &[context(1)]);
        assert!(matches!(plans.specials(0), [Special { column: 1, kind: Kind::Offset { .. } }]));
    }

    #[test]
    fn a_context_is_kept_while_others_of_its_table_were_not_contexts_yet() {
        let mut plans = Plans::default();
        plans.learn(0, ROWS, &columns(&[0, ROWS]), &[]);
        // Another thread's chunk is done, and one of this thread's that was begun before that.
        plans.learn(0, ROWS, &columns(&[0, ROWS, 0, ROWS]), &[]);
        assert_eq!(plans.specials(0), [context(1), context(3)]);
        plans.learn(0, ROWS, &columns(&[0, ROWS, 0, ROWS]), &[context(1)]);
        assert_eq!(plans.specials(0), [context(1), context(3)]);
        plans.learn(0, ROWS, &columns(&[0, 9, 0, 9]), &[context(1), context(3)]);
        assert_eq!(plans.specials(0), [context(1), context(3)]);
    }
}
