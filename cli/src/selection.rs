//! What every verb that replays a trace is told in the same way: the part of the trace that counts, and how its lanes make warps.

use std::path::Path;

use replay::view::{CodeFilter, Locks, Region, View, ViewOptions};
use replay::{Grouping, ReplayOptions};
use trace_format::Trace;

/// The part of a trace that is replayed, and its warps.
#[derive(clap::Args)]
pub(crate) struct Selection {
    /// The part of the run to replay: auto (what the threads or parallel regions run), all, or a function's name
    #[arg(long, value_name = "REGION", default_value = "auto")]
    pub(crate) region: Region,

    /// The code to replay: all (but the inside of the thread runtime), or main (the main executable only)
    #[arg(long, value_name = "CODE", default_value = "all")]
    pub(crate) code: CodeFilter,

    /// How locks count: serialize (one lane of a warp at a time), drop (critical sections leave the streams), ignore
    #[arg(long, value_name = "LOCKS", default_value = "serialize")]
    pub(crate) locks: Locks,

    /// Lanes in a warp. Default: all in one warp, of at most 256
    #[arg(long, short = 'W', value_name = "LANES")]
    pub(crate) warp_size: Option<usize>,

    /// Warps in a block, for the models that let lanes of several warps share fetches (dwf, tbc, lwm). Default: as many as have 256 lanes together
    #[arg(long, value_name = "WARPS")]
    pub(crate) warps_per_block: Option<usize>,

    /// Which lanes share a warp: consecutive, round-robin, similarity
    #[arg(long, value_name = "HOW", default_value = "consecutive")]
    pub(crate) group: Grouping,
}

impl Selection {
    /// The lanes of the trace.
    pub(crate) fn view(&self, trace: &Trace) -> replay::Result<View> {
        let options = ViewOptions { region: self.region.clone(), code: self.code, locks: self.locks };
        View::new(trace, &options)
    }

    /// How those lanes are replayed, with nothing beside the counts.
    pub(crate) fn options(&self) -> ReplayOptions {
        ReplayOptions {
            warp_size: self.warp_size,
            warps_per_block: self.warps_per_block,
            grouping: self.group,
            ..ReplayOptions::default()
        }
    }
}

/// The trace in this file; says on standard error what of it was lost.
pub(crate) fn open(path: &Path) -> replay::Result<Trace> {
    let trace = Trace::open(path)?;
    if let Some(lost) = trace.recovered() {
        eprintln!("lockstep: {}: {lost}", path.display());
    }
    Ok(trace)
}
