//! Which lanes share a warp: the ways there are, and the lanes of each warp under one of them. What a way needs besides
//! the lanes' numbers lies in a file of its own.

pub(crate) mod keys;
mod oracle;
mod profiles;
mod similarity;

use std::fmt;
use std::str::FromStr;

use heuristics::MAX_LANES;

use crate::survey::Survey;
use crate::{Error, Result};

pub(crate) use keys::Key;
pub use keys::SortKey;
pub(crate) use oracle::{EXACT_LANES, improved, least_of_any, partitions, subsets};

/// How lanes are put into warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Grouping {
    /// In order of their numbers: the first W lanes, the next W lanes, …
    #[default]
    Consecutive,
    /// Dealt out: with n warps, lane i goes to warp i mod n.
    RoundRobin,
    /// Each warp has lanes that lie so far apart: of each W x step lanes in a row, lane i goes to warp i mod step.
    Strided {
        /// The distance of neighbours in a warp, at least 1.
        step: u32,
    },
    /// By what lanes do: sorted by this, then the first W lanes, the next W lanes, …
    Sorted {
        /// What they are sorted by.
        key: SortKey,
    },
    /// By similarity of control flow: each warp takes the first lane left and the lanes whose instruction counts, by
    /// place in the code, differ least from its own.
    Similarity,
    /// Shuffled.
    Random {
        /// Of the shuffle: equal seeds give equal warps.
        seed: u64,
    },
    /// The one with the fewest fetches that is known, for each model.
    Oracle,
}

/// The step of a strided grouping that names none.
const STEP: u32 = 32;

impl Grouping {
    /// All of them as they would be typed, in the order of the help.
    pub const ALL: [Grouping; 9] = [
        Grouping::Consecutive,
        Grouping::RoundRobin,
        Grouping::Strided { step: STEP },
        Grouping::Sorted { key: SortKey::Instructions },
        Grouping::Sorted { key: SortKey::Trips },
        Grouping::Sorted { key: SortKey::Path },
        Grouping::Similarity,
        Grouping::Random { seed: 0 },
        Grouping::Oracle,
    ];

    /// Groupings that were typed with commas between them, or `all`; each once.
    ///
    /// # Errors
    /// When there is no such grouping.
    pub fn parse_list(text: &str) -> Result<Vec<Grouping>> {
        if text == "all" {
            return Ok(Grouping::ALL.to_vec());
        }
        let mut all: Vec<Grouping> = Vec::new();
        for one in text.split(',') {
            let one = one.parse()?;
            if !all.contains(&one) {
                all.push(one);
            }
        }
        Ok(all)
    }

    /// Whether it is known only once the lanes have been replayed.
    pub(crate) fn is_oracle(self) -> bool {
        self == Grouping::Oracle
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grouping::Consecutive => f.write_str("consecutive"),
            Grouping::RoundRobin => f.write_str("round-robin"),
            Grouping::Strided { step } => write!(f, "strided:step={step}"),
            Grouping::Sorted { key } => write!(f, "sorted:key={key}"),
            Grouping::Similarity => f.write_str("similarity"),
            Grouping::Random { seed } => write!(f, "random:seed={seed}"),
            Grouping::Oracle => f.write_str("oracle"),
        }
    }
}

impl FromStr for Grouping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Grouping> {
        let refuse = || {
            Error::Request(format!(
                "there is no grouping {text:?}; there are: consecutive, round-robin, strided:step=N, sorted:key=KEY \
                 (instructions, trips, path), similarity, random:seed=N, oracle"
            ))
        };
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        let of = |parameter: &str| -> Result<Option<&str>> {
            let value = value.map(|v| v.strip_prefix(parameter).and_then(|v| v.strip_prefix('=')).ok_or_else(refuse));
            value.transpose()
        };
        match (name, value) {
            ("consecutive", None) => Ok(Grouping::Consecutive),
            ("round-robin", None) => Ok(Grouping::RoundRobin),
            ("similarity", None) => Ok(Grouping::Similarity),
            ("oracle", None) => Ok(Grouping::Oracle),
            ("strided", _) => {
                let step = of("step")?.map_or(Ok(STEP), str::parse).map_err(|_| refuse())?;
                if step == 0 { Err(refuse()) } else { Ok(Grouping::Strided { step }) }
            }
            ("random", _) => {
                let seed = of("seed")?.map_or(Ok(0), str::parse).map_err(|_| refuse())?;
                Ok(Grouping::Random { seed })
            }
            ("sorted", _) => {
                let key = of("key")?.map_or(Ok(SortKey::Instructions), str::parse).map_err(|()| refuse())?;
                Ok(Grouping::Sorted { key })
            }
            _ => Err(refuse()),
        }
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

/// The lanes by generation.
pub(crate) fn generations(survey: &Survey) -> Vec<Vec<usize>> {
    let source = survey.source();
    let mut lanes: Vec<usize> = (0..survey.lanes.len()).collect();
    lanes.sort_by_key(|lane| source.generation(*lane));
    lanes.chunk_by(|a, b| source.generation(*a) == source.generation(*b)).map(<[usize]>::to_vec).collect()
}

/// The lanes of each warp; those of a generation follow one another.
///
/// # Panics
/// For the oracle, which is known only by replaying.
pub(crate) fn warps(
    survey: &Survey,
    generations: &[Vec<usize>],
    size: usize,
    grouping: Grouping,
) -> Result<Vec<Vec<usize>>> {
    let chunks = |lanes: &[usize]| -> Vec<Vec<usize>> { lanes.chunks(size).map(<[usize]>::to_vec).collect() };
    let keys = match grouping {
        Grouping::Sorted { key } => keys::of(survey, key)?,
        _ => Vec::new(),
    };
    let of_one = |lanes: &Vec<usize>| -> Result<Vec<Vec<usize>>> {
        let count = lanes.len().div_ceil(size);
        Ok(match grouping {
            Grouping::Consecutive => chunks(lanes),
            Grouping::RoundRobin => dealt(lanes, count),
            Grouping::Strided { step } => {
                let of_tile = |tile: &[usize]| dealt(tile, (step as usize).min(tile.len().div_ceil(size)));
                lanes.chunks(size.saturating_mul(step as usize)).flat_map(of_tile).collect()
            }
            Grouping::Sorted { .. } => {
                let mut sorted = lanes.clone();
                sorted.sort_by_key(|lane| (keys[*lane], *lane));
                chunks(&sorted)
            }
            Grouping::Similarity => similarity::warps(survey, lanes.clone(), size)?,
            Grouping::Random { seed } => {
                let mut shuffled = lanes.clone();
                Shuffle::new(seed).apply(&mut shuffled);
                chunks(&shuffled)
            }
            Grouping::Oracle => unreachable!("the oracle is made of replays"),
        })
    };
    Ok(generations.iter().map(of_one).collect::<Result<Vec<_>>>()?.concat())
}

/// With n warps, the i-th lane goes to warp i mod n.
fn dealt(lanes: &[usize], count: usize) -> Vec<Vec<usize>> {
    (0..count).map(|w| lanes.iter().skip(w).step_by(count).copied().collect()).collect()
}

/// Numbers that look random: splitmix64, of Steele, Lea and Flood, *Fast splittable pseudorandom number generators*
/// (OOPSLA 2014).
pub(crate) struct Shuffle(u64);

impl Shuffle {
    pub(crate) fn new(seed: u64) -> Shuffle {
        Shuffle(seed)
    }

    /// Below this, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * end as u128) >> 64) as usize
    }

    /// Fisher and Yates's shuffle.
    fn apply(&mut self, lanes: &mut [usize]) {
        for last in (1..lanes.len()).rev() {
            lanes.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_grouping_shows_reads_back() {
        for grouping in Grouping::ALL {
            assert_eq!(grouping.to_string().parse::<Grouping>().unwrap(), grouping);
        }
        assert_eq!(Grouping::parse_list("all").unwrap(), Grouping::ALL);
        assert_eq!("sorted".parse::<Grouping>().unwrap(), Grouping::Sorted { key: SortKey::Instructions });
        let listed = Grouping::parse_list("random:seed=7,strided:step=2,random:seed=7").unwrap();
        assert_eq!(listed, [Grouping::Random { seed: 7 }, Grouping::Strided { step: 2 }]);
        for wrong in ["", "sort", "sorted:key=size", "sorted:path", "strided:step=0", "random:seed=x", "oracle:n=1"] {
            let said = Grouping::parse_list(wrong).unwrap_err().to_string();
            assert!(said.contains("there is no grouping"), "{said}");
        }
    }

    #[test]
    fn a_stride_deals_tiles() {
        let lanes: Vec<usize> = (0..10).collect();
        assert_eq!(dealt(&lanes[..4], 2), [[0, 2], [1, 3]]);
        assert_eq!(dealt(&lanes[..5], 3), [vec![0, 3], vec![1, 4], vec![2]]);
    }

    #[test]
    fn a_shuffle_has_each_lane_once_and_every_order() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut lanes = vec![0, 1, 2, 3];
            Shuffle::new(seed).apply(&mut lanes);
            seen.insert(lanes.clone());
            lanes.sort_unstable();
            assert_eq!(lanes, [0, 1, 2, 3]);
        }
        assert_eq!(seen.len(), 24);
    }
}
