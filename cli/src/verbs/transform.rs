//! `lockstep transform`: passes over a file of LLVM IR.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use transform::llvm::Module;
use transform::{Error, Options, Pipeline, REGISTRY, Reason, Remark};

use crate::output::{Output, WithColours, print, say};

/// Apply transformations to LLVM IR (bitcode or text)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// List the transformations
    #[arg(long, exclusive = true)]
    list: bool,

    /// The IR to read
    #[arg(required_unless_present = "list", value_name = "INPUT")]
    input: Option<PathBuf>,

    /// Transformations, in this order, with commas
    #[arg(long, value_name = "LIST", required_unless_present = "list")]
    pass: Option<String>,

    /// The IR to write (- for standard output): text when its name ends in .ll or is -, else bitcode
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print what was looked at and what was decided
    #[arg(long)]
    report: bool,

    /// The least profit, in instructions, for which code is changed
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = Options::default().threshold, allow_negative_numbers = true)]
    threshold: i64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (Some(input), Some(pass)) = (&args.input, &args.pass) else { return list() };
    let pipeline = Pipeline::parse(pass)?;
    let (module, remarks) = pipeline.apply(|| Module::read(input), &Options { threshold: args.threshold })?;
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
        let text: String = remarks.iter().map(|remark| format!("{remark}\n")).collect();
        print(&text, WithColours::No)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says on standard error whose code was left as it was because a pass found its own work wrong.
pub(crate) fn warn_of_refusals(remarks: &[Remark]) {
    for remark in remarks {
        let (pass, source) = (remark.pass, &remark.function);
        if let Reason::Refused(why) = &remark.reason {
            say!(
                "lockstep: warning: transforming {source}: the pass {pass} found its own work wrong ({why}), so this file's code is emitted without \
                 transformations; this is a bug in lockstep, and the program is right without {pass}"
            );
        }
    }
}

fn list() -> anyhow::Result<ExitCode> {
    let line = |pass: &transform::Pass| format!("{:<14} {} ({})\n", pass.name, pass.summary, pass.source);
    print(&REGISTRY.iter().map(line).collect::<String>(), WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}
