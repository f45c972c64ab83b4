//! What share of a program's instructions the lanes are.
//!
//! *Coverage* = instructions in the lanes / instructions in the trace. Below [`LOW`] the verdict says so in its first
//! sentence: what runs well in lockstep is then not what the program spends its time on.

use attribution::table::grouped;
use replay::view::Summary;

/// Below this share of the program's instructions the headline says which part the lanes are.
pub const LOW: f64 = 0.5;

/// Which part of the program the lanes are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Thread instructions in lanes.
    pub kept: u64,
    /// Thread instructions in the trace.
    pub instructions: u64,
    /// Those that are not in lanes, by reason, the most first.
    pub dropped: Vec<(&'static str, u64)>,
}

impl Coverage {
    /// The coverage of what a view took.
    #[must_use]
    pub fn of(summary: &Summary) -> Coverage {
        let mut dropped = summary.dropped();
        dropped.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        Coverage { kept: summary.kept, instructions: summary.instructions, dropped }
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

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let of = format!(
            "{} of the program's {} thread instructions are in these lanes",
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
