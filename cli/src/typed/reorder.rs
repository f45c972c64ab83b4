//! `replay --reorder PLACE --key KEY`: lanes regrouped each time that they come to a place in the code, and what that
//! gains and costs.

use std::path::Path;

use attribution::Source;
use attribution::table::grouped;
use heuristics::Spec;
use replay::reorder::{Reordered, segments_ran};
use replay::{Outcome, Prepared, ReplayOptions, SortKey};
use serde_json::{Value, json};
use trace_format::Trace;

use crate::typed::place::Place;
use crate::typed::sweep::{self, Tried};

/// What was typed.
#[derive(clap::Args, Clone)]
pub(crate) struct Typed {
    /// Regroup lanes each time that they come to this line (file.c:42) or address, as shader execution reordering does:
    /// those that come there for the same time are sorted by --key and make new warps. Shown beside the same lanes
    /// without it
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["group", "loops", "dependences", "verdict"])]
    reorder: Option<Place>,

    /// What --reorder sorts lanes by: path, trips or instructions, of what they run up to where they are regrouped
    /// next. Default: path
    #[arg(long, value_name = "KEY", requires = "reorder", value_parser = key)]
    key: Option<SortKey>,
}

fn key(text: &str) -> Result<SortKey, String> {
    text.parse().map_err(|()| "it is path, trips or instructions".to_owned())
}

/// Where lanes are regrouped, and by what.
#[derive(Clone, Debug)]
pub(crate) struct Reorder {
    place: Place,
    key: SortKey,
}

impl Typed {
    /// What was meant; none where lanes are not regrouped.
    pub(crate) fn meant(&self) -> Option<Reorder> {
        let place = self.reorder.clone()?;
        Some(Reorder { place, key: self.key.unwrap_or(SortKey::Path) })
    }
}

impl Reorder {
    /// How lanes are put into warps, as rows have it.
    pub(crate) fn group(&self) -> String {
        format!("reorder:at={},key={}", self.place, self.key)
    }

    /// The lanes, cut and regrouped.
    ///
    /// # Errors
    /// When the trace cannot be read, no lane comes to the place, or lanes would wait for each other there.
    pub(crate) fn lanes<'a>(
        &self,
        whole: &Prepared<'a>,
        trace: &Trace,
        source: &mut Source,
    ) -> replay::Result<Reordered<'a>> {
        let at = self.place.code(trace, source);
        match Reordered::new(whole, &at, self.key)? {
            Some(lanes) => Ok(lanes),
            None => Err(replay::Error::Request(self.not_visited(whole, source)?)),
        }
    }

    /// That no lane comes to the place, with the nearest line to which one does.
    fn not_visited(&self, whole: &Prepared, source: &mut Source) -> replay::Result<String> {
        let Place::Line { file, line } = &self.place else {
            return Ok(format!("--reorder {}: no lane of the region runs code at that address", self.place));
        };
        let segments = &whole.program().segments;
        let mut nearest: Option<u32> = None;
        for id in segments_ran(whole)? {
            for instruction in &segments[id].instructions {
                let found = source.line(instruction.pc).filter(|found| Path::new(&found.file).ends_with(file));
                let Some(found) = found.map(|found| found.line) else { continue };
                let is_nearer = |known: u32| (found.abs_diff(*line), found) < (known.abs_diff(*line), known);
                if nearest.is_none_or(is_nearer) {
                    nearest = Some(found);
                }
            }
        }
        let hint = match nearest {
            Some(nearest) => format!("the nearest line that lanes run is {file}:{nearest}"),
            None => format!("lanes run no line of {file} (is the program compiled with -g?)"),
        };
        Ok(format!("--reorder {}: no lane of the region runs that line; {hint}", self.place))
    }

    /// The same lanes without regrouping, beside what came of it.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn compared(
        &self,
        (whole, lanes, regrouped): (&Prepared, &Reordered, &Prepared),
        trace: &Trace,
        models: &[Spec],
        options: &ReplayOptions,
    ) -> replay::Result<Compared> {
        let options = ReplayOptions { measures: sweep::with_traffic(&[], trace), ..options.clone() };
        let row = |group: &str, prepared: &Prepared| -> replay::Result<Tried> {
            let outcomes = prepared.replay(models, &options, None, &|_, _| {})?;
            Ok(Tried { group: group.to_owned(), outcomes, least_of_any: None })
        };
        let tried = vec![row("as they are", whole)?, row("regrouped", regrouped)?];
        Ok(Compared {
            place: self.place.to_string(),
            key: self.key,
            visits: lanes.visits(),
            regroupings: lanes.regroupings(),
            tried,
        })
    }
}

/// What regrouping gains and costs.
pub(crate) struct Compared {
    place: String,
    key: SortKey,
    visits: u64,
    regroupings: u64,
    tried: Vec<Tried>,
}

impl Compared {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let instructions = self.tried[0].outcomes.first().map_or(0, |outcome: &Outcome| outcome.upper_bound);
        let times = |n: u64| if n == 1 { "once".to_owned() } else { format!("{} times", grouped(n)) };
        format!(
            "\nlanes regrouped at {} by {}: {}, {} visits by lanes in all, one for {} thread instructions\n{}",
            self.place,
            self.key,
            times(self.regroupings),
            grouped(self.visits),
            grouped(instructions / self.visits.max(1)),
            sweep::table(&self.tried)
        )
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "place": self.place,
            "key": self.key.to_string(),
            "regroupings": self.regroupings,
            "visits": self.visits,
            "rows": sweep::json(&self.tried),
        })
    }
}
