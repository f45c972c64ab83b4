//! `--predict`: places at which lanes are to be collected, as they were typed, and what that comes to.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use attribution::Source;
use heuristics::{Deconflict, Prediction, SegmentTable, Spec};
use trace_format::{Pc, Trace};

use crate::place::Place;

/// The model that obeys predictions.
pub(crate) const MODEL: &str = "barrier";

/// What was typed: `lookups.c:41,threshold=8,deconflict=static`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predicted {
    place: Place,
    threshold: Option<usize>,
    deconflict: Deconflict,
}

impl FromStr for Predicted {
    type Err = String;

    fn from_str(text: &str) -> Result<Predicted, String> {
        let mut parts = text.split(',');
        let place = parts.next().unwrap_or_default().parse()?;
        let mut predicted = Predicted { place, threshold: None, deconflict: Deconflict::Dynamic };
        for part in parts {
            match part.split_once('=') {
                Some(("threshold", lanes)) => {
                    let lanes = lanes.parse().ok().filter(|lanes| (1..=heuristics::MAX_LANES).contains(lanes));
                    let most = heuristics::MAX_LANES;
                    predicted.threshold = Some(lanes.ok_or(format!("threshold is a number of lanes, 1 to {most}"))?);
                }
                Some(("deconflict", "dynamic")) => predicted.deconflict = Deconflict::Dynamic,
                Some(("deconflict", "static")) => predicted.deconflict = Deconflict::Static,
                _ => return Err(format!("\"{part}\" is neither threshold=LANES nor deconflict=dynamic|static")),
            }
        }
        Ok(predicted)
    }
}

impl fmt::Display for Predicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)?;
        if let Some(threshold) = self.threshold {
            write!(f, ",threshold={threshold}")?;
        }
        match self.deconflict {
            Deconflict::Dynamic => Ok(()),
            Deconflict::Static => f.write_str(",deconflict=static"),
        }
    }
}

/// The predictions that were typed: in each function with code of the line, the block in which the first of it lies.
///
/// # Errors
/// When a line or address has no code that lanes ran.
pub(crate) fn predictions(
    typed: &[Predicted],
    trace: &Trace,
    segments: &SegmentTable,
    source: &mut Source,
) -> replay::Result<Vec<Prediction>> {
    let mut all = Vec::new();
    for predicted in typed {
        let place = &predicted.place;
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
        let Predicted { threshold, deconflict, .. } = *predicted;
        let made = |at| Prediction { threshold, deconflict, ..Prediction::at(at) };
        all.extend(of_functions.into_values().map(made));
    }
    Ok(all)
}

/// The models among these that obey predictions: where lanes meet anywhere there is no barrier to collect them at.
///
/// # Errors
/// When there is none.
pub(crate) fn obedient(models: &[Spec]) -> replay::Result<Vec<Spec>> {
    let obeys = |spec: &&Spec| spec.entry().name == MODEL && spec.settings.choice("meet") == 0;
    let obey: Vec<Spec> = models.iter().filter(obeys).cloned().collect();
    match obey.is_empty() {
        true => Err(replay::Error::Request(format!(
            "--predict: only {MODEL} with meet=barriers collects lanes at predicted places: add {MODEL} to --heuristic"
        ))),
        false => Ok(obey),
    }
}

/// How outcomes with these predictions are named, behind the model.
pub(crate) fn label(typed: &[Predicted]) -> String {
    let places: Vec<String> = typed.iter().map(ToString::to_string).collect();
    format!(" at {}", places.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::Predicted;

    #[test]
    fn a_place_comes_first_then_how_lanes_are_collected_there() {
        for text in ["a/b.c:12", "0x401136,threshold=8", "a.c:1,threshold=256,deconflict=static"] {
            assert_eq!(text.parse::<Predicted>().unwrap().to_string(), text);
        }
        for (wrong, why) in [
            ("threshold=8", "it is a line"),
            ("a.c:1,threshold=0", "1 to 256"),
            ("a.c:1,threshold=x", "1 to 256"),
            ("a.c:1,deconflict=never", "neither"),
            ("a.c:1,", "neither"),
        ] {
            assert!(wrong.parse::<Predicted>().is_err_and(|e| e.contains(why)), "{wrong}");
        }
    }
}
