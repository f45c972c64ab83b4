//! Programs recorded for real, beside their native runs, and the engines beside each other.

mod code_changes;
mod forks;
mod full_disk;
mod interrupts;
mod killed;
mod last_steps;
mod limits;
mod loops;
mod native;
mod refusals;
mod remembered;
mod room;
mod signals;
mod stream;
mod stress;
mod support;
mod sync;
mod tasks;
mod translate_equal;
mod translate_renewed;
mod translate_threads;
mod windows;
