//! What one lane makes and another needs: whether lanes of a launch could run in any order.
//!
//! Lanes are walked through in the order of their numbers, and of each value it is known which lane made it: in memory,
//! byte by byte; in registers, where a thread ran lanes one right behind the other. A value that is only moved, put away
//! and taken back keeps its maker. What a lane uses of another lane of its launch is one of these:
//!
//! - *Induction*: the value before the lanes, with the same steps in each lane: it follows from the lane's number.
//! - *Reduction*: values are taken into an accumulator by an associative operator, and no lane looks at what is in it so
//!   far; of an accumulator at several addresses (a histogram), lanes meet where they have the same address.
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
//! (a search that ends with the first find) is not seen. Values in x87 and flag registers are not followed, nor gathers.
//! Of string instructions only the first element of each access is.

#[cfg(test)]
mod brute_force;
mod code;
mod shadow;
mod value;
mod walk;

use heuristics::SegmentId;
use iced_x86::InstructionInfoFactory;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use self::code::Ran;
use self::walk::{Flow, OwnStack, Walker};
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
    /// Of the lanes of a view, which are parts of threads. `lanes_follow`: lanes of a launch that are all of one thread
    /// ran one right behind the other, as turns of a loop do.
    ///
    /// # Errors
    /// When the trace has no addresses, or cannot be read.
    pub fn of(view: &View, lanes_follow: bool) -> Result<Dependences> {
        if !view.has_memory() {
            return Err(Error::Request(
                "what lanes need of each other is seen by their addresses, and the trace has none: record it with trace \
                 --memory"
                    .to_owned(),
            ));
        }
        let segments = view.segments();
        let mut factory = InstructionInfoFactory::new();
        let mut known: FxHashMap<SegmentId, (Vec<Ran>, Vec<u32>)> = FxHashMap::default();
        let mut walker = Walker::new();
        let origins = view.lanes();
        let mut batch = Batch::default();
        let mut generation = None;
        for (lane, origin) in origins.iter().enumerate() {
            if generation != Some(origin.generation) {
                generation = Some(origin.generation);
                let launch = origins[lane..].iter().take_while(|other| other.generation == origin.generation);
                let is_of_one = lanes_follow && launch.map(|other| other.thread).all(|thread| thread == origin.thread);
                walker.begin_launch(lane, is_of_one);
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
        Ok(found(walker))
    }

    /// The first of those that hinder lanes from running together.
    #[must_use]
    pub fn hindrance(&self) -> Option<&Dependence> {
        self.all.iter().find(|one| matches!(one.kind, Kind::Carried | Kind::Partial(_)))
    }
}

/// What the walk amounts to.
fn found(walker: Walker) -> Dependences {
    let mut all = Vec::new();
    let pc = |site: u32| walker.sites[site as usize].pc;
    let of_flow = |kind: Kind, (from, to): (u32, u32), flow: &Flow| Dependence {
        kind,
        from: pc(from),
        to: pc(to),
        count: flow.count,
        lanes: Some((flow.lanes.0 as usize, flow.lanes.1 as usize)),
        distance: Some(flow.distance),
        address: flow.address,
    };
    all.extend(walker.flows.carried.iter().map(|(pair, flow)| of_flow(Kind::Carried, *pair, flow)));
    all.extend(walker.flows.guarded.iter().map(|(pair, flow)| of_flow(Kind::Guarded, *pair, flow)));
    let mut accumulators: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for site in (0..walker.sites.len() as u32).filter(|site| walker.sites[*site as usize].operator.is_some()) {
        accumulators.entry(walker.accumulator_of(site)).or_default().push(site);
    }
    // Makers of values that were used by others, and accumulators: what they overwrite is no private place.
    let mut makers: Vec<u32> = walker.flows.carried.keys().chain(walker.flows.guarded.keys()).map(|p| p.0).collect();
    for updates in accumulators.into_values() {
        makers.extend(&updates);
        all.extend(accumulator(&walker, &updates));
    }
    for (number, site) in walker.sites.iter().enumerate() {
        let overwrites = site.overwrote.0 > 0 && !site.is_atomic && !makers.contains(&(number as u32));
        all.extend(overwrites.then(|| Dependence {
            kind: Kind::Private,
            from: site.pc,
            to: site.pc,
            count: site.overwrote.0,
            lanes: None,
            distance: None,
            address: Some(site.overwrote.1),
        }));
    }
    let is_private = |address: Option<u64>| all.iter().any(|one| one.kind == Kind::Private && one.address == address);
    let old: Vec<Dependence> = walker
        .flows
        .overwritten
        .iter()
        .filter(|((_, writer), flow)| !makers.contains(writer) && !is_private(flow.address))
        .map(|(pair, flow)| of_flow(Kind::Overwritten, *pair, flow))
        .collect();
    all.extend(old);
    all.sort_by_key(|one| (one.kind, std::cmp::Reverse(one.count), one.from, one.to));
    Dependences { all, is_partial: walker.shadow.is_full }
}

/// What the updates of one accumulator amount to; nothing where no lane takes on what another has made.
fn accumulator(walker: &Walker, updates: &[u32]) -> Option<Dependence> {
    let sites = || updates.iter().map(|site| &walker.sites[*site as usize]);
    let taken_on: u64 = sites().map(|site| site.taken_on).sum();
    let first = sites().max_by_key(|site| site.taken_on)?;
    if taken_on == 0 {
        return None;
    }
    // A store that always goes to one place leaves there what the last lane made.
    let is_use = |user: &u32| {
        let user = &walker.sites[*user as usize];
        !(user.stores_to_one() && user.operator.is_none())
    };
    let user = sites().flat_map(|site| &site.uses).filter(|(user, _)| is_use(user)).max_by_key(|(_, count)| **count);
    let operator = sites().find_map(|site| site.operator.filter(|operator| *operator != Operator::Add));
    let operator = operator.unwrap_or(Operator::Add);
    let is_several = sites().any(walk::Site::has_homes);
    let has_taken = sites().any(|site| site.is_taking());
    let is_regular = !has_taken && !is_several && sites().all(|site| !site.is_irregular);
    let kind = match user {
        _ if sites().all(|site| site.is_atomic) => Kind::Atomic,
        _ if is_regular => Kind::Induction,
        Some(_) => Kind::Partial(operator),
        None if is_several => Kind::Scattered(operator),
        None => Kind::Reduction(operator),
    };
    let to = user.filter(|_| matches!(kind, Kind::Partial(_)));
    Some(Dependence {
        kind,
        from: first.pc,
        to: to.map_or(first.pc, |(user, _)| walker.sites[*user as usize].pc),
        count: taken_on,
        lanes: None,
        distance: None,
        address: sites().find_map(walk::Site::a_home),
    })
}
