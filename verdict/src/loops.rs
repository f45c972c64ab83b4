//! The loops that lanes ran, and how the iterations (turns) of each would run as lanes.

use attribution::{Line, Source};
use replay::view::{ArmRan, LoopRan, Region, View};
use replay::{Prepared, ReplayOptions, Result};
use trace_format::{Pc, Trace};

use crate::lanes::WARP;
use crate::{Question, Subject};

/// For so many loops it is shown how their iterations would run as lanes,
pub const REPLAYED: usize = 10;
/// and for so many more as hold at least [`LEAST_SHARE`] of the instructions.
const REPLAYED_IF_LARGE: usize = 10;

/// Of the instructions: what is less is not worth another pass over the trace.
pub const LEAST_SHARE: f64 = 0.01;

/// A loop with more iterations than this is not replayed: 100 bytes for each lane would take gigabytes.
pub const MOST_LANES: u64 = 1 << 22;

/// A loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// What ran of it.
    pub ran: LoopRan,
    /// Its line, or its address.
    pub place: String,
    /// The function that has that line.
    pub function: String,
    /// Where that is.
    pub site: Site,
    /// Its iterations as lanes, by the model that was asked for; none where that was not replayed.
    pub as_lanes: Option<AsLanes>,
    /// The arms of branches in its turns.
    pub arms: Vec<Arm>,
}

/// An arm of a branch in a loop.
#[derive(Clone, Debug)]
pub struct Arm {
    /// What ran of it.
    pub ran: ArmRan,
    /// Its first line, or its address.
    pub place: String,
    /// The function that has that line.
    pub function: String,
    /// Where that is.
    pub site: Site,
}

/// What tells a place in the code from others of the same name and line.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its line, then those of the calls through which its function was inlined there. Empty where lines are not known.
    pub lines: Vec<Line>,
    /// The symbol of the function that has it after inlining, as the linker knows it.
    pub symbol: Option<String>,
}

/// How the iterations of a loop would run as lanes.
#[derive(Clone, Copy, Debug)]
pub struct AsLanes {
    /// How many there are.
    pub lanes: usize,
    /// The SIMT efficiency of the processor's instructions, where the model has one.
    pub simt_efficiency: Option<f64>,
    /// The efficiency that a verdict gives: see [`crate::machine::efficiency`].
    pub efficiency: Option<f64>,
}

/// All loops of some lanes.
#[derive(Clone, Debug)]
pub struct Loops {
    /// Those with the most instructions first.
    pub all: Vec<Loop>,
    /// The thread instructions of the lanes, those outside of loops included.
    pub kept: u64,
    /// What was taken of the trace, in a sentence.
    pub taken: String,
    /// The model.
    pub model: String,
    /// The lanes of its warps.
    pub warp_size: usize,
    /// Whether the trace has the addresses that memory operands access.
    pub has_addresses: bool,
}

/// The loops of a trace, the first [`REPLAYED`] of them replayed with their iterations as lanes, by the question's
/// first model, but at most `most`: each is another pass over the trace. With how the turns of lanes differ
/// (`spreads`), which takes up to a fifth longer.
///
/// # Errors
/// When the trace cannot be read.
pub fn of(question: &Question, trace: &Trace, source: &mut Source, spreads: bool, most: usize) -> Result<Loops> {
    let mut options = question.lanes.clone();
    let view = match View::new(trace, &options) {
        // A program without threads is all region.
        Err(_) if options.region == Region::Auto => {
            options.region = Region::All;
            View::new(trace, &options)?
        }
        view => view?,
    };
    let model = &question.subject.models[0];
    let warp_size = question.replay.warp_size.unwrap_or(WARP);
    let replay = ReplayOptions { warp_size: Some(warp_size), ..question.replay.clone() };
    let (mut all, mut looked) = (Vec::new(), None);
    let ran = if spreads { view.loops_with_spread(warp_size)? } else { view.loops_ran(warp_size)? };
    for (rank, mut ran) in ran.into_iter().enumerate() {
        let (place, function, site) = place_of(trace, source, ran.back, ran.header);
        let arms = std::mem::take(&mut ran.arms).into_iter().map(|ran| {
            let (place, function, site) = place_of(trace, source, ran.at, ran.at);
            Arm { ran, place, function, site }
        });
        let arms = arms.collect();
        let is_large = ran.instructions as f64 >= LEAST_SHARE * view.summary().kept as f64;
        let is_replayed = rank < most
            && ran.turns <= MOST_LANES
            && (rank < REPLAYED || rank < REPLAYED + REPLAYED_IF_LARGE && is_large);
        let as_lanes = match is_replayed {
            true => {
                let looked = match &mut looked {
                    Some(looked) => looked,
                    none => none.insert(replay::view::Loops::new(trace, &options)?),
                };
                Some(replayed(&looked.at(ran.header)?, &question.subject, &replay)?)
            }
            false => None,
        };
        all.push(Loop { ran, place, function, site, as_lanes, arms });
    }
    let (kept, taken) = (view.summary().kept, view.summary().to_string());
    Ok(Loops { all, kept, taken, model: model.to_string(), warp_size, has_addresses: view.has_memory() })
}

impl Loop {
    /// How often its body ran: its lanes, where it was replayed; else its turns, which count the last test of a loop
    /// that tests before each iteration, too.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.as_lanes.map_or(self.ran.turns, |as_lanes| as_lanes.lanes as u64)
    }
}

/// The line of a loop's end, or else of where it begins, the function that has it, and where that is.
fn place_of(trace: &Trace, source: &mut Source, end: Pc, begin: Pc) -> (String, String, Site) {
    let lines = source.loop_lines(end, begin);
    let place = lines.first().map_or_else(|| begin.to_string(), Line::short);
    let function = lines.first().and_then(|line| line.functions.first().cloned());
    let symbol = trace.symbol_of(begin).map(|symbol| symbol.name.clone());
    (place, function.unwrap_or_else(|| source.function(begin)), Site { lines, symbol })
}

fn replayed(view: &View, subject: &Subject, replay: &ReplayOptions) -> Result<AsLanes> {
    let model = &subject.models[0];
    let prepared = Prepared::new(view, model.entry().needs_control_flow)?;
    let outcomes = prepared.replay(std::slice::from_ref(model), replay, None, &|_, _| {})?;
    let complete = || outcomes.first().filter(|outcome| outcome.is_complete());
    Ok(AsLanes {
        lanes: view.lanes().len(),
        simt_efficiency: complete().and_then(|outcome| outcome.simt_efficiency()),
        efficiency: complete().and_then(|outcome| subject.efficiency(outcome)),
    })
}
