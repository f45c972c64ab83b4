//! A question about a trace: which lanes, on which machine.

use replay::ReplayOptions;
use replay::view::{View, ViewOptions};

use crate::Subject;

/// What is asked about a trace.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Which lanes. Default: the threads in the region that is found automatically.
    pub lanes: ViewOptions,
    /// How they are replayed. Default: in the machine's warps of consecutive lanes.
    pub replay: ReplayOptions,
    /// The machine, or models. Default: an NVIDIA GPU, with its other models where replaying them is quick.
    pub subject: Subject,
}

impl Question {
    /// How lanes are replayed: in the machine's warps, where their size is not named.
    #[must_use]
    pub fn options(&self, view: &View) -> ReplayOptions {
        self.subject.options(self.replay.clone(), view)
    }
}
