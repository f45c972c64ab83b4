//! `lockstep dump`: what is in a trace, for people.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attribution::Source;
use attribution::table::{self, Align, grouped};
use heuristics::{BarrierAction, PlaceId, Placement, Segment, barrier_faults, barrier_operations};
use machine::{Disassembler, Syntax};
use replay::Prepared;
use replay::view::{Region, View, ViewOptions};
use trace_format::{Kind, Pc, Trace};

use crate::exit;
use crate::output::{Output, say};
use crate::shown::events::{self, Wanted};
use crate::typed::predict::{self, Predicted};
use crate::typed::selection;
use crate::typed::syntax::SyntaxName;

/// Show what is in a trace
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("graph").multiple(true))]
pub(crate) struct Args {
    /// The trace (- for standard input)
    trace: PathBuf,

    /// Write every instruction of every thread as text: pc, stack pointer, flags, memory addresses
    #[arg(long)]
    text: bool,

    /// Write every block of code that ran: address, bytes, instruction, function
    #[arg(long, conflicts_with = "text")]
    code: bool,

    /// How --code writes instructions
    #[arg(long, value_name = "SYNTAX", value_enum, default_value_t, requires = "code")]
    syntax: SyntaxName,

    /// Write every event of every thread, one per line: the thread, how many instructions it has run before, the event,
    /// its fields. With NAMES, write only these events (Chunk) or functions (TaskBody)
    #[arg(
        long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',',
        conflicts_with_all = ["text", "code"]
    )]
    events: Option<Vec<String>>,

    /// With --events, write one JSON object per line
    #[arg(long, requires = "events")]
    json: bool,

    /// Decode every block with a second decoder, and report where the two decoders and the trace differ
    #[arg(long, conflicts_with_all = ["text", "code", "events"])]
    verify: bool,

    /// Write where the lanes of each branch wait for each other under a placement: binary, structured, nak
    #[arg(long, value_name = "PLACEMENT", value_parser = placement, group = "graph", conflicts_with_all = ["text", "code", "events", "verify"])]
    joins: Option<Placement>,

    /// Write the barrier operations that a compiler for GPUs would insert for this prediction (as in replay --predict),
    /// and check them; with --joins, also the barriers of branches under that placement (default: binary)
    #[arg(long, value_name = "PLACE", group = "graph", conflicts_with_all = ["text", "code", "events", "verify"])]
    barriers: Vec<Predicted>,

    /// With --joins or --barriers, the part of the run whose control flow to use, as for replay
    #[arg(long, value_name = "REGION", default_value = "auto", requires = "graph")]
    region: Region,

    /// Write to FILE instead of standard output
    #[arg(long, short = 'o', value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = Wanted::new(args.events.as_deref().unwrap_or_default()).map_err(replay::Error::Request)?;
    let trace = selection::open(&args.trace)?;
    let mut out = Output::create(&args.output)?;
    let path = out.path();
    if args.events.is_some() {
        events::write(&trace, &wanted, args.json, &mut out).map_err(|error| named(error, &path))?;
    } else if args.text {
        trace_format::write_text(&trace, &mut out, &path)?;
    } else if args.code {
        code(&trace, args.syntax.into(), &mut out).map_err(|source| replay::Error::Write { path, source })?;
    } else if !args.barriers.is_empty() {
        let view = View::new(&trace, &ViewOptions { region: args.region.clone(), ..ViewOptions::default() })?;
        say!("{}", view.summary());
        let (table, faults) = barriers(args, &trace, &view)?;
        out.write_all(table.as_bytes()).map_err(|source| replay::Error::Write { path, source })?;
        out.finish()?;
        return Ok(if faults { ExitCode::from(exit::DIFFERS) } else { ExitCode::SUCCESS });
    } else if let Some(placement) = args.joins {
        let view = View::new(&trace, &ViewOptions { region: args.region.clone(), ..ViewOptions::default() })?;
        say!("{}", view.summary());
        joins(&trace, &view, placement, &mut out, &path)?;
    } else if args.verify {
        let report = decoding::check(&trace);
        verified(&report, &mut out).map_err(|source| replay::Error::Write { path, source })?;
        out.finish()?;
        let status = if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::DIFFERS) };
        return Ok(status);
    } else {
        summary(&trace, &mut out).map_err(|source| replay::Error::Write { path, source })?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// An error of writing says what was written.
fn named(error: anyhow::Error, path: &Path) -> anyhow::Error {
    match error.downcast::<std::io::Error>() {
        Ok(source) => replay::Error::Write { path: path.to_owned(), source }.into(),
        Err(other) => other,
    }
}

fn placement(text: &str) -> Result<Placement, String> {
    let names = Placement::ALL.map(Placement::name).join(", ");
    let found = Placement::ALL.into_iter().find(|placement| placement.name() == text);
    found.ok_or_else(|| format!("there is no such placement: give one of {names}"))
}

/// The barrier operations of predictions as a table, with the faults in them; and whether there are any faults.
fn barriers(args: &Args, trace: &Trace, view: &View) -> anyhow::Result<(String, bool)> {
    let mut source = Source::new(trace);
    let predictions = predict::predictions(&args.barriers, trace, view.segments(), &mut source)?;
    let mut prepared = Prepared::new(view, true)?;
    prepared.predict(&predictions);
    let (flow, predictions) = (&prepared.program().control_flow, &prepared.program().predictions);
    predict::check(predictions, &source)?;
    let operations = barrier_operations(predictions, flow, args.joins.unwrap_or_default());
    let mut rows = vec![["barrier", "operation", "address", "line", "in"].map(str::to_owned).to_vec()];
    for operation in &operations {
        let name = match operation.action {
            BarrierAction::WaitFor(lanes) => format!("{} ({lanes} lanes)", operation.action.name()),
            action => action.name().to_owned(),
        };
        let line = source.line(operation.at).map_or_else(String::new, |line| line.short());
        let number = format!("b{}", operation.barrier);
        rows.push(vec![number, name, operation.at.to_string(), line, source.place(operation.at)]);
    }
    let mut text = table::aligned(&rows, |_| Align::Left);
    let faults = barrier_faults(&operations, predictions, flow);
    text += match faults.is_empty() {
        true => {
            "every lane joins a barrier before it waits there, and no lane stays joined that can no longer reach \
             it\n"
        }
        false => "the operations are wrong; please report it:\n",
    };
    faults.iter().for_each(|fault| text += &format!("{fault:?}\n"));
    Ok((text, !faults.is_empty()))
}

/// For each conditional branch that a lane ran, a line: its place and source line, and the places where its lanes wait
/// for each other, the innermost first.
fn joins(trace: &Trace, view: &View, placement: Placement, out: &mut impl Write, path: &Path) -> replay::Result<()> {
    let prepared = Prepared::new(view, true)?;
    let program = prepared.program();
    let mut source = Source::new(trace);
    let is_branch = |segment: &&Segment| segment.last().kind == Kind::Branch;
    let branches = program.segments.iter().map(|(_, segment)| segment).filter(is_branch);
    let branches: BTreeMap<Pc, PlaceId> = branches.map(|segment| (segment.last().pc, segment.place)).collect();
    let mut described = |pc: Pc| match source.line(pc) {
        Some(line) => format!("{} ({})", source.place(pc), line.short()),
        None => source.place(pc),
    };
    for (pc, place) in branches.into_iter().filter(|(_, place)| program.control_flow.ways(*place) > 1) {
        let joins = placement.joins(&program.control_flow, place).into_iter();
        let joins = joins.map(|join| join.map_or_else(|| "the function's end".to_owned(), &mut described));
        let joins = joins.collect::<Vec<_>>().join(", ");
        writeln!(out, "{}: {joins}", described(pc))
            .map_err(|source| replay::Error::Write { path: path.to_owned(), source })?;
    }
    Ok(())
}

/// The blocks, as an assembler would list them.
fn code(trace: &Trace, syntax: Syntax, out: &mut impl Write) -> std::io::Result<()> {
    let source = Source::new(trace);
    let mut disassembler = Disassembler::new(syntax);
    for (id, block) in trace.blocks().iter() {
        writeln!(out, "block {}: {}", id.0, source.place(block.start()))?;
        if block.code.is_empty() {
            writeln!(out, "  {}  its code is unknown", block.start())?;
            continue;
        }
        let mut code = &block.code[..];
        for instruction in &block.instructions {
            let (own, rest) = code.split_at(usize::from(instruction.len).min(code.len()));
            code = rest;
            let bytes: Vec<String> = own.iter().map(|byte| format!("{byte:02x}")).collect();
            let text = disassembler.text(instruction.pc.address(), own);
            writeln!(out, "  {}  {:<32} {text}", instruction.pc, bytes.join(" "))?;
        }
    }
    Ok(())
}

/// Whether both decoders say the same of the trace's code, except for explained differences. The others go to standard
/// error.
pub(crate) fn decoders_agree(trace: &Trace) -> anyhow::Result<bool> {
    let report = decoding::check(trace);
    if !report.differences.is_empty() {
        let mut text = Vec::new();
        verified(&report, &mut text)?;
        say!("{}", String::from_utf8_lossy(&text).trim_end());
    }
    Ok(report.differences.is_empty())
}

/// The result of decoding the trace's code twice.
pub(crate) fn verified(report: &decoding::Report, out: &mut impl Write) -> std::io::Result<()> {
    for difference in &report.differences {
        let decoding::Difference { pc, code, mnemonic, aspect } = difference;
        let bytes: Vec<String> = code.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{pc:#x}  {}  {mnemonic}: {}: {}", bytes.join(" "), aspect.what, aspect.how)?;
    }
    let explained: u64 = report.explained.values().sum();
    let without = match report.without_code {
        0 => String::new(),
        n => format!("; the trace has no code of {}", grouped(n)),
    };
    writeln!(
        out,
        "{} instructions decoded twice: {} differences, and {} more that docs/decoding.md explains{without}",
        grouped(report.instructions),
        grouped(report.differences.len() as u64),
        grouped(explained)
    )?;
    writeln!(out, "  {} names of instructions are among them", grouped(report.names.len() as u64))?;
    for ((mnemonic, what), count) in &report.explained {
        writeln!(out, "  {} {mnemonic}: {what}", grouped(*count))?;
    }
    Ok(())
}

fn summary(trace: &Trace, out: &mut impl Write) -> std::io::Result<()> {
    let meta = trace.meta();
    writeln!(out, "command      {}", meta.command.join(" "))?;
    writeln!(out, "recorded by  {}, engine {}, on {} ({})", meta.tool, meta.engine, meta.cpu, meta.architecture)?;
    match trace.finish() {
        Some(finish) => {
            let end = match (finish.exit_status, finish.signal) {
                (Some(status), _) => format!("exit status {status}"),
                (None, Some(signal)) => format!("killed by signal {signal}"),
                (None, None) => "not known".to_owned(),
            };
            writeln!(out, "end          {end}")?;
            if let Some(why) = &finish.stopped_early {
                writeln!(out, "             the recording ended earlier: {why}")?;
            }
        }
        None => writeln!(out, "end          unknown: the recording was cut short")?,
    }
    if let Some(window) = &meta.window {
        writeln!(out, "window       {window}")?;
    }
    let memory = if meta.memory { "recorded" } else { "not recorded" };
    writeln!(out, "addresses    {memory}")?;
    writeln!(out, "blocks       {}", grouped(trace.blocks().len() as u64))?;
    writeln!(out, "instructions {}", grouped(trace.instructions()))?;
    for thread in trace.threads() {
        let (instructions, bytes) = (grouped(thread.instructions), grouped(thread.bytes));
        writeln!(out, "thread {:<5} {instructions} thread instructions, {bytes} bytes", thread.id)?;
    }
    for module in trace.modules() {
        let build_id: String = module.build_id.iter().flatten().map(|b| format!("{b:02x}")).collect();
        writeln!(out, "module       {} {build_id}", module.path)?;
    }
    Ok(())
}
