//! Predication: short arms of a branch are run without parting its lanes.
//!
//! Compilers for GPUs make no branch if its arms are short: both are issued for all lanes, and lanes that are not meant
//! are switched off. With `predicate=N` it is so here, on top of any model that has the parameter: the arms are those
//! of [`crate::Arm`] with at most N instructions. An arm may end in a branch with arms of its own; the instructions of
//! both count together. docs/fidelity.md compares values of N with what NVIDIA's assembler predicates.
//!
//! An arm in which lanes join or wait for the sake of a prediction is none: it has barriers of its own.
//!
//! When lanes part at such a branch, the arms in which they stand run first, one after another, by address. The model
//! learns of the branch only when they are done, and finds the lanes where the arms led them: lanes that reached one pc
//! through several arms are together there.
//!
//! The lanes of the branch that an arm is not meant for are *predicated off* in it. They run nothing, but they are
//! active as hardware's counters see it: `active_efficiency` has them, `simt_efficiency` does not.

use std::collections::VecDeque;

use parameters::{Parameter, Values};
use trace_format::Kind;

use crate::warp::prediction::Region;
use crate::warp::reconvergence::{are_apart, by_pc};
use crate::{Choice, Extent, Heuristic, LaneSet, Lead, PlaceId, Ran, Seats, Tally, Together, WarpView};

/// The parameter of models that can have it.
pub(crate) const PARAMETER: Parameter = Parameter {
    name: "predicate",
    values: Values::Number(0, 64),
    default: 0,
    help: "the most instructions in an arm that runs predicated, without parting the lanes of its branch, as \
         compilers for GPUs do",
};

/// A model under which short arms are predicated.
pub(crate) struct Predicated {
    inner: Box<dyn Heuristic>,
    most: u32,
    /// The branch whose arms run.
    branch: Option<Parted>,
    predicated_off: u64,
    /// Lanes that are predicated off while those run that were chosen last.
    off: usize,
}

/// A branch whose lanes parted; the model does not know of it yet.
struct Parted {
    ran: Ran,
    /// Arms that may have lanes yet.
    arms: VecDeque<Open>,
}

struct Open {
    /// Their places, in a row.
    places: Box<[PlaceId]>,
    /// Instructions of them and of the arms that led there.
    instructions: u32,
}

impl Predicated {
    pub(crate) fn new(inner: Box<dyn Heuristic>, most: u32) -> Predicated {
        Predicated { inner, most, branch: None, predicated_off: 0, off: 0 }
    }

    /// The arms of the branch that just ran in which some of the lanes stand, behind arms of so many instructions.
    fn arms(&self, warp: &WarpView, ran: &Ran, behind: u32) -> VecDeque<Open> {
        if ran.last_kind != Kind::Branch {
            return VecDeque::new();
        }
        let control_flow = &warp.program().control_flow;
        let parts = by_pc(warp, ran.lanes);
        let branch = warp.segment(ran.segment).place;
        let regions = &warp.program().predictions.regions;
        let acts = |region: &Region, place: PlaceId| {
            region.prediction.at == control_flow.start(place) || region.begins_at(place)
        };
        let fits = |arm: &&crate::Arm| {
            behind + arm.instructions <= self.most
                && parts.iter().any(|(pc, _)| *pc == control_flow.start(arm.places[0]))
                && !arm.places.iter().any(|place| regions.iter().any(|region| acts(region, *place)))
        };
        let open = |arm: &crate::Arm| Open { places: arm.places.clone(), instructions: behind + arm.instructions };
        control_flow.arms(branch).iter().filter(fits).map(open).collect()
    }

    /// The lanes of the branch that can run the next piece of the first arm that has any; arms without are closed.
    fn next(parted: &mut Parted, warp: &WarpView) -> Option<LaneSet> {
        while let Some(arm) = parted.arms.front() {
            let control_flow = &warp.program().control_flow;
            let stands = |pc| arm.places.iter().position(|place| control_flow.start(*place) == pc);
            let level = parted.ran.level;
            let here = (parted.ran.lanes & warp.ready()).iter().filter(|lane| warp.lane(*lane).level == level);
            let places = here.filter_map(|lane| Some((stands(warp.lane(lane).pc)?, lane)));
            let places: Vec<_> = places.collect();
            if let Some(first) = places.iter().map(|(place, _)| *place).min() {
                return Some(places.iter().filter(|(place, _)| *place == first).map(|(_, lane)| *lane).collect());
            }
            parted.arms.pop_front();
        }
        None
    }
}

impl Heuristic for Predicated {
    fn extent(&self, seats: &Seats) -> Extent {
        self.inner.extent(seats)
    }

    fn horizon(&self) -> u32 {
        self.inner.horizon()
    }

    fn predicated_off(&self) -> usize {
        self.off
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        self.off = 0;
        if let Some(parted) = &mut self.branch {
            if let Some(lanes) = Predicated::next(parted, warp) {
                self.off = parted.ran.lanes.len() - lanes.len();
                return Choice::Run(lanes);
            }
            let ran = parted.ran;
            self.branch = None;
            self.inner.executed(warp, &ran);
        }
        self.inner.choose(warp)
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        if let Some(parted) = &self.branch {
            self.predicated_off += self.off as u64 * u64::from(ran.instructions);
            let behind = parted.arms.front().map_or(0, |arm| arm.instructions);
            let more = self.arms(warp, ran, behind);
            if let Some(parted) = &mut self.branch {
                parted.arms.extend(more);
                if Predicated::next(parted, warp).is_none() {
                    let ran = parted.ran;
                    self.branch = None;
                    self.inner.executed(warp, &ran);
                }
            }
            return;
        }
        let parts = ran.last_kind == Kind::Branch && are_apart(warp, ran.lanes);
        let arms = if parts { self.arms(warp, ran, 0) } else { VecDeque::new() };
        if arms.is_empty() {
            self.inner.executed(warp, ran);
        } else {
            self.branch = Some(Parted { ran: *ran, arms });
        }
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        self.branch.is_none() && self.inner.runs_on(warp, lanes, lead)
    }

    fn stays_together(&self, warp: &WarpView) -> bool {
        self.branch.is_none() && self.inner.stays_together(warp)
    }

    fn ran(&mut self, run: &Together) {
        self.inner.ran(run);
    }

    fn tally(&self) -> Tally {
        Tally { predicated_off: Some(self.predicated_off), ..self.inner.tally() }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::{schedule, tally};

    #[test]
    fn both_arms_run_before_the_model_is_told() {
        // if (2) 4 5 else 6 7; 8.
        let lanes = ["1 2b 4 5j 8", "1 2b 6 7 8"];
        assert_eq!(schedule("ipdom:predicate=2", &lanes), "1:0-1 2:0-1 4:0 5:0 6:1 7:1 8:0-1");
        assert_eq!(tally("ipdom:predicate=2", &lanes).predicated_off, Some(4));
        assert_eq!(tally("ipdom:predicate=1", &lanes).predicated_off, Some(0));
    }

    #[test]
    fn a_short_arm_runs_before_the_rest_of_a_chain() {
        // if (2) 4 5 else if (6) 7 else 8; 9.
        let lanes = ["1 2b 4 5j 9", "1 2b 6b 7j 9", "1 2b 6b 8 9"];
        assert_eq!(schedule("ipdom:predicate=2", &lanes), "1:0-2 2:0-2 4:0 5:0 6:1-2 7:1 8:2 9:0-2");
        // Of two lanes two instructions each, of one lane one in each of the other arms.
        assert_eq!(tally("ipdom:predicate=2", &lanes).predicated_off, Some(6));
    }
}
