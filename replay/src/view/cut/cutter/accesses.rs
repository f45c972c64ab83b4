//! What turns access, by which their lanes may be numbered.

use super::Cutter;
use crate::Code;
use crate::view::cut::pieces::Access;
use crate::view::cut::track::after;

impl Cutter<'_, '_> {
    /// Remembers what a turn accesses in its loop's own frame, the first few times.
    pub(super) fn remember(&mut self, (segments, mut level): (&[Code], u32), mut addresses: &[u64]) {
        let (Some(turning), Some(open)) = (self.turning, &mut self.open) else { return };
        let lane = self.lanes.last().map_or(0, |lane| lane.stretch);
        for id in segments.iter().filter_map(|code| code.as_segment()) {
            let left = self.most_accesses - open.accesses;
            if left == 0 {
                return;
            }
            let brief = &self.briefs[id.0 as usize];
            let (own, rest) = addresses.split_at(brief.addresses as usize);
            addresses = rest;
            if turning.level == level {
                let access =
                    |(index, address): (usize, &u64)| Access { lane, by: (id, index as u32), address: *address };
                self.accesses.extend(own.iter().enumerate().take(left).map(access));
                open.accesses += own.len().min(left);
            }
            level = after(level, brief.level.into());
        }
    }
}
