//! Several widths of a warp, several ways to put lanes into warps: a row for each.

use attribution::table::{Align, grouped, percent};
use replay::{Outcome, Setting};
use serde_json::{Value, json};
use verdict::grouping::{Beside, Tried, first_of, gain, traffic};

use crate::width;

/// What is known about a grouping beside its own results.
pub(crate) fn beside(beside: &Beside) -> String {
    match beside {
        Beside::Usual(tried) => format!("\n{}", table(tried)),
        Beside::Bound { least, warp_size, instructions } => bound_line(*least, (*warp_size, *instructions)),
    }
}

/// The table.
pub(crate) fn table(tried: &[Tried]) -> String {
    let outcomes = || tried.iter().flat_map(|one| one.outcomes.iter().map(move |outcome| (one, outcome)));
    let has_traffic = outcomes().any(|(_, outcome)| traffic(outcome).is_some());
    let several = tried.iter().any(|one| one.group != tried[0].group);
    let mut header = vec!["lanes a warp", "group", "heuristic", "warps", "fetches", "SIMT efficiency"];
    header.extend(several.then_some("gain"));
    header.extend(has_traffic.then_some(["32B transactions", "per access"]).into_iter().flatten());
    header.extend((has_traffic && several).then_some("cost"));
    let mut rows = vec![header.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (one, outcome) in outcomes().filter(|(_, outcome)| outcome.is_complete()) {
        let mut row = vec![
            outcome.warp_size.to_string(),
            one.group.clone(),
            outcome.label(),
            grouped(outcome.warps as u64),
            grouped(outcome.counts.fetches()),
            outcome.simt_efficiency().map_or_else(String::new, percent),
        ];
        row.extend(several.then(|| gain(tried, outcome).map_or_else(String::new, |gain| format!("{gain:+.1}"))));
        if has_traffic {
            let own = traffic(outcome);
            row.push(own.map_or_else(String::new, |(_, n)| grouped(n)));
            let per_access = own.filter(|(accesses, _)| *accesses > 0);
            row.push(per_access.map_or_else(String::new, |(a, n)| format!("{:.2}", n as f64 / a as f64)));
        }
        if has_traffic && several {
            let first = first_of(tried, outcome).and_then(traffic).filter(|(_, n)| *n > 0);
            let cost = first.zip(traffic(outcome)).map(|((_, first), (_, own))| own as f64 / first as f64);
            row.push(cost.map_or_else(String::new, |cost| format!("x{cost:.2}")));
        }
        rows.push(row);
    }
    let mut text = width::of_results().table(&rows, |c| if (1..3).contains(&c) { Align::Left } else { Align::Right });
    for (_, outcome) in outcomes().filter(|(_, outcome)| !outcome.is_complete()) {
        text += &format!("{}\n", outcome.status());
    }
    for one in tried {
        let first = one.least_of_any.zip(one.outcomes.first());
        let of = |(least, o): (u64, &Outcome)| bound_line(least, (o.warp_size, o.upper_bound));
        text += &first.map_or_else(String::new, of);
    }
    text += "SIMT efficiency: thread instructions / (fetches x lanes of a warp)";
    if several {
        text += "; gain: points above the first grouping of the same width and model";
    }
    if has_traffic {
        text +=
            "; 32B transactions: aligned pieces of 32 bytes that the lanes of each access lie in, stacks interleaved";
    }
    if has_traffic && several {
        text += "; cost: times as many as under the first grouping";
    }
    text + "\n"
}

/// What no grouping beats, for so many lanes a warp and so many thread instructions.
fn bound_line(least: u64, (warp_size, instructions): (usize, u64)) -> String {
    let slots = least as f64 * warp_size as f64;
    format!(
        "no grouping into warps of {warp_size} needs fewer than {} fetches ({})\n",
        grouped(least),
        percent((instructions as f64 / slots.max(1.0)).min(1.0))
    )
}

/// The rows as JSON.
pub(crate) fn json(tried: &[Tried]) -> Value {
    let row = |one: &Tried, outcome: &Outcome| {
        let own = traffic(outcome);
        json!({
            "warp_size": outcome.warp_size,
            "group": one.group,
            "heuristic": outcome.heuristic,
            "status": outcome.status(),
            "warps": outcome.warps,
            "fetches": outcome.is_complete().then(|| outcome.counts.fetches()),
            "simt_efficiency": outcome.simt_efficiency().filter(|_| outcome.is_complete()),
            "gain": gain(tried, outcome).filter(|_| outcome.is_complete()),
            "accesses": own.map(|(accesses, _)| accesses),
            "transactions_32": own.map(|(_, transactions)| transactions),
            "least_of_any_grouping": one.least_of_any,
        })
    };
    tried.iter().flat_map(|one| one.outcomes.iter().map(move |outcome| row(one, outcome))).collect()
}

/// The rows as they stand in CSV, each with its own setting and otherwise these.
pub(crate) fn rows<'a>(tried: &'a [Tried], setting: &Setting) -> Vec<(Setting, &'a Outcome)> {
    let of_one = |one: &'a Tried| {
        let setting = Setting { group: one.group.clone(), ..setting.clone() };
        one.outcomes.iter().map(move |outcome| (setting.clone(), outcome))
    };
    tried.iter().flat_map(of_one).collect()
}
