//! Transformed programs print what the originals print.

mod build;
mod faults;
mod generator;
mod random;
mod workloads;
