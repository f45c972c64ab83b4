//! `lockstep plot`: a chart from rows.

use std::path::PathBuf;
use std::process::ExitCode;

use report::{CHARTS, Columns, Condition, PlotOptions};

/// Draw a chart from rows that `replay --csv` wrote
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The rows (- for standard input)
    #[arg(required = true)]
    rows: Vec<PathBuf>,

    /// The chart's file; its extension says the format (svg, pdf, png)
    #[arg(long, short = 'o', value_name = "FILE")]
    output: PathBuf,

    /// The chart's kind. Default: the first
    #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(CHARTS.iter().map(|c| c.name())))]
    kind: Option<String>,

    /// Draw only the rows whose COLUMN has this value. If repeated, a row may have any value given for a column, and
    /// must match in every column
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    conditions: Vec<Condition>,

    /// How many columns the paper's page has (1 or 2); the chart fits into one of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    columns: u8,

    /// Show shares of all thread instructions instead of counts (for the kind divergent)
    #[arg(long)]
    shares: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    for path in &args.rows {
        rows.extend(report::read_rows_where(path, &args.conditions)?);
    }
    let columns = Columns::from_count(args.columns).unwrap_or_default();
    let options = PlotOptions { columns, shares: args.shares };
    report::plot(&rows, args.kind.as_deref(), &options, &args.output)?;
    Ok(ExitCode::SUCCESS)
}
