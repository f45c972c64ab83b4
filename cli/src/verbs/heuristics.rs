//! `lockstep heuristics`: the list of heuristics.

use std::fmt::Write;
use std::process::ExitCode;

use heuristics::all;
use serde_json::{Value, json};

use crate::output::{WithColours, print};
use crate::width::{self, Wide};

/// List the heuristics, their rules and parameters
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    wide: Wide,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.wide.apply();
    let text = if args.json { format!("{:#}\n", listed()) } else { text()? };
    print(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}

fn text() -> anyhow::Result<String> {
    let width = width::of_results();
    let mut text = String::new();
    for entry in all() {
        let rule = format!("{:<16} {} ({})", entry.name, entry.rule, entry.source);
        writeln!(text, "{}", width.hanging(&rule, 17))?;
        for p in entry.parameters {
            writeln!(text, "{}", width.hanging(&format!("{:<16}   {}", "", p.line()), 21))?;
        }
    }
    Ok(text)
}

/// The heuristics as `lockstep heuristics --json` lists them.
#[must_use]
pub fn listed() -> Value {
    let listed = all().iter().map(|entry| {
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
    json!({ "heuristics": listed.collect::<Vec<_>>() })
}
