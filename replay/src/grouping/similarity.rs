//! Lanes by similarity of control flow.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::keys::{self, SortKey};
use super::profiles::{PROFILE, Profiler};
use crate::Result;
use crate::survey::Survey;

/// Each warp looks for its lanes among so many at most. For each warp all lanes that are left are compared with one:
/// beyond that number the time would grow with its square, and profiles of 10^6 lanes would take 2 GB.
const WINDOW: usize = 8192;

/// So many windows are looked at together: their profiles take at most 128 MiB.
const WINDOWS: usize = 8;

/// Each warp has the first lane left and those nearest to it. Of more lanes than [`WINDOW`], those that lie near each
/// other when sorted by path are looked at together.
pub(super) fn warps(survey: &Survey, mut lanes: Vec<usize>, size: usize) -> Result<Vec<Vec<usize>>> {
    if lanes.len() <= WINDOW {
        return of_window(survey, &lanes, size);
    }
    {
        let keys = keys::of(survey, SortKey::Path)?;
        lanes.sort_unstable_by_key(|lane| (keys[*lane], *lane));
    }
    let of_window = |window: &mut [usize]| {
        window.sort_unstable();
        of_window(survey, window, size)
    };
    let mut windows: Vec<&mut [usize]> = lanes.chunks_mut(WINDOW / size * size).collect();
    let mut warps = Vec::new();
    for some in windows.chunks_mut(WINDOWS) {
        let of_windows: Vec<_> = some.par_iter_mut().map(|window| of_window(window)).collect::<Result<_>>()?;
        warps.extend(of_windows.into_iter().flatten());
    }
    Ok(warps)
}

/// Lanes that run the same, as far as their profiles tell.
struct Alike {
    /// In a table of all: where its numbers are.
    profile: usize,
    /// Those that are in no warp yet, the last first.
    left: Vec<usize>,
}

fn of_window(survey: &Survey, lanes: &[usize], size: usize) -> Result<Vec<Vec<usize>>> {
    let (alike, profiles, width) = alike(survey, lanes)?;
    let mut alike = alike;
    // By lane's index among these: with whom it is alike.
    let mut of_lane = vec![0; lanes.len()];
    for (number, one) in alike.iter().enumerate() {
        one.left.iter().for_each(|lane| of_lane[*lane] = number);
    }
    let mut is_placed = vec![false; lanes.len()];
    let (mut warps, mut nearest) = (Vec::new(), Vec::new());
    for first in 0..lanes.len() {
        if is_placed[first] {
            continue;
        }
        let profile = |one: &Alike| &profiles[one.profile..one.profile + width];
        let own = profile(&alike[of_lane[first]]);
        nearest.clear();
        for (number, one) in alike.iter().enumerate().filter(|(_, one)| !one.left.is_empty()) {
            let distance: u64 = own.iter().zip(profile(one)).map(|(a, b)| a.abs_diff(*b)).sum();
            nearest.extend(one.left.iter().rev().take(size).map(|lane| (distance, *lane, number)));
        }
        // The first lane is nearest to itself; a lower lane goes first among equals.
        if nearest.len() > size {
            nearest.select_nth_unstable(size - 1);
            nearest.truncate(size);
        }
        let mut warp: Vec<usize> = nearest.iter().map(|(_, lane, _)| *lane).collect();
        warp.sort_unstable();
        for (_, lane, number) in &nearest {
            is_placed[*lane] = true;
            // Of those that are alike the lower ones go first, so these are the last ones left.
            alike[*number].left.pop();
        }
        warps.push(warp.into_iter().map(|index| lanes[index]).collect());
    }
    Ok(warps)
}

/// The lanes, by their index among these, that have equal profiles; those profiles, without the buckets that are 0 in
/// all of them, in one table; and how many numbers each has.
fn alike(survey: &Survey, lanes: &[usize]) -> Result<(Vec<Alike>, Vec<u64>, usize)> {
    let mut number_of: FxHashMap<Box<[(u8, u64)]>, usize> = FxHashMap::default();
    let mut all: Vec<Alike> = Vec::new();
    let of_lane = |profiler: &mut Profiler, lane: &usize| -> Result<Box<[(u8, u64)]>> {
        let profile = profiler.of(*lane)?;
        Ok((0..=u8::MAX).zip(profile).filter(|(_, count)| *count > 0).collect())
    };
    let profiles: Vec<_> = lanes.par_iter().map_init(|| Profiler::new(survey), of_lane).collect::<Result<_>>()?;
    for (index, profile) in profiles.into_iter().enumerate() {
        let number = *number_of.entry(profile).or_insert(all.len());
        if number == all.len() {
            all.push(Alike { profile: 0, left: Vec::new() });
        }
        all[number].left.push(index);
    }
    let mut columns = [None; PROFILE];
    let mut width = 0;
    for (bucket, _) in number_of.keys().flatten() {
        columns[usize::from(*bucket)].get_or_insert_with(|| {
            width += 1;
            width - 1
        });
    }
    let mut table = vec![0; all.len() * width];
    for (profile, number) in &number_of {
        all[*number].profile = number * width;
        for (bucket, count) in profile {
            if let Some(column) = columns[usize::from(*bucket)] {
                table[number * width + column] = *count;
            }
        }
    }
    all.iter_mut().for_each(|one| one.left.reverse());
    Ok((all, table, width))
}
