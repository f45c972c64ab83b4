//! `lockstep heuristics`: what there is to choose from.

use std::fmt::Write;
use std::process::ExitCode;

use heuristics::REGISTRY;
use serde_json::{Value, json};

use crate::output::{WithColours, print};

/// List the heuristics, their rules and parameters
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print all of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let text = if args.json { format!("{:#}\n", listed()) } else { text()? };
    print(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}

fn text() -> anyhow::Result<String> {
    let mut text = String::new();
    for entry in REGISTRY {
        writeln!(text, "{:<16} {} ({})", entry.name, entry.rule, entry.source)?;
        for p in entry.parameters {
            writeln!(text, "{:<16}   {}", "", p.line())?;
        }
    }
    Ok(text)
}

fn listed() -> Value {
    let all = REGISTRY.iter().map(|entry| {
        let parameters = entry.parameters.iter().map(
            |p| json!({ "name": p.name, "default": p.default_text(), "values": p.values.to_string(), "help": p.help }),
        );
        json!({
            "name": entry.name,
            "family": entry.family.name(),
            "rule": entry.rule,
            "source": entry.source,
            "parameters": parameters.collect::<Vec<_>>(),
        })
    });
    json!({ "heuristics": all.collect::<Vec<_>>() })
}
