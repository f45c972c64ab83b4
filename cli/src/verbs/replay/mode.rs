//! What `replay` does: decided once, from the options that were given, and which options go together.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, Error, FromArgMatches};
use replay::metrics::Checker;
use replay::registry::{Entry, PARAMETERS, measures};

use super::asked::Typed;
use crate::typed::by::By;
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

/// What was given on the command line.
struct Given<'a> {
    typed: &'a Typed,
    matches: &'a ArgMatches,
    command: Command,
}

impl Given<'_> {
    fn has(&self, id: &str) -> bool {
        self.matches.value_source(id) == Some(ValueSource::CommandLine) && (id != LOCKS || self.has_several(LOCKS))
    }

    fn has_several(&self, id: &str) -> bool {
        self.typed.selection.several().any(|option| option == id)
    }

    /// The option as it was given: with its values, where those decide whether it is refused.
    fn shown(&self, id: &str) -> String {
        let argument = self.command.get_arguments().find(|argument| argument.get_id() == id);
        let values = self.matches.get_raw(id).filter(|_| self.has_several(id)).into_iter().flatten();
        match values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(" ") {
            values if values.is_empty() => argument.map(ToString::to_string).unwrap_or_default(),
            values => format!("--{} {values}", id.replace('_', "-")),
        }
    }

    fn refuse(&self, one: &str, other: &str) -> Error {
        let text = format!("the argument '{}' cannot be used with '{}'", self.shown(one), self.shown(other));
        Error::raw(ErrorKind::ArgumentConflict, text)
    }

    /// The modes that options ask for, each with its option.
    fn modes(&self) -> Vec<(&'static str, Mode)> {
        let asked = [
            ("others", Mode::Spread, !self.typed.others.is_empty()),
            ("loops", Mode::Loops, self.typed.loops),
            ("dependences", Mode::Dependences, self.typed.dependences),
            ("verdict", Mode::Verdict, self.typed.verdict),
            ("reorder", Mode::Reorder, self.has("reorder")),
            (WIDTHS, Mode::Sweep, self.has_several(WIDTHS)),
            (GROUPS, Mode::Sweep, self.has_several(GROUPS)),
        ];
        asked.into_iter().filter(|(_, _, is)| *is).map(|(option, mode, _)| (option, mode)).collect()
    }

    /// The one mode that is asked for.
    ///
    /// # Errors
    /// When two are, or an option that has no use in it was given.
    fn mode(&self) -> Result<Mode, Error> {
        let modes = self.modes();
        let (option, mode) = modes.first().copied().unwrap_or(("", Mode::Rows));
        if let Some((other, _)) = modes.iter().find(|(_, other)| *other != mode) {
            return Err(self.refuse(other, option));
        }
        if let Some(refused) = mode.refused().into_iter().find(|id| self.has(id)) {
            return Err(self.refuse(refused, option));
        }
        if let Some((one, other)) = PAIRS.into_iter().find(|(one, other)| self.has(one) && self.has(other)) {
            return Err(self.refuse(one, other));
        }
        self.typed.selection.check()?;
        if !self.typed.predict.is_empty() {
            let refused = |text| Error::raw(ErrorKind::ArgumentConflict, text);
            predict::obedient(&self.typed.subject().models).map_err(refused)?;
        }
        if mode == Mode::Dependences && !self.typed.selection.are_parts_of_threads() {
            let text = "the argument '--dependences' cannot be used with '--lanes threads', the default: threads already \
                 run at the same time; dependences are found between iterations of a loop, calls or tasks: add --loop \
                 or --lanes";
            return Err(Error::raw(ErrorKind::ArgumentConflict, text));
        }
        if self.typed.by == Some(By::Lock) && !self.typed.selection.locks.are_taken() {
            let text = "the argument '--by lock' cannot be used with '--locks drop' or '--locks ignore': with these rules there \
                 is nothing to show by lock; use --locks serialize or simt";
            return Err(Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(mode)
    }
}

/// What `replay` was asked: options that go together, and what they are for.
pub(crate) struct Args {
    pub(super) mode: Mode,
    pub(super) typed: Typed,
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        Typed::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Typed::augment_args_for_update(command)
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, Error> {
        let typed = Typed::from_arg_matches(matches)?;
        let mut command = Typed::augment_args(Command::new("replay"));
        command.build();
        let mode = Given { typed: &typed, matches, command }.mode()?;
        Ok(Args { mode, typed })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Args::from_arg_matches(matches)?;
        Ok(())
    }
}
