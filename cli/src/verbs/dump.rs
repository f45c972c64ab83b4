//! `lockstep dump`: what is in a trace, for people.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use trace_format::Trace;

use crate::output::{Output, say};
use crate::table::grouped;

/// Show what is in a trace
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace
    trace: PathBuf,

    /// Write every instruction of every thread as text: pc, stack pointer, flags, memory addresses
    #[arg(long)]
    text: bool,

    /// Write to FILE instead of standard output
    #[arg(long, short = 'o', value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&args.trace)?;
    if let Some(lost) = trace.recovered() {
        say!("lockstep: {}: {lost}", args.trace.display());
    }
    let mut out = Output::create(&args.output)?;
    let path = out.path();
    if args.text {
        trace_format::write_text(&trace, &mut out, &path)?;
    } else {
        summary(&trace, &mut out).map_err(|source| replay::Error::Write { path, source })?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn summary(trace: &Trace, out: &mut impl Write) -> std::io::Result<()> {
    let meta = trace.meta();
    writeln!(out, "command      {}", meta.command.join(" "))?;
    writeln!(out, "recorded by  {}, engine {}, on {}", meta.tool, meta.engine, meta.cpu)?;
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
        None => writeln!(out, "end          not known: the recording was broken off")?,
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
