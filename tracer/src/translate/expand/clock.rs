//! When records were written.

use crate::kernel::ptrace;

/// So many steps of the clock, as a power of two, count as one: some 3 ns. What one thread does takes longer to reach
/// another, and what differs within is noise, which takes room in a trace.
const STEPS: u32 = 3;

/// The processor's clock, from the start of the recording on.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: u64,
}

impl Clock {
    /// The recording begins now.
    #[must_use]
    pub fn start() -> Clock {
        Clock { epoch: ptrace::timestamp() }
    }

    /// The time now, as a number of events.
    #[must_use]
    pub fn now(self) -> u64 {
        self.time(ptrace::timestamp())
    }

    /// The time of this value of the processor's clock.
    #[must_use]
    pub fn time(self, clock: u64) -> u64 {
        clock.saturating_sub(self.epoch) >> STEPS
    }
}
