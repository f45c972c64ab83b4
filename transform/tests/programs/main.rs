//! Transformed programs print what the originals print.

mod arms;
mod build;
mod capabilities;
mod csmith;
mod faults;
mod generator;
mod gotos;
mod linearization;
mod machine;
mod melding;
mod progress;
mod random;
mod spill;
mod spill_runtime;
mod structuring;
mod torture;
mod workloads;
