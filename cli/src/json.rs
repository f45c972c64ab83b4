//! Results as JSON, from the columns.

use replay::registry::columns;
use replay::{Outcome, Setting};
use serde_json::{Map, Value, json};

/// A column's value.
pub(crate) fn value(value: replay::Value) -> Value {
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
pub(crate) fn of(setting: &Setting, outcomes: &[Outcome], view: &str) -> Value {
    let of_outcome = |outcome: &Outcome| -> Map<String, Value> {
        let columns = columns().filter(|c| c.of_setting(setting).is_none());
        let values = columns.map(|c| (c.name.to_owned(), value(c.value(setting, outcome))));
        values.filter(|(_, value)| !value.is_null()).collect()
    };
    let of_setting = columns().filter_map(|c| Some((c.name.to_owned(), value(c.of_setting(setting)?))));
    let mut all: Map<String, Value> = of_setting.collect();
    all.insert("locks".to_owned(), json!(setting.locks));
    all.insert("view".to_owned(), json!(view));
    all.insert("results".to_owned(), outcomes.iter().map(|o| Value::Object(of_outcome(o))).collect());
    Value::Object(all)
}
