//! Dependences between lanes: whether the lanes of a launch could run in any order.
//!
//! Lanes are walked through in the order of their numbers, and for each value it is known which lane made it: in
//! memory, byte by byte; in registers, where a thread ran lanes directly one after another. A value that is only moved,
//! or saved and restored, keeps its maker. When a lane uses a value of another lane of its launch, this is one of
//! these:
//!
//! - *Induction*: the value before the lanes, with the same steps in each lane: it follows from the lane's number.
//! - *Reduction*: values are taken into an accumulator by an associative operator, and no lane uses the partial result.
//!   With an accumulator at several addresses (a histogram), lanes meet where they have the same address.
//! - *Atomic*: all of it is done by atomic instructions. *Guarded*: it happens while a lock is held.
//! - *Partial*: an accumulator whose partial results lanes use (a prefix sum, a place in an output).
//! - *Carried*: anything else: the lanes have to run one after the other.
//!
//! Where lanes only overwrite, the dependence is one of places, not of values:
//!
//! - *Private*: several lanes write there, and each reads only what it wrote itself: every lane needs its own copy.
//! - *Overwritten*: a lane reads what a later one overwrites: the old values must be kept.
//!
//! One dependence is of control:
//!
//! - *Exit*: a lane can leave the loop before the loop's own test ends it; the lanes after it would not run.
//!
//! Worked example: `for (i…) { t = a[i] + 1; s += t; b[i] = b[i-1] + t; }` with `t` and `s` in memory. `i` is an
//! induction, `t` private, `s` a reduction by addition, `b` carried at distance 1.
//!
//! *Limitation*: the result holds for the run that was seen. A loop whose only test depends on data (`while (p[i])`)
//! has no early exit. Gathers are not followed, nor is what x87 instructions leave in their status word. For string
//! instructions, only the first element of each access is followed.

#[cfg(test)]
mod brute_force;
mod code;
mod found;
mod shadow;
mod sites;
mod value;
mod walk;

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use self::code::Ran;
use self::sites::OwnStack;
use self::walk::Walker;
use crate::view::View;
use crate::{Batch, Control, Entry, Error, Result};

pub use machine::Operator;

/// The kind of a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Lanes have to run one after the other.
    Carried,
    /// Lanes use partial results of an accumulator.
    Partial(Operator),
    /// A lane reads what a later one overwrites.
    Overwritten,
    /// Several lanes write what each of them alone reads.
    Private,
    /// Values are taken into one accumulator.
    Reduction(Operator),
    /// Values are taken into accumulators at several addresses.
    Scattered(Operator),
    /// A lane can end the loop for all behind it.
    Exit,
    /// As one of the others, with a lock held, or between atomic instructions.
    Guarded,
    /// By atomic instructions.
    Atomic,
    /// A value that follows from the lane's number.
    Induction,
}

/// A dependence between lanes, by the instructions that make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// What it is.
    pub kind: Kind,
    /// What makes the value; for an overwritten value, what reads it.
    pub from: Pc,
    /// What uses it, or overwrites it; for a reduction or an induction, its update.
    pub to: Pc,
    /// How often.
    pub count: u64,
    /// The lanes of the first of them, where they are known.
    pub lanes: Option<(usize, usize)>,
    /// The smallest distance of two such lanes, where it is known.
    pub distance: Option<u32>,
    /// An address in memory, if the value does not lie in registers.
    pub address: Option<u64>,
}

/// The dependences between lanes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dependences {
    /// All of them, those that hinder most first.
    pub all: Vec<Dependence>,
    /// Whether the program had more memory than could be followed.
    pub is_partial: bool,
}

impl Dependences {
    /// Finds those of the lanes of a view, which are parts of threads. `lanes_follow`: a thread runs the lanes of a
    /// launch directly one after another, as the iterations of a loop that is not dealt out in chunks.
    ///
    /// # Errors
    /// When the trace has no addresses, or cannot be read.
    pub fn of(view: &View, lanes_follow: bool) -> Result<Dependences> {
        if !view.has_memory() {
            return Err(Error::Request(
                "dependences between lanes are found by addresses, and the trace has none: record it with trace \
                 --memory"
                    .to_owned(),
            ));
        }
        let segments = view.segments();
        let mut known: FxHashMap<SegmentId, (Vec<Ran>, Vec<u32>)> = FxHashMap::default();
        let mut walker = Walker::new();
        let origins = view.lanes();
        let is_dealt = view.summary().cut.as_ref().is_none_or(|cut| cut.dealt);
        let mut exits = exits(view);
        let mut batch = Batch::default();
        let mut generation = None;
        for (lane, origin) in origins.iter().enumerate() {
            if generation != Some(origin.generation) {
                generation = Some(origin.generation);
                walker.begin_launch(lane, lanes_follow && !is_dealt);
            }
            walker.begin_lane(lane, origin.thread.0);
            let (mut stream, mut last) = (view.stream(lane), None);
            while stream.next_batch(&mut batch)? {
                let mut at = 0;
                last = batch.codes.iter().rev().find_map(|code| code.as_segment()).or(last);
                for code in &batch.codes {
                    match code.entry() {
                        Entry::Segment(id) => {
                            let (ran, sites) = known.entry(id).or_insert_with(|| {
                                let ran = code::of_segment(segments, id);
                                let sites = ran.iter().map(|one| walker.site(one.pc)).collect();
                                (ran, sites)
                            });
                            for (one, site) in ran.iter().zip(sites.iter()) {
                                let addresses = &batch.addresses[at..at + one.accesses.len()];
                                at += one.accesses.len();
                                walker.ran(one, *site, addresses);
                            }
                        }
                        Entry::Control(index) => match batch.controls[index] {
                            Control::Stack { zero, above } => walker.stack = OwnStack { zero, above },
                            Control::Acquire(_) | Control::AcquireShared(_) | Control::AcquireOneOf { .. } => {
                                walker.locks += 1
                            }
                            Control::Release(_) => walker.locks = walker.locks.saturating_sub(1),
                            _ => {}
                        },
                    }
                }
            }
            walker.end_lane();
            let left_at = last.map(|id| segments[id].last().pc);
            exits.iter_mut().filter(|exit| Some(exit.to) == left_at).for_each(|exit| exit.count += 1);
        }
        walker.end_launch();
        let mut found = found::of(&walker);
        found.all.extend(exits);
        found.all.sort_by_key(|one| one.kind);
        Ok(found)
    }

    /// The first of those that keep lanes from running together.
    #[must_use]
    pub fn hindrance(&self) -> Option<&Dependence> {
        self.all.iter().find(|one| matches!(one.kind, Kind::Carried | Kind::Partial(_)))
    }
}

/// Where the loops whose turns are lanes can be left early, with nothing counted.
fn exits(view: &View) -> Vec<Dependence> {
    let loops = view.summary().cut.iter().flat_map(|cut| &cut.loops);
    let exit = |pc: &Pc| Dependence {
        kind: Kind::Exit,
        from: *pc,
        to: *pc,
        count: 0,
        lanes: None,
        distance: None,
        address: None,
    };
    loops.flat_map(|taken| taken.early_exits.iter().map(exit)).collect()
}
