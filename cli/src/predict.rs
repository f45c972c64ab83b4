//! `--predict`: places at which lanes are to be collected, as they were typed, and what that comes to.

use std::collections::BTreeMap;

use attribution::Source;
use heuristics::{Prediction, SegmentTable, Spec};
use trace_format::{Pc, Trace};

use crate::place::Place;

/// The model that obeys predictions.
pub(crate) const MODEL: &str = "barrier";

/// The predictions that were typed: in each function with code of the line, the block in which the first of it lies.
///
/// # Errors
/// When a line or address has no code that lanes ran.
pub(crate) fn predictions(
    places: &[Place],
    trace: &Trace,
    segments: &SegmentTable,
    source: &mut Source,
) -> replay::Result<Vec<Prediction>> {
    let mut all = Vec::new();
    for place in places {
        let mut of_functions: BTreeMap<Option<Pc>, Pc> = BTreeMap::new();
        for pc in place.code(trace, source) {
            let holds = |segment: &heuristics::Segment| segment.instructions.iter().any(|i| i.pc == pc);
            if let Some((_, segment)) = segments.iter().find(|(_, segment)| holds(segment)) {
                of_functions.entry(source.function_start(pc)).or_insert(segment.start());
            }
        }
        if of_functions.is_empty() {
            return Err(replay::Error::Request(format!(
                "--predict {place}: no lane ran code there; name a line or address that --by line or --annotate shows"
            )));
        }
        all.extend(of_functions.into_values().map(|at| Prediction { at, from: None }));
    }
    Ok(all)
}

/// The models among these that obey predictions.
///
/// # Errors
/// When there is none.
pub(crate) fn obedient(models: &[Spec]) -> replay::Result<Vec<Spec>> {
    let obey: Vec<Spec> = models.iter().filter(|spec| spec.entry().name == MODEL).cloned().collect();
    match obey.is_empty() {
        true => Err(replay::Error::Request(format!(
            "--predict: only {MODEL} collects lanes at predicted places: add it to --heuristic"
        ))),
        false => Ok(obey),
    }
}

/// How outcomes with these predictions are named, behind the model.
pub(crate) fn label(places: &[Place]) -> String {
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    format!(" at {}", places.join(" and "))
}
