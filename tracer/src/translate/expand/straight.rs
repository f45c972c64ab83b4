//! Paths whose records go to the trace unchanged: most of those with values.

use std::cell::Cell;

use trace_format::{BlockId, Execution, KnownBlock};

use super::{Expander, Known, Stream, room};
use crate::record::recorder::Recorder;

/// A path all of whose values are those of its block, and that has no recorded stack pointers.
#[derive(Clone)]
pub(super) struct Straight {
    /// Its block, or [`NOT_STRAIGHT`].
    block: u32,
    instructions: u16,
    values: u16,
    added: i32,
    /// The most that is added to the stack pointer at an exit.
    peak: u16,
    known: Cell<KnownBlock>,
}

/// Marks numbers of paths that are not known yet, or not straight.
const NOT_STRAIGHT: u32 = u32::MAX;

/// After so many plain paths in a row it is worth while to look for a run of them.
const PLAIN_IN_A_ROW: u32 = 16;

impl Expander {
    /// Writes the straight paths that the records begin with, and returns the records behind them.
    pub(super) fn run_of_straight<'w>(
        &mut self,
        words: &'w [u32],
        stream: &mut Stream,
        recorder: &mut Recorder,
    ) -> &'w [u32] {
        let straight = &self.tables.straight[..];
        let is_straight = |path: &u32| straight.get(*path as usize).is_some_and(|path| path.block != NOT_STRAIGHT);
        if !words.first().is_some_and(is_straight) {
            return words;
        }
        let (room, mut change) = (room(stream), 0i64);
        let (mut rest, mut left, mut plain, mut last, mut number) = (words, self.left, 0, None, 0);
        recorder.run_many(stream.id, || {
            let (&path, behind) = rest.split_first()?;
            let of = path;
            let path = straight.get(path as usize).filter(|path| path.block != NOT_STRAIGHT)?;
            plain = if path.values == 0 { plain + 1 } else { 0 };
            let leaves = change.wrapping_add(path.peak.into()) > room;
            if leaves || u64::from(path.instructions) > left || plain > PLAIN_IN_A_ROW {
                return None;
            }
            let (values, behind) = behind.split_at_checked(2 * usize::from(path.values))?;
            left -= u64::from(path.instructions);
            change = change.wrapping_add(path.added.into());
            (rest, last) = (behind, Some(of));
            number += 1;
            Some(Execution { block: BlockId(path.block), values: values.as_chunks().0, known: &path.known })
        });
        self.counted.paths.add(number, words.len() - rest.len());
        self.left = left;
        stream.sp = stream.sp.wrapping_add_signed(change);
        if let Some(last) = last {
            stream.transferred = self.tables.known[self.tables.places[last as usize] as usize].transfers;
        }
        rest
    }

    /// Notes whether the path with this number is such a one.
    pub(super) fn learn_straight(&mut self, number: u32, known: Known, peak: i64) {
        let Known { block, instructions, values, recipe, added, .. } = known;
        if let (None, Ok(added), Ok(peak)) = (recipe, i32::try_from(added), u16::try_from(peak)) {
            if self.tables.straight.len() <= number as usize {
                let unknown = Straight {
                    block: NOT_STRAIGHT,
                    instructions: 0,
                    values: 0,
                    added: 0,
                    peak: 0,
                    known: Cell::default(),
                };
                self.tables.straight.resize(number as usize + 1, unknown);
            }
            self.tables.straight[number as usize] =
                Straight { block: block.0, instructions, values, added, peak, known: Cell::default() };
        }
    }
}
