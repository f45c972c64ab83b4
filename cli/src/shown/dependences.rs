//! `replay --dependences`: dependences between lanes.

use attribution::dependences::{self, Found, Row};
use attribution::json;
use attribution::table::{self, Align, Extent, grouped};
use replay::Setting;
use serde_json::Value;

use crate::width;

/// The rows as a table, below their consequences.
pub(crate) fn table(Found { rows, is_whole }: &Found, top: Option<usize>) -> String {
    let (_, verdict) = dependences::verdict(rows);
    let mut text = format!("{verdict}\n");
    if !is_whole {
        text += "the program uses more memory than could be followed, so there may be other dependences\n";
    }
    if rows.is_empty() {
        return text;
    }
    let header = ["dependence", "count", "distance", "made at", "used at", "variable"];
    let cells = |row: &Row| {
        vec![
            dependences::name(row.kind),
            grouped(row.count),
            row.distance.map_or_else(String::new, |distance| distance.to_string()),
            row.from.clone(),
            row.to.clone(),
            row.variable.clone().or_else(|| row.library.clone()).unwrap_or_default(),
        ]
    };
    let align = |column| if (1..3).contains(&column) { Align::Right } else { Align::Left };
    text += "\n";
    text += &table::first(&header, rows, Extent { top, width: width::of_results() }, cells, align);
    text + dependences::LEGEND + "\n"
}

/// The rows as JSON, with what they are of.
pub(crate) fn to_json(found: &Found, setting: &Setting, taken: &str) -> Value {
    let mut whole = json::of(setting, &[], taken);
    whole["dependences"] = found.json();
    whole
}
