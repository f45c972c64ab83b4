//! What every verb that replays a trace is told in the same way: the part of the trace that counts, and how its lanes
//! make warps.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use attribution::Place;
use clap::ArgMatches;
use clap::error::ErrorKind;
use replay::view::{CodeFilter, Region, View, ViewOptions};
use replay::{Locks, ReplayOptions, Setting};
use trace_format::{Action, Trace};
use verdict::{Question, Subject};

use crate::output::say;
use crate::typed::checked::{Check, Checked};
use crate::typed::lanes::{self, LaneKind};
use crate::typed::spin::SpinRule;
use crate::typed::widths::{Groups, Widths};

/// The part of a trace that is replayed, and its warps.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "What is replayed, and as which lanes")]
pub(crate) struct Selection {
    /// The part of the run: auto, all, markers, or a function
    ///
    /// auto: what the threads were started for, or the parallel regions; markers: what each thread runs between its
    /// `LOCKSTEP_BEGIN` and `LOCKSTEP_END`; or a function's name
    #[arg(long, value_name = "REGION", default_value = "auto")]
    pub(crate) region: Region,

    /// What is a lane
    ///
    /// Default: threads; with --loop, iterations
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) lanes: Option<LaneKind>,

    /// The loop whose iterations are lanes: solve.c:120 or an address
    ///
    /// A program without threads has loops too; its whole run is then the region. `replay --loops` lists the loops
    #[arg(long = "loop", value_name = "PLACE")]
    pub(crate) at_loop: Option<Place>,

    /// The code to replay: all, main or whole
    ///
    /// all: except the inside of the thread runtime and of mathematical functions, which a GPU has its own of; main: of
    /// that, the main executable only; whole: with the inside of mathematical functions
    #[arg(long, value_name = "CODE", default_value = "all")]
    pub(crate) code: CodeFilter,

    /// The rule for locks: serialize, simt, drop or ignore
    ///
    /// serialize: one lane of a warp at a time; a model that deadlocks is shown with simt; simt: lanes that reach a
    /// lock together take turns, as in a GPU program's loop; drop: critical sections are left out; ignore: lanes run
    /// through locks. For replay also several with commas, or all, to compare them
    #[arg(long, value_name = "LOCKS", default_value = "serialize")]
    pub(crate) locks: LockRules,

    /// Which spin loops count as waiting and are left out
    ///
    /// auto: those that certainly wait; keep: only those with a `pause` or a yield; or lines or addresses, with commas:
    /// as auto, and the loops there
    #[arg(long, value_name = "WHICH", default_value = "auto", hide_short_help = true)]
    pub(crate) spin: SpinRule,

    /// Lanes in a warp
    ///
    /// For replay also several, to compare them: a list (4,8,32), or a range that doubles (4..64). Default: all lanes
    /// in one warp, at most 256; 32 if lanes are not threads
    #[arg(long, short = 'W', value_name = "LANES")]
    pub(crate) warp_size: Option<Widths>,

    /// Warps in a block
    ///
    /// For the models that let lanes of several warps share fetches (dwf, tbc, lwm). Default: as many as hold 256 lanes
    #[arg(long, value_name = "WARPS", hide_short_help = true)]
    pub(crate) warps_per_block: Option<usize>,

    /// Which lanes share a warp
    ///
    /// consecutive, round-robin, strided:step=N (neighbours in a warp are N lanes apart), sorted:key=KEY (instructions,
    /// trips or path), similarity, random:seed=N, or oracle (the best that replays find); for replay also several with
    /// commas, or all, to compare them
    #[arg(long, value_name = "HOW", default_value = "consecutive")]
    pub(crate) group: Groups,
}

/// The options of which `replay` compares several.
pub(crate) const WIDTHS: &str = "warp_size";
pub(crate) const GROUPS: &str = "group";
pub(crate) const LOCKS: &str = "locks";

/// The same for verbs that look at one view: with one width, one grouping and one rule for locks.
pub(crate) type OneView = Checked<Selection>;

impl Check for Selection {
    fn check(&self, _: &ArgMatches) -> Result<(), clap::Error> {
        self.check_lanes()?;
        match self.several().next() {
            None => Ok(()),
            Some(option) => {
                let option = option.replace('_', "-");
                let text = format!("--{option}: only `replay` compares several: name one here");
                Err(clap::Error::raw(ErrorKind::ValueValidation, text))
            }
        }
    }
}

/// The rules for locks that were asked for; at least one.
#[derive(Clone)]
pub(crate) struct LockRules(Vec<Locks>);

impl LockRules {
    /// Whether lanes take locks under any of these rules.
    pub(crate) fn are_taken(&self) -> bool {
        self.0.iter().any(|rule| rule.are_taken())
    }

    pub(crate) fn rules(&self) -> &[Locks] {
        &self.0
    }
}

impl FromStr for LockRules {
    type Err = replay::Error;

    fn from_str(text: &str) -> replay::Result<LockRules> {
        let mut rules = if text == "all" { Locks::ALL.to_vec() } else { Vec::new() };
        for rule in text.split(',').filter(|_| text != "all") {
            let rule = rule.parse()?;
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        // What turns would give a model that deadlocks is shown anyway.
        if rules.contains(&Locks::Simt) {
            rules.iter_mut().filter(|rule| **rule == Locks::Serialize).for_each(|rule| *rule = Locks::Wait);
        }
        Ok(LockRules(rules))
    }
}

impl fmt::Display for LockRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(","))
    }
}

impl Selection {
    /// The lanes of the trace, where one rule for locks is named.
    pub(crate) fn view(&self, trace: &Trace) -> replay::Result<View> {
        self.view_with(trace, self.locks.rules()[0])
    }

    /// The options that name several of what there is one of in most places.
    pub(crate) fn several(&self) -> impl Iterator<Item = &'static str> {
        let widths = self.warp_size.as_ref().map_or(1, |widths| widths.all().len());
        let all = [(WIDTHS, widths), (GROUPS, self.group.all().len()), (LOCKS, self.locks.rules().len())];
        all.into_iter().filter(|(_, named)| *named > 1).map(|(option, _)| option)
    }

    /// Refuses a loop for lanes that are no iterations.
    ///
    /// # Errors
    /// Of usage.
    pub(crate) fn check_lanes(&self) -> Result<(), clap::Error> {
        if self.at_loop.is_some() && !matches!(self.lanes, None | Some(LaneKind::Iterations)) {
            let text = "--loop goes with --lanes iterations only: leave out one of the two";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(())
    }

    /// The lanes of a warp, where they were named.
    pub(crate) fn warp_size(&self) -> Option<usize> {
        self.warp_size.as_ref().map(|widths| widths.all()[0])
    }

    /// The lanes of the trace when locks count like this. Says where they are others than those that were asked for.
    pub(crate) fn view_with(&self, trace: &Trace, locks: Locks) -> replay::Result<View> {
        let (view, note) = verdict::lanes::view(trace, &self.view_options(trace, locks)?)?;
        note.into_iter().for_each(|note| say!("lockstep: {note}"));
        Ok(view)
    }

    /// What is asked about the lanes, for verbs that look at one view.
    pub(crate) fn question(&self, trace: &Trace, subject: Subject) -> replay::Result<Question> {
        self.question_with(trace, self.locks.rules()[0], subject)
    }

    /// The same when locks count like this.
    pub(crate) fn question_with(&self, trace: &Trace, locks: Locks, subject: Subject) -> replay::Result<Question> {
        Ok(Question { lanes: self.view_options(trace, locks)?, replay: self.options(), subject })
    }

    /// What was typed of the view, under this rule for locks.
    pub(crate) fn view_options(&self, trace: &Trace, locks: Locks) -> replay::Result<ViewOptions> {
        let (region, spin) = (self.region.clone(), self.spin.of(trace)?);
        let lanes = lanes::rule(self.lanes, self.at_loop.as_ref(), trace)?;
        Ok(ViewOptions { region, code: self.code, locks, spin, lanes })
    }

    /// What a result of that view is about; `path` is the trace's.
    pub(crate) fn setting(&self, path: &Path, trace: &Trace, view: &View) -> Setting {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Setting {
            trace: name.to_string_lossy().into_owned(),
            command: trace.meta().command.join(" "),
            region: verdict::lanes::region(view.summary()),
            code: self.code.to_string(),
            locks: self.locks.to_string(),
            group: self.group.to_string(),
            threads: trace.threads().len(),
        }
    }

    pub(crate) fn are_parts_of_threads(&self) -> bool {
        self.at_loop.is_some() || !matches!(self.lanes, None | Some(LaneKind::Threads))
    }

    /// How those lanes are replayed, with nothing besides the counts.
    pub(crate) fn options(&self) -> ReplayOptions {
        ReplayOptions {
            warp_size: self.warp_size().or(self.are_parts_of_threads().then_some(verdict::lanes::WARP)),
            warps_per_block: self.warps_per_block,
            grouping: self.group.all()[0],
            ..ReplayOptions::default()
        }
    }
}

/// The trace in this file, or on standard input for the name `-`. Reports on standard error what part of it was lost.
pub(crate) fn open(path: &Path) -> replay::Result<Trace> {
    let trace = if path.as_os_str() == "-" { from_stdin()? } else { Trace::open(path)? };
    if let Some(lost) = trace.recovered() {
        say!("lockstep: {}: {lost}", path.display());
    }
    // Where the user ended the program, that is no news.
    let killed = trace.finish().filter(|end| end.stopped_early.is_none()).and_then(|end| end.signal);
    if let Some(signal) = killed {
        let name = tracer::signal_name(signal).map_or_else(String::new, |name| format!(" ({name})"));
        say!(
            "lockstep: {}: signal {signal}{name} killed the program while it was traced: its threads did not run to \
             their ends",
            path.display()
        );
    }
    Ok(trace)
}

/// The trace on standard input. Chunks are found by their offsets, so the whole trace is held in memory.
fn from_stdin() -> replay::Result<Trace> {
    const NAME: &str = "standard input";
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|source| trace_format::Error::Io { path: NAME.into(), action: Action::Read, source })?;
    Ok(Trace::from_bytes(bytes, NAME)?)
}
