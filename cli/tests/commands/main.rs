//! The commands as a user types them.

mod callables;
mod causes;
mod comparing;
mod decoding;
mod errors;
mod exporting;
mod generations;
mod lanes;
mod lines;
mod linkage;
mod linkers;
mod locks;
mod machine;
mod measures;
mod micro_programs;
mod page;
mod predicted_schedules;
mod predicting;
mod recording_costs;
mod results;
mod speculating;
mod spinning;
mod support;
mod unwritable;
mod windows;
