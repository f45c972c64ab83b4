//! Regions inside of a team's, of which a thread of the team runs a part.

use super::Cutter;
use crate::EpisodeId;
use crate::view::cut::pieces::Launch;

/// What is known of a team while its thread is in a region inside of the team's; none where that lies in a turn.
pub(super) type Around = Option<(Launch, Vec<u32>, Option<(u32, u32)>)>;

impl Cutter<'_, '_> {
    /// The thread begins its part of a region inside of its team's.
    pub(super) fn begin_part(&mut self, team: Option<EpisodeId>) {
        if self.turning.is_some() {
            self.counts.split += 1;
            self.around.push(None);
            return;
        }
        self.compare();
        let none = vec![0; self.times.len()];
        let times = std::mem::replace(&mut self.times, none);
        self.around.push(Some((self.launch, times, self.dispatch.take())));
        (self.launch.team, self.launch.behind) = (team, None);
        self.chunks.forget(None);
    }

    /// It has ended that.
    pub(super) fn end_part(&mut self) {
        if let Some(Some((launch, times, dispatch))) = self.around.pop() {
            self.leave_loop();
            self.compare();
            (self.launch, self.times, self.dispatch) = (launch, times, dispatch);
            self.chunks.forget(None);
        }
    }
}
