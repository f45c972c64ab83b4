//! A replay as kernel launches in the trace format of Accel-Sim, which its simulator and others read.
//!
//! A folder holds `kernelslist.g`, a `kernel-N.traceg` for each launch of lanes, and `code.csv`, which says for each pc
//! of the kernels what it stands for. Each instruction of a fetch is what a GPU has for it
//! ([`machine::Instruction::gpu_code`]), for the lanes of the fetch; the first of them is *part 0*. So instructions of
//! part 0 are fetches, and their active lanes thread instructions. Barriers and the end of a warp are `BAR.SYNC` and
//! `EXIT`, which no fetch stands for.
//!
//! - Thread blocks have 256 threads, or as many as there are lanes, if these are fewer.
//! - An access of all active lanes to their own stacks is one to local memory, at the lane's distance from the
//!   beginning of its stack: the simulator interleaves it. All else is global memory, at the program's addresses.
//!
//! The format: `util/tracer_nvbit` and `gpu-simulator/trace-parser` of
//! <https://github.com/accel-sim/accel-sim-framework>, version 3 of the tracer.

mod addresses;
mod code;
mod kernel;
mod warp;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heuristics::Spec;
use replay::metrics::Measure;
use replay::{Error, Outcome, Prepared, ReplayOptions, Result};
use trace_format::Trace;

use code::Code;
use warp::{Scratch, Traced, WarpTrace};

/// The most lanes of the format's warps.
const WARP: usize = 32;

/// The most threads of a block.
const BLOCK: usize = 256;

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The replay.
    pub outcome: Outcome,
    /// Kernels: launches of lanes.
    pub kernels: usize,
    /// Warp instructions, barriers and ends of warps included.
    pub instructions: u64,
}

/// Replays the lanes under the model and writes what they run into the folder, which is made. `name` is what kernels
/// are called. `done` is as for [`replay::replay()`].
///
/// # Errors
/// When the trace has no addresses or cannot be read, the warps are none of the format's, the model deadlocks, or a
/// file cannot be written.
pub fn write(
    (trace, prepared): (&Trace, &Prepared),
    model: &Spec,
    options: &ReplayOptions,
    name: &str,
    folder: &Path,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Written> {
    if !trace.meta().memory {
        let text = "the trace has no memory addresses, which a simulator needs: record it with trace --memory";
        return Err(Error::Request(text.to_owned()));
    }
    let code = Arc::new(Code::of(prepared.program()));
    let scratch = Arc::new(Scratch::new()?);
    let shared = (Arc::clone(&code), Arc::clone(&scratch));
    let measure = Measure::new("accel-sim", move |warp| {
        // Blocks of warps that share fetches have no warps of their own.
        let is_one = warp.seats().warps().len() == 1 && warp.seats().width() <= WARP;
        is_one.then(|| Box::new(WarpTrace::new(warp, &shared.0, &shared.1)) as _)
    });
    let options = ReplayOptions { measures: vec![measure], ..options.clone() };
    let outcomes = prepared.replay(std::slice::from_ref(model), &options, None, done)?;
    let outcome = outcomes.into_iter().next().ok_or_else(|| Error::Bug("a replay has no outcome".into()))?;
    check(&outcome)?;
    let traced = outcome.found::<Traced>().map_or(&[][..], |traced| &traced.0);
    if traced.len() != outcome.warps {
        return Err(Error::Bug(format!("{} of {} warps were written", traced.len(), outcome.warps)));
    }
    std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    let kernels = kernel::write(traced, &scratch, &code, name, folder)?;
    code.write(trace, &folder.join("code.csv"))?;
    let instructions = traced.iter().map(|warp| warp.instructions + 1).sum();
    Ok(Written { outcome, kernels, instructions })
}

fn check(outcome: &Outcome) -> Result<()> {
    let text = if !outcome.is_complete() {
        format!("{}: choose another model with --heuristic", outcome.status())
    } else if outcome.warp_size > WARP {
        format!(
            "warps of Accel-Sim's traces have {WARP} lanes, and these have {}: give --warp-size {WARP}",
            outcome.warp_size
        )
    } else if outcome.warps_per_block > 1 {
        format!(
            "under {} lanes of several warps share fetches, which Accel-Sim's traces cannot say: choose another model \
             with --heuristic, or give --warps-per-block 1",
            outcome.heuristic
        )
    } else {
        return Ok(());
    };
    Err(Error::Request(text))
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::Write { path: PathBuf::from(path), source }
}
