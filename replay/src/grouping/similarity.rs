//! Lanes by similarity of control flow.

use rayon::prelude::*;

use super::keys::{self, SortKey};
use crate::Result;
use crate::survey::{PROFILE, Survey, profile};

/// Each warp looks for its lanes among so many at most. For each warp all lanes that are left are compared with one:
/// beyond that number the time would grow with its square, and profiles of 10^6 lanes would take 2 GB.
const WINDOW: usize = 8192;

/// Each warp has the first lane left and those nearest to it. Of more lanes than [`WINDOW`], those that lie near each
/// other when sorted by path are looked at together.
pub(super) fn warps(survey: &Survey, mut lanes: Vec<usize>, size: usize) -> Result<Vec<Vec<usize>>> {
    if lanes.len() <= WINDOW {
        return of_window(survey, lanes, size);
    }
    let keys = keys::of(survey, SortKey::Path)?;
    lanes.sort_by_key(|lane| (keys[*lane], *lane));
    let windows: Vec<Vec<usize>> = lanes.chunks(WINDOW / size * size).map(<[usize]>::to_vec).collect();
    let of_window = |mut window: Vec<usize>| {
        window.sort_unstable();
        of_window(survey, window, size)
    };
    Ok(windows.into_iter().map(of_window).collect::<Result<Vec<_>>>()?.concat())
}

fn of_window(survey: &Survey, lanes: Vec<usize>, size: usize) -> Result<Vec<Vec<usize>>> {
    // Lanes by their index among these.
    let mut profiles = vec![0; lanes.len() * PROFILE];
    profiles.par_chunks_mut(PROFILE).zip(&lanes).try_for_each(|(own, lane)| -> Result<()> {
        own.copy_from_slice(&profile(survey, *lane)?);
        Ok(())
    })?;
    let of = |lane: usize| &profiles[lane * PROFILE..(lane + 1) * PROFILE];
    let mut left: Vec<usize> = (0..lanes.len()).collect();
    let mut warps = Vec::new();
    while let Some(first) = left.first().copied() {
        let distance = |lane: &usize| {
            let (a, b) = (of(first), of(*lane));
            a.iter().zip(b).map(|(a, b)| u128::from(a.abs_diff(*b))).sum::<u128>()
        };
        // The first lane is nearest to itself; a lower lane goes first among equals.
        left.sort_by_cached_key(|lane| (distance(lane), *lane));
        let rest = left.split_off(size.min(left.len()));
        let mut warp = std::mem::replace(&mut left, rest);
        warp.sort_unstable();
        warps.push(warp.into_iter().map(|index| lanes[index]).collect());
        left.sort_unstable();
    }
    Ok(warps)
}
