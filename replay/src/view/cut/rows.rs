//! Rows of segments where threads are cut into lanes: a row that lies in one lane stays one code, one in which a turn
//! begins or a loop is left is split there. How, is worked out once for each row and what the thread was in before it.
//!
//! Example: of the row `test body jump | test body`, in which the loop's header stands at `|`, what stands before it is
//! one code of the lane that ends there, and the rest is one code of the lane that begins.

use std::sync::{Mutex, PoisonError};

use heuristics::SegmentId;
use rustc_hash::FxHashMap;

use super::iterations::loops::LoopPlan;
use crate::lanes::brief::Brief;
use crate::lanes::stream::RowId;
use crate::{Code, Rows};

/// The rows that threads' streams name, and parts of them that lanes run: those that any thread was split into.
pub(super) struct AllRows<'a> {
    whole: &'a Rows,
    grown: Mutex<Grown>,
}

struct Grown {
    rows: Rows,
    /// By row, beginning and end there.
    parts: FxHashMap<(u32, u32, u32), Code>,
}

impl<'a> AllRows<'a> {
    pub(super) fn new(whole: &'a Rows) -> AllRows<'a> {
        AllRows { whole, grown: Mutex::new(Grown { rows: whole.clone(), parts: FxHashMap::default() }) }
    }

    /// The code of what stands there in a row.
    fn part(&self, row: RowId, from: usize, to: usize) -> Code {
        let segments = self.whole.of(row);
        if (from, to) == (0, segments.len()) {
            return Code::row(row);
        }
        let mut grown = self.grown.lock().unwrap_or_else(PoisonError::into_inner);
        let Grown { rows, parts } = &mut *grown;
        *parts.entry((row.0, from as u32, to as u32)).or_insert_with(|| rows.add(&segments[from..to], None))
    }

    /// All that lanes name.
    pub(super) fn finish(self) -> Rows {
        self.grown.into_inner().unwrap_or_else(PoisonError::into_inner).rows
    }
}

/// What segments in a row do to the thread that runs them all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub instructions: u64,
    /// How many of them call mathematical functions.
    pub mathematics: u64,
    pub addresses: u32,
    /// How many of their stack pointers are recorded.
    pub recorded: u32,
    /// What they add to the stack pointer since the last recorded one, or in all.
    pub sp: i64,
    /// What they add to the call level.
    pub level: i32,
    /// The lowest level at which one of them begins, less that of the first: at most 0.
    pub lowest: i32,
}

impl Total {
    pub(super) fn add(&mut self, brief: &Brief) {
        self.instructions += u64::from(brief.instructions);
        self.mathematics += u64::from(brief.gpu.calls_mathematics);
        self.addresses += brief.addresses;
        if brief.recorded {
            (self.recorded, self.sp) = (self.recorded + 1, 0);
        }
        self.sp += i64::from(brief.sp);
        self.lowest = self.lowest.min(self.level);
        self.level += i32::from(brief.level);
    }

    pub(super) fn of(brief: &Brief) -> Total {
        let mut total = Total::default();
        total.add(brief);
        total
    }
}

/// Segments in a row that are of one lane, or of none.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub code: Code,
    pub segments: &'a [Code],
    /// Whether a turn begins or a loop is left with the first of them.
    pub turns: bool,
    /// Whether one of them, other than the first of a turn, is no part of the test at its beginning.
    pub is_more_than_test: bool,
    pub total: Total,
}

/// Where a thread is when it comes to a row: in a turn of this loop, so many calls further in; less than 0 where it has
/// returned from the loop's function.
pub(super) type Standing = Option<(u32, i32)>;

/// What is known of a row.
struct Known<'a> {
    whole: Part<'a>,
    /// How it splits, where the thread stood so.
    splits: Vec<(Standing, std::ops::Range<usize>)>,
}

/// Splits the rows of one thread's stream.
pub(super) struct Splitter<'a> {
    all: &'a AllRows<'a>,
    briefs: &'a [Brief],
    /// By row: its number among those that are known, and 1; 0 where it is not.
    numbers: Vec<u32>,
    known: Vec<Known<'a>>,
    parts: Vec<Part<'a>>,
}

impl<'a> Splitter<'a> {
    pub(super) fn new(all: &'a AllRows<'a>, briefs: &'a [Brief]) -> Splitter<'a> {
        Splitter { all, briefs, numbers: vec![0; all.whole.len()], known: Vec::new(), parts: Vec::new() }
    }

    /// The segments of a row.
    pub(super) fn segments(&self, row: RowId) -> &'a [Code] {
        self.all.whole.of(row)
    }

    /// The row as one part, in which nothing turns.
    #[inline]
    pub(super) fn whole(&mut self, row: RowId) -> Part<'a> {
        let number = self.number(row);
        self.known[number].whole
    }

    #[inline]
    fn number(&mut self, row: RowId) -> usize {
        match self.numbers[row.0 as usize] {
            0 => {
                let whole = self.part(row, 0, self.all.whole.of(row).len(), (false, false));
                self.known.push(Known { whole, splits: Vec::new() });
                self.numbers[row.0 as usize] = self.known.len() as u32;
                self.known.len() - 1
            }
            number => number as usize - 1,
        }
    }

    fn part(&self, row: RowId, from: usize, to: usize, (turns, is_more_than_test): (bool, bool)) -> Part<'a> {
        let segments = &self.all.whole.of(row)[from..to];
        let mut total = Total::default();
        segments.iter().filter_map(|code| code.as_segment()).for_each(|id| total.add(&self.briefs[id.0 as usize]));
        Part { code: self.all.part(row, from, to), segments, turns, is_more_than_test, total }
    }

    /// The numbers of the parts of a row for a thread that stands so.
    #[inline]
    pub(super) fn parts(&mut self, row: RowId, standing: Standing, plan: &LoopPlan) -> std::ops::Range<usize> {
        let number = self.number(row);
        if let Some((_, parts)) = self.known[number].splits.iter().find(|(known, _)| *known == standing) {
            return parts.clone();
        }
        let parts = self.split(row, standing, plan);
        self.known[number].splits.push((standing, parts.clone()));
        parts
    }

    /// The numbers of the parts of a row that is split before each segment at one of these places.
    #[inline]
    pub(super) fn parts_at(&mut self, row: RowId, heads: &[bool]) -> std::ops::Range<usize> {
        let number = self.number(row);
        if let [(_, parts), ..] = &self.known[number].splits[..] {
            return parts.clone();
        }
        let is_head =
            |code: &Code| code.as_segment().is_some_and(|id| heads[self.briefs[id.0 as usize].place.0 as usize]);
        let segments = self.all.whole.of(row);
        let begins = (0..segments.len()).filter(|at| *at == 0 || is_head(&segments[*at]));
        let begins = begins.map(|at| (at, (is_head(&segments[at]), false))).collect();
        let parts = self.make(row, begins);
        self.known[number].splits.push((None, parts.clone()));
        parts
    }

    /// The part of this number.
    #[inline]
    pub(super) fn of(&self, number: usize) -> Part<'a> {
        self.parts[number]
    }

    /// Goes through the row as [`super::cutter::Cutter`] goes through segments.
    fn split(&mut self, row: RowId, standing: Standing, plan: &LoopPlan) -> std::ops::Range<usize> {
        let segments = self.all.whole.of(row);
        // The loop, and the level of its turns less that before the row.
        let mut turning = standing.map(|(of_loop, inside)| (of_loop, -inside));
        // Whether the thread may be aside, in no turn.
        let (mut level, mut in_none) = (0, true);
        let mut begins: Vec<(usize, (bool, bool))> = Vec::new();
        for (at, id) in segments.iter().filter_map(|code| code.as_segment()).enumerate() {
            let brief = &self.briefs[id.0 as usize];
            let place = &plan.of[brief.place.0 as usize];
            let (turns, more) = match turning {
                Some((_, of_turns)) if level > of_turns => (false, false),
                Some((of_loop, of_turns)) if level == of_turns && place.in_loops.contains(&of_loop) => {
                    let is_aside = place.aside == Some(of_loop);
                    let begins = place.heads == Some(of_loop) || in_none && place.enters == Some(of_loop);
                    in_none = is_aside || in_none && !begins;
                    (is_aside || begins, !is_aside && !begins && !place.in_tests.contains(&of_loop))
                }
                _ => {
                    let leaves = turning.is_some();
                    turning = place.enters.map(|of_loop| (of_loop, level));
                    in_none = false;
                    (leaves || turning.is_some(), false)
                }
            };
            match begins.last_mut() {
                Some((_, (_, any_more))) if !turns => *any_more |= more,
                _ => begins.push((at, (turns, more))),
            }
            level += i32::from(brief.level);
        }
        self.make(row, begins)
    }

    /// The parts of a row that begin at these of its segments.
    fn make(&mut self, row: RowId, begins: Vec<(usize, (bool, bool))>) -> std::ops::Range<usize> {
        let segments = self.all.whole.of(row);
        let first = self.parts.len();
        let ends: Vec<usize> = begins.iter().skip(1).map(|(at, _)| *at).chain([segments.len()]).collect();
        for ((from, what), to) in begins.into_iter().zip(ends) {
            let part = self.part(row, from, to, what);
            self.parts.push(part);
        }
        first..self.parts.len()
    }
}

impl Part<'_> {
    /// The number of its first segment.
    pub(super) fn first(&self) -> Option<SegmentId> {
        self.segments.first()?.as_segment()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heuristics::PlaceId;
    use proptest::prelude::*;
    use trace_format::{Pc, Seq};

    use super::super::cutter::{Cutter, Rule};
    use super::super::iterations::loops::Membership;
    use super::super::pieces::{Begun, Pieces};
    use super::super::store::{Lane, links_of};
    use super::*;
    use crate::GpuCost;
    use crate::lanes::kept::Keeper;
    use crate::{Batch, Control, Entry, EpisodeId, LaneStream, LockId};

    const SEGMENTS: u32 = 12;

    fn segment(id: u32) -> Code {
        Code::segment(SegmentId(id))
    }

    /// Segments that do this to the stack pointer and the level, and whether they record the first.
    fn briefs(of: &[(i32, i8, bool, u32)]) -> Vec<Brief> {
        let brief = |(id, (sp, level, recorded, addresses)): (u32, &(i32, i8, bool, u32))| Brief {
            start: Pc(id.into()),
            last: Pc(id.into()),
            place: PlaceId(id),
            instructions: id + 1,
            gpu: GpuCost::default(),
            addresses: *addresses,
            sp: if *recorded { 0 } else { *sp },
            level: *level,
            recorded: *recorded,
            transfers: true,
            in_stub: false,
        };
        (0..).zip(of).map(brief).collect()
    }

    /// What a place is to two loops: the one that holds it, whether it is in its test, whether the first loop's chunks
    /// are handed out around it, and whether it is of no turn.
    type OfPlace = (Option<u32>, bool, bool, bool);

    fn plan(of: &[OfPlace], works: [bool; 2], dealt: bool) -> LoopPlan {
        let member = |(loop_of, in_test, around, aside): &OfPlace| Membership {
            heads: None,
            enters: None,
            aside: loop_of.filter(|_| *aside),
            ends_chunk: *aside && *around,
            in_loops: loop_of.iter().copied().collect(),
            in_tests: loop_of.iter().copied().filter(|_| *in_test).collect(),
            in_dispatch: if dealt && (*loop_of == Some(0) || *around) { vec![0] } else { Vec::new() },
            is_shown: false,
        };
        let mut plan = LoopPlan {
            of: of.iter().map(member).collect(),
            loops: works.to_vec(),
            outermost: vec![true, false],
            turns_are_chunks: vec![false; 2],
            in_chunks: vec![false; 2],
            shown: FxHashMap::default(),
        };
        for number in 0..2 {
            if let Some(header) = plan.of.iter_mut().find(|place| place.in_loops == [number]) {
                (header.heads, header.enters, header.in_tests) = (Some(number), Some(number), vec![number]);
            }
            // Another way in.
            if let Some(entry) = plan.of.iter_mut().rfind(|place| place.in_loops == [number]) {
                entry.enters = Some(number);
            }
        }
        plan
    }

    /// What a thread does: a row, a segment or a control, by these numbers.
    fn batch(
        (what, rows, codes): (&[(u8, u32)], &Rows, &[Code]),
        briefs: &[Brief],
        of_extents: bool,
    ) -> (Batch, Batch) {
        let mut folded = Batch::default();
        for (which, number) in what {
            let control = match which {
                0..=5 => {
                    folded.codes.push(codes[*number as usize % codes.len()]);
                    continue;
                }
                6 | 7 => {
                    folded.codes.push(segment(number % SEGMENTS));
                    continue;
                }
                8 => Control::Sp(-8 * i64::from(*number)),
                9 => Control::Level(1 + number % 4),
                10 => Control::Begin { after: Seq(u64::from(*number)), part: number % 3 / 2 },
                14 if of_extents => Control::Leave(number % 3),
                15 if of_extents => Control::GoOn(number % 3),
                11 => Control::Meet(EpisodeId(*number)),
                12 => Control::Acquire(LockId(number % 2)),
                _ => Control::Release(LockId(number % 2)),
            };
            folded.codes.push(Code::control(folded.controls.len()));
            folded.controls.push(control);
        }
        let mut all = Batch::default();
        rows.unfold(&folded, &mut all);
        for brief in all.codes.iter().filter_map(|code| code.as_segment()).map(|id| &briefs[id.0 as usize]) {
            let (sps, addresses) = (folded.sps.len() as i64, folded.addresses.len() as u64);
            folded.sps.extend(brief.recorded.then_some(-16 * (sps % 5)));
            folded.addresses.extend((0..u64::from(brief.addresses)).map(|n| addresses + n));
        }
        (all.sps, all.addresses) = (folded.sps.clone(), folded.addresses.clone());
        (folded, all)
    }

    /// All that was cut, in words.
    fn said(pieces: &Pieces, rows: Rows) -> Vec<String> {
        let (rows, stores) = (Arc::new(rows), std::slice::from_ref(&pieces.store));
        let links = links_of(stores);
        let of_lane = |lane: &Begun| {
            let mut stream = Lane::new((stores, &links, &rows), (0, lane.stretch));
            let (mut batch, mut said) = (Batch::default(), String::new());
            while stream.next_batch(&mut batch).unwrap() {
                for code in &batch.codes {
                    said += &match code.entry() {
                        Entry::Segment(id) => format!("{} ", id.0),
                        Entry::Control(index) => format!("{:?} ", batch.controls[index]),
                    };
                }
                said += &format!("{:?} {:?}", batch.sps, batch.addresses);
            }
            said
        };
        let lanes = pieces.lanes.iter().map(of_lane);
        let Pieces { lanes: begun, launches, accesses, counts, .. } = pieces;
        lanes.chain([format!("{begun:?} {launches:?} {accesses:?} {counts:?}")]).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn rows_are_cut_as_their_segments_are(
            of_segments in prop::collection::vec((-16..16, -1..2i8, prop::bool::weighted(0.1), 0..3u32), SEGMENTS as usize),
            of_places in prop::collection::vec(
                (prop::option::weighted(0.7, 0..2u32), any::<bool>(), any::<bool>(), prop::bool::weighted(0.2)),
                SEGMENTS as usize),
            works in any::<[bool; 2]>(),
            (dealt, of_extents) in any::<(bool, bool)>(),
            of_rows in prop::collection::vec(prop::collection::vec(0..SEGMENTS, 1..9), 1..6),
            what in prop::collection::vec((0..16u8, 0..40u32), 1..60),
        ) {
            let (briefs, plan) = (briefs(&of_segments), plan(&of_places, works, dealt));
            let mut rows = Rows::default();
            let of_row = |row: &Vec<u32>| rows.add(&row.iter().map(|id| segment(*id)).collect::<Vec<_>>(), None);
            let codes: Vec<Code> = of_rows.iter().map(of_row).collect();
            let (folded, unfolded) = batch((&what, &rows, &codes), &briefs, of_extents);
            let keeper = Keeper::beside(std::iter::empty());
            let cut = |batch: &Batch| {
                let all = AllRows::new(&rows);
                let rule = if of_extents { Rule::Extents } else { Rule::Turns(&plan) };
                let mut cutter = Cutter::new((rule, 3), (&briefs, &all), 0, &keeper);
                cutter.see(batch).unwrap();
                let pieces = cutter.finish().unwrap();
                said(&pieces, all.finish())
            };
            prop_assert_eq!(cut(&folded), cut(&unfolded));
        }
    }

    #[test]
    fn a_row_in_which_a_turn_begins_is_split_there_once_for_all_threads() {
        let briefs = briefs(&[(0, 0, false, 0); SEGMENTS as usize]);
        let mut of_places = [(None, false, false, false); SEGMENTS as usize];
        (of_places[1].0, of_places[2].0) = (Some(0), Some(0));
        let plan = plan(&of_places, [true; 2], false);
        let mut rows = Rows::default();
        let row = rows.add(&[1, 2, 1, 2, 3].map(segment), None).as_row().unwrap();
        let all = AllRows::new(&rows);
        let mut codes = Vec::new();
        for _ in 0..2 {
            let mut splitter = Splitter::new(&all, &briefs);
            let parts = splitter.parts(row, Some((0, 0)), &plan).map(|number| splitter.of(number));
            codes.push(parts.map(|part| (part.code.bits(), part.turns, part.segments.len())).collect::<Vec<_>>());
            // A thread that is inside a call runs it as it is.
            assert_eq!(splitter.parts(row, Some((0, 1)), &plan).len(), 1);
        }
        assert_eq!(codes[0], codes[1]);
        let shape: Vec<_> = codes[0].iter().map(|(_, turns, segments)| (*turns, *segments)).collect();
        assert_eq!(shape, [(true, 2), (true, 2), (true, 1)]);
        // What both turns run is kept twice at most: by where it stands in the row.
        assert_eq!(all.finish().len(), rows.len() + 2);
    }
}
