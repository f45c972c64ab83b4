//! The places at which lanes parted: what each costs, where lanes went from it, and what ran meanwhile.

use std::collections::{BTreeMap, HashMap};

use crate::page::{Arm, Branch};
use heuristics::PlaceId;
use replay::Outcome;
use replay::metrics::{Cause, Causes, Crossed, Edges};
use trace_format::Pc;

use super::code::Code;

/// How many are shown.
pub(crate) const MOST: usize = 60;
/// How many lines are shown that ran meanwhile.
const MEANWHILE: usize = 6;

/// All of them, those that cost most first.
pub(crate) fn of(outcome: &Outcome, causes: &Causes, code: &mut Code) -> Vec<Branch> {
    let mut found: BTreeMap<Pc, (Vec<u64>, HashMap<usize, u64>)> = BTreeMap::new();
    for (charge, slots) in &causes.charges {
        let Some(parted) = charge.parted_at else { continue };
        let line = code.line(charge.issued);
        let (lost_by, meanwhile) = found.entry(parted).or_insert_with(|| (vec![0; Cause::ALL.len()], HashMap::new()));
        lost_by[charge.cause as usize] += slots;
        *meanwhile.entry(line).or_default() += slots;
    }
    let arms = arms(outcome, code);
    let mut branches: Vec<(Pc, Branch)> = Vec::new();
    for (pc, (lost_by, meanwhile)) in found {
        let mut meanwhile: Vec<(usize, u64)> = meanwhile.into_iter().collect();
        meanwhile.sort_by_key(|(line, slots)| (std::cmp::Reverse(*slots), *line));
        meanwhile.truncate(MEANWHILE);
        let line = code.line(pc);
        let arms = arms.get(&pc).cloned().unwrap_or_default();
        let arms = arms.into_iter().map(|(to, crossed)| arm(to, crossed, code)).collect();
        branches.push((pc, Branch { place: code.place(pc), line: Some(line), lost_by, arms, meanwhile }));
    }
    branches.sort_by_key(|(pc, b)| (std::cmp::Reverse(b.lost_by.iter().sum::<u64>()), *pc));
    branches.into_iter().map(|(_, branch)| branch).collect()
}

fn arm(to: Pc, crossed: Crossed, code: &mut Code) -> Arm {
    let Crossed { times, crossings, lost } = crossed;
    Arm { place: code.place(to), line: code.line(to), times, crossings, lost }
}

/// By last instruction of a segment: where its frame went on, the way of most lanes first.
fn arms(outcome: &Outcome, code: &Code) -> HashMap<Pc, Vec<(Pc, Crossed)>> {
    let segments = &code.program().segments;
    let of_place = code.segment_of_places();
    let segment = |place: PlaceId| of_place[place.0 as usize].map(|id| &segments[id]);
    let mut arms: HashMap<Pc, Vec<(Pc, Crossed)>> = HashMap::new();
    for ((from, to), crossed) in outcome.found::<Edges>().into_iter().flat_map(|edges| &edges.all) {
        let (Some(from), Some(to)) = (from.and_then(segment), segment(*to)) else { continue };
        arms.entry(from.last().pc).or_default().push((to.start(), *crossed));
    }
    for ways in arms.values_mut() {
        ways.sort_by_key(|(to, crossed)| (std::cmp::Reverse(crossed.crossings), *to));
    }
    arms
}
