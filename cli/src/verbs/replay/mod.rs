//! `lockstep replay`: re-runs the streams of a trace in lockstep. What it does with them is a [`Mode`], a file each.

pub(crate) mod called;
mod dependences;
mod loops;
mod mode;
mod options;
mod reorder;
mod rows;
mod spread;
mod sweep;
mod verdict;

use std::process::ExitCode;

use attribution::Source;
use replay::Error;
use replay::metrics::Checker;

use self::mode::Mode;
use self::options::Typed;
use crate::exit;
use crate::output::{self, is_stdout};
use crate::typed::checked::Checked;
use crate::typed::selection;
use crate::verbs::dump;

/// What `replay` is told.
pub(crate) type Args = Checked<Typed>;

pub(crate) fn run(typed: &Args) -> anyhow::Result<ExitCode> {
    typed.wide.apply();
    match typed.workers {
        Some(workers) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(workers)).build();
            let refused = |e| Error::Request(format!("cannot start {workers} workers: {e}: ask for fewer"));
            pool.map_err(refused)?.install(|| run_here(typed))
        }
        None => run_here(typed),
    }
}

fn run_here(typed: &Typed) -> anyhow::Result<ExitCode> {
    let mode = typed.mode();
    let files = [("--csv -", &typed.csv), ("--schedule -", &typed.schedule), ("--lanes-out -", &typed.lanes_out)];
    let [csv, schedule, lanes] = files.map(|(option, file)| (option, is_stdout(file)));
    output::only_one(&[("--json", typed.json), csv, schedule, lanes])?;
    if mode == Mode::Spread {
        return spread::run(typed);
    }
    let trace = selection::open(&typed.trace)?;
    let mut source = Source::new(&trace);
    let asked = typed.asked(&trace, &source)?;
    if asked.measures.iter().any(|measure| measure.name() == Checker::measure().name())
        && !dump::decoders_agree(&trace)?
    {
        return Ok(ExitCode::from(exit::DIFFERS));
    }
    match mode {
        Mode::Rows => return rows::run(&asked, &mut source),
        Mode::Reorder => return reorder::run(&asked, &mut source),
        Mode::Sweep => sweep::run(&asked)?,
        Mode::Loops => loops::run(&asked, &mut source)?,
        Mode::Dependences => dependences::run(&asked, &mut source)?,
        Mode::Verdict => verdict::run(&asked, &mut source)?,
        Mode::Spread => unreachable!("it was run above"),
    }
    Ok(ExitCode::SUCCESS)
}
