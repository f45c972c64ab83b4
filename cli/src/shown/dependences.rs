//! `replay --dependences`: dependences between lanes.

use attribution::dependences::{self, Row};
use attribution::table::{self, Align, Extent, grouped};
use attribution::{Source, json};
use replay::Setting;
use replay::dependences::Dependences;
use replay::view::View;
use serde_json::Value;

use crate::typed::lanes::LaneKind;
use crate::typed::selection::Selection;
use crate::width;

/// The rows of a view's lanes, and whether all of the memory was followed.
///
/// # Errors
/// When lanes are threads, or the trace has no addresses.
pub(crate) fn of(selection: &Selection, view: &View, source: &mut Source) -> replay::Result<(Vec<Row>, bool)> {
    if view.summary().cut.is_none() {
        let text = "threads already run at the same time; dependences are found between iterations of a loop, calls \
                    or tasks: add --loop or --lanes";
        return Err(replay::Error::Request(text.to_owned()));
    }
    let follow = selection.at_loop.is_some() || selection.lanes == Some(LaneKind::Iterations);
    let found = Dependences::of(view, follow)?;
    Ok((dependences::rows(&found, view, source), !found.is_partial))
}

/// The rows as a table, below their consequences.
pub(crate) fn table((rows, is_whole): &(Vec<Row>, bool), top: Option<usize>) -> String {
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
pub(crate) fn to_json((rows, is_whole): &(Vec<Row>, bool), setting: &Setting, taken: &str) -> Value {
    let mut whole = json::of(setting, &[], taken);
    whole["dependences"] = dependences::json(rows);
    whole["dependences"]["is_whole"] = (*is_whole).into();
    whole
}
