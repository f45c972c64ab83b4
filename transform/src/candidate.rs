//! What a pass looked at, and what it decided.

use std::fmt;

use crate::llvm::Instruction;

/// A place where a pass could have changed the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The pass.
    pub pass: &'static str,
    /// The function.
    pub function: String,
    /// What it is about: the function that both sites call, or what the arms have in common.
    pub subject: String,
    /// The places, as `file:line`, or `?` where the module has no lines: the two that could become one. None for what
    /// is about all of a function or module.
    pub places: Vec<String>,
    /// What was decided, and why.
    pub verdict: Verdict,
}

/// The decision about a [`Candidate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The program was changed; how.
    Taken(String),
    /// The program was left as it is; why.
    Left(String),
    /// The pass found its own work wrong, so that the whole module is left as it was before all passes; what was wrong.
    Refused(String),
}

impl Candidate {
    /// Whether the program was changed.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self.verdict, Verdict::Taken(_))
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, why) = match &self.verdict {
            Verdict::Taken(how) => ("taken", how),
            Verdict::Left(why) => ("left", why),
            Verdict::Refused(why) => ("refused", why),
        };
        write!(f, "{} {word}: {}: {}", self.pass, self.function, self.subject)?;
        if !self.places.is_empty() {
            write!(f, " at {}", self.places.join(" and "))?;
        }
        write!(f, ": {why}")
    }
}

/// `file:line` of an instruction.
pub(crate) fn place(instruction: Instruction<'_>) -> String {
    instruction.line().map_or_else(|| "?".to_owned(), |(file, line)| format!("{file}:{line}"))
}
