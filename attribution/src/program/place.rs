//! Places in the program as they are typed: a line or an address.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use trace_format::{Pc, Trace};

use crate::{Source, is_of_library};

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a source file, which is named by the end of its path.
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
    },
    /// An address of the program.
    Address(Pc),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let address = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let line = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        match (address, line) {
            (Some(address), _) => Ok(Place::Address(Pc(address))),
            (_, Some((file, line))) if !file.is_empty() => Ok(Place::Line { file: file.to_owned(), line }),
            _ => Err("give a line (barrier.c:12) or an address (0x401136)".to_owned()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { file, line } => write!(f, "{file}:{line}"),
            Place::Address(pc) => pc.fmt(f),
        }
    }
}

impl Place {
    /// The addresses of the instructions there, as far as they ran; of an address, that one, whether it ran or not. The
    /// system's libraries are looked at where no other code has the line.
    pub fn code(&self, trace: &Trace, source: &mut Source) -> BTreeSet<Pc> {
        let (file, line) = match self {
            Place::Address(pc) => return BTreeSet::from([*pc]),
            Place::Line { file, line } => (file, *line),
        };
        let blocks = trace.blocks().iter();
        let ran: BTreeSet<Pc> = blocks.flat_map(|(_, block)| &block.instructions).map(|i| i.pc).collect();
        // The line tables of the system's libraries are large, and seldom what is meant.
        let is_own = |pc: &Pc| trace.module_of(*pc).is_none_or(|module| !is_of_library(&module.path));
        let (own, others): (Vec<Pc>, Vec<Pc>) = ran.into_iter().partition(is_own);
        let mut there =
            |some: Vec<Pc>| -> BTreeSet<Pc> { some.into_iter().filter(|pc| source.is_at(*pc, file, line)).collect() };
        let found = there(own);
        if found.is_empty() { there(others) } else { found }
    }
}
