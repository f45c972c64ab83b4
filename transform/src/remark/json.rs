//! A remark as a JSON object:
//!
//! ```json
//! {"pass":"fcs","kind":"taken","reason":"CallsFused","function":"main","subject":"work",
//!  "places":[{"file":"a.c","line":7,"column":5,"inlined_at":null},null],
//!  "numbers":{"callee":40,"fusion":3},"words":{"guard":"condition"},"gain":37,"gain_for":"…","text":"…"}
//! ```

use serde_json::{Map, Value, json};

use super::{Place, Remark};

/// What every gain is meant for: passes join paths, which helps where a model's lanes meet at joins.
const GAIN_FOR: &str = "each time that lanes of a warp part there, under models that join them at post-dominators or at \
                        the lowest pc";

pub(super) fn of(remark: &Remark) -> Value {
    let numbers: Map<String, Value> =
        remark.reason.numbers().into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect();
    let words: Map<String, Value> =
        remark.reason.words().into_iter().map(|(name, word)| (name.to_owned(), word.into())).collect();
    json!({
        "pass": remark.pass,
        "kind": remark.kind().word(),
        "reason": remark.reason.name(),
        "function": remark.function,
        "subject": remark.subject,
        "places": remark.places.iter().map(|at| at.as_ref().map(place)).collect::<Vec<_>>(),
        "numbers": numbers,
        "words": words,
        "gain": remark.gain,
        "gain_for": remark.gain.map(|_| GAIN_FOR),
        "text": remark.reason.to_string(),
    })
}

fn place(at: &Place) -> Value {
    json!({
        "file": at.file,
        "line": at.line,
        "column": at.column,
        "inlined_at": at.inlined_at.as_deref().map(place),
    })
}
