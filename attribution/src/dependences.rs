//! Dependences between lanes, by source line, and their consequence: whether the lanes would run in parallel.

use replay::dependences::{Dependence, Dependences, Kind, Operator};
use replay::view::{Lanes, View};
use replay::{Error, Result};
use serde_json::{Value, json};
use trace_format::{ModuleRole, Pc};

use crate::Source;

/// A dependence by source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub kind: Kind,
    /// The line that makes the value, or reads the one that is overwritten.
    pub from: String,
    /// The line that uses or overwrites it.
    pub to: String,
    /// The variable that holds it, where it has a symbol.
    pub variable: Option<String>,
    /// How often.
    pub count: u64,
    /// The smallest distance of two such lanes, where it is known.
    pub distance: Option<u32>,
    /// The library's function that does it, where it is none of the program's own code.
    pub library: Option<String>,
}

/// The dependences between some lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Those that hinder most first.
    pub rows: Vec<Row>,
    /// Whether all of the memory was followed.
    pub is_whole: bool,
}

impl Found {
    /// Of a view whose lanes are these.
    ///
    /// # Errors
    /// When lanes are threads, or the trace has no addresses.
    pub fn of(view: &View, lanes: &Lanes, source: &mut Source) -> Result<Found> {
        if *lanes == Lanes::Threads {
            let text = "threads already run at the same time; dependences are found between iterations of a loop, \
                        calls or tasks: add --loop or --lanes";
            return Err(Error::Request(text.to_owned()));
        }
        let found = Dependences::of(view, matches!(lanes, Lanes::Iterations(_)))?;
        Ok(Found { rows: rows(&found, view, source), is_whole: !found.is_partial })
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let (runs, text) = verdict(&self.rows);
        json!({ "runs": runs.name(), "verdict": text, "rows": json(&self.rows), "is_whole": self.is_whole })
    }
}

/// The rows, those that hinder most first; dependences of one kind between the same lines are one row.
fn rows(dependences: &Dependences, view: &View, source: &mut Source) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for one in &dependences.all {
        let is_own = view.module_role(one.to).is_none_or(|role| role == ModuleRole::Main);
        let library = (!is_own).then(|| source.function(one.to));
        let symbol = one.address.and_then(|address| source.symbol(address));
        let variable = symbol.map(|name| name.split('+').next().unwrap_or_default().to_owned());
        let Dependence { kind, count, distance, .. } = *one;
        let row =
            Row { kind, from: line(one.from, source), to: line(one.to, source), variable, count, distance, library };
        let is_same = |known: &&mut Row| {
            (known.kind, &known.from, &known.to, &known.variable, &known.library)
                == (row.kind, &row.from, &row.to, &row.variable, &row.library)
        };
        match rows.iter_mut().find(is_same) {
            Some(known) => {
                known.count += row.count;
                known.distance = known.distance.into_iter().chain(row.distance).min();
            }
            None => rows.push(row),
        }
    }
    rows.sort_by_key(|row| (row.kind, std::cmp::Reverse(row.count)));
    rows
}

fn line(pc: Pc, source: &mut Source) -> String {
    source.line(pc).map_or_else(|| source.place(pc), |line| line.short())
}

/// The name of a kind, as it stands in tables and JSON.
#[must_use]
pub fn name(kind: Kind) -> String {
    let by = |what: &str, operator: Operator| format!("{what} ({})", operator_name(operator));
    match kind {
        Kind::Carried => "carried".to_owned(),
        Kind::Partial(operator) => by("partial results", operator),
        Kind::Overwritten => "overwritten".to_owned(),
        Kind::Private => "private".to_owned(),
        Kind::Reduction(operator) => by("reduction", operator),
        Kind::Scattered(operator) => by("scattered reduction", operator),
        Kind::Exit => "early exit".to_owned(),
        Kind::Guarded => "guarded".to_owned(),
        Kind::Atomic => "atomic".to_owned(),
        Kind::Induction => "induction".to_owned(),
    }
}

fn operator_name(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "sum",
        Operator::Multiply => "product",
        Operator::And => "and",
        Operator::Or => "or",
        Operator::Xor => "xor",
        Operator::Min => "minimum",
        Operator::Max => "maximum",
        Operator::Select => "selection",
    }
}

/// What the rows in a table are.
pub const LEGEND: &str = "carried: a lane uses what another made; partial results: it uses an accumulator before it is complete; overwritten: it reads what a later lane overwrites;
private: lanes overwrite what each of them alone reads; reduction: values taken into one accumulator, scattered: into one of several;
early exit: a lane ends the loop for those behind it; guarded: under a lock; atomic: by atomic instructions; induction: it follows from the lane's number";

/// Whether lanes would run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// As they are.
    Yes,
    /// After a change.
    After,
    /// Not in any order.
    No,
}

impl Runs {
    /// Its name in JSON and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Runs::Yes => "would run",
            Runs::After => "after a change",
            Runs::No => "carries a dependence",
        }
    }
}

/// Whether lanes would run in parallel, and the sentence that says so.
#[must_use]
pub fn verdict(rows: &[Row]) -> (Runs, String) {
    let of = |wanted: fn(&Kind) -> bool| rows.iter().filter(move |row| wanted(&row.kind) && row.library.is_none());
    let at = |row: &Row| match &row.variable {
        Some(name) => format!("{name} ({})", row.to),
        None => format!("what {} writes", row.to),
    };
    // The worst comes first: beside a dependence that no change takes away, changes are not worth a word.
    if let Some(row) = of(|kind| *kind == Kind::Carried).next() {
        let what = row.variable.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        let by = row.distance.map_or_else(String::new, |n| format!(", {n} before it at least"));
        let text = format!(
            "carries a dependence at {}: a lane uses there what another{by}, made at {}{what}",
            row.to, row.from
        );
        return (Runs::No, text);
    }
    if let Some(row) = of(|kind| matches!(kind, Kind::Partial(_))).next() {
        let Kind::Partial(operator) = row.kind else { unreachable!("it was looked for") };
        let text = format!(
            "carries a dependence at {}: the {} of {} is used there before it is complete; a scan (prefix sum) would \
             do it in parallel",
            row.to,
            operator_name(operator),
            row.from
        );
        return (Runs::No, text);
    }
    let mut changes: Vec<String> = Vec::new();
    let mut each = |wanted: fn(&Kind) -> bool, text: &dyn Fn(&Row) -> String| {
        for change in of(wanted).map(text) {
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
    };
    each(|kind| *kind == Kind::Overwritten, &|row| {
        format!("keeping the old values of {}, which {} reads", at(row), row.from)
    });
    each(|kind| *kind == Kind::Private, &|row| format!("privatising {}", at(row)));
    each(|kind| matches!(kind, Kind::Reduction(_)), &|row| {
        let Kind::Reduction(operator) = row.kind else { unreachable!("it was looked for") };
        format!("making a reduction of the {} at {}", operator_name(operator), row.to)
    });
    each(|kind| matches!(kind, Kind::Scattered(_)), &|row| format!("making {} atomic", at(row)));
    each(|kind| *kind == Kind::Exit, &|row| {
        format!(
            "replacing the early exit at {}: all lanes run, and what those behind the first that would leave have done \
             does not count",
            row.to
        )
    });
    let mut beside: Vec<String> = Vec::new();
    if of(|kind| matches!(kind, Kind::Guarded | Kind::Atomic)).next().is_some() {
        beside.push("lanes meet at locks or atomic instructions".to_owned());
    }
    // What a library does is not the program's to change: it is told, and makes the verdict no other.
    let hinders = |row: &&Row| !matches!(row.kind, Kind::Induction | Kind::Atomic | Kind::Guarded);
    if let Some(function) = rows.iter().filter(hinders).find_map(|row| row.library.as_ref()) {
        beside.push(format!("a library keeps state between lanes ({function})"));
    }
    let beside = if beside.is_empty() { String::new() } else { format!("; {}", beside.join("; ")) };
    match changes.is_empty() {
        true => (Runs::Yes, format!("would run in parallel: no lane needs what another makes{beside}")),
        false => {
            changes.truncate(MOST_CHANGES);
            (Runs::After, format!("would run in parallel after {}{beside}", changes.join(", and ")))
        }
    }
}

/// The most changes that a sentence names; the table has all.
const MOST_CHANGES: usize = 4;

/// The rows as JSON.
#[must_use]
pub fn json(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "kind": name(row.kind),
            "from": row.from,
            "to": row.to,
            "variable": row.variable,
            "count": row.count,
            "distance": row.distance,
            "library": row.library,
        })
    };
    rows.iter().map(row).collect()
}
