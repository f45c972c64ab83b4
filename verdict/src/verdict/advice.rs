//! The worst places, and for each one remedy that fits its cause, with what it would gain at most.
//!
//! A place's *slots* are the lane-slots of lanes that parted there ([`attribution::lost`]). A remedy gains most if it
//! makes all of them useful, or saves their fetches: efficiency is then active / (slots - the place's slots). Where
//! something closer was replayed or counted (a pass of the compiler, another grouping, pieces of work as lanes), that
//! figure is used. A remedy is named only where the trace shows what it needs:
//!
//! | remedy | is named where |
//! |---|---|
//! | meet behind the lock, shorten it, an atomic in its place, another granularity | lanes wait for a lock ([`super::locking`]) |
//! | a fixed share for each thread | lanes end at different times, and threads took work whenever they were free |
//! | merge the loop | the trip counts of an inner loop differ between lanes, and one loop with the one around it takes fewer fetches |
//! | regroup lanes | there are several warps, and grouped by similarity they take fewer fetches |
//! | equal work | the trip counts of their outermost loop differ between lanes, or lanes end at different times |
//! | equal turns | lanes turn an inner loop differently often |
//! | fuse | both sides of the branch call one function, and lanes that ran it together took fewer fetches |
//! | hoist | both sides of the branch have instructions in common |
//! | no branch | its sides are a few instructions each |
//! | sort | lanes part at a branch that depends on data, and none of the above fits |
//! | share out | one lane at a time runs what is behind the branch |
//! | sort by callee | lanes call different functions |
//! | even out phases | lanes wait at a barrier for others |
//! | fill warps | warps have seats without lanes, and another number of lanes would fill them |

use std::collections::{BTreeMap, BTreeSet};

use attribution::lost::{ByCause, main_causes};
use attribution::table::grouped;
use attribution::{Source, Subject};
use heuristics::{PlaceId, Program, Spec};
use replay::metrics::{Cause, Causes, Charge};
use replay::suggest::{Basis, Estimate, Pass};
use replay::view::{LoopRan, View};
use replay::{Outcome, Unit};
use trace_format::Pc;

use super::balance::{self, Balance, Schedule};
use super::coverage::share;
pub use super::kinds::Kind;
use super::locking::Locking;
use super::{Evidence, Items, filling};

/// How many places are named.
const PLACES: usize = 3;

/// A place is named only if it loses at least this share of the total loss.
const WORTH_NAMING: f64 = 0.05;

/// A remedy must gain at least this share of the fetches.
const WORTH_DOING: f64 = 0.01;

/// The sides of a branch may have so many instructions together to be computed without a branch. The default model
/// predicates sides of 4; a warp that computes 16 for all lanes issues about as much as one that parts for two sides of
/// 8.
const FEW_INSTRUCTIONS: u32 = 16;

/// A remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What to change.
    pub kind: Kind,
    /// What to do, in a sentence.
    pub text: String,
    /// The efficiency that it would leave: at most, or as it was replayed.
    pub efficiency: f64,
    /// How that is known.
    pub basis: Basis,
}

/// A place at which lanes part.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its line, or what stands for it.
    pub subject: Subject,
    /// The slots of lanes that parted there.
    pub slots: u64,
    /// Their share of all that is lost.
    pub share: f64,
    /// Those, by cause.
    pub by_cause: ByCause,
    /// The remedy; none if the trace supports none.
    pub remedy: Option<Remedy>,
    /// Others, which change more.
    pub more: Vec<Remedy>,
}

impl Place {
    /// The causes of the loss there.
    #[must_use]
    pub fn causes(&self) -> String {
        main_causes(&self.by_cause)
    }

    /// Drops what would not raise this efficiency in the digits that are shown.
    pub(super) fn drop_remedies_without_gain(&mut self, before: f64) {
        let gains = |remedy: &Remedy| remedy.efficiency > before && share(remedy.efficiency) != share(before);
        self.remedy.take_if(|remedy| !gains(remedy));
        self.more.retain(gains);
    }

    /// The cause of the largest part.
    fn cause(&self) -> Cause {
        let most =
            Cause::ALL.into_iter().max_by_key(|cause| (self.by_cause[*cause as usize], std::cmp::Reverse(*cause)));
        most.unwrap_or(Cause::Schedule)
    }
}

/// What the choice of remedies depends on.
pub(super) struct Advisor<'a> {
    pub outcome: &'a Outcome,
    /// Whose instructions the verdict counts.
    pub unit: Unit,
    /// The efficiency that the verdict gives.
    pub efficiency: f64,
    pub program: &'a Program,
    pub view: &'a View,
    pub balance: Option<&'a Balance>,
    pub evidence: &'a Evidence,
    /// What locks cost, where lanes wait for one.
    pub locking: Option<&'a Locking>,
    /// Branches at which the model's lanes do not part, since their arms run predicated. The verdict's efficiency
    /// counts lanes as active there.
    pub predicated: BTreeSet<Pc>,
}

/// The conditional branches of which the model of an outcome runs all arms predicated.
pub(super) fn predicated(outcome: &Outcome, program: &Program) -> BTreeSet<Pc> {
    let most = Spec::parse(&outcome.heuristic).map_or(0, |spec| heuristics::longest_predicated(&spec));
    let is_short = |place: PlaceId| {
        let arms = program.control_flow.arms(place);
        !arms.is_empty() && arms.iter().all(|arm| arm.instructions <= most)
    };
    let segments = program.segments.iter().map(|(_, segment)| segment);
    segments.filter(|segment| is_short(segment.place)).map(|segment| segment.last().pc).collect()
}

/// A line, with the instructions at which lanes parted.
struct Line {
    place: Place,
    at: Vec<(Pc, u64)>,
}

impl Advisor<'_> {
    /// The worst places, each with its remedy.
    pub fn places(&self, causes: &Causes, source: &mut Source) -> Vec<Place> {
        let total: u64 = self.lost(causes).map(|(_, slots)| slots).sum();
        let mut worst = lines(self.lost(causes), source);
        worst.truncate(PLACES);
        worst.retain(|line| line.place.slots as f64 >= WORTH_NAMING * total as f64);
        let advised = worst.into_iter().map(|mut line| {
            line.place.share = line.place.slots as f64 / total.max(1) as f64;
            // Lanes that are not met again behind a lock run to their ends alone: the line has lost slots of both.
            let is_of_lock = matches!(line.place.cause(), Cause::Lock | Cause::Finished)
                && line.place.by_cause[Cause::Lock as usize] > 0;
            let remedies = self.locking.filter(|_| is_of_lock).map(|locking| locking.remedies(self.efficiency));
            let mut remedies = remedies.unwrap_or_default().into_iter();
            line.place.remedy = remedies.next().or_else(|| self.remedy(&line, source));
            line.place.more = remedies.collect();
            line.place
        });
        advised.collect()
    }

    /// Lost slots, except those of lanes that are predicated off.
    fn lost<'c>(&'c self, causes: &'c Causes) -> impl Iterator<Item = (Charge, u64)> + 'c {
        let is_off = |charge: &Charge| {
            charge.cause == Cause::Branch && charge.parted_at.is_some_and(|pc| self.predicated.contains(&pc))
        };
        causes.charges.iter().copied().filter(move |(charge, _)| !is_off(charge))
    }

    /// The efficiency when so many lost slots are saved. The verdict's efficiency may be of a GPU's instructions, so
    /// slots are scaled by the ratio of the two losses.
    fn without(&self, slots: u64) -> f64 {
        let all = self.outcome.counts.fetches() as f64 * self.outcome.warp_size as f64;
        let active = self.efficiency * all;
        let lost = self
            .outcome
            .found::<Causes>()
            .map_or_else(|| self.outcome.lost_slots(), |causes| self.lost(causes).map(|(_, slots)| slots).sum());
        let scale = (all - active) / (lost as f64).max(1.0);
        (active / (all - slots as f64 * scale).max(active).max(1.0)).min(1.0)
    }

    /// The efficiency when what is issued falls as from `before` to `after`.
    fn with_issued(&self, before: u64, after: u64) -> f64 {
        (self.efficiency * before as f64 / after.max(1) as f64).min(1.0)
    }

    fn remedy(&self, line: &Line, source: &mut Source) -> Option<Remedy> {
        let slots = line.place.slots;
        let accounted = |kind: Kind, text: String| {
            Some(Remedy { kind, text, efficiency: self.without(slots), basis: Basis::AtMost })
        };
        match line.place.cause() {
            Cause::Lock => {
                let lock = self.locking.map_or_else(|| "the lock".to_owned(), |of| format!("lock {}", of.name));
                accounted(
                    Kind::Lock,
                    format!(
                        "lanes hold {lock} one after another: give each lane a copy of the data it guards and \
                         combine the copies at the end, or use a lock for each part of the data"
                    ),
                )
            }
            Cause::Finished | Cause::LoopTripCount => self.of_length(line, source),
            Cause::Branch => self.of_branch(line, source),
            Cause::CallTarget => self.fuse(line, source).or_else(|| {
                accounted(
                    Kind::SortByCallee,
                    "lanes call different functions: sort or group the items by what they call, so that the lanes of a \
                     warp call one"
                        .to_owned(),
                )
            }),
            Cause::Barrier => accounted(
                Kind::EvenPhases,
                "lanes wait at a barrier for lanes with more work before it: spread the work between barriers evenly"
                    .to_owned(),
            ),
            Cause::EmptySeat => accounted(Kind::FillWarps, filling::advice(self.view, self.outcome.warp_size)?),
            Cause::Schedule => None,
        }
    }

    /// Lanes that run longer than others.
    fn of_length(&self, line: &Line, source: &mut Source) -> Option<Remedy> {
        if let Some(remedy) = self.fixed_share(line) {
            return Some(remedy);
        }
        let ran = self.loop_at(line, source);
        let merging = ran.and_then(|ran| ran.merging).filter(|of| of.gain > 0);
        let issued = self.outcome.issued(self.unit);
        let without = |fetches: u64| {
            let scale = ran.map_or(1.0, |ran| ran.issued_per_fetch(self.unit));
            self.with_issued(issued, issued.saturating_sub((fetches as f64 * scale) as u64))
        };
        if let Some(of) = merging.filter(|of| of.gain as f64 >= WORTH_DOING * self.outcome.counts.fetches() as f64) {
            return Some(Remedy {
                kind: Kind::MergeLoops,
                text: "the trip count of this loop differs between lanes in each iteration of the loop around it: \
                       merge the two loops, so that a lane goes on with its next outer iteration \
                       (linearize:merge-loops=yes of lockstep cc)"
                    .to_owned(),
                efficiency: without(of.gain.unsigned_abs()),
                basis: Basis::AtMost,
            });
        }
        if let Some(remedy) = self.regroup("how long they run") {
            return Some(remedy);
        }
        let is_inner = ran.is_some_and(|ran| ran.entries > self.outcome.lanes as u64);
        let (kind, text, efficiency) = match is_inner {
            true => (
                Kind::EqualTurns,
                "the trip count of this loop differs between lanes each time they enter it: sort the items by how \
                 long they take, so that lanes have similar items at the same time, or split long ones"
                    .to_owned(),
                match ran.and_then(|ran| ran.merging) {
                    Some(of) => without(of.sorting_gain).min(self.without(line.place.slots)),
                    None => self.without(line.place.slots),
                },
            ),
            // Lanes of one warp that are as long as each other need no evening, whatever other warps have.
            false if balance::of_lanes(self.view, self.outcome).is_some_and(|(balance, _)| balance >= 1.0) => {
                return None;
            }
            false => {
                let lanes = &self.outcome.lane_instructions;
                let (least, most) = (lanes.iter().min().unwrap_or(&0), lanes.iter().max().unwrap_or(&0));
                (
                    Kind::EqualWork,
                    format!(
                        "lanes have work of different length ({} to {} instructions): give each lane of a warp the \
                         same amount",
                        grouped(*least),
                        grouped(*most)
                    ),
                    self.evened(line.place.slots),
                )
            }
        };
        Some(Remedy { kind, text, efficiency, basis: Basis::About })
    }

    /// Threads that took pieces of work whenever they were free.
    fn fixed_share(&self, line: &Line) -> Option<Remedy> {
        let took_unevenly = self.evidence.pieces().is_some_and(Items::are_dealt_unevenly);
        let balance = self.balance.filter(|balance| balance.is_chance(took_unevenly))?;
        let schedule = balance.schedule?;
        let how = match schedule {
            Schedule::Dynamic => "use schedule(static, 1), which gives each thread every n-th iteration",
            // What it would gain is not known; the warning says it.
            Schedule::Teams => return None,
            Schedule::Go => "start one goroutine for each fixed share of the work, or take the pieces of work as lanes",
            Schedule::Tasks | Schedule::Pool | Schedule::Queue | Schedule::Counter | Schedule::Locks => {
                "give each thread a fixed share of the pieces (thread t of n takes pieces t, t + n, ...)"
            }
        };
        let (efficiency, basis) = match self.evidence.pieces() {
            Some(Items { efficiency, .. }) => (*efficiency, Basis::Replayed),
            None => (self.evened(line.place.slots), Basis::About),
        };
        let gains = efficiency > self.efficiency;
        gains.then(|| Remedy {
            kind: Kind::FixedShare,
            text: format!("threads took pieces of work whenever they were free: {how}"),
            efficiency,
            basis,
        })
    }

    /// Lanes of several warps that are alike.
    fn regroup(&self, alike: &str) -> Option<Remedy> {
        let regrouped = self.evidence.regrouped.as_ref().filter(|outcome| outcome.is_complete())?;
        let (before, after) = (self.outcome.issued(self.unit), regrouped.issued(self.unit));
        ((after as f64) < (1.0 - WORTH_DOING) * before as f64).then(|| Remedy {
            kind: Kind::Regroup,
            text: format!(
                "lanes of one warp differ in {alike}, and lanes of other warps resemble them: sort the work so that \
                 similar lanes share a warp (replayed with --group similarity)"
            ),
            efficiency: self.with_issued(before, after),
            basis: Basis::Replayed,
        })
    }

    fn of_branch(&self, line: &Line, source: &mut Source) -> Option<Remedy> {
        if let Some(remedy) = self.fuse(line, source) {
            return Some(remedy);
        }
        let whole = self.without(line.place.slots);
        // If what both sides have in common is a small part of the loss, another remedy does more.
        if let Some(estimate) = self.best_estimate(Pass::Meld, line) {
            let efficiency = self.of_estimate(estimate).min(whole);
            if efficiency - self.efficiency > (whole - self.efficiency) / 4.0 {
                return Some(Remedy {
                    kind: Kind::Hoist,
                    text: "both sides of this branch compute much the same: move what they have in common before or \
                           after the branch (or: lockstep cc --transform meld)"
                        .to_owned(),
                    efficiency,
                    basis: estimate.basis,
                });
            }
        }
        if self.has_short_sides(line) {
            return Some(Remedy {
                kind: Kind::NoBranch,
                text: "the sides of this branch have only a few instructions: compute both for all lanes and choose \
                       the result, as a conditional expression does"
                    .to_owned(),
                efficiency: whole,
                basis: Basis::AtMost,
            });
        }
        if self.is_of_one_lane(line) {
            return Some(Remedy {
                kind: Kind::ShareOut,
                text: "one lane alone runs the code after this branch while the others wait: spread that work over \
                       all lanes, or let each lane do its own"
                    .to_owned(),
                efficiency: whole,
                basis: Basis::AtMost,
            });
        }
        self.fixed_share(line).or_else(|| self.regroup("the side that they take")).or_else(|| {
            Some(Remedy {
                kind: Kind::Sort,
                text: "the side that a lane takes here depends on its data: sort the items by this condition, so \
                       that the lanes of a warp take the same side at the same time"
                    .to_owned(),
                efficiency: whole,
                basis: Basis::AtMost,
            })
        })
    }

    /// A function that both sides call.
    fn fuse(&self, line: &Line, source: &mut Source) -> Option<Remedy> {
        let estimate = self.best_estimate(Pass::Fcs, line)?;
        if estimate.issued as f64 > (1.0 - WORTH_DOING) * estimate.before as f64 {
            return None;
        }
        let callee = estimate.callee.map_or_else(String::new, |callee| source.function(callee));
        Some(Remedy {
            kind: Kind::Fuse,
            text: format!(
                "both sides of this branch call {callee}: choose its arguments on the two sides and call it once \
                 behind them (or: lockstep cc --transform fcs)"
            ),
            efficiency: self.of_estimate(estimate),
            basis: estimate.basis,
        })
    }

    fn of_estimate(&self, estimate: &Estimate) -> f64 {
        self.with_issued(estimate.before, estimate.issued)
    }

    /// The estimate of a pass for a branch of this line that leaves the fewest instructions.
    fn best_estimate(&self, pass: Pass, line: &Line) -> Option<&Estimate> {
        let branches: Vec<Pc> = line.at.iter().filter_map(|(pc, _)| self.place_of(*pc)).map(|(_, pc)| pc).collect();
        let of_line = |estimate: &&Estimate| estimate.at.is_some_and(|at| branches.contains(&at));
        self.evidence.estimates.iter().filter(|e| e.pass == pass).filter(of_line).min_by_key(|e| e.issued)
    }

    /// Whether the slots of lanes that parted here are lost while one lane at a time runs, in a program that otherwise
    /// runs several.
    fn is_of_one_lane(&self, line: &Line) -> bool {
        /// Below this mean number of lanes, lanes count as running one at a time.
        const ONE: f64 = 1.5;
        /// Above this mean number, they count as several.
        const SEVERAL: f64 = 3.0;
        let Some(causes) = self.outcome.found::<Causes>() else { return false };
        let mut active: BTreeMap<Pc, (u64, u64)> = BTreeMap::new();
        for ((pc, _), issued) in &causes.issued {
            let (fetches, lanes) = active.entry(*pc).or_default();
            *fetches += issued.fetches;
            *lanes += issued.thread_instructions;
        }
        let parted = |pc: &Option<Pc>| pc.is_some_and(|pc| line.at.iter().any(|(at, _)| *at == pc));
        let (mut slots, mut weighted) = (0.0, 0.0);
        for (charge, n) in causes.charges.iter().filter(|(charge, _)| parted(&charge.parted_at)) {
            let (fetches, lanes) = active.get(&charge.issued).copied().unwrap_or_default();
            slots += *n as f64;
            weighted += *n as f64 * lanes as f64 / fetches.max(1) as f64;
        }
        slots > 0.0 && weighted / slots < ONE && self.efficiency * self.outcome.warp_size as f64 >= SEVERAL
    }

    /// Whether the branch of this line that costs most has sides of a few instructions.
    fn has_short_sides(&self, line: &Line) -> bool {
        let Some((place, _)) = line.at.iter().max_by_key(|(_, slots)| *slots).and_then(|(pc, _)| self.place_of(*pc))
        else {
            return false;
        };
        let arms = self.program.control_flow.arms(place);
        !arms.is_empty() && arms.iter().map(|arm| arm.instructions).sum::<u32>() <= FEW_INSTRUCTIONS
    }

    /// The place that ends with this instruction, and where it begins.
    fn place_of(&self, pc: Pc) -> Option<(PlaceId, Pc)> {
        let mut segments = self.program.segments.iter().map(|(_, segment)| segment);
        segments.find(|segment| segment.last().pc == pc).map(|segment| (segment.place, segment.start()))
    }

    /// The loop of this line whose iterations hold most, or the innermost one around it.
    fn loop_at(&self, line: &Line, source: &mut Source) -> Option<&LoopRan> {
        let mut is_of_line = |pc: Pc| Subject::own_line(pc, source).to_string() == line.place.subject.to_string();
        let of_line = self.evidence.loops.iter().find(|ran| is_of_line(ran.back) || is_of_line(ran.header));
        of_line.or_else(|| {
            let flow = &self.program.control_flow;
            let (pc, _) = line.at.iter().max_by_key(|(_, slots)| *slots)?;
            let (place, _) = self.place_of(*pc)?;
            let holds = |ran: &&LoopRan| flow.place_at(ran.header).is_some_and(|head| flow.is_in_loop_of(head, place));
            self.evidence.loops.iter().filter(holds).max_by_key(|ran| ran.depth)
        })
    }

    /// The efficiency if all lanes of a warp had the same length. Lengths are in the processor's instructions; of the
    /// machine's as much is saved of what is lost.
    fn evened(&self, slots: u64) -> f64 {
        let balance = balance::of_lanes(self.view, self.outcome).map_or(1.0, |(balance, _)| balance);
        let before = crate::efficiency(self.outcome, None).unwrap_or(self.efficiency);
        let saved = ((before / balance.max(1e-9)).min(1.0) - before) / (1.0 - before).max(1e-9);
        self.without(slots).min(self.efficiency + saved * (1.0 - self.efficiency)).min(1.0)
    }
}

/// The lines at which lanes parted, those that cost most first.
fn lines(lost: impl Iterator<Item = (Charge, u64)>, source: &mut Source) -> Vec<Line> {
    let mut by_pc: BTreeMap<Option<Pc>, ByCause> = BTreeMap::new();
    for (charge, slots) in lost {
        by_pc.entry(charge.parted_at).or_insert([0; Cause::ALL.len()])[charge.cause as usize] += slots;
    }
    let mut by_line: BTreeMap<String, Line> = BTreeMap::new();
    for (pc, by_cause) in by_pc {
        let subject = pc.map_or(Subject::Nowhere, |pc| Subject::own_line(pc, source));
        let line = by_line.entry(subject.to_string()).or_insert_with(|| {
            let place = Place {
                subject,
                slots: 0,
                share: 0.0,
                by_cause: [0; Cause::ALL.len()],
                remedy: None,
                more: Vec::new(),
            };
            Line { place, at: Vec::new() }
        });
        let slots: u64 = by_cause.iter().sum();
        line.place.slots += slots;
        line.place.by_cause.iter_mut().zip(by_cause).for_each(|(all, more)| *all += more);
        line.at.extend(pc.map(|pc| (pc, slots)));
    }
    let mut all: Vec<Line> = by_line.into_values().collect();
    all.sort_by_key(|line| std::cmp::Reverse(line.place.slots));
    all
}
