//! How wide tables and notes are.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use attribution::Width;

/// Whether `--wide` was given: notes are written from where no arguments are.
static WIDE: AtomicBool = AtomicBool::new(false);

#[derive(clap::Args)]
pub(crate) struct Wide {
    /// Print tables and notes at full width
    ///
    /// By default they fit the terminal: names of functions, files and models are shortened in the middle, and notes
    /// wrap. Output to a file or pipe is not cut unless the environment variable COLUMNS gives a number of columns.
    /// JSON and CSV are never cut
    #[arg(long, hide_short_help = true)]
    wide: bool,
}

impl Wide {
    /// From here on it applies to everything printed.
    pub(crate) fn apply(&self) {
        WIDE.store(self.wide, Ordering::Relaxed);
    }

    pub(crate) fn is_given(&self) -> bool {
        self.wide
    }
}

/// The width of what is printed for people.
pub(crate) fn of_results() -> Width {
    #[expect(clippy::disallowed_methods, reason = "nothing is written to it here")]
    let stdout = std::io::stdout();
    of(&stdout)
}

/// The width of notes.
pub(crate) fn of_notes() -> Width {
    of(&std::io::stderr())
}

fn of(stream: &(impl AsFd + IsTerminal)) -> Width {
    if WIDE.load(Ordering::Relaxed) {
        return Width::ALL;
    }
    let typed = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let typed = typed.filter(|columns| *columns > 0).map(Width::columns);
    typed.unwrap_or_else(|| match (stream.is_terminal(), terminal_size::terminal_size_of(stream)) {
        (false, _) => Width::ALL,
        (true, Some((terminal_size::Width(columns), _))) if columns > 0 => Width::columns(columns.into()),
        (true, _) => Width::USUAL,
    })
}
