//! What `replay` is told, as it was typed, and what that means for a trace.

use std::path::PathBuf;

use attribution::Source;
use replay::metrics::Measure;
use replay::registry::MEMORY;
use replay::{Error, ReplayOptions};
use trace_format::Trace;
use verdict::{Machine, Subject};

use crate::typed::by::{By, MemoryBy};
use crate::typed::machine;
use crate::typed::measures::Measures;
use crate::typed::models::{self, Models};
use crate::typed::predict::Predicted;
use crate::typed::reorder::ReorderOptions;
use crate::typed::selection::Selection;
use crate::typed::syntax::SyntaxName;
use crate::width::Wide;

/// What options of one group are for.
const SHOWN: &str = "What is shown";
const OUTPUT: &str = "Output";

/// Re-run the threads of a trace in lockstep: how well they run, what limits them, and what to try
///
/// Under the model of a machine, or under one or more reconvergence heuristics
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("rows").multiple(true)))]
pub(crate) struct Typed {
    /// The trace (- for standard input)
    ///
    /// What `trace` wrote, or a text trace, gzipped or not
    #[arg(default_value = "trace.bin")]
    pub(super) trace: PathBuf,

    /// More traces of the same command: how far their figures lie apart
    ///
    /// See `trace --repeat`
    #[arg(value_name = "TRACE")]
    pub(super) others: Vec<PathBuf>,

    /// Reconvergence models, or all (lockstep heuristics lists them)
    ///
    /// A name, or name:parameter=value, several with commas, or all. Default: those of --machine nvidia
    #[arg(long, short = 'H', visible_alias = "model", value_name = "LIST", value_parser = Models::parse)]
    pub(super) heuristic: Vec<Models>,

    /// The machine
    ///
    /// By the model nearest to it, with its warp size, and by other models of the same machine (see docs/fidelity.md).
    /// Default: nvidia, without the others where more than 20 million thread instructions are replayed
    #[arg(long, value_name = "MACHINE", value_parser = machine::parser())]
    pub(super) machine: Option<Machine>,

    /// Collect lanes at this place before they go on
    ///
    /// At a line (file.c:42), address or function (call:NAME), as a GPU does where a programmer predicts that waiting
    /// there pays (see docs/speculation.md): shown beside the same model without it. For hanoi, the default, and
    /// barrier. PLACE,threshold=N lets N waiting lanes be enough; marks stands for the places that the program marks by
    /// LOCKSTEP_PREDICT and its kin of include/lockstep.h
    #[arg(long, value_name = "PLACE")]
    pub(super) predict: Vec<Predicted>,

    #[command(flatten)]
    pub(super) selection: Selection,

    #[command(flatten)]
    pub(super) reorder: ReorderOptions,

    /// Where lane-slots are lost and why, or what each lock costs, by this
    ///
    /// The rows that lose most, per heuristic
    #[arg(long, value_name = "WHAT", group = "rows", help_heading = SHOWN)]
    pub(super) by: Option<By>,

    /// Memory accesses and their transactions, by this
    ///
    /// As --memory: the first rows by this, per heuristic
    #[arg(long, value_name = "WHAT", group = "rows", help_heading = SHOWN)]
    pub(super) memory_by: Option<MemoryBy>,

    /// The loops that ran, and how their iterations would run as lanes
    ///
    /// Those that --loop can name; of the first ten and of others that hold a hundredth of the
    /// instructions, how the iterations would run. Nothing else is replayed
    #[arg(long, group = "rows", help_heading = SHOWN)]
    pub(super) loops: bool,

    /// Whether iterations, calls or tasks could run in any order
    ///
    /// Shown in place of a replay: what lanes that are parts of threads need of each other, or after which changes they
    /// do not. The trace must have addresses
    #[arg(long, group = "rows", help_heading = SHOWN)]
    pub(super) dependences: bool,

    /// On one page: as a GPU's lanes and as SIMD, what limits, what to try
    ///
    /// With what lanes need of each other, where the trace has addresses and they are parts of threads
    #[arg(long, help_heading = SHOWN)]
    pub(super) verdict: bool,

    /// This source file with what each of its lines costs
    #[arg(long, value_name = "FILE", help_heading = SHOWN)]
    pub(super) annotate: Option<PathBuf>,

    /// With --annotate, show below each line its instructions, written as objdump does in this syntax
    #[arg(long, value_name = "SYNTAX", value_enum, requires = "annotate", hide_short_help = true, help_heading = SHOWN)]
    pub(super) syntax: Option<SyntaxName>,

    /// Rows of --by, --memory-by and --loops
    ///
    /// Default: 20 in a table, all in JSON. Of --loops, the efficiency of N loops at most; --top 0 lists all without
    #[arg(long, value_name = "N", requires = "rows", help_heading = SHOWN)]
    pub(super) top: Option<usize>,

    /// Print JSON instead of the table
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,

    /// Write rows to FILE
    ///
    /// - for standard output, instead of the table
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(super) csv: Option<PathBuf>,

    /// Write every fetch (pc, active mask) to FILE (- for standard output, instead of the table)
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = OUTPUT)]
    pub(super) schedule: Option<PathBuf>,

    /// Write the thread instructions of each lane to FILE, as CSV (- for standard output, instead of the table): all
    /// lanes, where rows list at most 4,096 and count those of more by length
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = OUTPUT)]
    pub(super) lanes_out: Option<PathBuf>,

    #[command(flatten)]
    pub(super) measures: Measures,

    /// Worker threads. Default: one per core; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true, help_heading = OUTPUT)]
    pub(super) workers: Option<u16>,

    #[command(flatten)]
    pub(super) wide: Wide,
}

/// What was asked about a trace.
pub(super) struct Asked<'a> {
    pub(super) typed: &'a Typed,
    pub(super) trace: &'a Trace,
    pub(super) subject: Subject,
    /// What was asked for by the options of measures.
    pub(super) measures: Vec<Measure>,
    /// Who is told of each replay that is done, and of how many, in place of a bar.
    pub(super) told: Option<Told<'a>>,
}

/// Who is told how many replays of how many are done.
pub(super) type Told<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Typed {
    /// The models, or the machine.
    pub(super) fn subject(&self) -> Subject {
        Subject::of(self.machine, models::all_of(&self.heuristic))
    }

    /// What the options mean for this trace.
    ///
    /// # Errors
    /// When the trace does not hold what is asked for.
    pub(super) fn asked<'a>(&'a self, trace: &'a Trace, source: &Source) -> replay::Result<Asked<'a>> {
        let mut measures = self.measures.clone();
        if self.memory_by.is_some() {
            measures.imply(&MEMORY);
        }
        if measures.need_addresses() && !trace.meta().memory {
            return Err(Error::Request(format!(
                "{}: the trace has no memory addresses: record it with trace --memory, or leave --memory, --memory-by, --spaces, --buffer and --alu out",
                self.trace.display()
            )));
        }
        let measures = measures.measures(source)?;
        Ok(Asked { typed: self, trace, subject: self.subject(), measures, told: None })
    }
}

impl Asked<'_> {
    /// Whether the models or these options need the control-flow graph.
    pub(super) fn needs_control_flow(&self, options: &ReplayOptions) -> bool {
        self.subject.models.iter().any(|spec| spec.entry().needs_control_flow)
            || options.measures.iter().any(Measure::needs_control_flow)
    }
}
