//! What one lane does: segments and, between them, controls, in batches.

use std::sync::Arc;

use heuristics::SegmentId;
use trace_format::{Seq, ThreadId};

use crate::Result;

/// A barrier episode: one use of a barrier by all who take part in it. Equal numbers are the same episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpisodeId(pub u32);

/// A lock, numbered over the whole view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub u32);

/// What happens to a lane between two segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// The stack pointer before the next segment, in bytes relative to the lane's first instruction, where it does not
    /// follow from the segment before.
    Sp(i64),
    /// The call level of the next segment (1 at the lane's first instruction), where it does not follow from calls and
    /// returns.
    Level(u32),
    /// Where the lane's stack lies, in traces with memory addresses: the address for which its stack pointers stand
    /// that are 0, and how many bytes of the stack lie at it and above.
    Stack {
        /// The address.
        zero: u64,
        /// The bytes at it and above.
        above: u32,
    },
    /// The lane waits until every lane of its warp that has this episode in its stream has reached it.
    Meet(EpisodeId),
    /// The lane waits until every other lane of its warp waits so too, or has finished (the `W` of text traces).
    MeetAll,
    /// The lane hands over what other lanes wait for.
    Post(EpisodeId),
    /// The lane waits until the lane of its warp that has this one's [`Control::Post`] in its stream has come to it.
    Await(EpisodeId),
    /// The lane takes the lock for itself, and waits while another lane of its warp has it, shared or not.
    Acquire(LockId),
    /// The lane takes the lock shared, and waits while another lane of its warp has it for itself.
    AcquireShared(LockId),
    /// The lane takes one of so many places at the lock, and waits while other lanes of its warp have them all.
    AcquireOneOf {
        /// The lock.
        lock: LockId,
        /// How many lanes may have it.
        most: u32,
    },
    /// The lane gives the lock back.
    Release(LockId),
    /// An extent of the region begins with the next segment. Only in streams of threads that are to be cut into lanes.
    Begin {
        /// What orders it among others: the thread's last event before it; of a task, its number in order of creation.
        after: Seq,
        /// How many extents with the numbers before this one's it goes on with: a task may run in parts.
        part: u32,
    },
    /// The thread leaves the extent before its end, for another one that begins next or goes on. The number is a name
    /// until it goes on. Only in such streams, too.
    Leave(u32),
    /// The extent ends that the thread is in, if there is one, and the one goes on that was left by this name.
    GoOn(u32),
    /// The thread works for a team of a teams construct or a target region from here on. Only in such streams, too.
    Team {
        /// Which construct: the same for all of its teams.
        league: EpisodeId,
        /// What orders this team's part among those of the construct.
        order: u32,
    },
    /// The thread was given iterations of a loop. Only in such streams, too.
    Chunk {
        /// What orders it among those of the loop: the first iteration's number, negated where the loop counts down.
        first: i64,
        /// How much more that of the next chunk is, which the thread goes to by itself; 0 where there is none.
        stride: u32,
    },
    /// So many iterations has the chunk or piece that comes next. Only in such streams, too.
    Iterations(u64),
    /// How many iterations each chunk has that the thread was given last, where it goes on to further ones by itself.
    /// Only in such streams, too, where iterations are marked.
    Turns(u64),
    /// The thread begins its part of the work of the team of this launch; none where no other thread has a part in it.
    /// There may be parts in it. Only in such streams, too: where iterations are marked, of each team; else of those
    /// inside of a team's work.
    Part(Option<EpisodeId>),
    /// The part that began last ends.
    PartEnd,
    /// The thread runs a piece of a taskloop. Only in such streams, too.
    Piece {
        /// What orders it among those of the taskloop, as for a chunk.
        first: i64,
        /// Which taskloop: equal numbers are the same execution of one.
        taskloop: u32,
    },
}

impl Control {
    /// The lock that the lane takes, where it takes one.
    #[must_use]
    pub fn acquired(self) -> Option<LockId> {
        match self {
            Control::Acquire(lock) | Control::AcquireShared(lock) | Control::AcquireOneOf { lock, .. } => Some(lock),
            _ => None,
        }
    }
}

// Programs with locks have millions of them.
const _: () = assert!(size_of::<Control>() == 16);

/// An entry of a lane's stream, packed: a segment's number or the index of a control in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(u32);

/// A code, told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The lane runs this segment, whole.
    Segment(SegmentId),
    /// The control of this index in [`Batch::controls`].
    Control(usize),
}

impl Code {
    const CONTROL: u32 = 1 << 31;
    /// Only in folded batches.
    const ROW: u32 = 1 << 30;

    /// The code of a segment.
    #[inline]
    #[must_use]
    pub fn segment(id: SegmentId) -> Code {
        debug_assert!(id.0 < Code::ROW);
        Code(id.0)
    }

    /// The code of a row of segments.
    #[inline]
    pub(crate) fn row(id: RowId) -> Code {
        debug_assert!(id.0 < Code::ROW);
        Code(id.0 | Code::ROW)
    }

    /// The row, where it is one.
    #[inline]
    pub(crate) fn as_row(self) -> Option<RowId> {
        (self.0 & (Code::CONTROL | Code::ROW) == Code::ROW).then_some(RowId(self.0 & !Code::ROW))
    }

    /// Whether it is a control.
    #[inline]
    pub(crate) fn is_control(self) -> bool {
        self.0 & Code::CONTROL != 0
    }

    /// The index of the control in its batch, where it is one.
    #[inline]
    pub(crate) fn as_control(self) -> Option<usize> {
        self.is_control().then_some((self.0 & !Code::CONTROL) as usize)
    }

    /// The code of the control of this index in its batch.
    #[inline]
    #[must_use]
    pub fn control(index: usize) -> Code {
        debug_assert!(index < Code::CONTROL as usize);
        Code(index as u32 | Code::CONTROL)
    }

    /// All of it, as a number.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// What [`Code::bits`] gave.
    #[inline]
    pub(crate) fn of_bits(bits: u32) -> Code {
        Code(bits)
    }

    /// What it stands for.
    #[inline]
    #[must_use]
    pub fn entry(self) -> Entry {
        debug_assert!(self.as_row().is_none(), "only folded batches have rows");
        if self.0 & Code::CONTROL == 0 {
            Entry::Segment(SegmentId(self.0))
        } else {
            Entry::Control((self.0 & !Code::CONTROL) as usize)
        }
    }

    /// The segment, where it is one.
    #[inline]
    #[must_use]
    pub fn as_segment(self) -> Option<SegmentId> {
        (self.0 & (Code::CONTROL | Code::ROW) == 0).then_some(SegmentId(self.0))
    }
}

/// A row of segments, by its number in [`Rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowId(pub(crate) u32);

/// The rows of segments that *folded* batches name by one code each: those of the blocks that lanes run whole.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// One row after another.
    codes: Vec<Code>,
    /// Where each row begins, and where the last one ends.
    begins: Vec<u32>,
    /// By row: the same one whose last segment is an elided call; itself where its last segment is no call.
    elided: Vec<RowId>,
}

impl Rows {
    /// Adds a row, and the one that it is with its last call elided, where that is another. The code that names it: a
    /// row of one segment is that segment.
    pub(crate) fn add(&mut self, row: &[Code], elided: Option<Code>) -> Code {
        if let [segment] = row {
            return *segment;
        }
        let id = self.push(row);
        if let Some(last) = elided {
            let elided = self.push(row);
            *self.codes.last_mut().expect("a row has segments") = last;
            self.elided[id.0 as usize] = elided;
        }
        Code::row(id)
    }

    fn push(&mut self, row: &[Code]) -> RowId {
        if self.begins.is_empty() {
            self.begins.push(0);
        }
        let id = RowId(self.elided.len() as u32);
        self.codes.extend_from_slice(row);
        self.begins.push(u32::try_from(self.codes.len()).expect("fewer than 2^32 segments in all rows"));
        self.elided.push(id);
        id
    }

    /// Its segments.
    #[inline]
    pub(crate) fn of(&self, row: RowId) -> &[Code] {
        let at = row.0 as usize;
        &self.codes[self.begins[at] as usize..self.begins[at + 1] as usize]
    }

    /// The segments of a row.
    pub(crate) fn segments(&self, row: RowId) -> impl DoubleEndedIterator<Item = SegmentId> + '_ {
        self.of(row).iter().filter_map(|code| code.as_segment())
    }

    /// The same row whose last segment is an elided call.
    #[inline]
    pub(crate) fn elided(&self, row: RowId) -> RowId {
        self.elided[row.0 as usize]
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.elided.len()
    }

    /// The last segment of a folded batch; none where it has none.
    pub(crate) fn last_segment(&self, batch: &Batch) -> Option<SegmentId> {
        let last = batch.codes.iter().rev().find(|code| !code.is_control())?;
        last.as_row().map_or(*last, |row| self.of(row)[self.of(row).len() - 1]).as_segment()
    }

    /// Puts what a folded batch holds into `into`, segment by segment.
    pub(crate) fn unfold(&self, folded: &Batch, into: &mut Batch) {
        into.clear();
        for code in &folded.codes {
            match code.as_row() {
                Some(row) => into.codes.extend_from_slice(self.of(row)),
                None => into.codes.push(*code),
            }
        }
        into.controls.extend_from_slice(&folded.controls);
        into.sps.extend_from_slice(&folded.sps);
        into.addresses.extend_from_slice(&folded.addresses);
    }
}

/// A piece of a lane's stream. A batch never ends between a control and the segment that it stands before, except for
/// the last of a lane.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Segments and controls, in order.
    pub codes: Vec<Code>,
    /// The controls that codes of this batch name.
    pub controls: Vec<Control>,
    /// The stack pointer after each segment of this batch whose last instruction is
    /// [`trace_format::SpEffect::Recorded`], relative as in [`Control::Sp`], in order.
    pub sps: Vec<i64>,
    /// The memory addresses of this batch's segments, in order.
    pub addresses: Vec<u64>,
}

/// How much a batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchLengths {
    codes: usize,
    controls: usize,
    sps: usize,
    addresses: usize,
}

impl BatchLengths {
    /// How many codes it held.
    pub(crate) fn codes(&self) -> usize {
        self.codes
    }
}

impl Batch {
    /// How much it holds now.
    pub(crate) fn lengths(&self) -> BatchLengths {
        BatchLengths {
            codes: self.codes.len(),
            controls: self.controls.len(),
            sps: self.sps.len(),
            addresses: self.addresses.len(),
        }
    }

    /// Takes out again what came after it held so much.
    pub(crate) fn truncate(&mut self, to: &BatchLengths) {
        self.codes.truncate(to.codes);
        self.controls.truncate(to.controls);
        self.sps.truncate(to.sps);
        self.addresses.truncate(to.addresses);
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.codes.clear();
        self.controls.clear();
        self.sps.clear();
        self.addresses.clear();
    }

    /// Drops so many codes, stack pointers and addresses from its front, and the controls that no code names any more.
    pub(crate) fn drop_front(&mut self, codes: usize, sps: usize, addresses: usize) {
        self.codes.drain(..codes);
        self.sps.drain(..sps);
        self.addresses.drain(..addresses);
        let first = self.codes.iter().find_map(|c| match c.entry() {
            Entry::Control(index) => Some(index),
            Entry::Segment(_) => None,
        });
        let dropped = first.unwrap_or(self.controls.len());
        self.controls.drain(..dropped);
        self.move_controls(|index| index - dropped);
    }

    /// Adds what follows it.
    pub(crate) fn append(&mut self, mut next: Batch) {
        let before = self.controls.len();
        next.move_controls(|index| index + before);
        self.codes.append(&mut next.codes);
        self.controls.append(&mut next.controls);
        self.sps.append(&mut next.sps);
        self.addresses.append(&mut next.addresses);
    }

    fn move_controls(&mut self, to: impl Fn(usize) -> usize) {
        for code in &mut self.codes {
            if let Some(index) = code.as_control() {
                *code = Code::control(to(index));
            }
        }
    }
}

/// A lane's stream from its beginning; bounded in memory. One reading of it is one replay of the lane.
pub trait LaneStream: Send {
    /// Puts the next piece into `batch` (whatever was in it is gone); false, and an empty batch, at the end.
    ///
    /// # Errors
    /// When the trace cannot be read on.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool>;

    /// As [`LaneStream::next_batch`], except for rows of segments, which stand folded where [`LaneStream::rows`] has
    /// some. A stream is read in one of the two ways. Default: nothing is folded.
    ///
    /// # Errors
    /// When the trace cannot be read on.
    fn next_folded(&mut self, batch: &mut Batch) -> Result<bool> {
        self.next_batch(batch)
    }

    /// The rows that [`LaneStream::next_folded`] names. Default: none.
    fn rows(&self) -> Arc<Rows> {
        Arc::default()
    }
}

/// Who a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOrigin {
    /// The thread whose instructions it runs.
    pub thread: ThreadId,
    /// When its thread reached the region first, as this lane.
    pub first: Seq,
    /// Its generation: it runs after all lanes of smaller ones, in warps of its own generation only.
    pub generation: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_batch_unfolds_to_its_segments() {
        let segment = |id| Code::segment(SegmentId(id));
        let mut rows = Rows::default();
        assert!(rows.add(&[segment(3)], None) == segment(3));
        let row = rows.add(&[segment(1), segment(2)], Some(segment(9)));
        let elided = Code::row(rows.elided(row.as_row().unwrap()));
        let folded = Batch {
            codes: vec![row, Code::control(0), elided, segment(4)],
            controls: vec![Control::Level(7)],
            sps: vec![5],
            addresses: vec![6],
        };
        assert_eq!(rows.last_segment(&folded), Some(SegmentId(4)));
        let before = Batch { codes: folded.codes[..3].to_vec(), ..Batch::default() };
        assert_eq!(rows.last_segment(&before), Some(SegmentId(9)));
        let mut unfolded = Batch::default();
        rows.unfold(&folded, &mut unfolded);
        let expected = [segment(1), segment(2), Code::control(0), segment(1), segment(9), segment(4)];
        assert!(unfolded == Batch { codes: expected.to_vec(), ..folded });
    }

    #[test]
    fn a_batch_keeps_its_controls_when_its_front_goes_and_more_comes() {
        let segment = |id| Code::segment(SegmentId(id));
        let mut batch = Batch {
            codes: vec![Code::control(0), segment(7), Code::control(1), segment(8)],
            controls: vec![Control::Level(1), Control::Level(2)],
            sps: vec![5],
            addresses: vec![1, 2],
        };
        batch.drop_front(2, 1, 1);
        let next = Batch { codes: vec![Code::control(0)], controls: vec![Control::Level(3)], ..Batch::default() };
        batch.append(next);
        let levels: Vec<Control> = batch
            .codes
            .iter()
            .filter_map(|c| match c.entry() {
                Entry::Control(index) => Some(batch.controls[index]),
                Entry::Segment(_) => None,
            })
            .collect();
        assert_eq!(levels, [Control::Level(2), Control::Level(3)]);
        assert_eq!((batch.codes.len(), batch.sps.len(), batch.addresses), (3, 0, vec![2]));
    }
}
