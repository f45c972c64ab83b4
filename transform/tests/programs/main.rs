//! Transformed programs print what the originals print.

mod build;
mod generator;
mod random;
mod workloads;
