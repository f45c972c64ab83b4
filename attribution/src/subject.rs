//! What a row is about.

use std::fmt;

use replay::metrics::Cause;
use trace_format::Pc;

use crate::{Line, Source};

/// What a row is about. Rows whose subjects are written alike are one row.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Subject {
    /// No place in the code: lanes that never shared a fetch.
    #[default]
    Nowhere,
    /// A cause of lost lane-slots.
    Cause(Cause),
    /// The functions of a call path, the region's first.
    Path(Vec<String>),
    /// A function.
    Function(String),
    /// A source line.
    Line(Line),
    /// What stands for the line where that is not known: a function, or a place.
    NoLine {
        /// What stands for it.
        name: String,
        /// The function.
        function: String,
    },
    /// An instruction.
    Instruction {
        /// Its address.
        pc: Pc,
        /// `function+0x12`.
        place: String,
        /// Its function.
        function: String,
        /// Its line, where that is known.
        line: Option<Line>,
    },
}

impl Subject {
    /// The line at an address, or what stands for it.
    pub fn line(pc: Pc, source: &mut Source) -> Subject {
        match source.line(pc) {
            Some(line) => Subject::Line(line),
            None => Subject::NoLine { name: source.without_line(pc), function: source.function(pc) },
        }
    }

    /// The innermost line at an address that is the program's own, or the line, or what stands for it.
    pub fn own_line(pc: Pc, source: &mut Source) -> Subject {
        source.own_line(pc).map_or_else(|| Subject::line(pc, source), Subject::Line)
    }

    /// The instruction at an address.
    pub fn instruction(pc: Pc, source: &mut Source) -> Subject {
        let line = source.line(pc);
        Subject::Instruction { pc, place: source.place(pc), function: source.function(pc), line }
    }

    /// As it is written in a table: a line without the file's folders.
    #[must_use]
    pub fn short(&self) -> String {
        if let Subject::Line(line) = self { line.short() } else { self.to_string() }
    }

    /// What a table says behind that: a line's functions, an instruction's place and line.
    #[must_use]
    pub fn beside(&self) -> String {
        match self {
            Subject::Line(line) => line.functions.join(", inlined into "),
            Subject::Instruction { place, line: Some(line), .. } => format!("{place} {}", line.short()),
            Subject::Instruction { place, .. } => place.clone(),
            Subject::Nowhere | Subject::Cause(_) | Subject::Path(_) | Subject::Function(_) | Subject::NoLine { .. } => {
                String::new()
            }
        }
    }
}

impl fmt::Display for Subject {
    /// What it is, told apart from all others of its kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Nowhere => f.write_str("(no shared fetch)"),
            Subject::Cause(cause) => f.write_str(cause.name()),
            Subject::Path(functions) => f.write_str(&functions.join(" > ")),
            Subject::Function(name) | Subject::NoLine { name, .. } => f.write_str(name),
            Subject::Line(line) => write!(f, "{}:{}", line.file, line.line),
            Subject::Instruction { pc, .. } => pc.fmt(f),
        }
    }
}
