//! What each lock cost: as a table for people, and as JSON.

use replay::metrics::{Contention, LockSite, LockUse};
use replay::view::View;
use replay::{LockId, Outcome};
use serde_json::{Value, json};
use trace_format::Pc;

use crate::source::Source;
use crate::table::{Align, aligned, grouped};

/// A lock.
pub(crate) struct Row {
    /// What a user would call it.
    name: String,
    used: LockUse,
    /// Where it was taken, as places and how often; the commonest first.
    taken_at: Vec<(String, u64)>,
}

/// The locks of one outcome, those with the most waiting slots first.
pub(crate) fn rows(contention: &Contention, view: &View, source: &mut Source) -> Vec<Row> {
    let mut rows: Vec<Row> = contention
        .locks
        .iter()
        .map(|(lock, used)| Row {
            name: name(*lock, view, source),
            used: used.clone(),
            taken_at: taken_at(used, source),
        })
        .collect();
    let order = |row: &Row| (row.used.waiting_slots, row.used.acquisitions);
    rows.sort_by(|a, b| order(b).cmp(&order(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// As the view names it, with the variable's name from the binary where the trace has none.
fn name(lock: LockId, view: &View, source: &mut Source) -> String {
    let name = view.lock_name(lock);
    let variable = if name.contains('(') { None } else { view.lock_address(lock).and_then(|at| source.symbol(at)) };
    variable.map_or_else(|| name.clone(), |variable| format!("{name} ({variable})"))
}

/// Tells each deadlock the lines at which lanes wait for locks, and the locks' names as the binary has them.
pub(crate) fn locate(outcomes: &mut [Outcome], view: &View, source: &mut Source) {
    for wait in outcomes.iter_mut().filter_map(Outcome::deadlock_mut).flat_map(|deadlock| &mut deadlock.waits) {
        wait.name = name(wait.lock, view, source);
        let mut places: Vec<String> = Vec::new();
        for pc in &wait.at {
            // The call ends there: the byte before is its own.
            let call = LockSite { last: Some(Pc(pc.0.wrapping_sub(1))), call: None };
            let place = place(call, source);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        wait.place = (!places.is_empty()).then(|| places.join(", "));
    }
}

fn taken_at(used: &LockUse, source: &mut Source) -> Vec<(String, u64)> {
    let mut places: Vec<(String, u64)> = Vec::new();
    for (site, acquisitions) in &used.taken_at {
        let place = place(*site, source);
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, sum)) => *sum += acquisitions,
            None => places.push((place, *acquisitions)),
        }
    }
    places.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    places
}

/// `worker (locks.c:12)`, or the place where the line is not known.
fn place(site: LockSite, source: &mut Source) -> String {
    // The jump of a linkage table has no line; the call that led there has.
    for pc in [site.last, site.call].into_iter().flatten() {
        if let Some(line) = source.line(pc) {
            return format!("{} ({})", source.function(pc), line.short());
        }
    }
    let place = site.call.or(site.last).map(|pc| source.place(pc));
    place.unwrap_or_else(|| "(before the first instruction)".to_owned())
}

/// The locks as JSON: the first `top` (all of them by default).
pub(crate) fn to_json(rows: &[Row], top: Option<usize>) -> Value {
    let list: Vec<Value> = rows.iter().take(top.unwrap_or(usize::MAX)).map(row_json).collect();
    json!({ "by": "lock", "rows": list })
}

fn row_json(row: &Row) -> Value {
    let taken_at: Vec<Value> =
        row.taken_at.iter().map(|(place, n)| json!({ "place": place, "acquisitions": n })).collect();
    json!({
        "lock": row.name,
        "acquisitions": row.used.acquisitions,
        "waits": row.used.waits,
        "lanes_that_waited": row.used.lanes_that_waited,
        "fetches_held": row.used.fetches_held,
        "fetches_serialised": row.used.fetches_serialised,
        "waiting_slots": row.used.waiting_slots,
        "taken_at": taken_at,
    })
}

/// The first `top` locks (20 by default) as a table.
pub(crate) fn table(rows: &[Row], top: Option<usize>) -> String {
    let header =
        ["acquired", "waits", "lanes waited", "fetches held", "serialised", "waiting slots", "lock", "taken at"];
    let mut text: Vec<Vec<String>> = vec![header.map(str::to_owned).to_vec()];
    let shown = top.unwrap_or(20).min(rows.len());
    for row in &rows[..shown] {
        let used = &row.used;
        let numbers = [
            used.acquisitions,
            used.waits,
            used.lanes_that_waited,
            used.fetches_held,
            used.fetches_serialised,
            used.waiting_slots,
        ];
        let mut cells = numbers.map(grouped).to_vec();
        let others =
            if row.taken_at.len() > 1 { format!(" and {} more", row.taken_at.len() - 1) } else { String::new() };
        let first = row.taken_at.first().map_or("", |(place, _)| place);
        cells.extend([row.name.clone(), format!("{first}{others}")]);
        text.push(cells);
    }
    let numbers = header.len() - 2;
    let mut table = aligned(&text, |column| if column < numbers { Align::Right } else { Align::Left });
    if shown < rows.len() {
        table += &format!("({} more rows: --top N shows N)\n", rows.len() - shown);
    }
    table
}

/// What the columns are.
pub(crate) const LEGEND: &str = "locks; waits: acquisitions for which a lane had to wait; fetches held: those of which an active lane holds the lock, serialised: those of them \
     while others wait; waiting slots: lanes that wait, summed over fetches";
