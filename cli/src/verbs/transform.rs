//! `lockstep transform`: passes over a file of LLVM IR.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;
use transform::llvm::Module;
use transform::{
    Error, Format, InnerLoop, LoopTurns, Paid, Pipeline, PlaceRan, PredictedPlace, REGISTRY, Reason, Remark, Site,
    Trips,
};

use crate::output::{Output, WithColours, print, say};

/// Apply transformations to LLVM IR (bitcode or text)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// List the transformations and their parameters; with --pass, write that list with all parameters
    #[arg(long, conflicts_with_all = ["input", "output", "report"])]
    list: bool,

    /// The IR to read
    #[arg(required_unless_present = "list", value_name = "INPUT")]
    input: Option<PathBuf>,

    /// Transformations, in this order, with commas; a colon stands before parameters: fcs:threshold=8,layout
    #[arg(long, value_name = "LIST", required_unless_present = "list")]
    pass: Option<String>,

    /// The IR to write (- for standard output): text when its name ends in .ll or is -, else bitcode
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print what was considered and what was decided
    #[arg(long)]
    report: bool,

    #[command(flatten)]
    deciding: Deciding,
}

/// How passes decide, and how that is reported.
#[derive(clap::Args)]
pub(crate) struct Deciding {
    /// The threshold for each transformation that takes one and is given none: short for PASS:threshold=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threshold: Option<i64>,

    /// The loops of a trace, as `replay --loops --json` prints them; linearize:merge-loops=yes then merges loops only
    /// if their trip counts say that it pays, and speculative:detect=yes has lanes wait where their turns differ
    #[arg(long, value_name = "FILE")]
    trips: Option<PathBuf>,

    /// Have lanes wait for each other at a place, in code for a GPU: FILE:LINE, or FILE:LINE,threshold=N where N lanes
    /// are enough. For the pass speculative; may be given several times
    #[arg(long, value_name = "PLACE")]
    predict: Vec<PredictedPlace>,

    /// How --report writes: one line each for people, one JSON object per line, or the YAML of LLVM's optimisation
    /// remarks
    #[arg(long, value_enum, default_value_t = Form::Text, value_name = "FORM")]
    report_format: Form,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    Text,
    Json,
    Yaml,
}

impl Deciding {
    /// The passes that were asked for.
    pub(crate) fn pipeline(&self, passes: &str) -> anyhow::Result<Pipeline> {
        let mut pipeline = Pipeline::parse(passes)?;
        if let Some(threshold) = self.threshold {
            pipeline = pipeline.with_default("threshold", &threshold.to_string())?;
        }
        if let Some(path) = &self.trips {
            pipeline = pipeline.with_trips(read_trips(path)?);
        }
        Ok(pipeline.with_places(self.predict.clone()))
    }

    /// Remarks in the form that was asked for.
    pub(crate) fn written(&self, remarks: &[Remark]) -> String {
        let format = match self.report_format {
            Form::Text => Format::Text,
            Form::Json => Format::Json,
            Form::Yaml => Format::Yaml,
        };
        format.write(remarks)
    }
}

/// The loops of what `replay --loops --json` printed.
fn read_trips(path: &Path) -> anyhow::Result<Trips> {
    let what = || format!("reading the loops of a trace from {}", path.display());
    let text = std::fs::read_to_string(path).with_context(what)?;
    let rows: Vec<Value> = serde_json::from_str(&text)
        .with_context(|| format!("{}: the file must be what `replay --loops --json` prints", what()))?;
    let inner = |row: &Value| {
        Some(InnerLoop {
            site: site(row, "loop")?,
            depth: row["depth"].as_u64()? as u32,
            gain: row["merging"]["gain"].as_i64()?,
            turns: row["merging"]["trips_merged"].as_i64()?,
        })
    };
    let turns = |row: &Value| {
        Some(LoopTurns {
            site: site(row, "loop")?,
            entries: row["entries"].as_u64()?,
            turns: row["iterations"].as_u64()?,
        })
    };
    let trips = Trips::of(rows.iter().filter_map(inner).collect(), rows.iter().filter_map(turns).collect());
    // A row of an older version has no word of it.
    if rows.iter().any(|row| row.get("spread").is_none()) {
        return Ok(trips);
    }
    let mut places = Vec::new();
    for row in &rows {
        let arms = row["arms"].as_array().into_iter().flatten();
        for (of, is_arm) in std::iter::once((row, false)).chain(arms.map(|arm| (arm, true))) {
            if !of["spread"].is_null() {
                let broken = || anyhow::anyhow!("{}: its spread is broken: {of}; print it again", what());
                places.extend(place_ran(row, of, is_arm).ok_or_else(broken)?);
            }
        }
    }
    Ok(trips.with_places(places))
}

/// Where a loop or an arm lies. A row of an older version has a line alone, by the file's name.
fn site(of: &Value, name: &str) -> Option<Site> {
    let line = |text: &Value| {
        let (file, line) = text.as_str()?.rsplit_once(':')?;
        Some((file.to_owned(), line.parse().ok()?))
    };
    let lines = match of["lines"].as_array() {
        Some(lines) => lines.iter().map(line).collect::<Option<_>>()?,
        None => vec![line(&of[name])?],
    };
    let symbol = of["symbol"].as_str().map(str::to_owned);
    Some(Site { function: of["function"].as_str()?.to_owned(), symbol, lines })
}

/// A loop, or an arm of a branch in it, as `replay --loops --json` prints it. The inner value is none where the line
/// is unknown, the outer one where it is broken.
fn place_ran(row: &Value, of: &Value, is_arm: bool) -> Option<Option<PlaceRan>> {
    let name = if is_arm { "arm" } else { "loop" };
    if !of[name].as_str()?.contains(':') {
        return Some(None);
    }
    let body = match is_arm {
        true => of["body"].as_f64()?,
        false => row["gpu_instructions"].as_f64()? / row["iterations"].as_f64()?.max(1.0),
    };
    let paid = |of: &Value| Some(Paid { bodies: of["bodies"].as_f64()?, rest: of["rest"].as_f64()? });
    let wait = |of: &Value| Some((of["enough"].as_u64().map(|lanes| lanes as usize), paid(of)?));
    Some(Some(PlaceRan {
        is_arm,
        site: site(of, name)?,
        depth: row["depth"].as_u64()? as u32,
        body,
        at: of[if is_arm { "at" } else { "header" }].as_str()?.to_owned(),
        apart: paid(&of["spread"]["apart"])?,
        waits: of["spread"]["waits"].as_array()?.iter().map(wait).collect::<Option<_>>()?,
    }))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        return list(args);
    }
    let (Some(input), Some(pass)) = (&args.input, &args.pass) else { unreachable!("clap asks for both") };
    let pipeline = args.deciding.pipeline(pass)?;
    let read = || {
        let module = Module::read(input)?;
        let bad = |text| transform::Error::BadIr { name: input.display().to_string(), text };
        module.verify().map_err(bad)?;
        Ok(module)
    };
    let (module, remarks) = pipeline.apply(read)?;
    warn_of_refusals(&remarks);
    if let Some(path) = &args.output {
        let is_text = path.as_os_str() == "-" || path.extension().is_some_and(|e| e == "ll");
        let bytes = if is_text { module.to_text().into_bytes() } else { module.to_bitcode() };
        let mut out = Output::create(path)?;
        let path = out.path();
        out.write_all(&bytes).map_err(|source| Error::Write { path, source })?;
        out.finish()?;
    }
    if args.report {
        print(&args.deciding.written(&remarks), WithColours::No)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports on standard error which code was left unchanged because a pass found its own work wrong.
pub(crate) fn warn_of_refusals(remarks: &[Remark]) {
    for remark in remarks {
        let (pass, source) = (remark.pass, &remark.function);
        if let Reason::Refused(why) = &remark.reason {
            say!(
                "lockstep: warning: transforming {source}: the pass {pass} found its own work wrong ({why}), so this \
                 file's code is emitted without transformations; this is a bug in lockstep, and without {pass} the \
                 program is correct"
            );
        }
    }
}

fn list(args: &Args) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    match &args.pass {
        Some(pass) => writeln!(text, "{}", args.deciding.pipeline(pass)?)?,
        None => {
            for pass in REGISTRY {
                writeln!(text, "{:<14} {} ({})", pass.name, pass.summary, pass.source)?;
                for parameter in pass.parameters {
                    writeln!(text, "{:<14}   {}", "", parameter.line())?;
                }
            }
        }
    }
    print(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}
