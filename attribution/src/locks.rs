//! What each lock cost, and where lanes wait for locks.

use replay::metrics::{Contention, LockSite, LockUse};
use replay::view::View;
use replay::{LockId, Outcome};
use trace_format::Pc;

use crate::Source;

/// A lock.
#[derive(Clone, Debug)]
pub struct Row {
    /// What a user would call it.
    pub name: String,
    /// What it cost.
    pub used: LockUse,
    /// Where it was taken, as places and how often; the commonest first.
    pub taken_at: Vec<(String, u64)>,
}

/// The locks of one outcome, those with the most waiting slots first.
#[must_use]
pub fn rows(contention: &Contention, view: &View, source: &mut Source) -> Vec<Row> {
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

/// Adds to each deadlock the lines at which lanes wait for locks, and the locks' names from the binary.
pub fn locate(outcomes: &mut [Outcome], view: &View, source: &mut Source) {
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
    // A jump of the linkage table has no line, but the call that led there has one.
    for pc in [site.last, site.call].into_iter().flatten() {
        if let Some(line) = source.line(pc) {
            return format!("{} ({})", source.function(pc), line.short());
        }
    }
    let place = site.call.or(site.last).map(|pc| source.place(pc));
    place.unwrap_or_else(|| "(before the first instruction)".to_owned())
}
