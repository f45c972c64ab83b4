//! Which lanes share a warp.

use std::fmt;
use std::str::FromStr;

use heuristics::MAX_LANES;

use crate::survey::Survey;
use crate::{Error, Result};

/// How lanes are put into warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Grouping {
    /// In thread order: the first W lanes, the next W lanes, …
    #[default]
    Consecutive,
    /// Dealt out: with n warps, lane i goes to warp i mod n.
    RoundRobin,
    /// By similarity of control flow: each warp takes the first lane left and the lanes whose instruction counts, by
    /// place in the code, differ least from its own.
    Similarity,
}

impl Grouping {
    /// All of them, in the order of the help.
    pub const ALL: [Grouping; 3] = [Grouping::Consecutive, Grouping::RoundRobin, Grouping::Similarity];

    /// Its name, as typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Grouping::Consecutive => "consecutive",
            Grouping::RoundRobin => "round-robin",
            Grouping::Similarity => "similarity",
        }
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Grouping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Grouping> {
        let names = || Grouping::ALL.map(Grouping::name).join(", ");
        let found = Grouping::ALL.into_iter().find(|g| g.name() == text);
        found.ok_or_else(|| Error::Request(format!("there is no grouping {text:?}; there are: {}", names())))
    }
}

/// The warp size that was asked for, or else one warp of all lanes, as far as a warp can hold them.
///
/// # Errors
/// When a warp cannot have that size.
pub(crate) fn warp_size(lanes: usize, asked: Option<usize>) -> Result<usize> {
    match asked {
        Some(size) if !(1..=MAX_LANES).contains(&size) => {
            Err(Error::Request(format!("a warp of {size} lanes is not possible: it may have 1 to {MAX_LANES}")))
        }
        Some(size) => Ok(size),
        None => Ok(lanes.clamp(1, MAX_LANES)),
    }
}

/// The lanes of each warp.
pub(crate) fn warps(survey: &Survey, size: usize, grouping: Grouping) -> Vec<Vec<usize>> {
    let lanes = survey.lanes.len();
    let count = lanes.div_ceil(size);
    match grouping {
        Grouping::Consecutive => (0..count).map(|w| (w * size..lanes.min((w + 1) * size)).collect()).collect(),
        Grouping::RoundRobin => (0..count).map(|w| (w..lanes).step_by(count).collect()).collect(),
        Grouping::Similarity => by_similarity(survey, size),
    }
}

fn by_similarity(survey: &Survey, size: usize) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..survey.lanes.len()).collect();
    let mut warps = Vec::new();
    while let Some(first) = left.first().copied() {
        let distance = |lane: &usize| {
            let (a, b) = (&survey.lanes[first].profile, &survey.lanes[*lane].profile);
            a.iter().zip(b).map(|(a, b)| u128::from(a.abs_diff(*b))).sum::<u128>()
        };
        // The first lane is nearest to itself; a lower lane goes first among equals.
        left.sort_by_cached_key(|lane| (distance(lane), *lane));
        let rest = left.split_off(size.min(left.len()));
        let mut warp = std::mem::replace(&mut left, rest);
        warp.sort_unstable();
        warps.push(warp);
        left.sort_unstable();
    }
    warps
}
