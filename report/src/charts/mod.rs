//! One file per kind of chart, and the registry from which help, docs and tests are made.
//!
//! To add a kind: a file here, a line in [`CHARTS`], and a folder of goldens; the golden test fails until it has one.

mod chart;
mod divergent;
mod efficiency;
mod fetches;
mod histogram;
mod speedup;
mod sweep;
mod threads;
mod width;

pub use chart::Chart;

/// Every kind of chart; the first is the one drawn when none is named.
pub static CHARTS: &[&dyn Chart] = &[
    &efficiency::Efficiency,
    &fetches::Fetches,
    &divergent::Divergent,
    &histogram::Histogram,
    &speedup::Speedup,
    &threads::Threads,
    &width::Width,
];
