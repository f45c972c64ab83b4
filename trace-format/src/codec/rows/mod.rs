//! The values of whole executions of blocks with sums. A stream chunk holds only those that were not predicted.
//!
//! A *row* is the values of one execution; a *track* is what is remembered of the rows of blocks that start at one
//! address. Writer and reader apply the same rules to the same rows, so that both predict the same values. The kind of
//! a *column* says how its values are predicted:
//!
//! - *Stepping*, the default: the last value plus a step. Loops have ends: when a row differs from what was expected,
//!   the differences to the row before are remembered as the *jump*, with the number of rows since the last jump, the
//!   *period*; after as many rows again the jump is expected. So nested loops of constant length are predicted, except
//!   at the outermost ends. A jump that occurs twice in a row becomes the new step.
//! - *Offset*: a base plus a number of so many bits that the chunk holds: places in a table, in any order.
//! - *Context*: what followed the last time when the column before it had this value, plus a step: a table of places
//!   that move on.
//!
//! A row in which each value is as predicted takes no bytes. For another row, the chunk holds how many rows were as
//! predicted before it, and what is to be added to the values that were not.

mod by_kind;
mod decode;
mod encode;
mod plan;
mod room;

pub use decode::RowDecoder;
pub use encode::{RowEncoder, Wide};
pub use plan::Plans;

/// The slots of the table for columns of kind context: a power of two.
pub const CONTEXTS: usize = 2048;
/// The most columns of all tracks of a chunk.
pub const MAX_COLUMNS: usize = 1 << 17;
/// The most values in all rows of a chunk.
pub const MAX_ROW_VALUES: u32 = 1 << 22;

/// No jump is expected.
const NEVER: u32 = u32::MAX;

/// How the values of a column are predicted if it is not stepping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The base plus a number of so many bits, 32 at most, shifted left.
    Offset { base: u64, shift: u8, bits: u8 },
    /// By the value of the column before.
    Context,
}

/// A column that is not stepping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Special {
    column: u32,
    kind: Kind,
}

/// What is remembered of the rows of blocks with one start.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// Where its numbers are in those of all tracks: for each column the last value, then for each the step, then the
    /// jump, then the mask.
    start: usize,
    columns: usize,
    /// Rows since the last jump, and after how many one is expected.
    since: u32,
    period: u32,
    /// Its part of the list of columns that are not stepping.
    specials: (u32, u32),
    /// How many rows it had.
    rows: u32,
}

/// The numbers of a track, each list as long as the row.
struct Numbers<'a> {
    last: &'a mut [u64],
    step: &'a mut [u64],
    jump: &'a mut [u64],
    /// All ones for stepping columns, 0 for the others.
    mask: &'a mut [u64],
}

/// The tracks of one chunk.
#[derive(Debug, Default)]
struct Tracks {
    /// The track of each start, plus 1.
    starts: Pages<u32>,
    tracks: Vec<Track>,
    numbers: Vec<u64>,
    specials: Vec<Special>,
    /// What followed which value; empty until it is needed.
    contexts: Vec<u64>,
    columns: usize,
}

/// A list with few parts in use: a stream runs few of a program's blocks.
#[derive(Debug)]
struct Pages<T>(Vec<Option<Box<[T; PAGE]>>>);

const PAGE: usize = 64;

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages(Vec::new())
    }
}

impl<T: Copy + Default> Pages<T> {
    /// The entry, or that of a list in which nothing is set.
    #[inline]
    fn get(&self, place: u32) -> T {
        let page = self.0.get(place as usize / PAGE).and_then(Option::as_ref);
        page.map_or_else(T::default, |page| page[place as usize % PAGE])
    }

    fn set(&mut self, place: u32, entry: T) {
        let page = place as usize / PAGE;
        if self.0.len() <= page {
            self.0.resize_with(page + 1, || None);
        }
        self.0[page].get_or_insert_with(|| Box::new([T::default(); PAGE]))[place as usize % PAGE] = entry;
    }

    /// About how many bytes of memory it takes.
    fn held(&self) -> usize {
        self.0.len() * size_of::<usize>()
    }
}

impl Tracks {
    /// The track of the start with this number.
    #[inline]
    fn find(&self, start: u32) -> Option<usize> {
        (self.starts.get(start) as usize).checked_sub(1)
    }

    /// Adds a track that has seen nothing.
    fn open(&mut self, start: u32, specials: impl Iterator<Item = Special>) -> usize {
        let first = self.specials.len() as u32;
        self.specials.extend(specials);
        let specials = (first, self.specials.len() as u32);
        let follows = |special: &Special| special.kind == Kind::Context;
        if self.contexts.is_empty() && self.specials[first as usize..].iter().any(follows) {
            self.contexts.resize(CONTEXTS, 0);
        }
        self.tracks.push(Track { start: self.numbers.len(), columns: 0, since: 0, period: NEVER, specials, rows: 0 });
        self.starts.set(start, self.tracks.len() as u32);
        self.tracks.len() - 1
    }

    /// The columns of a track that are not stepping, in their order.
    fn specials_of(&self, track: usize) -> &[Special] {
        let (from, to) = self.tracks[track].specials;
        &self.specials[from as usize..to as usize]
    }

    /// Makes sure that a track has so many columns.
    fn widen(&mut self, track: usize, columns: usize) {
        let before = self.tracks[track];
        self.columns += columns - before.columns;
        let start = self.numbers.len();
        for list in 0..4 {
            let from = before.start + list * before.columns;
            self.numbers.extend_from_within(from..from + before.columns);
            let new = if list == 3 { u64::MAX } else { 0 };
            self.numbers.resize(start + (list + 1) * columns, new);
        }
        let track = &mut self.tracks[track];
        (track.start, track.columns) = (start, columns);
        for special in &self.specials[track.specials.0 as usize..track.specials.1 as usize] {
            if (special.column as usize) < columns {
                self.numbers[start + 3 * columns + special.column as usize] = 0;
            }
        }
    }

    /// About how many bytes of memory it takes.
    fn held(&self) -> usize {
        8 * (self.numbers.len() + self.contexts.len()) + size_of::<Track>() * self.tracks.len() + self.starts.held()
    }
}

/// The numbers of so many bits.
#[inline]
fn low(bits: u8) -> u64 {
    (1 << bits) - 1
}

/// The slot of a value in the table of contexts.
#[inline]
fn context_of(value: u64) -> usize {
    // Neighbouring numbers, and neighbouring places of 8 bytes each, lie in as many slots side by side.
    (value ^ value >> 3 ^ value >> 11) as usize % CONTEXTS
}

impl Track {
    /// Its numbers, for a row of this length.
    #[inline]
    fn numbers<'a>(&self, all: &'a mut [u64], len: usize) -> Numbers<'a> {
        let (last, rest) = all[self.start..self.start + 4 * self.columns].split_at_mut(self.columns);
        let (step, rest) = rest.split_at_mut(self.columns);
        let (jump, mask) = rest.split_at_mut(self.columns);
        Numbers { last: &mut last[..len], step: &mut step[..len], jump: &mut jump[..len], mask: &mut mask[..len] }
    }

    /// Whether the next row is expected to jump.
    #[inline]
    fn jumps(&self) -> bool {
        self.since == self.period
    }

    /// The stepping columns of a row were as expected.
    #[inline]
    fn as_expected(&mut self, numbers: &mut [u64], len: usize) {
        match self.jumps() {
            true => self.jumped(&mut self.numbers(numbers, len)),
            false => self.since = self.since.wrapping_add(1),
        }
    }

    /// They jumped, as was expected.
    fn jumped(&mut self, numbers: &mut Numbers) {
        self.since = 0;
        if self.period == 0 {
            // The second jump in a row.
            self.period = NEVER;
            for ((step, jump), mask) in numbers.step.iter_mut().zip(&*numbers.jump).zip(&*numbers.mask) {
                *step = jump & mask | *step & !mask;
            }
        }
    }

    /// Some stepping column of a row was not as expected. `differences`: to the row before.
    #[inline]
    fn surprised(&mut self, numbers: &mut Numbers, differences: &[u64]) {
        let stepped = |(&difference, (&step, &mask)): (&u64, (&u64, &u64))| (difference ^ step) & mask == 0;
        if self.jumps() && differences.iter().zip(numbers.step.iter().zip(&*numbers.mask)).all(stepped) {
            // The loop goes on.
            self.period = NEVER;
            self.since = self.since.wrapping_add(1);
            return;
        }
        if !self.jumps() {
            self.period = self.since;
        }
        self.since = 0;
        for ((jump, difference), mask) in numbers.jump.iter_mut().zip(differences).zip(&*numbers.mask) {
            *jump = difference & mask | *jump & !mask;
        }
    }
}

/// A column of kind context was not as expected: its value differed so much from what followed the last time. A step
/// that comes twice is kept.
fn context_surprised(numbers: &mut Numbers, column: usize, difference: u64) {
    if numbers.jump[column] == difference {
        numbers.step[column] = difference;
    }
    numbers.jump[column] = difference;
}

#[cfg(test)]
mod tests;
