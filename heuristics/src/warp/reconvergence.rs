//! Where lanes that part at a branch reconverge: what all models with immediate post-dominators have in common.

use trace_format::Pc;

use crate::{LaneSet, LaneState, Lead, PlaceId, Placement, Ran, Together, WarpView};

/// Where lanes reconverge: at this pc of the frame of this level, or when that frame is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reconvergence {
    pub(crate) pc: Option<Pc>,
    pub(crate) level: u32,
}

impl Reconvergence {
    /// Lanes that wait for each other there run on until they reach it, at the latest.
    pub(crate) fn ends(&self, lead: &mut Lead) {
        self.pc.into_iter().for_each(|pc| lead.stop_at(pc));
        lead.stop_below_level(self.level);
    }

    /// Whether a lane that stands here has reached it.
    pub(crate) fn is_reached(&self, state: &LaneState) -> bool {
        state.level < self.level || (state.level == self.level && Some(state.pc) == self.pc)
    }
}

/// Where the lanes of a branch reconverge, and where those do that leave the loops around it before.
pub(crate) struct Points {
    pub(crate) first: Reconvergence,
    /// Behind the loops, the innermost first.
    pub(crate) around: Vec<Reconvergence>,
}

impl Points {
    /// Where lanes come together that have yet to begin, at several places of the loop whose turns they are.
    pub(crate) fn of_beginnings(warp: &WarpView, lanes: LaneSet, placement: Placement) -> Option<Points> {
        let states = || lanes.iter().map(|lane| warp.lane(lane));
        if !states().all(|state| (state.level, state.sp) == (1, 0)) {
            return None;
        }
        let places: Vec<PlaceId> = states().map(|state| state.place).collect();
        let joins = warp.program().control_flow.joins_of_beginnings(&places, placement)?;
        Some(Points::at(joins, 1))
    }

    /// Pcs of a frame of this level, the innermost first: at least one.
    fn at(pcs: &[Option<Pc>], level: u32) -> Points {
        let at = |pc: Option<Pc>| Reconvergence { pc, level };
        let (first, around) = pcs.split_first().expect("at least one");
        Points { first: at(*first), around: around.iter().copied().map(at).collect() }
    }

    /// Where lanes that leave a loop have yet to be awaited, the innermost first, when somebody waits at some points
    /// already.
    pub(crate) fn new_around(&self, is_known: impl Fn(&Reconvergence) -> bool) -> &[Reconvergence] {
        let is_new = |point: &&Reconvergence| !is_known(point);
        let count = if is_known(&self.first) { 0 } else { self.around.iter().take_while(is_new).count() };
        &self.around[..count]
    }
}

/// The instruction after which lanes may disagree.
#[derive(Clone, Copy)]
pub(crate) struct Branch {
    pub(crate) lanes: LaneSet,
    pub(crate) place: PlaceId,
    pub(crate) level: u32,
    pub(crate) falls_to: Option<Pc>,
}

impl Branch {
    /// The last instruction that ran.
    pub(crate) fn of(warp: &WarpView, ran: &Ran) -> Branch {
        let place = warp.segment(ran.segment).place;
        Branch { lanes: ran.lanes, place, level: ran.level, falls_to: ran.falls_to }
    }

    /// The last instruction of a run of segments.
    pub(crate) fn of_run(run: &Together) -> Branch {
        let segment = &run.segments[run.last()];
        let (place, level, falls_to) = (segment.place, run.last_level, segment.last().next_pc());
        Branch { lanes: run.lanes, place, level, falls_to }
    }

    /// The same instruction, run by all these lanes.
    pub(crate) fn of_all(self, lanes: LaneSet) -> Branch {
        Branch { lanes, ..self }
    }

    /// Where its lanes reconverge under a placement.
    pub(crate) fn points(&self, warp: &WarpView, placement: Placement) -> Points {
        let control_flow = &warp.program().control_flow;
        match placement {
            Placement::Binary => Points::at(&[control_flow.immediate_post_dominator(self.place)], self.level),
            Placement::Structured => Points::at(control_flow.structured_joins(self.place), self.level),
            Placement::Nak => Points::at(control_flow.nested_joins(self.place), self.level),
        }
    }

    /// How many instructions the block has at which its lanes reconverge under a placement.
    pub(crate) fn block_length_after(&self, warp: &WarpView, placement: Placement) -> Option<u32> {
        warp.program().control_flow.block_length_at(self.points(warp, placement).first.pc?)
    }
}

/// Whether these lanes stand at several pcs.
pub(crate) fn are_apart(warp: &WarpView, lanes: LaneSet) -> bool {
    let mut pcs = lanes.iter().map(|lane| warp.lane(lane).pc);
    let first = pcs.next();
    pcs.any(|pc| Some(pc) != first)
}

/// These lanes by the pc at which they stand.
pub(crate) fn by_pc(warp: &WarpView, lanes: LaneSet) -> Vec<(Pc, LaneSet)> {
    let mut parts = Vec::new();
    let mut left = lanes;
    while let Some(lane) = left.lowest() {
        let pc = warp.lane(lane).pc;
        // Lanes that wait are in no group.
        let here = match lanes.is_subset(&warp.ready()) {
            true => left & warp.mates(lane),
            false => left.iter().filter(|lane| warp.lane(*lane).pc == pc).collect(),
        };
        left = left - here;
        parts.push((pc, here));
    }
    parts
}
