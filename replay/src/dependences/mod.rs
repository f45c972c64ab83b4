//! What one lane makes and another needs: whether lanes of a launch could run in any order.
//!
//! Lanes are walked through in the order of their numbers, and of each value it is known which lane made it: in
//! memory, byte by byte; in registers, where a thread ran lanes one right behind the other. A value that is only moved,
//! put away and taken back keeps its maker. What a lane uses of another lane of its launch is one of these:
//!
//! - *Induction*: the value before the lanes, with the same steps in each lane: it follows from the lane's number.
//! - *Reduction*: values are taken into an accumulator by an associative operator, and no lane looks at what is in it
//!   so far; of an accumulator at several addresses (a histogram), lanes meet where they have the same address.
//! - *Atomic*: all of it is atomic instructions. *Guarded*: it happens while a lock is held.
//! - *Partial*: an accumulator of which lanes use what is in it so far (a prefix sum, a place in an output).
//! - *Carried*: anything else: the lanes have to run one after the other.
//!
//! What lanes only overwrite is no dependence of values, but of places:
//!
//! - *Private*: several lanes write there, each reads what it wrote itself: every lane needs one of its own.
//! - *Overwritten*: a lane reads what a later one overwrites: the old values have to be kept.
//!
//! Worked example: `for (i…) { t = a[i] + 1; s += t; b[i] = b[i-1] + t; }` with `t` and `s` in memory. `i` is an
//! induction, `t` private, `s` a reduction by addition, `b` carried at distance 1.
//!
//! *Limitation*: what was seen is one run, and holds for it. What a lane does because another has left the loop or not
//! (a search that ends with the first find) is not seen. Values in x87 and flag registers are not followed, nor
//! gathers. Of string instructions only the first element of each access is.

#[cfg(test)]
mod brute_force;
mod code;
mod found;
mod shadow;
mod sites;
mod value;
mod walk;

use heuristics::SegmentId;
use iced_x86::InstructionInfoFactory;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use self::code::Ran;
use self::sites::OwnStack;
use self::walk::Walker;
use crate::view::View;
use crate::{Batch, Control, Entry, Error, Result};

pub use code::Operator;

/// What a dependence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Lanes have to run one after the other.
    Carried,
    /// Lanes use what is in an accumulator so far.
    Partial(Operator),
    /// A lane reads what a later one overwrites.
    Overwritten,
    /// Several lanes write what each of them alone reads.
    Private,
    /// Values are taken into one accumulator.
    Reduction(Operator),
    /// Values are taken into accumulators at several addresses.
    Scattered(Operator),
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
    /// What makes the value; of what is overwritten, what reads it.
    pub from: Pc,
    /// What uses it, or overwrites it; of a reduction or an induction, its update.
    pub to: Pc,
    /// How often.
    pub count: u64,
    /// The lanes of the first of them, where they are known.
    pub lanes: Option<(usize, usize)>,
    /// The smallest distance of two such lanes, where it is known.
    pub distance: Option<u32>,
    /// An address in memory, of what does not lie in registers.
    pub address: Option<u64>,
}

/// What lanes need of each other.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dependences {
    /// Each, those that hinder most first.
    pub all: Vec<Dependence>,
    /// Whether the program had more memory than could be followed.
    pub is_partial: bool,
}

impl Dependences {
    /// Of the lanes of a view, which are parts of threads. `lanes_follow`: a thread runs the lanes of a launch one
    /// right behind the other, as turns of a loop that is not dealt out in chunks.
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
        let mut factory = InstructionInfoFactory::new();
        let mut known: FxHashMap<SegmentId, (Vec<Ran>, Vec<u32>)> = FxHashMap::default();
        let mut walker = Walker::new();
        let origins = view.lanes();
        let is_dealt = view.summary().cut.as_ref().is_none_or(|cut| cut.dealt);
        let mut batch = Batch::default();
        let mut generation = None;
        for (lane, origin) in origins.iter().enumerate() {
            if generation != Some(origin.generation) {
                generation = Some(origin.generation);
                walker.begin_launch(lane, lanes_follow && !is_dealt);
            }
            walker.begin_lane(lane, origin.thread.0);
            let mut stream = view.stream(lane);
            while stream.next_batch(&mut batch)? {
                let mut at = 0;
                for code in &batch.codes {
                    match code.entry() {
                        Entry::Segment(id) => {
                            let (ran, sites) = known.entry(id).or_insert_with(|| {
                                let ran = code::of_segment(segments, id, &mut factory);
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
                            Control::Acquire(_) | Control::AcquireShared(_) => walker.locks += 1,
                            Control::Release(_) => walker.locks = walker.locks.saturating_sub(1),
                            _ => {}
                        },
                    }
                }
            }
            walker.end_lane();
        }
        walker.end_launch();
        Ok(found::of(&walker))
    }

    /// The first of those that hinder lanes from running together.
    #[must_use]
    pub fn hindrance(&self) -> Option<&Dependence> {
        self.all.iter().find(|one| matches!(one.kind, Kind::Carried | Kind::Partial(_)))
    }
}
