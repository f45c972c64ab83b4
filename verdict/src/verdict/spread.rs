//! Where a GPU's own efficiency lies, as far as programs that ran on one say.
//!
//! A compiler for GPUs makes other code of a program. Of 84 programs that were compared with an H200
//! (docs/fidelity.md), built by gcc and clang at -O2 and -O3, nine of ten lie within w sqrt(e (1 - e)) of their
//! efficiency e. The width w is 0.16 where the machine's models agree: for 50% that is 42% to 58%. It is 0.33 where
//! they are far apart, and 0.22 where one alone was replayed.

use serde_json::{Value, json};

use super::coverage::share;

/// How far apart what models of one machine say may be before the verdict is a range.
pub(crate) const FAR_APART: f64 = 0.05;

/// What the machine's models say, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Models {
    /// One alone was replayed.
    One,
    /// The code is much as a GPU's compiler makes it.
    Agree(f64, f64),
    /// It is not.
    Apart(f64, f64),
}

impl Models {
    /// Of sqrt(e (1 - e)), which is how much lanes can differ: it is 0 where all run or none does.
    fn width(self) -> f64 {
        match self {
            Models::One => 0.22,
            Models::Agree(..) => 0.16,
            Models::Apart(..) => 0.33,
        }
    }
}

/// Less than this on each side is not worth a line.
const LITTLE: f64 = 0.005;

/// A range of efficiencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    least: f64,
    most: f64,
    models: Models,
}

impl Spread {
    /// Around an efficiency, with what the machine's models say.
    fn around(efficiency: f64, models: Models) -> Spread {
        let half = models.width() * (efficiency * (1.0 - efficiency)).max(0.0).sqrt();
        let (lowest, highest) = match models {
            Models::One => (efficiency, efficiency),
            Models::Agree(lowest, highest) | Models::Apart(lowest, highest) => (lowest, highest),
        };
        Spread {
            least: (efficiency - half).max(0.0).min(lowest),
            most: (efficiency + half).min(1.0).max(highest),
            models,
        }
    }

    /// The same, where it is worth a line.
    pub(crate) fn of(efficiency: f64, models: Models) -> Option<Spread> {
        Some(Spread::around(efficiency, models)).filter(|spread| spread.most - spread.least > 2.0 * LITTLE)
    }

    /// `42.0% to 58.0% in a GPU compiler's own code: …`.
    pub(crate) fn sentence(self) -> String {
        let such = match self.models {
            Models::One => "of 84 programs that ran on an NVIDIA H200, nine in ten lie in such ranges",
            Models::Agree(..) => {
                "of programs that ran on an NVIDIA H200, and on which its models agree, nine in ten lie in such ranges"
            }
            Models::Apart(..) => {
                "its models are far apart, since the control flow is not what a GPU's compiler makes (the last line of \
                 replay says what to build instead); of such programs that ran on an NVIDIA H200, nine in ten lie in \
                 such ranges"
            }
        };
        format!("{} to {} in a GPU compiler's own code: {such}.", share(self.least), share(self.most))
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
        let figures =
            |row: &str| [2, 3, 4, 5].map(|column| row.split('\t').nth(column).unwrap().parse::<f64>().unwrap());
        let models = |[_, _, least, most]: [f64; 4]| match most - least > FAR_APART {
            true => Models::Apart(least, most),
            false => Models::Agree(least, most),
        };
        let is_within = |row: [f64; 4], models: Models| {
            let Spread { least, most, .. } = Spread::around(row[1], models);
            (least - 0.0005..=most + 0.0005).contains(&row[0])
        };
        let within = |builds: &str, of: fn(Models) -> bool, alone: bool| {
            let rows =
                rows.lines().skip(1).filter(|row| row.split('\t').nth(1).unwrap().starts_with(builds)).map(figures);
            let all: Vec<_> = rows.filter(|row| of(models(*row))).collect();
            let is_in = |row: &&[f64; 4]| is_within(**row, if alone { Models::One } else { models(**row) });
            all.iter().filter(is_in).count() as f64 / all.len() as f64
        };
        for builds in ["gcc", "clang", "shaped"] {
            let agree = within(builds, |models| matches!(models, Models::Agree(..)), false);
            let apart = within(builds, |models| matches!(models, Models::Apart(..)), false);
            let alone = within(builds, |_| true, true);
            let all = [agree, apart, alone];
            assert!(all.iter().all(|within| (0.885..0.945).contains(within)), "{builds}: {all:?}");
        }
    }

    #[test]
    fn half_of_the_lanes_are_known_to_eight_points_where_models_agree() {
        let Spread { least, most, .. } = Spread::around(0.5, Models::Agree(0.49, 0.51));
        assert!((least - 0.42).abs() < 1e-9 && (most - 0.58).abs() < 1e-9);
    }

    #[test]
    fn equal_lanes_have_no_range_and_models_widen_it() {
        assert_eq!(Spread::of(1.0, Models::Agree(1.0, 1.0)), None);
        let Spread { least, most, .. } = Spread::of(0.5, Models::Apart(0.3, 0.52)).unwrap();
        assert!((least - 0.3).abs() < 1e-9 && (most - 0.665).abs() < 1e-9);
    }
}
