//! `lockstep heuristics`: what there is to choose from.

use std::io::{Write, stdout};
use std::process::ExitCode;

use heuristics::REGISTRY;

/// List the heuristics, their rules and parameters
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<ExitCode> {
    let mut out = stdout().lock();
    for entry in REGISTRY {
        writeln!(out, "{:<16} {} ({})", entry.name, entry.rule, entry.source)?;
        for p in entry.parameters {
            writeln!(out, "{:<16}   {}={}: {} ({})", "", p.name, p.default_text(), p.help, p.values)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
