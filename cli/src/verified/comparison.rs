//! Claims against observations: what was violated, how much could be matched, and how precise the analysis is.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use trace_format::Pc;
use transform::spmd::{Addresses, Claim, Direction};

use super::code::{Made, Origin, Place};
use super::observations::{Example, Lie, Observed, Seen};

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum About {
    Branch,
    Access,
}

impl About {
    pub(crate) const ALL: [About; 2] = [About::Branch, About::Access];

    pub(crate) fn name(self) -> &'static str {
        match self {
            About::Branch => "branch",
            About::Access => "access",
        }
    }
}

/// A claim that the run contradicts.
pub(crate) struct Violation {
    pub(crate) about: About,
    pub(crate) made: Made,
    pub(crate) pc: Pc,
    /// What was claimed: `uniform`, `stride 8`.
    pub(crate) claimed: String,
    /// Fetches that contradict it.
    pub(crate) fetches: u64,
    /// One of them.
    pub(crate) example: Option<Example>,
}

/// How much of what ran could be matched, by executions of lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) matched: u64,
    pub(crate) unmatched: u64,
    pub(crate) generated: u64,
    pub(crate) no_ir: u64,
}

impl Share {
    /// Of what the IR has.
    pub(crate) fn matched_share(&self) -> f64 {
        self.matched as f64 / (self.matched + self.unmatched).max(1) as f64
    }

    fn count(&mut self, origin: Origin, executions: u64) {
        *match origin {
            Origin::Matched(_) => &mut self.matched,
            Origin::Unmatched => &mut self.unmatched,
            Origin::Generated => &mut self.generated,
            Origin::NoIr => &mut self.no_ir,
        } += executions;
    }
}

/// How a claim compares with what was seen, over all code compiled from one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Uniform,
    Affine,
    Divergent,
}

/// An instruction of the IR that lanes ran together: what was claimed of it, and what it was.
pub(crate) struct Compared {
    pub(crate) about: About,
    pub(crate) made: Made,
    pub(crate) claimed: Class,
    pub(crate) was: Class,
    pub(crate) executions: u64,
}

/// All of it.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) violations: Vec<Violation>,
    /// Branches, accesses.
    pub(crate) shares: BTreeMap<About, Share>,
    pub(crate) compared: Vec<Compared>,
    /// Fetches in which a claim was tested.
    pub(crate) tests: BTreeMap<About, u64>,
    /// What could not be matched and ran most: executions, address, line of the IR.
    pub(crate) unmatched: Vec<(u64, About, Pc, Option<Made>)>,
}

/// Compares claims with observations.
pub(crate) fn judge(places: &[Place], claims: &[Vec<Claim>], observed: &Observed) -> Judged {
    let mut judged = Judged::default();
    let mut together: BTreeMap<(About, Made), (Class, Class, u64)> = BTreeMap::new();
    let seen_at: &FxHashMap<Pc, Seen> = &observed.by_pc;
    for place in places {
        let Some(seen) = seen_at.get(&place.pc) else { continue };
        for (about, origin) in [(About::Branch, place.branch), (About::Access, place.access)] {
            let Some(origin) = origin else { continue };
            judged.shares.entry(about).or_default().count(origin, seen.executions);
            let Origin::Matched(made) = origin else {
                if origin == Origin::Unmatched {
                    judged.unmatched.push((seen.executions, about, place.pc, place.line));
                }
                continue;
            };
            let claim = &claims[made.unit][made.number];
            let (claimed, was, violation) = match about {
                About::Branch => branch(claim, seen),
                About::Access => access(claim, seen, place.writes),
            };
            if claimed != Class::Divergent {
                *judged.tests.entry(about).or_default() += seen.together - seen.in_frame;
            }
            if let Some((claimed, fetches, example)) = violation {
                judged.violations.push(Violation { about, made, pc: place.pc, claimed, fetches, example });
            }
            if seen.together > seen.in_frame {
                let all = together.entry((about, made)).or_insert((claimed, was, 0));
                all.1 = all.1.max(was);
                all.2 += seen.executions;
            }
        }
    }
    judged.compared = together
        .into_iter()
        .map(|((about, made), (claimed, was, executions))| Compared { about, made, claimed, was, executions })
        .collect();
    judged.unmatched.sort_by(|a, b| b.cmp(a));
    judged.violations.sort_by_key(|v| std::cmp::Reverse(v.fetches));
    judged
}

/// What was claimed, the fetches that contradict it, and one of them.
type Contradicted = (String, u64, Option<Example>);

fn branch(claim: &Claim, seen: &Seen) -> (Class, Class, Option<Contradicted>) {
    let was = if seen.diverged == 0 { Class::Uniform } else { Class::Divergent };
    let claimed = match claim.direction {
        // With parts: the only branch compiled from it decides by the whole.
        Some(Direction::Uniform | Direction::Parts) => Class::Uniform,
        Some(Direction::Divergent) | None => Class::Divergent,
    };
    let violated = claimed == Class::Uniform && seen.diverged > 0;
    (claimed, was, violated.then(|| ("uniform".to_owned(), seen.diverged, seen.diverging.clone())))
}

fn access(claim: &Claim, seen: &Seen, writes: bool) -> (Class, Class, Option<Contradicted>) {
    let addresses = if writes { claim.written.or(claim.read) } else { claim.read.or(claim.written) };
    let classes: BTreeSet<Class> = seen.lies.keys().map(|lie| class_of(*lie)).collect();
    let was = classes.last().copied().unwrap_or(Class::Uniform);
    let (claimed, text, holds): (Class, String, Box<dyn Fn(Lie) -> bool>) = match addresses {
        Some(Addresses::Uniform) => (Class::Uniform, "uniform".to_owned(), Box::new(|lie| lie == Lie::Uniform)),
        Some(Addresses::Stride(by)) => {
            (Class::Affine, format!("stride {by}"), Box::new(move |lie| lie == Lie::Stride(by)))
        }
        Some(Addresses::Affine) => (Class::Affine, "affine".to_owned(), Box::new(|lie| lie != Lie::Scattered)),
        Some(Addresses::Divergent) | None => (Class::Divergent, String::new(), Box::new(|_| true)),
    };
    let mut against: Vec<(u64, &Example)> =
        seen.lies.iter().filter(|(lie, _)| !holds(**lie)).map(|(_, (count, example))| (*count, example)).collect();
    against.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    // At most one of the strides that were not kept could be the claimed one, and that one is the first to be kept.
    let more = match addresses {
        Some(Addresses::Uniform | Addresses::Stride(_)) => seen.more_strides,
        _ => 0,
    };
    let fetches = against.iter().map(|(count, _)| count).sum::<u64>() + more;
    let violation = (fetches > 0).then(|| (text, fetches, against.first().map(|(_, example)| (*example).clone())));
    (claimed, was, violation)
}

fn class_of(lie: Lie) -> Class {
    match lie {
        Lie::Uniform => Class::Uniform,
        Lie::Stride(_) => Class::Affine,
        Lie::Scattered => Class::Divergent,
    }
}

/// Claims of one class, and how many of them held: what was called divergent and never was is imprecise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Precision {
    pub(crate) uniform: u64,
    pub(crate) affine: u64,
    pub(crate) divergent: u64,
    /// Of those called divergent, those that were uniform whenever lanes were together.
    pub(crate) always_uniform: u64,
    /// Of those called divergent, those that were affine or uniform, and not always uniform.
    pub(crate) always_affine: u64,
}

impl Precision {
    pub(crate) fn count(&mut self, compared: &Compared) {
        match compared.claimed {
            Class::Uniform => self.uniform += 1,
            Class::Affine => self.affine += 1,
            Class::Divergent => {
                self.divergent += 1;
                match compared.was {
                    Class::Uniform => self.always_uniform += 1,
                    Class::Affine => self.always_affine += 1,
                    Class::Divergent => {}
                }
            }
        }
    }

    /// Of those called divergent, those that were.
    pub(crate) fn precision(&self) -> Option<f64> {
        let wrong = self.always_uniform + self.always_affine;
        (self.divergent > 0).then(|| (self.divergent - wrong) as f64 / self.divergent as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(direction: Option<Direction>, addresses: Option<Addresses>) -> Claim {
        Claim {
            function: 0,
            place: None,
            opcode: String::new(),
            direction,
            read: addresses,
            written: None,
            local: false,
            global: false,
            near: Vec::new(),
            far: Vec::new(),
            because: None,
        }
    }

    fn lay(lies: &[Lie]) -> Seen {
        let example = Example { warp: 0, lanes: Vec::new() };
        Seen { together: 1, lies: lies.iter().map(|l| (*l, (1, example.clone()))).collect(), ..Seen::default() }
    }

    #[test]
    fn a_uniform_branch_that_diverges_is_a_violation_and_a_divergent_one_is_none() {
        let seen = Seen { together: 5, diverged: 2, ..Seen::default() };
        assert_eq!(branch(&claim(Some(Direction::Uniform), None), &seen).2.unwrap().1, 2);
        assert!(branch(&claim(Some(Direction::Divergent), None), &seen).2.is_none());
    }

    #[test]
    fn an_access_must_have_the_stride_that_was_claimed_in_every_fetch() {
        let of = |addresses, lies: &[Lie]| access(&claim(None, Some(addresses)), &lay(lies), false).2.map(|v| v.1);
        assert_eq!(of(Addresses::Stride(8), &[Lie::Stride(8)]), None);
        assert_eq!(of(Addresses::Stride(8), &[Lie::Stride(8), Lie::Stride(16)]), Some(1));
        assert_eq!(of(Addresses::Stride(8), &[Lie::Uniform]), Some(1));
        assert_eq!(of(Addresses::Uniform, &[Lie::Uniform, Lie::Scattered]), Some(1));
        assert_eq!(of(Addresses::Affine, &[Lie::Uniform, Lie::Stride(-4)]), None);
        assert_eq!(of(Addresses::Affine, &[Lie::Scattered]), Some(1));
        assert_eq!(of(Addresses::Divergent, &[Lie::Scattered]), None);
    }
}
