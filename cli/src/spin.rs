//! `--spin`: which loops count as waiting, as it was typed; and the lines of those that only look like it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use attribution::Source;
use replay::view::{Spin, Summary};
use trace_format::{Pc, Trace};

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpinRule {
    Auto,
    Keep,
    /// The loop that runs this line or address.
    At(Place),
}

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Line { file: String, line: u32 },
    Address(Pc),
}

impl FromStr for SpinRule {
    type Err = String;

    fn from_str(text: &str) -> Result<SpinRule, String> {
        let address = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let line = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        match (text, address, line) {
            ("auto", ..) => Ok(SpinRule::Auto),
            ("keep", ..) => Ok(SpinRule::Keep),
            (_, Some(address), _) => Ok(SpinRule::At(Place::Address(Pc(address)))),
            (_, _, Some((file, line))) if !file.is_empty() => {
                Ok(SpinRule::At(Place::Line { file: file.to_owned(), line }))
            }
            _ => Err("it is auto, keep, a line (barrier.c:12) or an address (0x401136)".to_owned()),
        }
    }
}

impl fmt::Display for SpinRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpinRule::Auto => f.write_str("auto"),
            SpinRule::Keep => f.write_str("keep"),
            SpinRule::At(Place::Line { file, line }) => write!(f, "{file}:{line}"),
            SpinRule::At(Place::Address(pc)) => pc.fmt(f),
        }
    }
}

impl SpinRule {
    /// The rule of the view that it stands for.
    ///
    /// # Errors
    /// When no code of the trace lies at the line.
    pub(crate) fn of(&self, trace: &Trace) -> replay::Result<Spin> {
        let (file, line) = match self {
            SpinRule::Auto => return Ok(Spin::Auto),
            SpinRule::Keep => return Ok(Spin::Keep),
            SpinRule::At(Place::Address(pc)) => return Ok(Spin::At(vec![*pc])),
            SpinRule::At(Place::Line { file, line }) => (file, *line),
        };
        let mut source = Source::new(trace);
        let ran: BTreeSet<Pc> = trace
            .blocks()
            .iter()
            .flat_map(|(_, block)| &block.instructions)
            .map(|instruction| instruction.pc)
            .collect();
        let is_there = |pc: &Pc| {
            source
                .line(*pc)
                .is_some_and(|found| found.line == line && std::path::Path::new(&found.file).ends_with(file))
        };
        let at: Vec<Pc> = ran.into_iter().filter(is_there).collect();
        if at.is_empty() {
            return Err(replay::Error::Request(format!(
                "--spin {self}: the trace has no code of that line; `replay` names the loops that look like waiting, and an \
                 address (0x401136) does where lines are not known"
            )));
        }
        Ok(Spin::At(at))
    }
}

/// What `replay` adds to the line of what was taken: the lines of loops that look like waiting and are kept.
pub(crate) fn advice(trace: &Trace, summary: &Summary) -> Option<String> {
    let looks: Vec<_> = summary.waiting_loops_kept().collect();
    let first = looks.first()?;
    let mut source = Source::new(trace);
    let mut place = |pc: Pc| source.line(pc).map_or_else(|| pc.to_string(), |line| line.short());
    let listed: Vec<String> = looks
        .iter()
        .take(3)
        .map(|seen| {
            let share = 100.0 * seen.instructions as f64 / summary.kept.max(1) as f64;
            format!("{} ({share:.1}%)", place(seen.pc))
        })
        .collect();
    let name = place(first.pc);
    Some(format!(
        "loops that look like waiting are kept: {}; --spin {name} leaves that one out, if it waits",
        listed.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_words_lines_or_addresses() {
        let parsed = |text: &str| text.parse::<SpinRule>();
        assert_eq!(parsed("keep"), Ok(SpinRule::Keep));
        assert_eq!(parsed("0x401136"), Ok(SpinRule::At(Place::Address(Pc(0x40_1136)))));
        assert_eq!(parsed("a/b.c:12"), Ok(SpinRule::At(Place::Line { file: "a/b.c".to_owned(), line: 12 })));
        for text in ["auto", "keep", "a/b.c:12", "0x401136"] {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
        for wrong in ["", "sometimes", ":12", "a.c:", "0xzz"] {
            assert!(parsed(wrong).is_err_and(|e| e.contains("auto, keep, a line")), "{wrong}");
        }
    }
}
