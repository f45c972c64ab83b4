//! `--spin`: which loops count as waiting, as it was typed; and the lines of those that only look like it.

use std::fmt;
use std::str::FromStr;

use attribution::table::percent;
use attribution::{Place, Source};
use replay::view::{Spin, Summary};
use trace_format::{Pc, Trace};

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpinRule {
    Auto,
    Keep,
    /// The loops that run these lines or addresses.
    At(Vec<Place>),
}

impl FromStr for SpinRule {
    type Err = String;

    fn from_str(text: &str) -> Result<SpinRule, String> {
        match text {
            "auto" => Ok(SpinRule::Auto),
            "keep" => Ok(SpinRule::Keep),
            _ => match text.split(',').map(str::parse).collect() {
                Ok(places) => Ok(SpinRule::At(places)),
                Err(_) => Err("give auto, keep, or lines (barrier.c:12) and addresses (0x401136)".to_owned()),
            },
        }
    }
}

impl fmt::Display for SpinRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpinRule::Auto => f.write_str("auto"),
            SpinRule::Keep => f.write_str("keep"),
            SpinRule::At(places) => f.write_str(&places.iter().map(Place::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

impl SpinRule {
    /// The rule of the view that it stands for.
    ///
    /// # Errors
    /// When no code of the trace lies at any of the lines.
    pub(crate) fn of(&self, trace: &Trace) -> replay::Result<Spin> {
        let places = match self {
            SpinRule::Auto => return Ok(Spin::Auto),
            SpinRule::Keep => return Ok(Spin::Keep),
            SpinRule::At(places) => places,
        };
        let mut source = Source::new(trace);
        // Of several loops, some may not have run this time.
        let at: Vec<Pc> = places.iter().flat_map(|place| place.code(trace, &mut source)).collect();
        if at.is_empty() {
            return Err(replay::Error::Request(format!(
                "--spin {self}: the trace has no code at that line; `replay` names the loops that look like waiting; \
                 where lines are unknown, give an address (0x401136)"
            )));
        }
        Ok(Spin::At(at))
    }
}

/// What `replay` adds to the line about what was left out: the loops that look like waiting and are kept.
pub(crate) fn advice(trace: &Trace, summary: &Summary) -> Option<String> {
    let looks: Vec<_> = summary.waiting_loops_kept().collect();
    let first = looks.first()?;
    let mut source = Source::new(trace);
    let mut place = |pc: Pc| source.line(pc).map_or_else(|| pc.to_string(), |line| line.short());
    let listed: Vec<String> = looks
        .iter()
        .take(3)
        .map(|seen| {
            let share = percent(summary.share_of_all(seen.instructions));
            format!("{} ({share} of the thread instructions recorded)", place(seen.pc))
        })
        .collect();
    let name = place(first.pc);
    Some(format!(
        "loops that look like waiting are not left out: {}; if one does wait, --spin {name} leaves it out",
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
        let address = Place::Address(Pc(0x40_1136));
        assert_eq!(parsed("0x401136"), Ok(SpinRule::At(vec![address.clone()])));
        let line = Place::Line { file: "a/b.c".to_owned(), line: 12 };
        assert_eq!(parsed("a/b.c:12"), Ok(SpinRule::At(vec![line.clone()])));
        assert_eq!(parsed("a/b.c:12,0x401136"), Ok(SpinRule::At(vec![line, address])));
        for text in ["auto", "keep", "a/b.c:12", "0x401136", "a/b.c:12,0x401136"] {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
        for wrong in ["", "sometimes", ":12", "a.c:", "0xzz", "a.c:1,", "auto,a.c:1"] {
            assert!(parsed(wrong).is_err_and(|e| e.contains("auto, keep, or lines")), "{wrong}");
        }
    }
}
