//! Lanes regrouped each time that they come to a place in the code, and what that gains and costs.

use std::path::Path;

use attribution::{Place, Source};
use heuristics::Spec;
use replay::reorder::{Reordered, segments_ran};
use replay::{Error, Prepared, ReplayOptions, Result, SortKey};
use trace_format::Trace;

use crate::grouping::{Tried, with_traffic};

/// Where lanes are regrouped, and by what.
#[derive(Clone, Debug)]
pub struct Reorder {
    /// The place.
    pub place: Place,
    /// What lanes are sorted by.
    pub key: SortKey,
}

/// What regrouping gains and costs.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Where, and by what.
    pub reorder: Reorder,
    /// How often a lane came to the place.
    pub visits: u64,
    /// How often the lanes of a launch were regrouped.
    pub regroupings: u64,
    /// The lanes as they are, and regrouped.
    pub tried: Vec<Tried>,
}

impl Reorder {
    /// How lanes are put into warps, as rows have it.
    #[must_use]
    pub fn group(&self) -> String {
        format!("reorder:at={},key={}", self.place, self.key)
    }

    /// The lanes, cut and regrouped.
    ///
    /// # Errors
    /// When the trace cannot be read, no lane comes to the place, or lanes would wait for each other there.
    pub fn lanes<'a>(&self, whole: &Prepared<'a>, trace: &Trace, source: &mut Source) -> Result<Reordered<'a>> {
        let at = self.place.code(trace, source);
        match Reordered::new(whole, &at, self.key)? {
            Some(lanes) => Ok(lanes),
            None => Err(Error::Request(self.not_visited(whole, source)?)),
        }
    }

    /// That no lane comes to the place, with the nearest line to which one does.
    fn not_visited(&self, whole: &Prepared, source: &mut Source) -> Result<String> {
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
    pub fn compared(
        &self,
        whole: &Prepared,
        lanes: &Reordered,
        regrouped: &Prepared,
        trace: &Trace,
        models: &[Spec],
        options: &ReplayOptions,
    ) -> Result<Compared> {
        let options = ReplayOptions { measures: with_traffic(&[], trace), ..options.clone() };
        let row = |group: &str, prepared: &Prepared| -> Result<Tried> {
            let outcomes = prepared.replay(models, &options, None, &|_, _| {})?;
            Ok(Tried { group: group.to_owned(), outcomes, least_of_any: None })
        };
        let tried = vec![row("as they are", whole)?, row("regrouped", regrouped)?];
        Ok(Compared { reorder: self.clone(), visits: lanes.visits(), regroupings: lanes.regroupings(), tried })
    }
}
