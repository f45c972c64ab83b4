//! `lockstep replay`: re-runs the streams of a trace in lockstep. It has more than 500 lines since each of its options
//! stands here with its help.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attribution::dependences::Found as Dependences;
use attribution::{Source, json, locks, lost};
use heuristics::Spec;
use replay::metrics::{Causes, Contention, Measure, Spaces};
use replay::view::{Locks, Share, View};
use replay::{Outcome, Prepared, ReplayOptions, ScheduleFile, Setting};
use trace_format::Trace;
use verdict::grouping::{self, Beside as BesideUsual, beside_usual};
use verdict::reorder::{Compared, Reorder};
use verdict::{Judge, Machine, Range, Subject, Verdict, as_lanes, forget, loops};

use crate::exit;
use crate::output::{self, LanesOut, Output, WithColours, is_stdout, print, progress, say, show};
use crate::shown::rows::{Rows, Wanted};
use crate::shown::{self, dependences, regions, table};
use crate::typed::by::{By, MemoryBy};
use crate::typed::machine;
use crate::typed::measures::{self, Measures};
use crate::typed::models::{self, Models};
use crate::typed::predict;
use crate::typed::predict::Predicted;
use crate::typed::reorder;
use crate::typed::selection::{self, Selection};
use crate::typed::spin;
use crate::typed::syntax::SyntaxName;
use crate::typed::widths::Widths;
use crate::verbs::{dump, spread};
use crate::width::Wide;

/// Re-run the threads of a trace in lockstep under one or more reconvergence heuristics
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("rows").multiple(true)))]
pub(crate) struct Args {
    /// The trace: what `trace` wrote, or a text trace, gzipped or not (- for standard input)
    #[arg(default_value = "trace.bin")]
    trace: PathBuf,

    /// More traces of the same command: shows how far their figures lie apart (see `trace --repeat`)
    #[arg(value_name = "TRACE", conflicts_with_all = ["rows", "annotate", "csv", "schedule", "predict", "reorder", "buffer", "lanes_out"])]
    others: Vec<PathBuf>,

    /// Reconvergence heuristics: a name, or name:parameter=value, several with commas, or all (see `lockstep
    /// heuristics`). Default: those of --machine nvidia
    #[arg(long, short = 'H', value_name = "LIST", value_parser = Models::parse)]
    heuristic: Vec<Models>,

    /// Show the efficiency on this machine: by the model nearest to it, with its warp size, and by other models of the
    /// same machine (see docs/fidelity.md). Default: nvidia, without the others where
    /// more than 20 million thread instructions are replayed
    #[arg(long, value_name = "MACHINE", value_parser = machine::parser(), conflicts_with = "heuristic")]
    machine: Option<Machine>,

    /// Collect lanes at this line (file.c:42), address or function (call:NAME) before they go on, as a GPU does where a
    /// programmer predicts that waiting there pays (see docs/speculation.md): shown beside the same model without it.
    /// For barrier, which is the default with this option. PLACE,threshold=N lets N waiting lanes be enough; marks
    /// stands for the places that the program marks by LOCKSTEP_PREDICT and its kin of include/lockstep.h
    #[arg(long, value_name = "PLACE", conflicts_with = "machine")]
    predict: Vec<Predicted>,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    reorder: reorder::Typed,

    /// Show where lane-slots are lost and why, or what each lock costs: the rows that lose most, grouped by this, per
    /// heuristic
    #[arg(long, value_name = "WHAT", group = "rows")]
    by: Option<By>,

    /// Show memory accesses and their transactions (as --memory): the first rows by this, per heuristic
    #[arg(long, value_name = "WHAT", group = "rows")]
    memory_by: Option<MemoryBy>,

    /// List the loops that ran, which --loop can name, and how the iterations of the first ten would run as lanes.
    /// Nothing else is replayed
    #[arg(long, group = "rows", conflicts_with_all = ["by", "memory_by", "csv", "schedule", "at_loop", "lanes"])]
    loops: bool,

    /// Show, in place of a replay, what lanes that are parts of threads need of each other: whether iterations of a
    /// loop (--loop), calls or tasks could run in any order, or after which changes. The trace must have addresses
    #[arg(long, group = "rows", conflicts_with_all = ["by", "memory_by", "csv", "schedule", "loops", "annotate"])]
    dependences: bool,

    /// Tell on one page how these lanes would run: as a GPU's and as SIMD, what limits them, and what to try first;
    /// with what they need of each other, where the trace has addresses and lanes are parts of threads
    #[arg(long, conflicts_with_all = ["rows", "heuristic", "machine", "csv", "schedule", "annotate", "warp_size"])]
    verdict: bool,

    /// Show this source file with what each of its lines costs, per heuristic
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by", "json"])]
    annotate: Option<PathBuf>,

    /// With --annotate, show below each line its instructions, written as objdump does in this syntax
    #[arg(long, value_name = "SYNTAX", value_enum, requires = "annotate")]
    syntax: Option<SyntaxName>,

    /// Rows that --by and --memory-by show. Default: 20 in a table, all in JSON
    #[arg(long, value_name = "N", requires = "rows")]
    top: Option<usize>,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,

    /// Write rows to FILE (- for standard output, instead of the table)
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write every fetch (pc, active mask) to FILE (- for standard output, instead of the table)
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,

    /// Write the thread instructions of each lane to FILE, as CSV (- for standard output, instead of the table): all
    /// lanes, where rows list at most 4,096 and count those of more by length
    #[arg(long, value_name = "FILE", conflicts_with_all = ["loops", "dependences", "verdict"])]
    lanes_out: Option<PathBuf>,

    #[command(flatten)]
    measures: Measures,

    /// A variable of the program that stands for a buffer which a block of threads shares, as a GPU's shared memory:
    /// --spaces, which this implies, counts accesses to it apart. May be given several times
    #[arg(long, value_name = "NAME")]
    buffer: Vec<String>,

    /// Worker threads. Default: one per core; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,

    #[command(flatten)]
    wide: Wide,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.wide.apply();
    match args.workers {
        Some(workers) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(workers)).build();
            let refused = |e| replay::Error::Request(format!("cannot start {workers} workers: {e}: ask for fewer"));
            pool.map_err(refused)?.install(|| run_here(args))
        }
        None => run_here(args),
    }
}

/// What the user meant.
struct Request<'a> {
    trace: &'a Path,
    subject: Subject,
    predict: &'a [Predicted],
    reorder: Option<Reorder>,
    selection: &'a Selection,
    measures: Vec<Measure>,
    /// Whether a second decoder judges the trace's code first.
    check: bool,
    rows: Wanted<'a>,
    output: Shown<'a>,
    schedule: Option<&'a Path>,
}

/// Where results go.
struct Shown<'a> {
    /// To standard output: as JSON or tables; none if something else goes there.
    printed: Option<Form>,
    /// Rows, to this file.
    csv: Option<&'a Path>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Tables,
}

impl Args {
    /// Refuses an option that shows tables of its own beside an option that shows others.
    ///
    /// # Errors
    /// When such an option was given.
    fn alone(&self, beside: &str) -> replay::Result<()> {
        let asked = [
            ("--by", self.by.is_some()),
            ("--memory-by", self.memory_by.is_some()),
            ("--annotate", self.annotate.is_some()),
            ("--schedule", self.schedule.is_some()),
            ("--lanes-out", self.lanes_out.is_some()),
            ("--predict", !self.predict.is_empty()),
        ];
        match asked.iter().find(|(_, is)| *is) {
            Some((option, _)) => {
                Err(replay::Error::Request(format!("{option} takes one replay: leave it out with {beside}")))
            }
            None => Ok(()),
        }
    }

    /// What the options mean for this trace.
    ///
    /// # Errors
    /// When the trace does not hold what is asked for, or two things that were typed don't go together.
    fn meant(&self, trace: &Trace) -> replay::Result<Request<'_>> {
        let refuse = |text: String| Err(replay::Error::Request(text));
        let mut measures = self.measures.clone();
        if self.memory_by.is_some() {
            measures.imply("memory");
        }
        if !self.buffer.is_empty() {
            measures.imply("spaces");
        }
        if measures.need_addresses() && !trace.meta().memory {
            return refuse(format!(
                "{}: the trace has no memory addresses: record it with trace --memory, or leave --memory, --memory-by, --spaces, --buffer and --alu out",
                self.trace.display()
            ));
        }
        let locks = self.by == Some(By::Lock);
        if locks && !self.selection.locks.are_taken() {
            let text = "with this rule for locks there is nothing to show by lock: use --locks serialize or simt \
                 with --by lock";
            return refuse(text.to_owned());
        }
        if self.schedule.is_some() && self.selection.locks.rules().len() > 1 {
            let text = "a schedule is of one rule for locks: name one with --locks, or leave --schedule out";
            return refuse(text.to_owned());
        }
        let lost = match self.by {
            Some(By::Lost(by)) => Some(by),
            Some(By::Lock | By::Region) => None,
            None => self.annotate.is_some().then_some(lost::By::Line),
        };
        let check = measures.has("check");
        if !self.buffer.is_empty() {
            measures.take_back("spaces");
        }
        let mut measures = measures.measures();
        measures.extend(lost.map(|_| Causes::measure()));
        measures.extend(locks.then(Contention::measure));
        let mut models = models::all_of(&self.heuristic);
        if models.is_empty() && !self.predict.is_empty() {
            models = vec![Spec::parse(verdict::COLLECTING).expect("a model's name")];
        }
        let tables = ![&self.csv, &self.schedule, &self.lanes_out].into_iter().any(is_stdout);
        let printed = if self.json { Some(Form::Json) } else { tables.then_some(Form::Tables) };
        Ok(Request {
            trace: &self.trace,
            subject: Subject::of(self.machine, models),
            predict: &self.predict,
            reorder: self.reorder.meant(),
            selection: &self.selection,
            measures,
            check,
            rows: Wanted {
                lost,
                locks,
                memory: self.memory_by.map(|by| by.0),
                regions: self.by == Some(By::Region),
                annotate: self.annotate.as_deref(),
                syntax: self.syntax.map(Into::into),
                top: self.top,
            },
            output: Shown { printed, csv: self.csv.as_deref() },
            schedule: self.schedule.as_deref(),
        })
    }
}

/// The results of a replay.
struct Found {
    outcomes: Vec<Outcome>,
    range: Option<Range>,
    verdict: Option<Verdict>,
    beside: Beside,
}

/// What is shown beside the figures of lanes that are not grouped as usual.
#[derive(Default)]
struct Beside {
    /// What another grouping than the usual one gains and costs.
    grouping: Option<BesideUsual>,
    /// What it is to regroup lanes, where they are.
    reorder: Option<Compared>,
}

/// The results under one rule for locks.
struct Replayed {
    rule: Locks,
    /// What the view kept of the trace.
    taken: String,
    /// What the view could choose from.
    shares: Vec<Share>,
    setting: Setting,
    outcomes: Vec<Outcome>,
    /// What the models of the machine say, if there is one.
    range: Option<Range>,
    /// What is to be said about it.
    verdict: Option<Verdict>,
    beside: Beside,
    /// By outcome.
    rows: Vec<Rows>,
}

fn run_here(args: &Args) -> anyhow::Result<ExitCode> {
    let lanes_out = ("--lanes-out -", is_stdout(&args.lanes_out));
    let files = [("--csv -", is_stdout(&args.csv)), ("--schedule -", is_stdout(&args.schedule)), lanes_out];
    output::only_one(&[("--json", args.json), files[0], files[1], files[2]])?;
    if !args.others.is_empty() {
        let traces: Vec<&PathBuf> = std::iter::once(&args.trace).chain(&args.others).collect();
        let subject = Subject::of(args.machine, models::all_of(&args.heuristic));
        args.selection.one_way("for several traces")?;
        spread::run(&traces, &args.selection, &subject, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let trace = selection::open(&args.trace)?;
    let mut request = args.meant(&trace)?;
    if request.check && !dump::decoders_agree(&trace)? {
        return Ok(ExitCode::from(exit::DIFFERS));
    }
    let mut source = Source::new(&trace);
    if !args.buffer.is_empty() {
        request.measures.push(Spaces::measure(measures::buffers(&args.buffer, &source)?));
    }
    if args.loops {
        let shown = (args.json, args.top);
        request.selection.one_way("with --loops")?;
        return list_loops(&request, &trace, shown, &mut source);
    }
    if args.dependences {
        args.alone("--dependences")?;
        let view = request.selection.view(&trace)?;
        let taken = view.summary().to_string();
        let lanes = request.selection.view_options(&trace, request.selection.locks.rules()[0])?.lanes;
        let found = Dependences::of(&view, &lanes, &mut source)?;
        source.notes().iter().for_each(|note| say!("lockstep: {note}"));
        if args.json {
            let setting = request.selection.setting(request.trace, &trace, &view);
            let json = dependences::to_json(&found, &setting, &taken);
            print(&format!("{json:#}\n"), WithColours::No)?;
        } else {
            say!("{taken}");
            show(&dependences::table(&found, args.top), WithColours::No)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.verdict {
        args.alone("--verdict")?;
        let view = request.selection.view(&trace)?;
        let question = request.selection.question(&trace, request.subject)?;
        let page = as_lanes::of(&question, (&trace, &view), None, &mut source)?;
        source.notes().iter().for_each(|note| say!("lockstep: {note}"));
        if args.json {
            print(&format!("{:#}\n", page.json()), WithColours::No)?;
        } else {
            say!("{}", view.summary());
            show(&shown::as_lanes::text(&page), WithColours::No)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if request.selection.is_sweep() {
        if request.reorder.is_some() {
            args.selection.one_way("with --reorder")?;
        }
        args.alone("several widths or groupings")?;
        sweep(&request, &trace, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lanes_out = args.lanes_out.as_deref().map(LanesOut::create).transpose()?;
    let mut all = Vec::new();
    for rule in request.selection.locks.rules() {
        let view = request.selection.view_with(&trace, *rule)?;
        let taken = view.summary().to_string();
        if request.output.printed != Some(Form::Json) {
            say!("{taken}");
            spin::advice(&trace, view.summary()).into_iter().for_each(|advice| say!("{advice}"));
        }
        let Found { mut outcomes, range, verdict, beside } = request.replay((&trace, &view), *rule, &mut source)?;
        if let (Some(out), Some(outcome)) = (&mut lanes_out, outcomes.first()) {
            out.add(&rule.to_string(), request.reorder.is_none().then(|| view.lanes()), outcome)?;
        }
        locks::locate(&mut outcomes, &view, &mut source);
        outcomes.iter_mut().for_each(|o| o.locks = Some(rule.to_string()));
        let rows = outcomes.iter().map(|o| request.rows.of(o, (&trace, &view), &mut source)).collect();
        let shares = view.summary().shares.clone();
        let mut setting = request.selection.setting(request.trace, &trace, &view);
        if let Some(reorder) = &request.reorder {
            setting.group = reorder.group();
        }
        all.push(Replayed { rule: *rule, taken, shares, setting, outcomes, range, verdict, beside, rows });
    }
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    lanes_out.map(LanesOut::finish).transpose()?;
    request.show(&all)?;
    // A machine has a figure even so: no heuristic was asked for.
    let none_ran = all.iter().all(|r| r.range.is_none() && r.outcomes.iter().all(|o| o.deadlock().is_some()));
    Ok(if none_ran { ExitCode::from(exit::DEADLOCK) } else { ExitCode::SUCCESS })
}

/// `--loops`: the loops, so many of them in JSON or a table.
fn list_loops(
    request: &Request,
    trace: &Trace,
    (as_json, top): (bool, Option<usize>),
    source: &mut Source,
) -> anyhow::Result<ExitCode> {
    let found = loops::of(&request.selection.question(trace, request.subject.clone())?, trace, source)?;
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    if as_json {
        print(&format!("{:#}\n", shown::loops::to_json(&found, top)), WithColours::No)?;
    } else {
        say!("{}", found.taken);
        show(&shown::loops::table(&found, top), WithColours::No)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Several widths or groupings: a row for each, from one reading of the trace.
fn sweep(request: &Request, trace: &Trace, as_json: bool) -> anyhow::Result<()> {
    let Request { trace: path, selection, subject, measures, .. } = request;
    let [rule] = selection.locks.rules() else {
        let text = "several widths or groupings can be replayed with one rule for locks only; name one with --locks";
        return Err(replay::Error::Request(text.to_owned()).into());
    };
    let view = selection.view_with(trace, *rule)?;
    if !as_json {
        say!("{}", view.summary());
    }
    let measures = grouping::with_traffic(measures, trace);
    let options = subject.options(ReplayOptions { measures, ..selection.options_with(*rule) }, &view);
    let prepared = Prepared::new(&view, needs_control_flow(&subject.models, &options))?;
    let widths = selection.warp_size.as_ref().map_or(&[][..], Widths::all);
    let tried = grouping::replay(&prepared, &subject.models, (widths, selection.group.all()), &options)?;
    if let Some(path_of_rows) = request.output.csv {
        let setting = selection.setting(path, trace, &view);
        let mut out = Output::create(path_of_rows)?;
        let rows = shown::grouping::rows(&tried, &setting);
        replay::write_csv_of(rows.iter().map(|(setting, outcome)| (setting, *outcome)), &mut out, path_of_rows)?;
        out.finish()?;
    }
    match (as_json, request.output.csv) {
        (true, _) => print(&format!("{:#}\n", shown::grouping::json(&tried)), WithColours::No)?,
        (false, Some(path)) if path.as_os_str() == "-" => {}
        (false, _) => show(&shown::grouping::table(&tried), WithColours::No)?,
    }
    Ok(())
}

fn needs_control_flow(models: &[Spec], options: &ReplayOptions) -> bool {
    models.iter().any(|spec| spec.entry().needs_control_flow)
        || options.measures.iter().any(Measure::needs_control_flow)
}

impl Request<'_> {
    fn replay(&self, (trace, view): (&Trace, &View), rule: Locks, source: &mut Source) -> anyhow::Result<Found> {
        // A verdict tries other lanes and groupings: those would not be regrouped.
        let judges = self.subject.is_machine() && self.output.printed.is_some() && self.reorder.is_none();
        let measures = if judges { verdict::measures(&self.measures, view, rule) } else { self.measures.clone() };
        let options = ReplayOptions { measures, ..self.selection.options_with(rule) };
        let (options, models) = (self.subject.options(options, view), &self.subject.models);
        let bar = progress();
        let done = |n: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(n as u64);
        };
        let predicted = match self.predict {
            [] => None,
            typed => Some((predict::obedient(models)?, predict::predictions(typed, trace, view.segments(), source)?)),
        };
        let whole = Prepared::new(view, needs_control_flow(models, &options) || self.reorder.is_some())?;
        let reordered = self.reorder.as_ref().map(|reorder| reorder.lanes(&whole, trace, source)).transpose()?;
        let regrouped = reordered.as_ref().map(|lanes| lanes.prepared(&whole)).transpose()?;
        let (mut prepared, whole) = match regrouped {
            Some(regrouped) => (regrouped, Some(whole)),
            None => (whole, None),
        };
        let mut out = self.schedule.map(Output::create).transpose()?;
        let mut replay = |prepared: &Prepared, models: &[Spec]| match &mut out {
            Some(out) => {
                let path = out.path();
                prepared.replay(models, &options, Some(ScheduleFile { out, path: &path }), &done)
            }
            None => prepared.replay(models, &options, None, &done),
        };
        let mut outcomes = replay(&prepared, models)?;
        if let Some((obedient, predictions)) = predicted {
            prepared.predict(&predictions);
            predict::check(&prepared.program().predictions, source)?;
            let mut predicted = replay(&prepared, &obedient)?;
            predicted.iter_mut().for_each(|outcome| outcome.heuristic.push_str(&predict::label(self.predict)));
            outcomes.extend(predicted);
        }
        if let Some(out) = out {
            out.finish()?;
        }
        let range = self.subject.range((&prepared, view, source), outcomes.first(), &options)?;
        let verdict = match (&range, outcomes.first()) {
            (Some(range), Some(first)) if judges => {
                let question = self.selection.question_with(trace, rule, self.subject.clone())?;
                let judge = Judge { trace, view, question: &question, model: &models[0], options: &options };
                Some(judge.judge(&prepared, (first, range.figure()), source)?)
            }
            _ => None,
        };
        forget(&mut outcomes, &self.measures);
        let mut beside = Beside::default();
        if let (Some(reorder), Some(lanes), Some(whole)) = (&self.reorder, &reordered, &whole) {
            beside.reorder = Some(reorder.compared((whole, lanes, &prepared), trace, models, &options)?);
        } else if self.output.printed == Some(Form::Tables) {
            beside.grouping = beside_usual(&prepared, (trace, view), models, &options)?;
        }
        bar.finish_and_clear();
        Ok(Found { outcomes, range, verdict, beside })
    }

    fn show(&self, all: &[Replayed]) -> anyhow::Result<()> {
        if let Some(path) = self.output.csv {
            let outcomes: Vec<Outcome> = all.iter().flat_map(|r| r.outcomes.iter().cloned()).collect();
            output::write_rows(path, &all[0].setting, &outcomes)?;
        }
        match self.output.printed {
            Some(Form::Json) => {
                print(&format!("{}\n", serde_json::to_string_pretty(&self.json(all))?), WithColours::No)?;
            }
            Some(Form::Tables) => show(&self.tables(all)?, WithColours::Yes)?,
            None => {}
        }
        Ok(())
    }

    fn json(&self, all: &[Replayed]) -> serde_json::Value {
        let wanted = &self.rows;
        let mut results = Vec::new();
        for replayed in all {
            let mut of_rule = json::of(&replayed.setting, &replayed.outcomes, &replayed.taken);
            for (i, (outcome, rows)) in replayed.outcomes.iter().zip(&replayed.rows).enumerate() {
                let result = &mut of_rule["results"][i];
                if let (Some(by), Some(rows), None) = (wanted.lost, &rows.lost, wanted.annotate) {
                    result["by"] = json::lost(by, rows, outcome.lost_slots(), outcome.warp_size, wanted.top);
                }
                if let Some(rows) = &rows.locks {
                    result["by"] = json::locks(rows, wanted.top);
                }
                if let (Some(by), Some(rows)) = (wanted.memory, &rows.memory) {
                    result["memory_by"] = json::memory(by, rows, wanted.top);
                }
                if all.len() > 1 {
                    result["view"] = replayed.taken.as_str().into();
                }
                results.push(result.take());
            }
        }
        let mut whole = json::of(&all[0].setting, &[], &all[0].taken);
        if wanted.regions {
            whole["regions"] = regions::to_json(&all[0].shares, wanted.top);
        }
        if let Some(range) = &all[0].range {
            whole["machine"] = range.json();
        }
        if let Some(reorder) = &all[0].beside.reorder {
            whole["reorder"] = shown::reorder::to_json(reorder);
        }
        if let Some(verdict) = &all[0].verdict {
            whole["verdict"] = verdict.json();
        }
        whole["results"] = results.into();
        whole
    }

    fn tables(&self, all: &[Replayed]) -> replay::Result<String> {
        let wanted = &self.rows;
        let mut text = String::new();
        for replayed in all {
            let outcomes = &replayed.outcomes;
            if all.len() > 1 {
                let between = if text.is_empty() { "" } else { "\n" };
                text += &format!("{between}locks: {}\n", replayed.rule);
            }
            if let Some(verdict) = &replayed.verdict {
                text += &format!("{}\n\n", verdict.lines().join("\n"));
            }
            text += &format!("{}{}\n", table::of(outcomes), table::legend(outcomes));
            if let Some(range) = &replayed.range {
                text += &format!("\n{}", range.line());
            }
            text += &table::measured(outcomes);
            text += &replayed.beside.grouping.as_ref().map_or_else(String::new, shown::grouping::beside);
            text += &replayed.beside.reorder.as_ref().map_or_else(String::new, shown::reorder::text);
            if wanted.regions {
                text += &format!("\n{}", regions::table(&replayed.shares, wanted.top));
            }
            for (outcome, rows) in outcomes.iter().zip(&replayed.rows) {
                text += &wanted.tables(outcome, rows)?;
            }
        }
        Ok(text)
    }
}
