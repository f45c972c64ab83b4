//! Segments of an unrolled loop, in whose place lanes have those of one copy of its body.

use super::Cutter;
use crate::Result;
use crate::lanes::brief::Brief;
use crate::view::cut::iterations::loops::Shown;
use crate::view::cut::rows::Total;

impl Cutter<'_, '_> {
    /// The thread runs a segment that stands in a copy of the loop's body: lanes have others in its place.
    pub(super) fn show(
        &mut self,
        shown: &Shown,
        brief: &Brief,
        sps: &mut &[i64],
        addresses: &mut &[u64],
    ) -> Result<()> {
        let total = Total::of(brief);
        let (mut kept, own) = (self.open.is_some(), &addresses[..total.addresses as usize]);
        *addresses = &addresses[total.addresses as usize..];
        for (part, code) in &shown.parts {
            if let Some(turning) = self.turning.filter(|_| part.begins) {
                let launch = self.launch_of(turning);
                self.end_lane();
                self.begin_lane(launch)?;
            }
            kept |= self.open.is_some();
            let taken: Vec<u64> = part.takes.iter().filter_map(|at| own.get(*at as usize)).copied().collect();
            let of_part = Total { addresses: taken.len() as u32, ..total };
            let level = self.track.level();
            let accessed = self.track.run((*code, 1), &of_part, sps, &mut &taken[..]);
            self.remember((std::slice::from_ref(code), level), accessed);
            self.track.is_sure()?;
            if part.ends {
                self.end_lane();
            }
        }
        self.counts.mathematics[usize::from(!kept)] += total.mathematics;
        match (&mut self.open, kept) {
            (Some(open), _) => open.kept += total.instructions,
            (None, true) => self.counts.kept += total.instructions,
            (None, false) => self.counts.outside += total.instructions,
        }
        Ok(())
    }
}
