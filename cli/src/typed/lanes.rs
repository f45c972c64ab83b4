//! `--lanes` and `--loop`: what is a lane, as it was typed.

use attribution::{Place, Source};
use replay::view::{Lanes, WhichLoops};
use trace_format::{Pc, Trace};

/// What was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LaneKind {
    /// Each thread is a lane
    Threads,
    /// Each call of the region is a lane: each outermost call of --region FUNCTION, each task of a pool
    Calls,
    /// Each OpenMP task is a lane
    Tasks,
    /// Each iteration of the loop at --loop is a lane; without --loop, of the loops that OpenMP shares out
    Iterations,
    /// Each iteration that `lockstep cc --mark-iterations` marked is a lane
    Marks,
}

/// A `for` or its `#pragma` often has no code of its own: the loop is looked for so many lines further down, too.
const LINES_BELOW: u32 = 3;

/// The rule of the view that these stand for.
///
/// # Errors
/// When no code of the trace lies at the loop's place.
pub(crate) fn rule(kind: Option<LaneKind>, at: Option<&Place>, trace: &Trace) -> replay::Result<Lanes> {
    match (kind, at) {
        (None | Some(LaneKind::Threads), None) => Ok(Lanes::Threads),
        (Some(LaneKind::Calls), None) => Ok(Lanes::Calls),
        (Some(LaneKind::Tasks), None) => Ok(Lanes::Tasks),
        (Some(LaneKind::Marks), None) => Ok(Lanes::Marks),
        (Some(LaneKind::Iterations), None) => Ok(Lanes::Iterations(WhichLoops::Worksharing)),
        (_, Some(place)) => {
            let mut source = Source::new(trace);
            let code = |place: &Place, source: &mut Source| place.code(trace, source).into_iter().collect::<Vec<Pc>>();
            let near: Vec<Vec<Pc>> = match place {
                Place::Line { file, line } => {
                    let lines = (*line..=line.saturating_add(LINES_BELOW)).map(|line| (file.clone(), line));
                    lines.map(|(file, line)| code(&Place::Line { file, line }, &mut source)).collect()
                }
                Place::Address(_) => vec![code(place, &mut source)],
            };
            if near.iter().all(Vec::is_empty) {
                let text = format!(
                    "--loop {place}: the trace has no code at that line or right below; `replay --loops` lists the loops that ran"
                );
                return Err(replay::Error::Request(text));
            }
            Ok(Lanes::Iterations(WhichLoops::Near(near)))
        }
    }
}
