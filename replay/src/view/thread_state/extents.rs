//! A thread's extents of the region, one after another or one inside of another: a small machine that says when each
//! begins and ends, which of them are the lane's, and what is known about them.

use std::ops::Range;

use heuristics::SegmentId;
use trace_format::Seq;

use super::super::first_look::generations::Part;

/// How the part of the region that a thread is in ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// With the thread.
    Whole,
    /// When fewer functions than this are open.
    Function { height: usize },
    /// When the stack pointer rises above this one, to no more than `top`: what lies above is another stack, to which
    /// the thread goes for a while (green threads). Not while more signal handlers than these are running.
    Frame { entry: u64, top: u64, handlers: usize },
    /// When the thread has run so many more markers that end it than markers that begin one.
    Marked { open: u32 },
}

/// How far above a function's frame its stack reaches at most, in bytes, where that is not known. Programs map stacks
/// of their own further apart, with other memory between.
const LEAP: u64 = 1 << 20;

/// How far above a thread's first stack pointer its stack pointer rises at most, in bytes: a thread pops what its maker
/// pushed. The C library puts the thread's own block there, of more bytes than these.
const ABOVE: u64 = 1 << 10;

impl Extent {
    /// That of a function which begins with this stack pointer; `stack_top` is the thread's first one. Deeper in the
    /// thread's stack than [`LEAP`], or elsewhere, the function may have begun on a stack that the program made.
    pub fn of_function(entry: u64, stack_top: u64, handlers: usize) -> Extent {
        let is_near_top = (entry..entry.saturating_add(LEAP)).contains(&stack_top);
        let top = if is_near_top { stack_top.saturating_add(ABOVE) } else { entry.saturating_add(LEAP) };
        Extent::Frame { entry, top, handlers }
    }
}

/// What an extent that begins is to the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belongs {
    /// It is one of the lane's, or of an earlier one: the stream goes on.
    Within,
    /// It is the lane's first, and others were before it: the stream begins here.
    First,
    /// It is the first behind the lane's last: the stream ends here.
    Behind,
}

/// What a marker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    Nothing,
    Begins,
    Ends,
}

/// A thread's extents of the region.
#[derive(Debug)]
pub(super) struct Extents {
    open: Option<Extent>,
    /// Whether nothing of the open one was kept yet.
    fresh: bool,
    /// Those around the open one, which wait, and whether they are fresh.
    around: Vec<(Extent, bool)>,
    /// How many began.
    begun: u64,
    /// Those that are the lane's.
    own: Range<u64>,
    /// Whether the thread has joined another since the last one began.
    has_joined: bool,
    parts: Vec<Part>,
    first: Option<Seq>,
    begins_with: Option<SegmentId>,
}

impl Extents {
    /// Before the first; those of these numbers are the lane's.
    pub fn new(own: Range<u64>) -> Extents {
        Extents {
            open: None,
            fresh: true,
            around: Vec::new(),
            begun: 0,
            own,
            has_joined: false,
            parts: Vec::new(),
            first: None,
            begins_with: None,
        }
    }

    /// Whether the thread is in one.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether nothing of the open one was kept yet.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// They, by the joins of the thread's own between them.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// When the first began; none while none did.
    pub fn first(&self) -> Option<Seq> {
        self.first
    }

    /// The first segment of all that was kept; none while none was.
    pub fn begins_with(&self) -> Option<SegmentId> {
        self.begins_with
    }

    /// Another is about to begin, at this moment, after so many kept instructions.
    pub fn count(&mut self, now: Seq, kept: u64) -> Belongs {
        let number = self.begun;
        self.begun += 1;
        if self.parts.is_empty() || std::mem::take(&mut self.has_joined) {
            self.parts.push(Part { extent: number, begin: now, kept_before: kept });
        }
        match number {
            _ if number == self.own.start && number > 0 => Belongs::First,
            _ if number == self.own.end => Belongs::Behind,
            _ => Belongs::Within,
        }
    }

    /// The one that was counted begins.
    pub fn begin(&mut self, extent: Extent, now: Seq) {
        self.open = Some(extent);
        self.fresh = true;
        self.first.get_or_insert(now);
    }

    /// One begins inside of the open one, which goes on behind it.
    pub fn begin_inside(&mut self, extent: Extent) {
        self.around.extend(self.open.replace(extent).map(|around| (around, self.fresh)));
        self.fresh = true;
    }

    /// Takes the open one, and whether it is fresh, out for a while; in its place comes what was taken out so.
    pub fn exchange(&mut self, other: &mut Option<(Extent, bool)>) {
        let open = self.open.map(|open| (open, self.fresh));
        self.open = other.map(|(extent, _)| extent);
        self.fresh = other.is_none_or(|(_, fresh)| fresh);
        *other = open;
    }

    /// How many are around the open one.
    pub fn depth(&self) -> u32 {
        self.around.len() as u32
    }

    /// The first segment of the open one is kept.
    pub fn keep(&mut self, segment: SegmentId) {
        self.fresh = false;
        self.begins_with.get_or_insert(segment);
    }

    /// The open one ends. Whether the one around it goes on.
    pub fn end(&mut self) -> bool {
        let around = self.around.pop();
        self.open = around.map(|(extent, _)| extent);
        self.fresh = around.is_some_and(|(_, fresh)| fresh);
        around.is_some()
    }

    /// The thread has joined another.
    pub fn join(&mut self) {
        self.has_joined = true;
    }

    /// The thread stands before a marker, or before no marker. Extents of markers nest.
    pub fn pass_marker(&mut self, is_begin: bool, is_end: bool) -> Marked {
        let open = if let Some(Extent::Marked { open }) = self.open { open } else { 0 };
        match open {
            0 if is_begin => return Marked::Begins,
            _ if is_begin => self.open = Some(Extent::Marked { open: open + 1 }),
            1 if is_end => return Marked::Ends,
            2.. if is_end => self.open = Some(Extent::Marked { open: open - 1 }),
            _ => {}
        }
        Marked::Nothing
    }

    /// Whether the stack pointer ends the open one, with so many signal handlers running.
    #[inline]
    pub fn end_at(&self, sp: u64, running: usize) -> bool {
        let Some(Extent::Frame { entry, top, handlers }) = self.open else { return false };
        (entry + 1..=top).contains(&sp) && running <= handlers
    }

    /// Whether the open one ends where so many functions are open.
    pub fn end_below(&self, functions: usize) -> bool {
        matches!(self.open, Some(Extent::Function { height }) if functions < height)
    }

    /// Whether the open one ends where recording pauses: at the marker that ends it.
    pub fn end_at_gap(&self) -> bool {
        matches!(self.open, Some(Extent::Marked { .. }))
    }

    /// The highest stack pointer that does not end the open one.
    #[inline]
    pub fn ceiling(&self) -> u64 {
        if let Some(Extent::Frame { entry, .. }) = self.open { entry } else { u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lanes_own_extents_lie_between_its_first_and_the_one_behind_its_last() {
        let mut all = Extents::new(1..3);
        let belong: Vec<Belongs> = (0..5).map(|i| all.count(Seq(i), 10 * i)).collect();
        use Belongs::{Behind, First, Within};
        assert_eq!(belong, [Within, First, Within, Behind, Within]);
        // A thread's very first extent has nothing before it that would have to go.
        assert_eq!(Extents::new(0..1).count(Seq(0), 0), Within);
    }

    #[test]
    fn a_join_begins_another_part_with_the_next_extent() {
        let mut all = Extents::new(0..u64::MAX);
        for (at, joined) in [(5, false), (6, true), (9, true), (11, false)] {
            all.count(Seq(at), at * 100);
            if joined {
                all.join();
            }
        }
        let parts: Vec<(u64, u64, u64)> = all.parts().iter().map(|p| (p.extent, p.begin.0, p.kept_before)).collect();
        assert_eq!(parts, [(0, 5, 500), (2, 9, 900), (3, 11, 1100)]);
    }

    #[test]
    fn markers_nest() {
        let mut all = Extents::new(0..u64::MAX);
        assert_eq!(all.pass_marker(false, true), Marked::Nothing, "an end without a beginning");
        assert_eq!(all.pass_marker(true, false), Marked::Begins);
        all.begin(Extent::Marked { open: 1 }, Seq(0));
        assert_eq!(all.pass_marker(true, false), Marked::Nothing);
        assert_eq!(all.pass_marker(false, true), Marked::Nothing);
        assert_eq!(all.pass_marker(false, false), Marked::Nothing);
        assert!(all.end_at_gap());
        assert_eq!(all.pass_marker(false, true), Marked::Ends);
    }

    #[test]
    fn a_functions_extent_ends_when_its_frame_is_gone_and_no_handler_runs_above_it() {
        let mut all = Extents::new(0..u64::MAX);
        assert_eq!(all.ceiling(), u64::MAX);
        all.begin(Extent::of_function(80, 200, 1), Seq(3));
        assert!(all.is_open() && all.is_fresh() && all.ceiling() == 80);
        all.keep(SegmentId(4));
        assert!(!all.end_at(80, 1) && all.end_at(88, 1) && !all.end_at(88, 2), "a handler has a stack of its own");
        assert!(!all.end_below(0) && !all.end_at_gap());
        assert!(all.end_at(216, 1) && !all.end_at(5000, 1), "a stack that the program made lies above the thread's");
        all.end();
        all.begin(Extent::of_function(LEAP, 5 * LEAP, 0), Seq(5));
        assert!(all.end_at(LEAP + 8, 0) && !all.end_at(5 * LEAP - 8, 0), "nor does a made one reach to the thread's");
        all.end();
        all.begin(Extent::Function { height: 2 }, Seq(7));
        assert!(all.is_fresh() && !all.end_at(u64::MAX, 0) && !all.end_below(2) && all.end_below(1));
        all.keep(SegmentId(5));
        assert_eq!((all.first(), all.begins_with()), (Some(Seq(3)), Some(SegmentId(4))));
    }
}
