//! Seats: which lanes could share a fetch.
//!
//! A warp of W seats has W *homes* (home lanes): places in the hardware, numbered from 0. Each holds the registers of
//! one of its lanes. In a block of several warps that are replayed together, lanes of different warps have the same
//! home, and a fetch holds at most one lane of each.

use crate::{Lane, LaneSet, MAX_LANES};

/// The seats of the lanes that are replayed together: of one warp, or of a block of warps.
#[derive(Clone, Debug)]
pub struct Seats {
    width: usize,
    homes: Vec<u8>,
    warps: Vec<LaneSet>,
    columns: Vec<LaneSet>,
}

impl Seats {
    /// Warps of `width` seats, 1 to [`MAX_LANES`]; so many seats are taken in each, lowest homes first. The lanes are
    /// numbered over all warps in order.
    ///
    /// # Panics
    /// When a warp has more lanes than seats, or all together have more than [`MAX_LANES`]: bugs of the caller.
    #[must_use]
    pub fn new(width: usize, taken: &[usize]) -> Seats {
        assert!((1..=MAX_LANES).contains(&width), "a warp of {width} seats");
        assert!(taken.iter().all(|lanes| *lanes <= width), "more lanes than seats");
        assert!(taken.iter().sum::<usize>() <= MAX_LANES, "more lanes than a set holds");
        let mut seats = Seats { width, homes: Vec::new(), warps: Vec::new(), columns: Vec::new() };
        for lanes in taken {
            let mut warp = LaneSet::EMPTY;
            for home in 0..*lanes {
                let lane = Lane(seats.homes.len() as u8);
                seats.homes.push(home as u8);
                warp.insert(lane);
                if seats.columns.len() == home {
                    seats.columns.push(LaneSet::EMPTY);
                }
                seats.columns[home].insert(lane);
            }
            seats.warps.push(warp);
        }
        seats
    }

    /// Seats in a warp, W.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The lane's home: 0 to W - 1.
    #[must_use]
    pub fn home(&self, lane: Lane) -> usize {
        usize::from(self.homes[lane.index()])
    }

    /// The warps, as they were put together.
    #[must_use]
    pub fn warps(&self) -> &[LaneSet] {
        &self.warps
    }

    /// The lanes of each home that has any, by home.
    #[must_use]
    pub fn columns(&self) -> &[LaneSet] {
        &self.columns
    }

    /// Whether no two of these lanes have one home.
    #[must_use]
    pub fn fit(&self, lanes: LaneSet) -> bool {
        self.warps.len() == 1 || self.homes_of(lanes) == lanes.len()
    }

    /// How many homes these lanes have.
    #[must_use]
    pub fn homes_of(&self, lanes: LaneSet) -> usize {
        match self.warps.len() {
            1 => lanes.len(),
            _ => self.columns.iter().filter(|column| !column.is_disjoint(&lanes)).count(),
        }
    }

    /// These lanes in as few sets that fit as possible; as many as the largest number of them that have one home. Lower
    /// lanes come first.
    #[must_use]
    pub fn pack(&self, lanes: LaneSet) -> Vec<LaneSet> {
        let mut left = lanes;
        let mut packed = Vec::new();
        while !left.is_empty() {
            let next = self.one_of_each_home(left.iter());
            packed.push(next);
            left = left - next;
        }
        packed
    }

    /// The first of these lanes of each home.
    #[must_use]
    pub fn one_of_each_home(&self, lanes: impl Iterator<Item = Lane>) -> LaneSet {
        let (mut taken, mut homes) = (LaneSet::EMPTY, LaneSet::EMPTY);
        for lane in lanes {
            let home = Lane(self.homes[lane.index()]);
            if !homes.contains(home) {
                homes.insert(home);
                taken.insert(lane);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lanes: &[u8]) -> LaneSet {
        lanes.iter().map(|l| Lane(*l)).collect()
    }

    #[test]
    fn lanes_of_two_warps_share_a_home() {
        let seats = Seats::new(4, &[3, 2]);
        assert_eq!([0, 2, 3, 4].map(|l| seats.home(Lane(l))), [0, 2, 0, 1]);
        assert_eq!(seats.warps(), [set(&[0, 1, 2]), set(&[3, 4])]);
        assert_eq!(seats.columns(), [set(&[0, 3]), set(&[1, 4]), set(&[2])]);
        assert!(seats.fit(set(&[2, 3, 4])) && !seats.fit(set(&[0, 3])));
    }

    #[test]
    fn as_many_sets_are_packed_as_lanes_have_one_home() {
        let seats = Seats::new(2, &[2, 2, 2]);
        assert_eq!(seats.pack(set(&[0, 3, 5])), [set(&[0, 3]), set(&[5])]);
        assert_eq!(seats.pack(set(&[1, 2])), [set(&[1, 2])]);
        assert_eq!(seats.pack(LaneSet::EMPTY), []);
    }

    #[test]
    fn a_full_block_is_packed_into_its_warps() {
        let seats = Seats::new(2, &[2, 2, 1]);
        assert_eq!(seats.pack(LaneSet::first(5)), seats.warps());
    }
}
