//! The places at which collecting lanes would pay: what was expected of each, and what came of it.

use crate::page::{Collected, Collecting};
use heuristics::brief;
use replay::suggest::Suggestions;

use super::code::Code;
use attribution::typed_prediction;

/// Those that pay, the one that saves most first.
pub(crate) fn of(found: &Suggestions, code: &mut Code) -> Collecting {
    let before = found.before.issued(found.unit);
    let mut places = Vec::new();
    for tried in &found.tried {
        let Some(trial) = tried.trials.first().filter(|trial| trial.outcome.issued(found.unit) < before) else {
            continue;
        };
        let (at, outcome) = (tried.candidate.at, &trial.outcome);
        let predict = typed_prediction(&tried.candidate, code.source());
        places.push(Collected {
            line: code.line(at),
            place: code.place(at),
            predict,
            pattern: tried.candidate.pattern.name().to_owned(),
            expected: tried.candidate.at_most.round() as u64,
            threshold: trial.prediction.threshold,
            fetches: outcome.fetched(found.unit),
            simt_efficiency: outcome.simt_efficiency(),
            barrier_operations: outcome.waits(found.unit).unwrap_or_default(),
        });
    }
    let (model, unit) = (brief(&found.before.heuristic), found.unit.name());
    Collecting { model, unit, before, tried: found.tried.len(), places }
}
