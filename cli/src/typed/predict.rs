//! `--predict`: places at which lanes are to be collected, as they were typed, and which predictions they make.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use attribution::{Mark, MarkKind, Place, Source};
use heuristics::{Copied, Deconflict, Prediction, Predictions, SegmentTable, Spec, collects};
use trace_format::{Pc, Trace};

use crate::output::say;

/// Where.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Where {
    /// At a place that was typed.
    At(Place),
    /// Where the function of this name begins, for all its calls.
    Calls(String),
    /// Where the program's own marks say.
    Marks,
}

/// Where lanes join.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    At(Place),
    /// Where the function of this name begins.
    Function(String),
}

/// What was typed: `lookups.c:41,threshold=8,deconflict=static`, `call:shade,from=worker`, or `marks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predicted {
    place: Where,
    from: Option<From>,
    threshold: Option<usize>,
    deconflict: Deconflict,
}

impl FromStr for Predicted {
    type Err = String;

    fn from_str(text: &str) -> Result<Predicted, String> {
        // A function's name may have commas of its own.
        let settings = [",threshold=", ",deconflict=", ",from="].iter().filter_map(|setting| text.find(setting)).min();
        let end = match text.strip_prefix("call:") {
            Some(_) => settings.unwrap_or(text.len()),
            None => text.find(',').unwrap_or(text.len()),
        };
        let (place, mut parts) = (&text[..end], &text[end..]);
        let place = match place {
            "marks" => Where::Marks,
            place => match place.strip_prefix("call:") {
                // A line of a file of this name.
                Some(line) if line.parse::<u32>().is_ok() => Where::At(place.parse()?),
                Some("") => return Err("the name of a function must follow call:".to_owned()),
                Some(function) => Where::Calls(function.to_owned()),
                None => Where::At(place.parse().map_err(|why| format!("{why}, call:FUNCTION, or marks"))?),
            },
        };
        let mut predicted = Predicted { place, from: None, threshold: None, deconflict: Deconflict::Dynamic };
        while let Some(rest) = parts.strip_prefix(',') {
            let end = match rest.strip_prefix("from=") {
                // A function's name may have commas of its own.
                Some(_) => [",threshold=", ",deconflict="].iter().filter_map(|next| rest.find(next)).min(),
                None => rest.find(','),
            };
            let (part, others) = rest.split_at(end.unwrap_or(rest.len()));
            parts = others;
            match part.split_once('=') {
                Some(("from", _)) if predicted.place == Where::Marks => {
                    return Err("leave out from= with marks: the marks already say where lanes join".to_owned());
                }
                Some(("from", "")) => return Err("a place or the name of a function must follow from=".to_owned()),
                Some(("from", from)) => {
                    predicted.from = Some(from.parse().map_or_else(|_| From::Function(from.to_owned()), From::At));
                }
                Some(("threshold", lanes)) => {
                    let lanes = lanes.parse().ok().filter(|lanes| (1..=heuristics::MAX_LANES).contains(lanes));
                    let most = heuristics::MAX_LANES;
                    predicted.threshold = Some(lanes.ok_or(format!("threshold is a number of lanes, 1 to {most}"))?);
                }
                Some(("deconflict", "dynamic")) => predicted.deconflict = Deconflict::Dynamic,
                Some(("deconflict", "static")) => predicted.deconflict = Deconflict::Static,
                _ => {
                    return Err(format!(
                        "\"{part}\" is neither threshold=LANES nor deconflict=dynamic|static nor from=PLACE"
                    ));
                }
            }
        }
        Ok(predicted)
    }
}

impl fmt::Display for Predicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Where::At(place) => place.fmt(f)?,
            Where::Calls(function) => write!(f, "call:{function}")?,
            Where::Marks => f.write_str("marks")?,
        }
        match &self.from {
            None => {}
            Some(From::At(place)) => write!(f, ",from={place}")?,
            Some(From::Function(name)) => write!(f, ",from={name}")?,
        }
        if let Some(threshold) = self.threshold {
            write!(f, ",threshold={threshold}")?;
        }
        match self.deconflict {
            Deconflict::Dynamic => Ok(()),
            Deconflict::Static => f.write_str(",deconflict=static"),
        }
    }
}

/// The predictions that were typed: in each function with code of the line, the block in which the first of it lies;
/// the functions of a name; those that the program's marks make.
///
/// # Errors
/// When no lane ran code at a line, address or function, or at a mark.
pub(crate) fn predictions(
    typed: &[Predicted],
    trace: &Trace,
    segments: &SegmentTable,
    source: &mut Source,
) -> replay::Result<Vec<Prediction>> {
    let mut all = Vec::new();
    for predicted in typed {
        let Predicted { threshold, deconflict, .. } = *predicted;
        let from = joined_at(predicted, trace, segments, source)?;
        let place = match &predicted.place {
            Where::At(place) => place,
            Where::Calls(function) => {
                let entries = entries_of(function, segments, source);
                if entries.is_empty() {
                    return Err(replay::Error::Request(format!(
                        "--predict {predicted}: no lane entered a function of that name; name one that --by function \
                         shows and that the compiler did not inline"
                    )));
                }
                let made = |at| Prediction { threshold, deconflict, from: from.clone(), ..Prediction::of_calls(at) };
                all.extend(entries.into_iter().map(made));
                continue;
            }
            Where::Marks => {
                all.extend(marked(predicted, &source.marks(), segments, source)?);
                continue;
            }
        };
        let blocks = blocks_at(place, trace, segments, source);
        if blocks.is_empty() {
            return Err(no_code(place));
        }
        let made = |at| Prediction { threshold, deconflict, from: from.clone(), ..Prediction::at(at) };
        all.extend(blocks.into_iter().map(made));
    }
    Ok(all)
}

fn no_code(place: &Place) -> replay::Error {
    replay::Error::Request(format!(
        "--predict {place}: no lane ran code there; name a line or address that --by line or --annotate shows"
    ))
}

/// The first block of a place, in each function with code of that place that lanes ran.
fn blocks_at(place: &Place, trace: &Trace, segments: &SegmentTable, source: &mut Source) -> Vec<Pc> {
    let mut of_functions: BTreeMap<Option<Pc>, Pc> = BTreeMap::new();
    for pc in place.code(trace, source) {
        if let Some(start) = block_of(pc, segments) {
            of_functions.entry(source.function_start(pc)).or_insert(start);
        }
    }
    of_functions.into_values().collect()
}

/// The blocks in which lanes join, if they were typed.
fn joined_at(
    predicted: &Predicted,
    trace: &Trace,
    segments: &SegmentTable,
    source: &mut Source,
) -> replay::Result<Vec<Pc>> {
    let blocks = match &predicted.from {
        None => return Ok(Vec::new()),
        Some(From::At(place)) => blocks_at(place, trace, segments, source),
        Some(From::Function(name)) => entries_of(name, segments, source).into_iter().collect(),
    };
    match blocks.is_empty() {
        true => Err(replay::Error::Request(format!(
            "--predict {predicted}: no lane ran code at the place that from= names; name a line, an address, or a \
             function that --by function shows"
        ))),
        false => Ok(blocks),
    }
}

/// Warns about predictions that change nothing, and notes which places the compiler copied.
///
/// # Errors
/// When no prediction changes anything.
pub(crate) fn check(predictions: &Predictions, source: &Source) -> replay::Result<()> {
    for Copied { at, behind, past } in predictions.copied() {
        let (copies, function) = (1 + behind.len() + past.len(), source.function(*at));
        let others = match past.len() {
            0 => String::new(),
            n => format!("; {n} of them lie on paths past it, where no lane is collected"),
        };
        say!(
            "lockstep: note: --predict marks: in {function} the compiler copied the place to {copies}; lanes are \
             collected at {at}, once for the iterations that were merged into one{others}"
        );
    }
    for prediction in predictions.without_region() {
        let (at, function) = (prediction.at, source.function(prediction.at));
        let why = match prediction.calls {
            true => {
                format!("{function}, at {at}, is not called anywhere that lanes reached after the prediction began")
            }
            false => format!("no lane reached {at} in {function} after the prediction began"),
        };
        if predictions.is_empty() {
            return Err(replay::Error::Request(format!(
                "--predict: {why}: there is nothing to wait for, so name \
                 another place"
            )));
        }
        say!("lockstep: warning: --predict: {why}, so it changes nothing");
    }
    Ok(())
}

/// The first pcs of the functions of this name that lanes ran, including copies that the compiler made of one; of an
/// address, that one.
fn entries_of(name: &str, segments: &SegmentTable, source: &Source) -> BTreeSet<Pc> {
    let mut starts = segments.iter().map(|(_, segment)| segment.start());
    if let Ok(Place::Address(at)) = name.parse() {
        return starts.find(|start| *start == at).into_iter().collect();
    }
    let is_entry = |pc: &Pc| {
        let whole = source.function(*pc);
        let plain = whole.split(['(', '.', '<']).next();
        source.function_start(*pc) == Some(*pc) && (whole == name || plain == Some(name))
    };
    starts.filter(is_entry).collect()
}

/// Where the block begins in which lanes ran this instruction.
fn block_of(pc: Pc, segments: &SegmentTable) -> Option<Pc> {
    let holds = |segment: &heuristics::Segment| segment.instructions.iter().any(|i| i.pc == pc);
    segments.iter().find(|(_, segment)| holds(segment)).map(|(_, segment)| segment.start())
}

/// Marks of one name in one function: the blocks with each kind.
#[derive(Default)]
struct Marked {
    begins: BTreeSet<Pc>,
    waits: BTreeSet<Pc>,
    threshold: Option<usize>,
}

/// The predictions that marks make: for each name, one in each function that has both kinds of marks. The copies that
/// unrolling, inlining and jump threading made of the place belong to it.
fn marked(
    predicted: &Predicted,
    marks: &[Mark],
    segments: &SegmentTable,
    source: &Source,
) -> replay::Result<Vec<Prediction>> {
    let mut of_names: BTreeMap<(&str, Option<Pc>, bool), Marked> = BTreeMap::new();
    for mark in marks {
        let Some(block) = block_of(mark.pc, segments) else { continue };
        let is_function = mark.kind == MarkKind::BeginsCalls;
        let of_name = of_names.entry((&mark.name, source.function_start(mark.pc), is_function)).or_default();
        match mark.kind {
            MarkKind::Begins | MarkKind::BeginsCalls => of_name.begins.insert(block),
            MarkKind::Waits => of_name.waits.insert(block),
        };
        of_name.threshold = of_name.threshold.or(mark.threshold);
    }
    let mut all = Vec::new();
    for ((name, _, is_function), Marked { begins, waits, threshold }) in of_names {
        let (threshold, deconflict) = (predicted.threshold.or(threshold), predicted.deconflict);
        let function = begins.iter().chain(&waits).next().map(|pc| source.function(*pc)).unwrap_or_default();
        if is_function {
            let entries = entries_of(name, segments, source);
            if entries.is_empty() {
                say!(
                    "lockstep: warning: --predict marks: LOCKSTEP_PREDICT_FUNCTION({name}) in {function}: no lane \
                     entered a function of that name, so the mark has no effect; if the compiler inlined it, write \
                     LOCKSTEP_APART before its definition"
                );
            }
            let from: Vec<Pc> = begins.into_iter().collect();
            let made = |at| Prediction { threshold, deconflict, from: from.clone(), ..Prediction::of_calls(at) };
            all.extend(entries.into_iter().map(made));
            continue;
        }
        let (false, Some(at)) = (begins.is_empty(), waits.first()) else {
            let missing = if waits.is_empty() { "LOCKSTEP_RECONVERGE" } else { "LOCKSTEP_PREDICT" };
            say!(
                "lockstep: warning: --predict marks: {name} in {function}: no lane ran code at a {missing}({name}) \
                 there, so the mark has no effect; put both marks into one function that lanes run"
            );
            continue;
        };
        let from = begins.into_iter().collect();
        let copies = waits.iter().skip(1).copied().collect();
        all.push(Prediction { threshold, deconflict, from, copies, ..Prediction::at(*at) });
    }
    match all.is_empty() {
        true => Err(replay::Error::Request(
            "--predict marks: no binary of the program has a pair LOCKSTEP_PREDICT and LOCKSTEP_RECONVERGE in a \
             function that lanes ran, or a LOCKSTEP_PREDICT_FUNCTION of a function that they ran; build it with the \
             marks of include/lockstep.h, or name a line"
                .to_owned(),
        )),
        false => Ok(all),
    }
}

/// The models among these that obey predictions. A model whose lanes meet anywhere has no barrier at which to collect
/// them.
///
/// # Errors
/// When there is none: what was typed does not go together.
pub(crate) fn obedient(models: &[Spec]) -> Result<Vec<Spec>, String> {
    let obey: Vec<Spec> = models.iter().filter(|spec| collects(spec)).cloned().collect();
    match obey.is_empty() {
        true => Err(
            "--predict: only hanoi, and barrier with meet=barriers, collect lanes at predicted places: name one by \
             --heuristic"
                .to_owned(),
        ),
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
        for text in [
            "marks",
            "marks,threshold=4",
            "call:shade",
            "call:ns::shade(double, int),threshold=2",
            "call:12",
            "a/b.c:12",
            "0x401136,threshold=8",
            "a.c:1,threshold=256,deconflict=static",
            "call:shade,from=worker,threshold=4",
            "a.c:9,from=a.c:3",
            "call:12,from=ns::shade(double, int),deconflict=static",
        ] {
            assert_eq!(text.parse::<Predicted>().unwrap().to_string(), text);
        }
        for (wrong, why) in [
            ("threshold=8", "give a line"),
            ("call:", "name of a function"),
            ("a.c:1,threshold=0", "1 to 256"),
            ("a.c:1,threshold=x", "1 to 256"),
            ("a.c:1,deconflict=never", "neither"),
            ("a.c:1,", "neither"),
            ("a.c:1,from=", "must follow from="),
            ("marks,from=main", "marks already say"),
        ] {
            assert!(wrong.parse::<Predicted>().is_err_and(|e| e.contains(why)), "{wrong}");
        }
    }
}
