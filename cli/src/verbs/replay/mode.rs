//! What `replay` does: decided once, from the options that were given, and which options go together.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, Error};
use replay::metrics::Checker;
use replay::registry::{Entry, PARAMETERS, measures};

use super::options::Typed;
use crate::typed::by::By;
use crate::typed::checked::Check;
use crate::typed::predict;
use crate::typed::selection::{GROUPS, LOCKS, WIDTHS};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A row for each model.
    Rows,
    /// A row for each width and each grouping.
    Sweep,
    /// How far several traces lie apart.
    Spread,
    /// The loops.
    Loops,
    /// The dependences between lanes.
    Dependences,
    /// How lanes would run, on a page.
    Verdict,
    /// A row for each model, with lanes regrouped at a place.
    Reorder,
}

/// Options about the one view that rows are of.
const OF_ONE_VIEW: &[&str] = &["by", "memory_by", "annotate", "schedule", "lanes_out", "predict", LOCKS];

/// Options that do not go together, whatever the mode.
const PAIRS: [(&str, &str); 5] =
    [("machine", "heuristic"), ("predict", "machine"), ("annotate", "by"), ("annotate", "json"), ("schedule", LOCKS)];

impl Mode {
    /// The options that it has no use for.
    fn refused(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Mode::Rows => return Vec::new(),
            Mode::Reorder => return vec![GROUPS],
            Mode::Sweep => &["top"],
            Mode::Spread => &["top", "csv"],
            Mode::Loops => &["csv", "lanes", "at_loop"],
            Mode::Dependences => &["csv", "heuristic", "machine"],
            Mode::Verdict => &["csv", "heuristic", "machine", "top", WIDTHS],
        };
        // Whatever is done with a trace, its code can be checked first.
        let is_check = |entry: &Entry| entry.name == Checker::measure().name() && self != Mode::Spread;
        let of_measures = measures().filter(|entry| !is_check(entry)).filter_map(|entry| Some(entry.switch?.name));
        let of_measures = of_measures.chain(PARAMETERS.iter().map(|parameter| parameter.name));
        let of_measures = of_measures.filter(|_| self != Mode::Sweep);
        own.iter().chain(OF_ONE_VIEW).copied().chain(of_measures).collect()
    }
}

impl Typed {
    /// What is done.
    pub(super) fn mode(&self) -> Mode {
        self.modes().first().map_or(Mode::Rows, |(_, mode)| *mode)
    }

    /// The modes that options ask for, each with its option.
    fn modes(&self) -> Vec<(&'static str, Mode)> {
        let asked = [
            ("others", Mode::Spread, !self.others.is_empty()),
            ("loops", Mode::Loops, self.loops),
            ("dependences", Mode::Dependences, self.dependences),
            ("verdict", Mode::Verdict, self.verdict),
            ("reorder", Mode::Reorder, self.reorder.meant().is_some()),
            (WIDTHS, Mode::Sweep, self.has_several(WIDTHS)),
            (GROUPS, Mode::Sweep, self.has_several(GROUPS)),
        ];
        asked.into_iter().filter(|(_, _, is)| *is).map(|(option, mode, _)| (option, mode)).collect()
    }

    fn has_several(&self, id: &str) -> bool {
        self.selection.several().any(|option| option == id)
    }

    /// An option as it was given: with its values, where those decide whether it is refused.
    fn shown(&self, id: &str, matches: &ArgMatches) -> String {
        let mut command = Typed::augment_args(Command::new("replay"));
        command.build();
        let values = matches.get_raw(id).filter(|_| self.has_several(id)).into_iter().flatten();
        match values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(" ") {
            values if !values.is_empty() => format!("--{} {values}", id.replace('_', "-")),
            _ => command
                .get_arguments()
                .find(|argument| argument.get_id() == id)
                .map(ToString::to_string)
                .unwrap_or_default(),
        }
    }
}

impl Check for Typed {
    /// Refuses two modes, an option that has no use in the mode, and pairs that never go together.
    fn check(&self, matches: &ArgMatches) -> Result<(), Error> {
        let refused = |text: String| Error::raw(ErrorKind::ArgumentConflict, text);
        let is_given = |id: &str| {
            matches.value_source(id) == Some(ValueSource::CommandLine) && (id != LOCKS || self.has_several(LOCKS))
        };
        let modes = self.modes();
        let (option, mode) = modes.first().copied().unwrap_or(("", Mode::Rows));
        let of_modes = modes.iter().find(|(_, other)| *other != mode).map(|(other, _)| (*other, option));
        let of_mode = || mode.refused().into_iter().find(|id| is_given(id)).map(|id| (id, option));
        let of_any = || PAIRS.into_iter().find(|(one, other)| is_given(one) && is_given(other));
        if let Some((one, other)) = of_modes.or_else(of_mode).or_else(of_any) {
            let [one, other] = [one, other].map(|id| self.shown(id, matches));
            return Err(refused(format!("the argument '{one}' cannot be used with '{other}'")));
        }
        self.selection.check_lanes()?;
        if !self.predict.is_empty() {
            predict::obedient(&self.subject().models).map_err(refused)?;
        }
        if mode == Mode::Dependences && !self.selection.are_parts_of_threads() {
            let text = "the argument '--dependences' cannot be used with '--lanes threads', the default: threads already \
                 run at the same time; dependences are found between iterations of a loop, calls or tasks: add --loop \
                 or --lanes";
            return Err(refused(text.to_owned()));
        }
        if self.by == Some(By::Lock) && !self.selection.locks.are_taken() {
            let text = "the argument '--by lock' cannot be used with '--locks drop' or '--locks ignore': with these \
                 rules there is nothing to show by lock; use --locks serialize or simt";
            return Err(refused(text.to_owned()));
        }
        Ok(())
    }
}
