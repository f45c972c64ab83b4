//! What is on a page. It is written into the page as JSON, field by field under these names; the scripts in
//! `report/templates` read it.
//!
//! Numbers of slots are lost lane-slots. A list *by cause* is in the order of [`Page::causes`]; a list *by active
//! lanes* begins with one lane. A *line* is an index into [`Program::lines`], a *function* one into
//! [`Program::functions`], a *pc* one into [`Program::pcs`].

use std::collections::BTreeMap;

use attribution::{json, locks};
use replay::{Outcome, Setting};
use serde::{Serialize, Serializer};
use verdict::as_lanes::AsLanes;
use verdict::{Range, Verdict};

/// A page about one program, or about two to be compared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// Who made it: `lockstep 0.1.0`.
    pub tool: String,
    /// The command that makes it; empty where there is none.
    pub command: String,
    /// What lane-slots are lost to.
    pub causes: Vec<CauseText>,
    /// Kinds of heuristics, in the order in which they are shown.
    pub families: Vec<FamilyText>,
    /// The heuristics that have results.
    pub models: Vec<ModelText>,
    /// Columns of a result: name and definition.
    pub columns: Vec<(String, String)>,
    /// One, or two: before and after.
    pub programs: Vec<Program>,
    /// For two programs whose sources differ: by the label of a line after, its label before; empty where it is new.
    pub was: BTreeMap<String, String>,
    /// For two programs: the other respects in which their replays differ, a sentence each.
    pub unlike: Vec<String>,
}

/// A cause.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CauseText {
    /// Its name.
    pub name: String,
    /// Its colour, as `#rrggbb`.
    pub colour: String,
    /// What it means, in one sentence.
    pub about: String,
}

/// A kind of heuristic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FamilyText {
    /// Its name.
    pub name: String,
    /// Its colour, as `#rrggbb`.
    pub colour: String,
    /// What its heuristics have in common.
    pub about: String,
}

/// A heuristic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelText {
    /// As results name it, with all its parameters.
    pub heuristic: String,
    /// With the parameters alone that are not at their defaults.
    pub brief: String,
    /// Its kind: an index into [`Page::families`].
    pub family: usize,
    /// Its colour, as `#rrggbb`.
    pub colour: String,
    /// Its rule in one sentence.
    pub rule: String,
}

/// What is known about one trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Program {
    /// The results of every heuristic.
    pub replayed: Replayed,
    /// The result that the rest of the page is about: an index into `results`.
    pub chosen: usize,
    /// The results of that heuristic at other warp sizes.
    pub widths: Results,
    /// What the reader should know: why lines are missing, which warps have no map.
    pub notes: Vec<String>,
    /// Functions, those with the most thread instructions first.
    pub functions: Vec<Function>,
    /// Source lines, and functions that stand for lines that are not known.
    pub lines: Vec<Line>,
    /// Source files.
    pub files: Vec<SourceFile>,
    /// Instructions of the lane maps.
    pub pcs: Pcs,
    /// Lane maps, by warp.
    pub maps: Vec<Map>,
    /// Where lane-slots are lost: the root of all call paths.
    pub flame: Frame,
    /// Places at which lanes parted, those that cost most first.
    pub branches: Vec<Branch>,
    /// How many more places there are.
    pub more_branches: usize,
    /// Where collecting lanes would pay; none where it was not tried.
    pub collecting: Option<Collecting>,
    /// The models that the page can be switched to.
    pub switched: Vec<Switched>,
    /// Locks; none where none was taken.
    #[serde(serialize_with = "lock_rows")]
    pub locks: Option<Vec<locks::Row>>,
    /// Control-flow graphs of the functions that lose most.
    pub graphs: Vec<Graph>,
}

/// Results under one setting. They are written as the list in what `replay --json` prints.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The setting.
    pub setting: Setting,
    /// By heuristic.
    pub outcomes: Vec<Outcome>,
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.outcomes.iter().map(|outcome| json::result(&self.setting, outcome)))
    }
}

/// What was replayed. It is written as `replay --json` prints it.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// The results.
    pub results: Results,
    /// What was taken of the trace, in a sentence.
    pub taken: String,
    /// What a machine's models say, where the page is about a machine.
    pub machine: Option<Range>,
    /// The verdict, where the page is about a machine.
    pub verdict: Option<Verdict>,
    /// How lanes that are parts of threads would run.
    pub as_lanes: Option<AsLanes>,
}

impl Serialize for Replayed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut all = json::of(&self.results.setting, &self.results.outcomes, &self.taken);
        let parts = [
            ("machine", self.machine.as_ref().map(Range::json)),
            ("verdict", self.verdict.as_ref().map(Verdict::json)),
            ("as_lanes", self.as_lanes.as_ref().map(AsLanes::on_page)),
        ];
        parts.into_iter().filter_map(|(name, part)| Some((name, part?))).for_each(|(name, part)| all[name] = part);
        let counts = self.machine.as_ref().zip(self.results.outcomes.first()).and_then(|(of, one)| of.counts(one));
        if let Some(counts) = counts {
            all["counts"] = counts.into();
        }
        all.serialize(to)
    }
}

/// Locks as `replay --by lock --json` prints them.
fn lock_rows<S: Serializer>(rows: &Option<Vec<locks::Row>>, to: S) -> Result<S::Ok, S::Error> {
    rows.as_ref().map(|rows| rows.iter().map(json::lock).collect::<Vec<_>>()).serialize(to)
}

/// A function.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Lane-slots lost in its fetches.
    pub lost: u64,
}

/// A source line, or what stands for one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Line {
    /// `fft.c:76`, or a function's name.
    pub label: String,
    /// Its file, an index into [`Program::files`].
    pub file: Option<usize>,
    /// Its number in the file, from 1.
    pub number: u32,
    /// Its function, then those into which that was inlined.
    pub functions: Vec<String>,
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Warp instructions by active lanes.
    pub active: Vec<u64>,
    /// Slots lost in its fetches, by cause.
    pub lost_by: Vec<u64>,
    /// Slots of lanes that parted here, by cause.
    pub parted_by: Vec<u64>,
    /// Memory operands by class: uniform, affine, scattered; empty where they were not recorded.
    pub memory: Vec<u64>,
    /// Its instructions, where they are to be shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Instruction>,
    /// What is known about it without running it, if that is to be shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proved: Vec<Proved>,
}

/// What divergence analysis says about a value, a branch or an access.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Proved {
    /// `branch`, `load`, `store`, `atomic`, `value` or `parameter`.
    pub what: String,
    /// `uniform`, `affine` or `divergent`.
    pub class: String,
    /// c1·tid + c2.
    pub fact: String,
    /// Its name in the compiler's code, which tells values of one line apart.
    pub name: String,
    /// From one thread to the next, where that is a number: of addresses in bytes.
    pub stride: Option<i64>,
}

/// An instruction of a line.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Instruction {
    /// Its address.
    pub address: u64,
    /// What it says.
    pub text: String,
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Warp instructions by active lanes.
    pub active: Vec<u64>,
    /// Slots lost in its fetches, by cause.
    pub lost_by: Vec<u64>,
    /// Slots of lanes that parted here, by cause.
    pub parted_by: Vec<u64>,
}

/// Models that the page can be switched to, which cost the same everywhere.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Switched {
    /// Indices into `results`.
    pub results: Vec<usize>,
    /// The lines that ran or where lanes parted.
    pub lines: Vec<LineCosts>,
    /// The places at which lanes parted, those that cost most first; without their arms.
    pub branches: Vec<Branch>,
}

/// What a line costs under another model. Lists have pairs of a place in [`Line`]'s list and the number there; all
/// others are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineCosts {
    /// The line.
    pub line: usize,
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Warp instructions by active lanes.
    pub active: Vec<(usize, u64)>,
    /// Slots lost in its fetches, by cause.
    pub lost_by: Vec<(usize, u64)>,
    /// Slots of lanes that parted here, by cause.
    pub parted_by: Vec<(usize, u64)>,
}

/// A source file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SourceFile {
    /// Its path, as the compiler was given it.
    pub path: String,
    /// Its text in pieces around the lines that ran; empty where the file could not be read.
    pub pieces: Vec<Piece>,
}

/// Lines of a file in a row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Piece {
    /// The number of the first.
    pub first: u32,
    /// Their text.
    pub text: Vec<String>,
}

/// Instructions, in lists of equal length.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Pcs {
    /// The function of each.
    pub function: Vec<usize>,
    /// The distance from the function's beginning, in bytes; the address where there is no function.
    pub offset: Vec<u64>,
    /// The line of each.
    pub line: Vec<usize>,
}

/// The lane map of a warp.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Map {
    /// The warp's number.
    pub warp: usize,
    /// The names of its lanes' threads.
    pub lanes: Vec<String>,
    /// Its fetches.
    pub fetches: u64,
    /// The finest first.
    pub levels: Vec<MapLevel>,
    /// Single fetches.
    pub windows: Vec<MapWindow>,
}

/// A row of bins.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MapLevel {
    /// Fetches in a bin.
    pub bin: u64,
    /// How many bins.
    pub bins: usize,
    /// Base64: bin after bin, lane after lane, 4 bytes each: the share of fetches in which the lane was active (255:
    /// all; 0: none), the function (255: one after those), and the pc, low byte first.
    pub cells: String,
}

/// Single fetches in a row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MapWindow {
    /// The first.
    pub start: u64,
    /// How many.
    pub fetches: u64,
    /// Why they were kept: `whole`, `first` or `worst`.
    pub kept: &'static str,
    /// Slots that live lanes lost in it.
    pub lost: u64,
    /// Base64 of words of 32 bits, low byte first: the pc of the first instruction, how many follow one another, and
    /// the active mask, one word per 32 lanes; then the next.
    pub stretches: String,
}

/// A function of a call path, or a line, and what is lost there and in what it calls.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Frame {
    /// The function's or line's name.
    pub name: String,
    /// The line, where it is one.
    pub line: Option<usize>,
    /// Slots by cause, those of the children included.
    pub lost_by: Vec<u64>,
    /// What it calls, and its lines.
    pub children: Vec<Frame>,
}

/// A place at which lanes parted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// `function+0x12`.
    pub place: String,
    /// Its line.
    pub line: Option<usize>,
    /// Slots of lanes that parted here, by cause.
    pub lost_by: Vec<u64>,
    /// Where lanes went from here.
    pub arms: Vec<Arm>,
    /// The lines that ran while those that had parted here did not, and the slots.
    pub meanwhile: Vec<(usize, u64)>,
}

/// The result of collecting lanes at places before they go on.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Collecting {
    /// The model that obeys predictions.
    pub model: String,
    /// What is counted.
    pub unit: &'static str,
    /// As many of these it issues without any.
    pub before: u64,
    /// How many places were tried.
    pub tried: usize,
    /// Those that pay, the one that issues least first.
    pub places: Vec<Collected>,
}

/// A place at which collecting lanes pays.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Collected {
    /// Its line: an index into [`Program::lines`].
    pub line: usize,
    /// `function+0x12`.
    pub place: String,
    /// What to type after `replay --predict` for it.
    pub predict: String,
    /// Why lanes reach it at different times.
    pub pattern: String,
    /// The fetches that it could save, if everything after it in its loop were fetched for full warps.
    pub expected: u64,
    /// How many waiting lanes are enough; none: all.
    pub threshold: Option<usize>,
    /// What it issued.
    pub fetches: u64,
    /// The share of active lane-slots.
    pub simt_efficiency: Option<f64>,
    /// Instructions of its barriers, which are not among the fetches.
    pub barrier_operations: u64,
}

/// A successor of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Arm {
    /// `function+0x12`.
    pub place: String,
    /// The line that it leads to.
    pub line: usize,
    /// Times that lanes of a warp took it together.
    pub times: u64,
    /// Lanes that took it, summed.
    pub crossings: u64,
    /// Slots lost in the fetches of the block that it leads to, by lanes that took this edge.
    pub lost: u64,
}

/// The control-flow graph of a function.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Graph {
    /// The function.
    pub function: usize,
    /// Its size when drawn.
    pub size: (f64, f64),
    /// Its blocks; none where there are too many to draw.
    pub nodes: Vec<Node>,
    /// The edges between them.
    pub edges: Vec<Way>,
    /// How many blocks it has.
    pub blocks: usize,
}

/// A block of instructions that are entered at the first and left at the last.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    /// `+0x12`.
    pub place: String,
    /// Its lines, in the order of their numbers.
    pub lines: Vec<usize>,
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
    /// Slots lost in its fetches.
    pub lost: u64,
    /// Where its middle is.
    pub at: (f64, f64),
}

/// An edge between blocks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Way {
    /// From which block.
    pub from: usize,
    /// To which.
    pub to: usize,
    /// Times that lanes of a warp took it together.
    pub times: u64,
    /// Lanes that took it, summed.
    pub crossings: u64,
    /// Slots lost in the fetches of the block that it leads to, by lanes that took this edge.
    pub lost: u64,
    /// Where it runs, from point to point.
    pub points: Vec<(f64, f64)>,
}
