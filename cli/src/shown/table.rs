//! Results as a table for people. Every number says what it is a number of.

use std::fmt::Write;

use attribution::table::{Align, cell, grouped, percent};
use replay::registry::measures;
use replay::{Optimum, Outcome, Unit};

use crate::width;

/// The table: a row per heuristic, best first kept in the order asked for, then the bounds.
pub(crate) fn of(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let Some(first) = outcomes.first() else { return text };
    let slots = |fetches: u64| first.upper_bound as f64 / (fetches as f64 * first.warp_size as f64);
    let mut rows: Vec<[String; 6]> = Vec::new();
    for outcome in outcomes.iter().filter(|o| o.is_complete()) {
        let fetches = outcome.counts.fetches();
        let place = outcome.place().map_or_else(String::new, percent);
        let rank = outcome.rank.map_or_else(String::new, |rank| rank.to_string());
        let efficiency = outcome.simt_efficiency().map_or_else(String::new, percent);
        let divergent = percent(outcome.counts.divergent_fetches as f64 / fetches.max(1) as f64);
        rows.push([outcome.label(), grouped(fetches), efficiency, divergent, place, rank]);
    }
    let bound = |name: &str, fetches: u64, place: &str| {
        [name.to_owned(), grouped(fetches), percent(slots(fetches)), String::new(), place.to_owned(), String::new()]
    };
    if first.upper_bound > 0 {
        let of_blocks = |blocks: bool| outcomes.iter().find(|o| (o.warps_per_block > 1) == blocks);
        if let Some(outcome) = of_blocks(false) {
            rows.push(bound("(least possible)", outcome.lower_bound, "100.0%"));
        }
        if let Some(outcome) = of_blocks(true) {
            let name = format!("(least possible of {} warps together)", outcome.warps_per_block);
            rows.push(bound(&name, outcome.lower_bound, "100.0%"));
        }
        rows.push(bound("(nothing shared)", first.upper_bound, "0.0%"));
    }
    rows.insert(0, ["heuristic", "fetches", "SIMT efficiency", "divergent", "of best", "rank"].map(str::to_owned));
    text += &width::of_results().table(&rows, |column| if column == 0 { Align::Left } else { Align::Right });
    for outcome in outcomes.iter().filter(|o| !o.is_complete()) {
        let _ = writeln!(text, "{}", outcome.status());
    }
    if outcomes.iter().any(|o| o.deadlock.is_some()) {
        text += "* deadlocks as the program is written; its numbers are those with lanes taking turns at locks \
             (--locks simt):\n";
    }
    for deadlock in outcomes.iter().filter_map(|o| o.deadlock.as_ref()) {
        let _ = writeln!(text, "  {deadlock}");
    }
    if first.optimum == Optimum::LeftOut {
        let _ = writeln!(
            text,
            "the fewest fetches of two lanes are left out: the lanes differ so much that finding them would take \
             longer than a replay"
        );
    }
    for outcome in outcomes.iter().filter(|o| o.is_complete() && o.counts.forced > 0) {
        let forced = grouped(outcome.counts.forced);
        let _ = writeln!(
            text,
            "{}: {forced} waits were cut short: what they waited for was not replayed",
            outcome.heuristic
        );
    }
    for outcome in outcomes.iter().filter(|o| o.is_complete()) {
        let Some(active) = outcome.active_efficiency().map(percent) else { continue };
        let with = match (outcome.tally.predicated_off.unwrap_or(0), outcome.counts.lock_fetches) {
            (0, 0) => continue,
            (_, 0) => "the lanes that were predicated off",
            (0, _) if outcome.simt_efficiency().map(percent).as_ref() == Some(&active) => continue,
            (0, _) => "the code of the locks",
            _ => "the lanes that were predicated off and the code of the locks",
        };
        let _ = writeln!(text, "{}: {active} with {with}, as a GPU counts them", outcome.heuristic);
    }
    for (outcome, count) in outcomes.iter().filter_map(|o| Some((o, o.tally.barrier_operations?))) {
        let share = percent(count as f64 / outcome.counts.fetches().max(1) as f64);
        let yields = match outcome.tally.yields {
            Some(yields) if yields > 0 => {
                format!("; {} times, lanes went on without the lanes they waited for", grouped(yields))
            }
            _ => String::new(),
        };
        let is_same = |before: &&Outcome| outcome.heuristic.starts_with(&format!("{} at ", before.heuristic));
        let gain = outcomes.iter().find(is_same).map_or_else(String::new, |before| {
            let [before, after] = [before, outcome].map(|outcome| outcome.issued(Unit::Gpu));
            let gain = before as f64 / after.max(1) as f64;
            let waits = grouped(outcome.waits(Unit::Gpu).unwrap_or_default());
            let [before, after] = [before, after].map(grouped);
            format!("; {before} GPU instructions without it, {after} with it, {waits} of these to wait: {gain:.2}x")
        });
        let _ = writeln!(
            text,
            "{}: its barriers take {} instructions on top of the fetches, {share} of them{gain}{yields}",
            outcome.heuristic,
            grouped(count)
        );
    }
    text
}

/// The tables of the measures that were asked for, a row per heuristic; empty where none was.
pub(crate) fn measured(outcomes: &[Outcome]) -> String {
    let complete = || outcomes.iter().filter(|o| o.is_complete());
    let mut text = String::new();
    for table in measures().filter_map(|measure| measure.table) {
        let Some(first) = complete().find(|o| (table.row)(o).is_some()) else { continue };
        let mut rows = vec![["heuristic"].iter().chain(table.header).map(|h| (*h).to_owned()).collect::<Vec<_>>()];
        for (outcome, cells) in complete().filter_map(|o| Some((o, (table.row)(o)?))) {
            rows.push(std::iter::once(outcome.label()).chain(cells.iter().map(cell)).collect());
        }
        let table_text =
            width::of_results().table(&rows, |column| if column == 0 { Align::Left } else { Align::Right });
        text += &format!("\n{table_text}{}\n", (table.legend)(first));
    }
    text
}

/// What the columns are, in two lines.
pub(crate) fn legend(outcomes: &[Outcome]) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    format!(
        "fetches: warp instructions of {} warp{} of {} lanes; SIMT efficiency: {} thread instructions / (fetches x \
         {})\ndivergent: share of fetches with fewer active lanes than live ones; of best: 100% means the fewest \
         fetches possible, 0% means nothing shared; rank: by fetches",
        first.warps,
        if first.warps == 1 { "" } else { "s" },
        first.warp_size,
        grouped(first.upper_bound),
        first.warp_size,
    )
}
