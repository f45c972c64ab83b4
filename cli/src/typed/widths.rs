//! `--warp-size` and `--group`: the widths of a warp and the ways to put lanes into warps, as they were typed.

use std::fmt;
use std::str::FromStr;

use heuristics::MAX_LANES;
use replay::{Error, Grouping};

/// The lanes that warps have, in the order in which they were typed; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Widths(Vec<usize>);

impl Widths {
    pub(crate) fn all(&self) -> &[usize] {
        &self.0
    }
}

impl FromStr for Widths {
    type Err = String;

    fn from_str(text: &str) -> Result<Widths, String> {
        let lanes = |text: &str| {
            let lanes = text.parse().ok().filter(|lanes| (1..=MAX_LANES).contains(lanes));
            lanes.ok_or_else(|| format!("a warp has 1 to {MAX_LANES} lanes"))
        };
        let mut all = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => all.push(lanes(part)?),
                Some((first, last)) => {
                    let (first, last) = (lanes(first)?, lanes(last)?);
                    if first > last {
                        return Err(format!("a range must go up: {last}..{first}"));
                    }
                    all.extend(std::iter::successors(Some(first), |n| Some(2 * n)).take_while(|n| *n <= last));
                }
            }
        }
        let mut seen = Vec::new();
        all.retain(|one| {
            !seen.contains(one) && {
                seen.push(*one);
                true
            }
        });
        Ok(Widths(all))
    }
}

/// The ways in which lanes are put into warps, in the order in which they were typed; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups(Vec<Grouping>);

impl Groups {
    pub(crate) fn all(&self) -> &[Grouping] {
        &self.0
    }
}

impl FromStr for Groups {
    type Err = Error;

    fn from_str(text: &str) -> replay::Result<Groups> {
        Grouping::parse_list(text).map(Groups)
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_doubles_and_a_list_is_as_typed() {
        let widths = |text: &str| text.parse::<Widths>().map(|widths| widths.0);
        assert_eq!(widths("32").unwrap(), [32]);
        assert_eq!(widths("4..64").unwrap(), [4, 8, 16, 32, 64]);
        assert_eq!(widths("5..21").unwrap(), [5, 10, 20]);
        assert_eq!(widths("8,4,8..16").unwrap(), [8, 4, 16]);
        for wrong in ["", "0", "257", "4..", "64..4", "4,,8", "a"] {
            assert!(widths(wrong).is_err(), "{wrong}");
        }
    }
}
