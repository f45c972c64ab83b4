//! What lanes turned: the loops and arms of branches that they ran, how their turns differ, and what merging two loops
//! would be.

mod counter;
mod merging;
mod spread;

pub(super) use self::counter::LoopCounter;
pub use self::counter::{ArmRan, LoopRan};
pub(super) use self::merging::Trips;
pub use self::merging::{GUARDS, Merging};
pub(super) use self::spread::Recorder;
pub use self::spread::{Paid, Spread, Waited};
