//! The grouping that an oracle would choose: the one whose warps need the fewest fetches under a model. To find it is
//! as hard as splitting numbers into groups of equal sums, so it is given by two figures that can be computed:
//!
//! - *Found.* For at most [`EXACT_LANES`] lanes in a launch, every group of lanes that could be a warp is replayed.
//!   From those figures follows the best way to put all lanes into as few warps as hold them: this is the oracle's own
//!   grouping. For more lanes, all other groupings are replayed, and also one that is improved by exchanging lanes
//!   while that lowers the bound below; the best of these counts.
//! - *No grouping needs fewer.* For each piece of code, a warp needs as many fetches as the lane that runs most of it.
//!   Sort the numbers that all lanes have for that piece. Whatever lanes share warps of W lanes, the largest number is
//!   the first of some warp; of the numbers outside that warp, the largest is at least the one W places later; and so
//!   on. So the sum of every W-th sorted number, over all pieces, is a bound.
//!
//! Worked number: W = 2, one piece of code, lanes that run it 5, 1, 5 and 1 times. Sorted: 5, 5, 1, 1; the bound is 5 +
//! 1 = 6, which (5, 5) and (1, 1) reach; in order they need 5 + 5.

use rayon::prelude::*;

use super::Shuffle;
use super::profiles::{PROFILE, Profiler};
use crate::Result;
use crate::survey::Survey;

/// The most lanes of a launch for which each group is replayed: with 10, at most 1023 groups.
pub(crate) const EXACT_LANES: usize = 10;

/// The most lanes of a launch for which profiles are kept whole: 2 KiB a lane.
const WHOLE_PROFILES: usize = 1 << 14;

/// Parts of a profile that is kept of more lanes.
const PARTS: usize = 16;

/// The most exchanges that are tried: each looks at two warps, W x [`PROFILE`] numbers each, so these take a second or
/// two for warps of 32.
const EXCHANGES: usize = 1 << 16;

/// Every group of these lanes that could be a warp.
pub(crate) fn subsets(lanes: &[usize], size: usize) -> Vec<Vec<usize>> {
    let of_mask = |mask: u32| lanes.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, l)| *l).collect();
    masks(lanes.len(), size).map(of_mask).collect()
}

fn masks(lanes: usize, size: usize) -> impl Iterator<Item = u32> {
    (1..1_u32 << lanes).filter(move |mask| mask.count_ones() as usize <= size)
}

/// The warps, as few as hold these lanes, whose costs add up to least; `costs` are those of [`subsets`].
pub(crate) fn partitions(lanes: &[usize], size: usize, costs: &[u64]) -> Vec<Vec<usize>> {
    let all = (1_usize << lanes.len()) - 1;
    let mut cost = vec![u64::MAX; all + 1];
    masks(lanes.len(), size).zip(costs).for_each(|(mask, own)| cost[mask as usize] = *own);
    // By the lanes that are placed: so few warps, their cost, and the last warp.
    let mut best: Vec<Option<(usize, u64, usize)>> = vec![None; all + 1];
    best[0] = Some((0, 0, 0));
    for placed in 0..all {
        let Some((warps, so_far, _)) = best[placed] else { continue };
        let left = all & !placed;
        let lowest = left & left.wrapping_neg();
        // Each subset of those left that has the lowest of them.
        let rest = left & !lowest;
        let mut others = rest;
        loop {
            let warp = others | lowest;
            if cost[warp] != u64::MAX {
                let next = (warps + 1, so_far.saturating_add(cost[warp]), warp);
                let known = &mut best[placed | warp];
                if known.is_none_or(|known| (next.0, next.1) < (known.0, known.1)) {
                    *known = Some(next);
                }
            }
            if others == 0 {
                break;
            }
            others = (others - 1) & rest;
        }
    }
    let (mut warps, mut placed) = (Vec::new(), all);
    while placed != 0 {
        let Some((_, _, warp)) = best[placed] else { break };
        warps.push(lanes.iter().enumerate().filter(|(i, _)| warp >> i & 1 == 1).map(|(_, l)| *l).collect());
        placed &= !warp;
    }
    warps.reverse();
    warps
}

/// How often lanes run each piece of the code that any of them runs: pieces that share a number count as one.
struct Profiles {
    of: Vec<Vec<u64>>,
}

impl Profiles {
    fn of(survey: &Survey, lanes: &[usize]) -> Result<Profiles> {
        let parts = if lanes.len() <= WHOLE_PROFILES { PROFILE } else { PARTS };
        let of_lane = |profiler: &mut Profiler, lane: &usize| -> Result<Vec<u64>> {
            let whole = profiler.of(*lane)?;
            let mut folded = vec![0; parts];
            whole.iter().enumerate().for_each(|(place, n)| folded[place % parts] += n);
            Ok(folded)
        };
        let all = lanes.par_iter().map_init(|| Profiler::new(survey), of_lane).collect::<Result<Vec<_>>>()?;
        let run: Vec<usize> = (0..parts).filter(|part| all.iter().any(|profile| profile[*part] > 0)).collect();
        Ok(Profiles { of: all.iter().map(|profile| run.iter().map(|part| profile[*part]).collect()).collect() })
    }

    /// No schedule of these lanes, by their index, needs fewer fetches.
    fn least(&self, warp: &[usize]) -> u64 {
        let mut most = vec![0; self.of.first().map_or(0, Vec::len)];
        for lane in warp {
            most.iter_mut().zip(&self.of[*lane]).for_each(|(most, count)| *most = (*most).max(*count));
        }
        most.iter().sum()
    }
}

/// No grouping of a generation's lanes into warps of this size needs fewer fetches, whatever the model.
pub(crate) fn least_of_any(survey: &Survey, lanes: &[usize], size: usize) -> Result<u64> {
    let profiles = Profiles::of(survey, lanes)?;
    let parts = profiles.of.first().map_or(0, Vec::len);
    let of_part = |part: usize| -> u64 {
        let mut counts: Vec<u64> = profiles.of.iter().map(|profile| profile[part]).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.iter().step_by(size).sum()
    };
    Ok((0..parts).into_par_iter().map(of_part).sum())
}

/// The warps of a generation, with lanes exchanged between them while that lowers what all warps need at least.
pub(crate) fn improved(survey: &Survey, warps: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
    let lanes = warps.concat();
    if warps.len() < 2 || lanes.len() > WHOLE_PROFILES {
        return Ok(warps.to_vec());
    }
    let profiles = Profiles::of(survey, &lanes)?;
    let mut next = 0;
    // By index among the lanes.
    let mut placed: Vec<Vec<usize>> = Vec::with_capacity(warps.len());
    for warp in warps {
        placed.push((next..next + warp.len()).collect());
        next += warp.len();
    }
    let mut costs: Vec<u64> = placed.iter().map(|warp| profiles.least(warp)).collect();
    let mut random = Shuffle::new(lanes.len() as u64);
    for _ in 0..EXCHANGES.min(4 * lanes.len() * lanes.len()) {
        let (a, b) = (random.below(placed.len()), random.below(placed.len()));
        if a == b {
            continue;
        }
        let (i, j) = (random.below(placed[a].len()), random.below(placed[b].len()));
        let exchange = |placed: &mut [Vec<usize>]| {
            let one = placed[a][i];
            placed[a][i] = placed[b][j];
            placed[b][j] = one;
        };
        exchange(&mut placed);
        let after = (profiles.least(&placed[a]), profiles.least(&placed[b]));
        if after.0 + after.1 < costs[a] + costs[b] {
            (costs[a], costs[b]) = after;
        } else {
            exchange(&mut placed);
        }
    }
    let of_warp = |warp: Vec<usize>| {
        let mut warp: Vec<usize> = warp.into_iter().map(|index| lanes[index]).collect();
        warp.sort_unstable();
        warp
    };
    Ok(placed.into_iter().map(of_warp).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_partition_of_the_fewest_warps_is_found() {
        // Lanes cost what the largest of them does.
        let work = [5, 1, 5, 1, 3, 3];
        let lanes: Vec<usize> = (0..6).collect();
        let all = subsets(&lanes, 2);
        assert_eq!(all.len(), 6 + 15);
        let costs: Vec<u64> = all.iter().map(|warp| warp.iter().map(|lane| work[*lane]).max().unwrap()).collect();
        let mut warps = partitions(&lanes, 2, &costs);
        warps.sort_unstable();
        assert_eq!(warps, [[0, 2], [1, 3], [4, 5]]);
    }
}
