//! The columns of a track by kind, so that a row is written without a decision for each value.

use super::{Kind, Special, low};

/// The columns of a track that has some which are not stepping; nothing for others.
#[derive(Debug, Default)]
pub struct ByKind {
    pub stepping: Vec<u32>,
    pub offsets: Vec<Offset>,
    pub contexts: Vec<u32>,
}

/// A column of kind offset.
#[derive(Debug)]
pub struct Offset {
    pub column: u32,
    pub shift: u8,
    pub bits: u8,
    pub base: u64,
    /// The bits of a value's distance to the base that its number gives.
    pub mask: u64,
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
                Some(Kind::Offset { base, shift, bits }) => {
                    sorted.offsets.push(Offset { column, shift, bits, base, mask: low(bits) << shift });
                }
            }
        }
        sorted
    }
}

/// Those of the columns that a row of this length has.
#[inline]
pub fn within(columns: &[u32], len: usize) -> impl Iterator<Item = usize> {
    columns.iter().map(|&column| column as usize).take_while(move |&column| column < len)
}
