//! Results and rows as JSON.

use replay::metrics::{Cause, Space, TRANSACTION_SIZES};
use replay::registry::columns;
use replay::{Outcome, Setting};
use serde_json::{Map, Value, json};

use crate::{Subject, locks, lost, memory};

/// A column's value.
#[must_use]
pub fn value(value: replay::Value) -> Value {
    match value {
        replay::Value::None => Value::Null,
        replay::Value::Count(count) => json!(count),
        replay::Value::Quotient(quotient) => json!(quotient),
        replay::Value::Text(text) => json!(text),
        replay::Value::Counts(counts) => json!(counts),
        replay::Value::Named(counts) => Value::Object(counts.into_iter().map(|(name, n)| (name, json!(n))).collect()),
    }
}

/// The results as one object: the setting, and `results`, a list with an object per heuristic. Columns without a value
/// are left out.
#[must_use]
pub fn of(setting: &Setting, outcomes: &[Outcome], view: &str) -> Value {
    let of_setting = columns().filter_map(|c| Some((c.name.to_owned(), value(c.of_setting(setting)?))));
    let mut all: Map<String, Value> = of_setting.collect();
    all.insert("locks".to_owned(), json!(setting.locks));
    all.insert("view".to_owned(), json!(view));
    all.insert("results".to_owned(), outcomes.iter().map(|outcome| result(setting, outcome)).collect());
    Value::Object(all)
}

/// One result: the columns that have a value, without those of the setting.
#[must_use]
pub fn result(setting: &Setting, outcome: &Outcome) -> Value {
    let columns = columns().filter(|c| c.of_setting(setting).is_none());
    let values = columns.map(|c| (c.name.to_owned(), value(c.value(setting, outcome))));
    values.filter(|(_, value)| !value.is_null()).collect()
}

/// What a row is about: its subject under the name of the grouping, with more detail where there is some.
fn subject(by: &str, subject: &Subject) -> Map<String, Value> {
    let mut facts = Map::from_iter([(by.to_owned(), json!(subject.to_string()))]);
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    match subject {
        Subject::Nowhere | Subject::Cause(_) | Subject::Path(_) | Subject::Function(_) => {}
        Subject::Line(line) => {
            add("file", json!(line.file));
            add("line", json!(line.line));
            add("function", json!(line.functions.first()));
            add("inlined_into", json!(line.functions.get(1..).unwrap_or_default()));
        }
        Subject::NoLine { function, .. } => {
            add("function", json!(function));
        }
        Subject::Instruction { place, function, line, .. } => {
            add("place", json!(place));
            add("function", json!(function));
            if let Some(line) = line {
                add("file", json!(line.file));
                add("line", json!(line.line));
            }
        }
    }
    facts
}

/// The first `top` rows (all of them by default).
fn list<R>(rows: &[R], top: Option<usize>, row: impl Fn(&R) -> Value) -> Vec<Value> {
    rows.iter().take(top.unwrap_or(usize::MAX)).map(row).collect()
}

/// Rows of lost lane-slots: `by`, the total, and the first `top` rows (all of them by default).
#[must_use]
pub fn lost(by: lost::By, rows: &[lost::Row], total: u64, warp_size: usize, top: Option<usize>) -> Value {
    let causes = |slots: &lost::ByCause| -> Map<String, Value> {
        let named = Cause::ALL.iter().zip(slots).filter(|(_, slots)| **slots > 0);
        named.map(|(cause, slots)| (cause.name().to_owned(), json!(slots))).collect()
    };
    let row = |row: &lost::Row| {
        let mut all = subject(by.name(), &row.subject);
        if by.has_parted() {
            all.insert("parted_slots".into(), json!(row.parted));
            all.insert("parted_causes".into(), causes(&row.parted_by).into());
        }
        if by.has_lost() {
            all.insert("lost_slots".into(), json!(row.lost));
        }
        if by.has_issued() {
            all.insert("lost_causes".into(), causes(&row.lost_by).into());
            all.insert("fetches".into(), json!(row.issued.fetches));
            all.insert("thread_instructions".into(), json!(row.issued.thread_instructions));
            all.insert("simt_efficiency".into(), json!(row.efficiency(warp_size)));
        }
        Value::Object(all)
    };
    json!({ "by": by.name(), "lost_slots": total, "rows": list(rows, top, row) })
}

/// Rows of memory accesses: `by`, and the first `top` rows (all of them by default).
#[must_use]
pub fn memory(by: memory::By, rows: &[memory::Row], top: Option<usize>) -> Value {
    let sizes = |transactions: &[u64; 3]| -> Map<String, Value> {
        TRANSACTION_SIZES.iter().zip(transactions).map(|(size, n)| (size.to_string(), json!(n))).collect()
    };
    let space = |space: &Space| {
        json!({
            "accesses": space.accesses,
            "lane_accesses": space.lane_accesses,
            "transactions": sizes(&space.transactions),
        })
    };
    let row = |row: &memory::Row| {
        let accesses = &row.accesses;
        let mut all = subject(by.name(), &row.subject);
        all.insert("accesses".into(), json!(accesses.accesses()));
        all.insert("lane_accesses".into(), json!(accesses.lane_accesses()));
        all.insert("uniform".into(), json!(accesses.classes.uniform));
        all.insert("affine".into(), json!(accesses.classes.affine));
        all.insert("scattered".into(), json!(accesses.classes.scattered));
        all.insert("strides".into(), value(accesses.strides.named()));
        all.insert("heap".into(), space(&accesses.heap));
        all.insert("stack".into(), space(&accesses.stack));
        all.insert("interleaved_stack_transactions".into(), sizes(&accesses.interleaved).into());
        Value::Object(all)
    };
    json!({ "by": by.name(), "rows": list(rows, top, row) })
}

/// The locks: the first `top` (all of them by default).
#[must_use]
pub fn locks(rows: &[locks::Row], top: Option<usize>) -> Value {
    json!({ "by": "lock", "rows": list(rows, top, lock) })
}

/// A lock.
#[must_use]
pub fn lock(row: &locks::Row) -> Value {
    let place = |(place, n): &(String, u64)| json!({ "place": place, "acquisitions": n });
    json!({
        "lock": row.name,
        "acquisitions": row.used.acquisitions,
        "waits": row.used.waits,
        "lanes_that_waited": row.used.lanes_that_waited,
        "fetches_held": row.used.fetches_held,
        "fetches_serialised": row.used.fetches_serialised,
        "waiting_slots": row.used.waiting_slots,
        "taken_at": row.taken_at.iter().map(place).collect::<Vec<Value>>(),
    })
}
