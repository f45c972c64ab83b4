//! What a user may choose about a view.

use std::fmt;
use std::str::FromStr;

use trace_format::Pc;

use crate::{Error, Locks, Result};

/// Which part of each thread is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Region {
    /// The SPMD part: the start routine of the threads, or the bodies of the OpenMP parallel regions.
    #[default]
    Auto,
    /// Whole threads.
    All,
    /// What each thread runs between `LOCKSTEP_BEGIN` and `LOCKSTEP_END` of its own.
    Markers,
    /// Each outermost execution of the function of this name (as in the symbol table), on any thread.
    Symbol(String),
}

/// Which code is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CodeFilter {
    /// Everything but the inside of synchronisation and thread-runtime functions, and of the C library's mathematical
    /// functions.
    #[default]
    All,
    /// Of that, only what lies in the main executable.
    Main,
    /// All, and the inside of mathematical functions.
    Whole,
}

/// Which loops count as spin-waiting, besides those with a `pause` or a yield.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Spin {
    /// Those that wait for sure: their turns leave the thread as it was, and another thread's write ends them.
    #[default]
    Auto,
    /// None.
    Keep,
    /// Those that wait for sure, and those that run an instruction at one of these addresses and whose turns write no
    /// memory but the thread's stack: whatever they count, and whatever ends them.
    At(Vec<Pc>),
}

/// What is a lane.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Lanes {
    /// A thread, with all that it runs in the region.
    #[default]
    Threads,
    /// Each time that a thread reaches the region: with a function for the region, each of its outermost calls.
    Calls,
    /// Each OpenMP task.
    Tasks,
    /// Each turn of a loop.
    Iterations(WhichLoops),
    /// Each iteration that `lockstep cc` marked.
    Marks,
}

/// The loops whose turns are lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichLoops {
    /// Those whose ends hang on what OpenMP gave their thread; else the outermost loops in the bodies of its parallel
    /// regions; of those by which threads fetch chunks, the loops inside. Where iterations are marked, those.
    Worksharing,
    /// Those whose turns end at one of these addresses; where there are none, those that begin there, or hold one.
    At(Vec<Pc>),
    /// The same of the first of these that means any.
    Near(Vec<Vec<Pc>>),
}

/// What to take of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ViewOptions {
    /// Which part of each thread. Default: `auto`.
    pub region: Region,
    /// Which code. Default: `all`.
    pub code: CodeFilter,
    /// How locks count. Default: `serialize`.
    pub locks: Locks,
    /// Which loops count as spin-waiting. Default: `auto`.
    pub spin: Spin,
    /// What is a lane. Default: a thread.
    pub lanes: Lanes,
}

impl Spin {
    /// The places that the user named.
    pub(super) fn places(&self) -> &[Pc] {
        match self {
            Spin::At(places) => places,
            Spin::Auto | Spin::Keep => &[],
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Region::Auto => "auto",
            Region::All => "all",
            Region::Markers => "markers",
            Region::Symbol(name) => name,
        })
    }
}

impl FromStr for Region {
    type Err = Error;

    fn from_str(text: &str) -> Result<Region> {
        match text {
            "" => Err(Error::Request("the region is empty: give `auto`, `all`, `markers` or a function's name".into())),
            "auto" => Ok(Region::Auto),
            "all" => Ok(Region::All),
            "markers" => Ok(Region::Markers),
            name => Ok(Region::Symbol(name.to_owned())),
        }
    }
}

impl CodeFilter {
    /// Every choice, in the order of the help text.
    pub const ALL: [CodeFilter; 3] = [CodeFilter::All, CodeFilter::Main, CodeFilter::Whole];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CodeFilter::All => "all",
            CodeFilter::Main => "main",
            CodeFilter::Whole => "whole",
        }
    }
}

impl fmt::Display for CodeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CodeFilter {
    type Err = Error;

    fn from_str(text: &str) -> Result<CodeFilter> {
        let found = CodeFilter::ALL.into_iter().find(|c| c.name() == text);
        found.ok_or_else(|| Error::Request(format!("`{text}` is not a choice of code: give `all`, `main` or `whole`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_the_choices_they_show() {
        for code in CodeFilter::ALL {
            assert_eq!(code.to_string().parse::<CodeFilter>().unwrap(), code);
        }
        for region in [Region::Auto, Region::All, Region::Markers, Region::Symbol("slave".into())] {
            assert_eq!(region.to_string().parse::<Region>().unwrap(), region);
        }
    }

    #[test]
    fn an_unknown_choice_is_told_the_known_ones() {
        assert!("both".parse::<CodeFilter>().unwrap_err().to_string().contains("`all`, `main` or `whole`"));
        assert!("".parse::<Region>().is_err());
    }

    #[test]
    fn defaults_are_auto_all_serialize() {
        let options = ViewOptions::default();
        assert_eq!((options.region, options.code, options.locks), (Region::Auto, CodeFilter::All, Locks::Serialize));
    }
}
