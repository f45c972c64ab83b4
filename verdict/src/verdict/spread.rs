//! Where a GPU's own efficiency lies, as far as programs that ran on one say.
//!
//! A compiler for GPUs makes other code of a program. Of 84 programs that were compared with an H200
//! (docs/fidelity.md), built by gcc and clang at -O2, nine of ten lie within 0.22 sqrt(e (1 - e)) of their efficiency
//! e: for 50% that is 39% to 61%.

use serde_json::{Value, json};

use super::coverage::share;

/// Of sqrt(e (1 - e)), which is how much lanes can differ: it is 0 where all run or none does.
const WIDTH: f64 = 0.22;

/// Less than this on each side is not worth a line.
const LITTLE: f64 = 0.005;

/// A range of efficiencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    least: f64,
    most: f64,
}

impl Spread {
    /// Around an efficiency.
    fn around(efficiency: f64) -> Spread {
        let half = WIDTH * (efficiency * (1.0 - efficiency)).max(0.0).sqrt();
        Spread { least: (efficiency - half).max(0.0), most: (efficiency + half).min(1.0) }
    }

    /// Around an efficiency, with what other models of the machine say, from the least to the most.
    pub(crate) fn with_models(efficiency: f64, (lowest, highest): (f64, f64)) -> Option<Spread> {
        let Spread { least, most } = Spread::around(efficiency);
        let spread = Spread { least: least.min(lowest), most: most.max(highest) };
        (spread.most - spread.least > 2.0 * LITTLE).then_some(spread)
    }

    /// `39.0% to 61.0% in a GPU compiler's own code: …`.
    pub(crate) fn sentence(self) -> String {
        format!(
            "{} to {} in a GPU compiler's own code: the figures of nine in ten of 84 programs that ran on \
             an NVIDIA H200 lie in such ranges.",
            share(self.least),
            share(self.most)
        )
    }

    /// As JSON.
    pub(crate) fn json(self) -> Value {
        json!({ "least": self.least, "most": self.most, "sentence": self.sentence() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_programs_lie_in_their_ranges() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/2026-11-27-silicon/errors.tsv");
        let rows = std::fs::read_to_string(path).unwrap();
        let is_within = |row: &str| {
            let [gpu, lockstep] = [2, 3].map(|column| row.split('\t').nth(column).unwrap().parse::<f64>().unwrap());
            let Spread { least, most } = Spread::around(lockstep);
            (least - 0.0005..=most + 0.0005).contains(&gpu)
        };
        let within = |builds: [&str; 2]| {
            let all = || rows.lines().skip(1).filter(|row| builds.contains(&row.split('\t').nth(1).unwrap()));
            all().filter(|row| is_within(row)).count() as f64 / all().count() as f64
        };
        assert!((0.895..0.93).contains(&within(["gcc-O2", "clang-O2"])));
        assert!((0.885..0.93).contains(&within(["shaped-O2", "shaped-O3"])));
    }

    #[test]
    fn half_of_the_lanes_are_known_to_eleven_points() {
        let Spread { least, most } = Spread::around(0.5);
        assert!((least - 0.39).abs() < 1e-9 && (most - 0.61).abs() < 1e-9);
    }

    #[test]
    fn equal_lanes_have_no_range_and_models_widen_it() {
        assert_eq!(Spread::with_models(1.0, (1.0, 1.0)), None);
        let Spread { least, most } = Spread::with_models(0.5, (0.3, 0.52)).unwrap();
        assert!((least - 0.3).abs() < 1e-9 && (most - 0.61).abs() < 1e-9);
    }
}
