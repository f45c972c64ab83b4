//! What share of a program's instructions the lanes are.
//!
//! *Coverage* = instructions in the lanes / instructions in the trace. Below [`LOW`] the verdict says so in its first
//! sentence: what runs well in lockstep is then not what the program spends its time on. Below [`LITTLE`] it also names
//! the part that holds most.

use attribution::table::grouped;
use replay::view::Summary;

use crate::pieces::quoted;

/// Below this share of the program's instructions the headline says which part the lanes are.
pub const LOW: f64 = 0.5;

/// Below this share it names the part that holds most.
pub const LITTLE: f64 = 0.1;

/// Which part of the program the lanes are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Thread instructions in lanes, those inside of mathematical functions among them, whose calls stand for them.
    pub kept: u64,
    /// Those inside of mathematical functions.
    pub mathematics: u64,
    /// Thread instructions in the trace.
    pub instructions: u64,
    /// Those that are not in lanes, by reason, the most first.
    pub dropped: Vec<(&'static str, u64)>,
    /// The part of the program that holds most and is not in lanes, what is typed for it, and its thread instructions;
    /// none where the region was named.
    pub greatest: Option<(String, String, u64)>,
}

/// The part that holds most: one that `--region auto` chose from, what ran outside of all of them, or what threads ran
/// beside lanes that are parts of them.
fn greatest(summary: &Summary) -> Option<(String, String, u64)> {
    let in_parts: u64 = summary.shares.iter().map(|share| share.instructions).sum();
    let outside = summary.instructions.saturating_sub(in_parts);
    let others = summary.shares.iter().filter(|share| !share.is_taken);
    let most = others.max_by_key(|share| share.instructions).filter(|share| share.instructions >= outside);
    let beside = summary.cut.as_ref().map_or(0, |cut| cut.outside);
    if beside > most.map_or(outside, |share| share.instructions) {
        return Some(("what threads ran there beside these lanes".to_owned(), "--lanes threads".to_owned(), beside));
    }
    Some(match most {
        Some(share) => {
            let typed = match &share.name {
                Some(name) => format!("--region {}", quoted(name)),
                None if share.is_of_tasks => "--lanes tasks".to_owned(),
                None => "--region all".to_owned(),
            };
            (share.region.clone(), typed, share.instructions)
        }
        None if summary.shares.is_empty() => return None,
        None => {
            ("what ran outside of start routines and parallel regions".to_owned(), "--region all".to_owned(), outside)
        }
    })
}

impl Coverage {
    /// The coverage of what a view took.
    #[must_use]
    pub fn of(summary: &Summary) -> Coverage {
        let mathematics = summary.mathematics;
        let mut dropped = Summary { mathematics: 0, ..summary.clone() }.dropped();
        dropped.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let kept = summary.kept + mathematics;
        Coverage { kept, mathematics, instructions: summary.instructions, dropped, greatest: greatest(summary) }
    }

    /// 0 to 1; 1 of nothing.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.instructions == 0 { 1.0 } else { self.kept as f64 / self.instructions as f64 }
    }

    /// Whether most of the program is not in the lanes.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.share() < LOW
    }

    /// Where most of the program is, if next to nothing of it is in the lanes: behind a sentence without its end.
    #[must_use]
    pub fn rest(&self) -> String {
        match &self.greatest {
            Some((part, typed, instructions)) if self.share() < LITTLE => {
                let of_all = *instructions as f64 / self.instructions.max(1) as f64;
                format!(": {part} holds {} (replay {typed})", share(of_all))
            }
            _ => String::new(),
        }
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let inside = match self.mathematics {
            0 => String::new(),
            count => format!(" ({} of them inside of mathematical functions)", grouped(count)),
        };
        let of = format!(
            "{} of the program's {} thread instructions are in these lanes{inside}",
            share(self.share()),
            grouped(self.instructions)
        );
        if self.dropped.is_empty() {
            return of + ".";
        }
        let reasons: Vec<String> = self.dropped.iter().map(|(reason, n)| format!("{} {reason}", grouped(*n))).collect();
        format!("{of}; left out: {}.", reasons.join(", "))
    }
}

/// A share of 1 in per cent, with as many digits as it takes to tell it from nothing.
#[must_use]
pub fn share(share: f64) -> String {
    let percent = 100.0 * share;
    if percent <= 0.0 || percent >= 0.1 {
        return format!("{percent:.1}%");
    }
    let digits = (-percent.log10()).ceil() as usize;
    if digits > 6 { "less than 0.000001%".to_owned() } else { format!("{percent:.digits$}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_are_told_from_nothing() {
        assert_eq!(share(0.5), "50.0%");
        assert_eq!(share(0.0), "0.0%");
        assert_eq!(share(0.000_016), "0.002%");
        assert_eq!(share(1e-12), "less than 0.000001%");
    }

    #[test]
    fn what_was_left_out_is_said_with_its_reason() {
        let summary =
            Summary { instructions: 1000, kept: 400, outside_region: 500, sync_runtime: 100, ..Summary::default() };
        let coverage = Coverage::of(&summary);
        assert!(coverage.is_low());
        assert_eq!(
            coverage.sentence(),
            "40.0% of the program's 1,000 thread instructions are in these lanes; left out: 500 outside the region, \
             100 in synchronisation and thread runtime."
        );
    }
}
