//! The columns of a track by kind, so that a row is written without a decision for each value.

use super::encode::Wide;
use super::room::BitWriter;
use super::{Kind, Special, low};

/// The columns of a track that has some which are not stepping; nothing for others.
#[derive(Debug, Default)]
pub struct ByKind {
    pub stepping: Vec<u32>,
    pub offsets: Vec<Offset>,
    pub groups: Vec<Group>,
    pub contexts: Vec<u32>,
}

/// A column of kind offset.
#[derive(Debug)]
pub struct Offset {
    pub column: u32,
    pub base: u64,
    /// The bits of a value's distance to the base that its number gives.
    pub mask: u64,
    /// How far they are rotated to the left to get to where the number is in those of its group.
    rotation: u8,
    shift: u8,
    bits: u8,
}

/// Offsets whose numbers are written at once: they have 32 bits together, at most.
#[derive(Debug)]
pub struct Group {
    /// Their places in the list of offsets.
    pub first: u32,
    pub end: u32,
    pub bits: u8,
}

impl Offset {
    /// The part of a value that its number does not give; if there is such a part, the value is not as expected.
    #[inline]
    pub fn miss(&self, value: u64) -> u64 {
        value.wrapping_sub(self.base) & !self.mask
    }

    /// The number of a value, among those of its group.
    #[inline]
    fn in_group(&self, value: u64) -> u64 {
        (value.wrapping_sub(self.base) & self.mask).rotate_left(self.rotation.into())
    }

    /// Writes the number of a value alone.
    #[inline]
    fn put(&self, value: u64, bits: &mut BitWriter) {
        bits.put((value.wrapping_sub(self.base) & self.mask) >> self.shift, self.bits);
    }
}

impl ByKind {
    /// Sorts so many columns.
    pub fn of(specials: &[Special], columns: usize) -> ByKind {
        let mut sorted = ByKind::default();
        if specials.is_empty() {
            return sorted;
        }
        let mut left = specials.iter().peekable();
        for column in 0..columns as u32 {
            match left.next_if(|special| special.column == column).map(|special| special.kind) {
                None => sorted.stepping.push(column),
                Some(Kind::Context) => sorted.contexts.push(column),
                Some(Kind::Offset { base, shift, bits }) => sorted.add_offset(column, base, shift, bits),
            }
        }
        sorted
    }

    fn add_offset(&mut self, column: u32, base: u64, shift: u8, bits: u8) {
        let place = self.offsets.len() as u32;
        let group = match self.groups.last_mut() {
            Some(group) if group.bits + bits <= 32 => group,
            _ => {
                self.groups.push(Group { first: place, end: place, bits: 0 });
                self.groups.last_mut().expect("one was added")
            }
        };
        let rotation = (i16::from(group.bits) - i16::from(shift)).rem_euclid(64) as u8;
        (group.end, group.bits) = (place + 1, group.bits + bits);
        self.offsets.push(Offset { column, base, mask: low(bits) << shift, rotation, shift, bits });
    }

    /// Writes the numbers of a row's offsets. Returns something other than 0 if one of them is not as expected.
    #[inline]
    pub fn put_offsets<V: Wide>(&self, values: &[V], mut bits: BitWriter) -> u64 {
        let mut wrong = 0;
        for group in &self.groups {
            let offsets = &self.offsets[group.first as usize..group.end as usize];
            if offsets.last().is_some_and(|last| last.column as usize >= values.len()) {
                // The row ends here.
                for offset in offsets.iter().take_while(|offset| (offset.column as usize) < values.len()) {
                    let value = values[offset.column as usize].wide();
                    wrong |= offset.miss(value);
                    offset.put(value, &mut bits);
                }
                break;
            }
            let mut numbers = 0;
            for offset in offsets {
                let value = values[offset.column as usize].wide();
                wrong |= offset.miss(value);
                numbers |= offset.in_group(value);
            }
            bits.put(numbers, group.bits);
        }
        bits.done();
        wrong
    }
}

/// Those of the columns that a row of this length has.
#[inline]
pub fn within(columns: &[u32], len: usize) -> impl Iterator<Item = usize> {
    columns.iter().map(|&column| column as usize).take_while(move |&column| column < len)
}
