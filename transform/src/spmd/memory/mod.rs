//! Which memory nobody writes while threads run: loads from there give one value for one address, whenever they happen.
//!
//! A load of a processor's thread is uniform only if no store may come between the loads of threads that are together.
//! That is certain for memory that is written only *early*: before the first call that may start threads, by code that
//! threads do not run. Three parts decide:
//!
//! - [`Phases`] (`phases.rs`): which code may run after the first start, which before;
//! - [`records`] (`records.rs`): what threads find in the records that they get when they are started;
//! - [`Points`] (`points.rs`): which memory an address may point at, by unification (Steensgaard, *Points-to analysis
//!   in almost linear time*, POPL 1996). Memory that unknown code may reach counts as written.
//!
//! ```c
//! static int *table;                                        // written in main before pthread_create: `table` is stable
//! int main(void) { table = malloc(64); fill(table); … }     // and so is what it points at
//! void *work(void *id) { return table[3]; }                 // uniform
//! ```
//!
//! A function that runs early as well as in threads gets no such loads: threads are compared wherever they meet, and
//! the one that runs it early may see memory that is not written yet.
//!
//! Besides these, [`quiet_loads`] (`barriers.rs`) finds loads of memory that nobody writes between two barriers.
//!
//! *Limitation*: without barriers, a write after the first start counts as happening at any time. All fields of a
//! structure count as one. Addresses are followed through memory, calls and arithmetic of 64 bits, not through narrower
//! parts of them.

mod barriers;
mod library;
mod phases;
mod points;
mod records;

pub(super) use self::barriers::quiet_loads;
use self::phases::Phases;
use self::points::Points;
pub(super) use self::records::{Record, records};
use super::sources::Sources;
use crate::llvm::{Function, Module, Value};

/// What is known about a module's memory.
pub(super) struct MemoryFacts<'m> {
    phases: Phases<'m>,
    points: Points<'m>,
}

impl<'m> MemoryFacts<'m> {
    /// Looks at a whole module. `whole` says that it is all of the program except for libraries.
    pub(super) fn of(module: &'m Module, whole: bool, sources: &Sources<'m>) -> MemoryFacts<'m> {
        let phases = Phases::of(module, whole, sources);
        let points = Points::of(module, whole, sources, &phases);
        MemoryFacts { phases, points }
    }

    /// Whether nobody writes where `address` points, a value of `function`, from the first time on that the instruction
    /// runs which is there, by block and place.
    pub(super) fn is_stable(&self, function: Function<'m>, address: Value<'m>, at: (usize, usize)) -> bool {
        (self.phases.runs_late_only(function) || self.phases.is_late(function, at)) && self.points.is_unwritten(address)
    }
}
