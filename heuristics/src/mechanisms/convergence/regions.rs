//! Registers behind the regions of predictions: where lanes wait for each other that parted inside of one.

use super::{Convergence, Register, are_apart};
use crate::{ControlFlow, LaneSet, WarpView};

impl Convergence {
    /// Fills registers behind the regions of predictions for lanes that have just parted there, before those among them
    /// cancel that are outside now.
    pub(super) fn fill_before_cancels(&mut self, warp: &WarpView) {
        if self.speculation.is_none() {
            return;
        }
        for i in 0..self.splits.len() {
            let lanes = self.splits[i].lanes & warp.live();
            if self.splits[i].moved && are_apart(warp, lanes) {
                self.fill_behind_regions(lanes, &warp.program().control_flow);
            }
        }
    }

    /// Fills registers for lanes that part inside of the regions of predictions: they meet again behind those. They are
    /// outside of the registers whose places lie in the regions.
    pub(super) fn fill_behind_regions(&mut self, lanes: LaneSet, control_flow: &ControlFlow) {
        let Some(speculation) = &self.speculation else { return };
        for behind in speculation.behind(lanes) {
            let (at, mask) = (behind.at, behind.lanes);
            // One of a branch gives way inside of the region.
            let inside = speculation.is_in_region(behind.region, &at, control_flow);
            let stands_there =
                |r: &Register| r.at == at && mask.is_subset(&r.mask) && (!inside || r.behind == Some(behind.region));
            if mask.len() > 1 && !self.registers.iter().any(stands_there) {
                let is_inside =
                    |r: &Register| !r.mask.is_disjoint(&mask) && speculation.is_before(&r.at, &behind, control_flow);
                let place = self.registers.iter().position(is_inside).unwrap_or(self.registers.len());
                let held = self.registers.iter().filter(|r| mask.is_subset(&r.mask)).count();
                self.spills += u64::from(held + speculation.registers(mask) >= self.count);
                self.registers.insert(
                    place,
                    Register {
                        at,
                        shifts: Vec::new(),
                        mask,
                        blocked: LaneSet::EMPTY,
                        for_exits: true,
                        is_issued: false,
                        behind: Some(behind.region),
                    },
                );
            }
        }
    }
}
