//! Warps and blocks of warps, as they are replayed.

use heuristics::{LaneSet, MAX_LANES, Seats};

use crate::survey::Survey;
use crate::{Error, Result};

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
