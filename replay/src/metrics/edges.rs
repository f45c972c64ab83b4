//! Edges: how often lanes went from one place of a function to the next, and the lane-slots lost behind each way.
//!
//! An edge leads from the place that a frame ran last to the one that it runs now; a call's edge leads to where the
//! call returned to. Each lane that goes over it is one *crossing*, each step in which lanes do is one *time*. A fetch
//! loses warp size - active lanes slots; they are charged to the edge over which the lowest active lane came to the
//! fetched place, so that the sum over edges is all that was lost.
//!
//! Worked number: W = 2. Both lanes run `a`, then lane 0 runs `b` (3 instructions) and lane 1 `c` (1): a-b has 1
//! crossing and 3 lost slots, a-c 1 and 1.

use heuristics::{Lane, PlaceId};
use rustc_hash::FxHashMap;
use trace_format::Kind;

use super::{Ended, Finding, Measure, Measured, Metric, Step};
use crate::Result;
use crate::registry::Entry;

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "edges",
    file: "replay/src/metrics/edges.rs",
    switch: None,
    needs_addresses: false,
    measure: Some(|_| Edges::measure()),
    columns: &[],
    table: None,
};

/// From where to where; from none where the function was entered.
pub type Edge = (Option<PlaceId>, PlaceId);

/// What went over an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Crossed {
    /// Steps in which lanes went over it.
    pub times: u64,
    /// Lanes that did, summed over steps.
    pub crossings: u64,
    /// Lane-slots lost at the place that it leads to, by fetches whose lowest active lane came over it.
    pub lost: u64,
}

/// The edges of a replay, in the order of their places.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Edges {
    /// Each once.
    pub all: Vec<(Edge, Crossed)>,
}

impl Edges {
    /// Asks for them.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| Some(Box::new(EdgeCounter::new(warp.lanes().len(), warp.seats().width()))))
    }
}

impl Measured for Edges {
    fn merge(&mut self, other: &Edges) {
        let mut sum: FxHashMap<Edge, Crossed> = self.all.drain(..).collect();
        for (edge, more) in &other.all {
            sum.entry(*edge).or_default().add(*more);
        }
        self.all = sorted(sum);
    }
}

impl Crossed {
    fn add(&mut self, more: Crossed) {
        self.times += more.times;
        self.crossings += more.crossings;
        self.lost += more.lost;
    }
}

fn sorted(map: FxHashMap<Edge, Crossed>) -> Vec<(Edge, Crossed)> {
    let mut all: Vec<(Edge, Crossed)> = map.into_iter().collect();
    all.sort_unstable_by_key(|(edge, _)| *edge);
    all
}

/// Where a lane has been.
#[derive(Clone, Default)]
struct Trail {
    /// The place that each of its frames ran last, the outermost first.
    frames: Vec<Option<PlaceId>>,
    /// Whether its last instruction was a return.
    returned: bool,
    /// The edge over which it came to where it is.
    came_by: Option<Edge>,
}

impl Trail {
    /// Deeper frames than this are taken for the last of these, so that a damaged trace cannot ask for endless memory.
    const MOST: usize = 1 << 16;

    /// The lane begins a segment at this place and call level: the edge over which it came.
    fn goes_to(&mut self, place: PlaceId, level: u32) -> Edge {
        let level = (level as usize).clamp(1, Trail::MOST);
        // A return without a frame to return to ends the region's function: what follows is a new run of it.
        let restarts = self.returned && self.frames.len() <= level;
        self.frames.truncate(if restarts { level - 1 } else { level });
        self.frames.resize(level, None);
        let edge = (self.frames[level - 1].replace(place), place);
        self.came_by = Some(edge);
        edge
    }
}

/// Counts the edges of one warp's replay.
pub struct EdgeCounter {
    warp_size: u64,
    trails: Vec<Trail>,
    all: FxHashMap<Edge, Crossed>,
    /// The edges of one step, and the lanes that went over each.
    crossed: Vec<(Edge, u64)>,
}

impl EdgeCounter {
    /// For a warp of so many lanes and seats.
    #[must_use]
    pub fn new(lanes: usize, warp_size: usize) -> EdgeCounter {
        let trails = vec![Trail::default(); lanes];
        EdgeCounter { warp_size: warp_size as u64, trails, all: FxHashMap::default(), crossed: Vec::new() }
    }
}

impl Metric for EdgeCounter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let (place, begins) = (step.place_id(), step.place().1 == 0);
        let returns = step.instructions.last().is_some_and(|i| i.kind == Kind::Return);
        self.crossed.clear();
        for lane in step.lanes {
            let trail = &mut self.trails[lane.index()];
            if begins {
                let edge = trail.goes_to(place, step.state(lane).level);
                match self.crossed.iter_mut().find(|(e, _)| *e == edge) {
                    Some((_, lanes)) => *lanes += 1,
                    None => self.crossed.push((edge, 1)),
                }
            }
            trail.returned = returns;
        }
        for (edge, crossings) in &self.crossed {
            self.all.entry(*edge).or_default().add(Crossed { times: 1, crossings: *crossings, lost: 0 });
        }
        let lowest = step.lanes.lowest().map_or(0, Lane::index);
        let lost = (self.warp_size - step.lanes.len() as u64) * step.instructions.len() as u64;
        if let Some(edge) = self.trails[lowest].came_by {
            self.all.entry(edge).or_default().lost += lost;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(Edges { all: sorted(self.all) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_leads_to_where_it_returned_to() {
        let mut trail = Trail::default();
        let [a, b, callee] = [PlaceId(1), PlaceId(2), PlaceId(7)];
        let went: Vec<Edge> =
            [(a, 1), (callee, 2), (b, 1), (callee, 2)].map(|(p, level)| trail.goes_to(p, level)).to_vec();
        assert_eq!(went, [(None, a), (None, callee), (Some(a), b), (None, callee)]);
    }

    #[test]
    fn the_region_s_function_is_entered_anew_after_its_return() {
        let mut trail = Trail::default();
        trail.goes_to(PlaceId(1), 1);
        trail.returned = true;
        assert_eq!(trail.goes_to(PlaceId(1), 1), (None, PlaceId(1)));
    }
}
