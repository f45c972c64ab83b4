//! `replay` for a program that calls it: what the command prints, as values.

use std::ffi::OsString;

use attribution::{Source, lost};
use replay::{LaneOrigin, Outcome, Setting};
use serde_json::Value;
use trace_format::Trace;
use verdict::Verdict;

use super::Args;
use super::mode::Mode;
use super::options::{Asked, Told};
use super::rows::{Replayed, Request, judged};
use crate::output::heard;

/// What `replay` finds.
pub struct Called {
    /// As `replay --json` prints it.
    pub json: Value,
    /// The verdict of a machine, under the first rule for locks.
    pub verdict: Option<Verdict>,
    /// By rule for locks, as they were asked for.
    pub by_rule: Vec<ByRule>,
    /// What the command says besides: which lanes were taken in place of others, which files were missing.
    pub notes: Vec<String>,
}

/// What was found under one rule for locks.
pub struct ByRule {
    /// The rule.
    pub rule: String,
    /// What the results are about.
    pub setting: Setting,
    /// By model.
    pub outcomes: Vec<Outcome>,
    /// By model: lost lane-slots, where they were asked for by something and the model does not deadlock.
    pub lost: Vec<Option<Vec<lost::Row>>>,
    /// What they were asked for by.
    pub by: Option<lost::By>,
    /// Where the lanes come from, in their order.
    pub origins: Vec<LaneOrigin>,
}

#[derive(clap::Parser)]
#[command(name = "replay")]
struct Words {
    #[command(flatten)]
    args: Args,
}

impl Called {
    /// Does what `replay` does with these options, and the trace's path behind them, for rows of models. `told` is told
    /// of each replay of these models that is done.
    ///
    /// # Errors
    /// When the options are wrong (as [`clap::Error`]), or ask for something else than rows; when the trace cannot be
    /// read, or cannot give what was asked for.
    pub fn new(options: &[OsString], trace: &Trace, told: Told) -> anyhow::Result<Called> {
        let (called, notes) = heard(|| Called::of(options, trace, told));
        Ok(Called { notes, ..called? })
    }

    fn of(options: &[OsString], trace: &Trace, told: Told) -> anyhow::Result<Called> {
        let words = ["replay".into(), "--json".into()].into_iter().chain(options.iter().cloned());
        let Words { args } = crate::parse(words)?;
        if args.mode() != Mode::Rows {
            anyhow::bail!(replay::Error::Request("one width, one grouping and one trace at a time".to_owned()));
        }
        let mut source = Source::new(trace);
        let asked = Asked { told: Some(told), ..args.asked(trace, &source)? };
        let request = Request::of(&asked);
        let all = request.replayed(&mut source, judged)?;
        source.notes().iter().for_each(|note| crate::output::say!("{note}"));
        let json = request.json(&all);
        let verdict = all.first().and_then(|first| first.found.verdict.clone());
        let by_rule = all.into_iter().map(|replayed| ByRule::of(replayed, request.wanted.lost)).collect();
        Ok(Called { json, verdict, by_rule, notes: Vec::new() })
    }
}

impl ByRule {
    fn of(replayed: Replayed, by: Option<lost::By>) -> ByRule {
        let Replayed { rule, setting, found, rows, origins, .. } = replayed;
        let lost = rows.into_iter().map(|rows| rows.lost).collect();
        ByRule { rule: rule.to_string(), setting, outcomes: found.outcomes, lost, by, origins }
    }
}
