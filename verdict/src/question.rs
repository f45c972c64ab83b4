//! A question about a trace: which lanes, on which machine.

use replay::view::{View, ViewOptions};
use replay::{Contended, ReplayOptions};

use crate::Subject;

/// What is asked about a trace.
#[derive(Clone, Debug)]
pub struct Question {
    /// Which lanes. Default: the threads in the region that is found automatically.
    pub lanes: ViewOptions,
    /// How they are replayed. Default: in the machine's warps of consecutive lanes; lanes that would wait for ever at a
    /// lock take turns.
    pub replay: ReplayOptions,
    /// The machine, or models. Default: an NVIDIA GPU, with its other models where replaying them is quick.
    pub subject: Subject,
}

impl Default for Question {
    fn default() -> Question {
        let replay = ReplayOptions { contended: Contended::WaitOrTakeTurns, ..ReplayOptions::default() };
        Question { lanes: ViewOptions::default(), replay, subject: Subject::default() }
    }
}

impl Question {
    /// How lanes are replayed: in the machine's warps, where their size is not named.
    #[must_use]
    pub fn options(&self, view: &View) -> ReplayOptions {
        self.subject.options(self.replay.clone(), view)
    }
}
