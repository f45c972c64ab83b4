//! The answer to a question: what `lockstep replay` shows first.

use std::fmt;

use attribution::{Source, locks};
use replay::{Outcome, Prepared, Result};
use trace_format::Trace;

use crate::lanes;
use crate::{Judge, Question, Range, Verdict, forget, measures};

/// What a question found. It is shown as the lines of the verdict.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The results of the models, in their order.
    pub outcomes: Vec<Outcome>,
    /// What the machine's models say; none for models that were named, and none if its own model has no figure.
    pub range: Option<Range>,
    /// The verdict, where there is a range.
    pub verdict: Option<Verdict>,
    /// What else the reader should know: that other lanes were taken, which files were missing.
    pub notes: Vec<String>,
}

impl Question {
    /// Replays the lanes and judges them.
    ///
    /// # Errors
    /// When the trace cannot be read, or has no such lanes.
    pub fn ask(&self, trace: &Trace) -> Result<Answer> {
        let (view, other) = lanes::view(trace, &self.lanes)?;
        let mut source = Source::new(trace);
        let mut options = self.options(&view);
        options.measures = measures(&options.measures, &view);
        let prepared = Prepared::new(&view, true)?;
        let mut outcomes = prepared.replay(&self.subject.models, &options, None, &|_, _| {})?;
        let judge = Judge { trace, view: &view, question: self, model: &self.subject.models[0], options: &options };
        let range = self.subject.range(&prepared, &view, &mut source, outcomes.first(), &options)?;
        let verdict = match (&range, outcomes.first()) {
            (Some(range), Some(first)) => Some(judge.judge(&prepared, first, range.figure(), &mut source)?),
            _ => None,
        };
        forget(&mut outcomes, &self.replay.measures);
        locks::locate(&mut outcomes, &view, &mut source);
        let notes = other.into_iter().chain(source.notes().iter().cloned()).collect();
        Ok(Answer { outcomes, range, verdict, notes })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Some(verdict) => f.write_str(&verdict.lines().join("\n")),
            None => f.write_str(&self.outcomes.iter().map(Outcome::status).collect::<Vec<_>>().join("\n")),
        }
    }
}
