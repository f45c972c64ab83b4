//! Options that clap reads one by one, and that are then checked together.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Command, Error, FromArgMatches};

/// Options that do not all go together.
pub(crate) trait Check: clap::Args {
    /// Whether those that were given do.
    ///
    /// # Errors
    /// Of usage, when they don't: clap shows it.
    fn check(&self, matches: &ArgMatches) -> Result<(), Error>;
}

/// Options that go together.
#[derive(Clone)]
pub(crate) struct Checked<T>(T);

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Check> clap::Args for Checked<T> {
    fn augment_args(command: Command) -> Command {
        // What comes behind these options is not under their heading.
        T::augment_args(command).next_help_heading(Resettable::Reset)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Check> FromArgMatches for Checked<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Checked<T>, Error> {
        let typed = T::from_arg_matches(matches)?;
        typed.check(matches)?;
        Ok(Checked(typed))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Checked::from_arg_matches(matches)?;
        Ok(())
    }
}
