//! Which lanes share a warp, and which warps a block.

use std::fmt;
use std::str::FromStr;

use heuristics::{LaneSet, MAX_LANES, Seats};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::survey::{Survey, profile};
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

/// The warp size that was asked for, or else one warp of all lanes of the largest generation, as far as a warp can hold
/// them.
///
/// # Errors
/// When a warp cannot have that size.
pub(crate) fn warp_size(generations: &[Vec<usize>], asked: Option<usize>) -> Result<usize> {
    match asked {
        Some(size) if !(1..=MAX_LANES).contains(&size) => {
            Err(Error::Request(format!("a warp of {size} lanes is not possible: it may have 1 to {MAX_LANES}")))
        }
        Some(size) => Ok(size),
        None => Ok(generations.iter().map(Vec::len).max().unwrap_or(1).clamp(1, MAX_LANES)),
    }
}

/// What is replayed at once: a warp, or a block of warps.
pub(crate) struct Unit {
    /// The lanes of the launch, warp after warp.
    pub lanes: Vec<usize>,
    /// Where they sit.
    pub seats: Seats,
}

impl Unit {
    fn of(warps: &[Vec<usize>], size: usize) -> Unit {
        let taken: Vec<usize> = warps.iter().map(Vec::len).collect();
        Unit { lanes: warps.concat(), seats: Seats::new(size, &taken) }
    }

    /// The lanes of each of its warps.
    pub fn warps(&self) -> Vec<&[usize]> {
        let mut left = &self.lanes[..];
        let warp = |lanes: &LaneSet| {
            let (own, rest) = left.split_at(lanes.len());
            left = rest;
            own
        };
        self.seats.warps().iter().map(warp).collect()
    }

    /// The lanes of the launch that have each home, by home.
    pub fn columns(&self) -> Vec<Vec<usize>> {
        let column = |lanes: &LaneSet| lanes.iter().map(|l| self.lanes[l.index()]).collect();
        self.seats.columns().iter().map(column).collect()
    }
}

/// Each warp on its own.
pub(crate) fn single_warps(warps: &[Vec<usize>], size: usize) -> Vec<Unit> {
    warps.iter().map(|w| Unit::of(std::slice::from_ref(w), size)).collect()
}

/// Blocks of so many warps of one generation as were asked for, or else as many as lanes can be replayed at once.
///
/// # Errors
/// When a block cannot have so many warps.
pub(crate) fn blocks(survey: &Survey, warps: &[Vec<usize>], size: usize, asked: Option<usize>) -> Result<Vec<Unit>> {
    let most = MAX_LANES / size;
    match asked {
        Some(asked) if !(1..=most).contains(&asked) => Err(Error::Request(format!(
            "a block of {asked} warps of {size} lanes is not possible: a block may have {MAX_LANES} lanes, so 1 to {most} such warps"
        ))),
        _ => {
            let generation = |warp: &Vec<usize>| warp.first().map(|lane| survey.source().generation(*lane));
            let of_one = warps.chunk_by(|a, b| generation(a) == generation(b));
            Ok(of_one.flat_map(|w| w.chunks(asked.unwrap_or(most))).map(|w| Unit::of(w, size)).collect())
        }
    }
}

/// The lanes by generation.
pub(crate) fn generations(survey: &Survey) -> Vec<Vec<usize>> {
    let source = survey.source();
    let mut lanes: Vec<usize> = (0..survey.lanes.len()).collect();
    lanes.sort_by_key(|lane| source.generation(*lane));
    lanes.chunk_by(|a, b| source.generation(*a) == source.generation(*b)).map(<[usize]>::to_vec).collect()
}

/// The lanes of each warp; those of a generation follow one another.
pub(crate) fn warps(
    survey: &Survey,
    generations: &[Vec<usize>],
    size: usize,
    grouping: Grouping,
) -> Result<Vec<Vec<usize>>> {
    let of_one = |lanes: &Vec<usize>| -> Result<Vec<Vec<usize>>> {
        let count = lanes.len().div_ceil(size);
        Ok(match grouping {
            Grouping::Consecutive => lanes.chunks(size).map(<[usize]>::to_vec).collect(),
            Grouping::RoundRobin => {
                (0..count).map(|w| lanes.iter().skip(w).step_by(count).copied().collect()).collect()
            }
            Grouping::Similarity => by_similarity(survey, lanes.clone(), size)?,
        })
    };
    Ok(generations.iter().map(of_one).collect::<Result<Vec<_>>>()?.concat())
}

fn by_similarity(survey: &Survey, mut left: Vec<usize>, size: usize) -> Result<Vec<Vec<usize>>> {
    let profiles: Vec<Vec<u64>> = left.par_iter().map(|lane| profile(survey, *lane)).collect::<Result<_>>()?;
    let profiles: FxHashMap<usize, Vec<u64>> = left.iter().copied().zip(profiles).collect();
    let mut warps = Vec::new();
    while let Some(first) = left.first().copied() {
        let distance = |lane: &usize| {
            let (a, b) = (&profiles[&first], &profiles[lane]);
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
    Ok(warps)
}
