//! `replay --by region`: what `--region auto` chose from, as a table for people, and as JSON.

use attribution::table::{self, Align, Extent, grouped, percent};
use replay::view::Share;
use serde_json::{Value, json};

use crate::width;

fn total(shares: &[Share]) -> f64 {
    shares.iter().map(|share| share.instructions).sum::<u64>().max(1) as f64
}

/// The rows as JSON, the first `top` of them (all by default).
pub(crate) fn to_json(shares: &[Share], top: Option<usize>) -> Value {
    let total = total(shares);
    let row = |share: &Share| {
        json!({
            "region": share.region,
            "threads": share.threads,
            "thread_instructions": share.instructions,
            "share": share.instructions as f64 / total,
            "taken": share.is_taken,
        })
    };
    shares.iter().take(top.unwrap_or(usize::MAX)).map(row).collect()
}

/// The first `top` rows (20 by default) as a table.
pub(crate) fn table(shares: &[Share], top: Option<usize>) -> String {
    if shares.is_empty() {
        return "regions: the region was named, so there was nothing to choose from\n".to_owned();
    }
    let total = total(shares);
    let header = ["threads", "thread instructions", "share", "taken", "region"];
    let cells = |share: &Share| {
        vec![
            grouped(share.threads as u64),
            grouped(share.instructions),
            percent(share.instructions as f64 / total),
            if share.is_taken { "yes" } else { "" }.to_owned(),
            share.region.clone(),
        ]
    };
    let align = |column| if column < 3 { Align::Right } else { Align::Left };
    let rows = table::first(&header, shares, Extent { top, width: width::of_results() }, cells, align);
    format!("regions: start routines of threads, and bodies of OpenMP parallel regions\n{rows}")
}
