//! `lockstep heuristics`: what there is to choose from.

use std::fmt::Write;
use std::process::ExitCode;

use heuristics::REGISTRY;

use crate::output::{WithColours, print};

/// List the heuristics, their rules and parameters
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for entry in REGISTRY {
        writeln!(text, "{:<16} {} ({})", entry.name, entry.rule, entry.source)?;
        for p in entry.parameters {
            writeln!(text, "{:<16}   {}", "", p.line())?;
        }
    }
    print(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}
