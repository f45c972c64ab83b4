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
    /// The two places, as `file:line`, or `?` where the module has no lines.
    pub places: [String; 2],
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
        };
        let [one, other] = &self.places;
        write!(f, "{} {word}: {}: {} at {one} and {other}: {why}", self.pass, self.function, self.subject)
    }
}

/// `file:line` of an instruction.
pub(crate) fn place(instruction: Instruction<'_>) -> String {
    instruction.line().map_or_else(|| "?".to_owned(), |(file, line)| format!("{file}:{line}"))
}
