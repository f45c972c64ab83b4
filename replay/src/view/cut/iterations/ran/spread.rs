//! How the turns of lanes differ: what a warp issues where its lanes wait for each other behind a loop or an arm of a
//! branch, and what if they waited at its beginning.
//!
//! The *place* is where the loop or the arm begins, its *body* what they hold, its *region* the outermost loop of the
//! function around it, its *rest* the code of the region outside of the body. Of each lane there is a record for each
//! turn of the loop around the place: which turn it is, in all loops of the region; what it issues outside of the
//! body; and how often it is at the place.
//!
//! - *Apart*: lanes meet behind the body. In each turn they run the rest together, as long as the one with most of it,
//!   and the body as often as the one with most turns.
//! - *Together*: lanes wait at the place until all that are left stand there, and run the body once. Those that leave
//!   it then run their rest together, as long as the one with most of it, while the others wait. With so many lanes
//!   enough, the body runs while so many are there; then those that left it meanwhile run their rest, all at once.
//!
//! Example: two lanes take 10 and 15 turns of an inner loop in one turn of the outer one, 15 and 10 in the next, and 7
//! instructions around it. Apart the body is issued 30 times and the rest takes 14; together the body is issued 25
//! times, and the rest takes 7 at the beginning and, as each lane ends by itself there, 7 each: 21.
//!
//! Source: Damani et al., *Speculative reconvergence for improved SIMT efficiency*, CGO 2020, sections 4.5 and 4.6.

use rustc_hash::FxHashMap;

/// A loop that a lane is in, or an arm of a branch in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Active {
    pub of: u32,
    /// The call level.
    pub level: u32,
    /// Its turns so far.
    pub turn: u32,
}

/// The lanes that are enough, of what is tried besides all.
const ENOUGH: [usize; 3] = [4, 8, 16];

/// Records of a lane, of all places: 16 MiB. Of longer ones nothing is said.
const MOST_RECORDS: usize = 1 << 20;

/// What warps issue, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// How often the body.
    pub bodies: u64,
    /// How often rest was run by lanes that wait or part behind it.
    pub rests: u64,
    /// The rest, in tenths of a GPU's instructions.
    pub rest: u64,
}

/// What lanes would issue that wait at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// How many lanes are enough; none: all that can come.
    pub enough: Option<usize>,
    /// That.
    pub issued: Paid,
}

/// How the turns of lanes differ at a place, summed over warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Without a wait there.
    pub apart: Paid,
    /// With one.
    pub waits: Vec<Waited>,
}

impl Default for Spread {
    fn default() -> Spread {
        let all = std::iter::once(None).chain(ENOUGH.map(Some));
        let waits = all.map(|enough| Waited { enough, issued: Paid::default() }).collect();
        Spread { apart: Paid::default(), waits }
    }
}

impl Spread {
    /// Adds what others issue.
    pub fn add(&mut self, other: &Spread) {
        self.apart.add(other.apart);
        self.waits.iter_mut().zip(&other.waits).for_each(|(own, other)| own.issued.add(other.issued));
    }
}

impl Paid {
    fn add(&mut self, other: Paid) {
        self.bodies += other.bodies;
        self.rests += other.rests;
        self.rest += other.rest;
    }
}

/// A turn of the loop around a place.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Which turn it is of each loop of the region: a hash of that.
    at: u64,
    /// What is issued outside of the body, in tenths.
    rest: u32,
    /// How often the lane is at the place.
    turns: u32,
}

/// A lane's records at a place, by entry into the region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Vec<Vec<Record>>);

/// A record that is not complete.
#[derive(Clone, Copy, Debug)]
struct Open {
    record: Record,
    /// What the lane had run when it began, and when the body did.
    began: u64,
    body: Option<u64>,
    /// What it ran in the body.
    inside: u64,
}

/// Records what lanes do at places. Loops and arms have the numbers of who counts their turns.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    /// By number: the outermost loop around, where it is a place.
    region: Vec<Option<u32>>,
    /// By number: the places that it holds, and those in whose region.
    around: Vec<Vec<u32>>,
    holds: Vec<Vec<u32>>,
    open: Vec<Option<Open>>,
    records: Vec<Records>,
    left: usize,
    ran: u64,
    /// By number: what warps issue; none where that is unknown, as of a function that calls itself.
    spread: Vec<Option<Spread>>,
}

impl Recorder {
    /// By number: the loops around it, the innermost first; none where it is no place.
    pub fn new(places: &[Vec<u32>]) -> Recorder {
        let count = places.len();
        let mut new = Recorder {
            region: places.iter().map(|around| around.last().copied()).collect(),
            around: vec![Vec::new(); count],
            holds: vec![Vec::new(); count],
            open: vec![None; count],
            records: vec![Records::default(); count],
            left: MOST_RECORDS,
            ran: 0,
            spread: places.iter().map(|around| (!around.is_empty()).then(Spread::default)).collect(),
        };
        for (number, around) in places.iter().enumerate() {
            around.iter().for_each(|of| new.around[*of as usize].push(number as u32));
            around.last().iter().for_each(|of| new.holds[**of as usize].push(number as u32));
        }
        new
    }

    /// The lane ran so many tenths.
    pub fn ran(&mut self, tenths: u32) {
        self.ran += u64::from(tenths);
    }

    /// The lane comes into a loop or an arm; `again` while it is in it.
    pub fn enter(&mut self, number: u32, again: bool) {
        for place in self.holds[number as usize].iter().map(|place| *place as usize) {
            if again {
                self.spread[place] = None;
            }
            self.records[place].0.push(Vec::new());
            self.open[place] = Some(Open { record: Record::default(), began: self.ran, body: None, inside: 0 });
        }
        if let Some(open) = &mut self.open[number as usize] {
            open.body = Some(self.ran);
        }
    }

    /// It begins a turn of it: the last of these loops.
    pub fn turn(&mut self, active: &[Active]) {
        let Some(last) = active.last() else { return };
        let number = last.of as usize;
        if let Some(open) = &mut self.open[number] {
            open.record.turns = open.record.turns.saturating_add(1);
        }
        self.begin(number, active, 0);
    }

    /// It leaves it, and is in these loops.
    pub fn leave(&mut self, number: u32, active: &[Active]) {
        let ran = self.ran;
        if let Some(open) = &mut self.open[number as usize] {
            open.inside += open.body.take().map_or(0, |began| ran - began);
        }
        self.begin(number as usize, active, u64::from(number) + 1);
        for place in self.holds[number as usize].clone() {
            self.close(place as usize);
            self.open[place as usize] = None;
        }
    }

    /// Begins a record of all places that a loop holds: its next turn, or what is behind it.
    fn begin(&mut self, number: usize, active: &[Active], behind: u64) {
        let Some(&first) = self.around[number].first() else { return };
        let region = self.region[first as usize];
        let path = active.iter().skip_while(|one| Some(one.of) != region);
        // Any hash that mixes well.
        let at = path.fold(behind, |hash, one| {
            let mixed = (hash ^ u64::from(one.of) << 32 ^ u64::from(one.turn)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ mixed >> 29
        });
        for place in self.around[number].clone() {
            self.close(place as usize);
            let record = Record { at, ..Record::default() };
            self.open[place as usize] = Some(Open { record, began: self.ran, body: None, inside: 0 });
        }
    }

    /// Completes the record of a place.
    fn close(&mut self, place: usize) {
        let Some(Open { record, began, inside, .. }) = self.open[place].take() else { return };
        let rest = u32::try_from(self.ran - began - inside).unwrap_or(u32::MAX);
        if rest == 0 && record.turns == 0 {
            return;
        }
        let Some(left) = self.left.checked_sub(1) else { return self.spread[place] = None };
        self.left = left;
        if let Some(entry) = self.records[place].0.last_mut() {
            entry.push(Record { rest, ..record });
        }
    }

    /// The lane ends: its records, by place.
    pub fn end(&mut self) -> Vec<Records> {
        self.left = MOST_RECORDS;
        self.open.iter_mut().for_each(|open| *open = None);
        self.records.iter_mut().map(std::mem::take).collect()
    }

    /// Adds what a warp issues whose lanes have these records.
    pub fn issues(&mut self, lanes: &[Vec<Records>]) {
        for (place, spread) in self.spread.iter_mut().enumerate() {
            let Some(spread) = spread else { continue };
            for entry in 0..lanes.iter().map(|lane| lane[place].0.len()).max().unwrap_or(0) {
                let lanes: Vec<&[Record]> =
                    lanes.iter().filter_map(|lane| lane[place].0.get(entry)).map(Vec::as_slice).collect();
                spread.apart.add(apart(&lanes));
                for Waited { enough, issued } in &mut spread.waits {
                    issued.add(together(&lanes, *enough));
                }
            }
        }
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Recorder) {
        for (own, other) in self.spread.iter_mut().zip(&other.spread) {
            match (&mut *own, other) {
                (Some(own), Some(other)) => own.add(other),
                _ => *own = None,
            }
        }
    }

    /// What warps issue at a place; none where it is unknown.
    pub fn spread(&self, place: usize) -> Option<&Spread> {
        self.spread[place].as_ref()
    }
}

/// What a warp issues without a wait.
fn apart(lanes: &[&[Record]]) -> Paid {
    let mut turns: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
    for record in lanes.iter().copied().flatten() {
        let (most, longest) = turns.entry(record.at).or_default();
        (*most, *longest) = ((*most).max(record.turns), (*longest).max(record.rest));
    }
    let sum = |of: &dyn Fn(&(u32, u32)) -> u32| turns.values().map(|turn| u64::from(of(turn))).sum();
    Paid { bodies: sum(&|turn| turn.0), rests: turns.len() as u64, rest: sum(&|turn| turn.1) }
}

/// What it issues where the place is waited at.
fn together(lanes: &[&[Record]], enough: Option<usize>) -> Paid {
    let mut issued = Paid::default();
    // By lane: how many of its records are behind it; and its turns at the place that are left.
    let mut next = vec![0; lanes.len()];
    let mut turns = vec![0u32; lanes.len()];
    let mut behind: Vec<usize> = (0..lanes.len()).collect();
    let mut there: Vec<usize> = Vec::new();
    loop {
        if !behind.is_empty() && enough.is_none_or(|enough| there.len() < enough) {
            // By turn of those that they go through meanwhile: the most that any of them runs.
            let mut longest: Vec<u32> = Vec::new();
            for lane in behind.drain(..) {
                let mut turn = 0;
                while let Some(record) = lanes[lane].get(next[lane]).filter(|_| turns[lane] == 0) {
                    if turn == longest.len() {
                        longest.push(0);
                    }
                    longest[turn] = longest[turn].max(record.rest);
                    turns[lane] = record.turns;
                    next[lane] += 1;
                    turn += 1;
                }
                there.extend((turns[lane] > 0).then_some(lane));
            }
            issued.rests += 1;
            issued.rest += longest.iter().map(|rest| u64::from(*rest)).sum::<u64>();
        }
        let Some(least) = there.iter().map(|lane| turns[*lane]).min() else { break };
        issued.bodies += u64::from(least);
        there.retain(|&lane| {
            turns[lane] -= least;
            if turns[lane] == 0 {
                behind.push(lane);
            }
            turns[lane] > 0
        });
    }
    issued
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane with so many turns in each turn of the loop around, and so much rest.
    fn lane(turns: &[u32], rest: u32) -> Vec<Record> {
        turns.iter().zip(1..).map(|(&turns, at)| Record { at, rest, turns }).collect()
    }

    fn of(lanes: &[Vec<Record>], enough: Option<usize>) -> [(u64, u64); 2] {
        let lanes: Vec<&[Record]> = lanes.iter().map(Vec::as_slice).collect();
        [apart(&lanes), together(&lanes, enough)].map(|issued| (issued.bodies, issued.rest))
    }

    #[test]
    fn lanes_whose_turns_level_out_gain_and_their_rest_is_run_apart() {
        let lanes = [lane(&[10, 15], 7), lane(&[15, 10], 7)];
        assert_eq!(of(&lanes, None), [(30, 14), (25, 21)]);
    }

    #[test]
    fn lanes_whose_turns_are_equal_gain_nothing() {
        let lanes = vec![lane(&[4, 7, 1], 7); 5];
        assert_eq!(of(&lanes, None), [(12, 21), (12, 21)]);
        assert_eq!(of(&lanes, Some(4)), [(12, 21), (12, 21)]);
    }

    #[test]
    fn with_so_many_enough_the_others_run_their_rest_at_once() {
        // Lanes 0 and 1 leave after a turn and two; with two enough, lane 0 waits for lane 1.
        let lanes = [lane(&[1, 3], 10), lane(&[2, 2], 10), lane(&[4], 10)];
        assert_eq!(of(&lanes, None), [(7, 20), (4, 30)]);
        assert_eq!(of(&lanes, Some(2)), [(7, 20), (5, 20)]);
    }

    #[test]
    fn an_arm_that_each_lane_takes_in_another_turn_is_run_once() {
        let lanes = [lane(&[1, 0, 0], 5), lane(&[0, 1, 0], 5), lane(&[0, 0, 1], 5)];
        assert_eq!(of(&lanes, None), [(3, 15), (1, 15 + 10)]);
    }

    #[test]
    fn records_are_of_turns_and_of_what_runs_outside_of_the_body() {
        let mut recorder = Recorder::new(&[Vec::new(), vec![0]]);
        let active = |of, turn| Active { of, level: 1, turn };
        for turns in [2, 0] {
            recorder.enter(0, false);
            for outer in 1..=2 {
                recorder.turn(&[active(0, outer)]);
                recorder.ran(30);
                recorder.enter(1, false);
                for turn in 1..=turns {
                    recorder.turn(&[active(0, outer), active(1, turn)]);
                    recorder.ran(100);
                }
                recorder.leave(1, &[active(0, outer)]);
                recorder.ran(40);
            }
            recorder.leave(0, &[]);
        }
        let records = recorder.end();
        let all: Vec<Vec<(u32, u32)>> =
            records[1].0.iter().map(|entry| entry.iter().map(|record| (record.turns, record.rest)).collect()).collect();
        assert_eq!(all, [[(2, 70), (2, 70)], [(0, 70), (0, 70)]]);
        recorder.issues(&[records]);
        let spread = recorder.spread(1).unwrap();
        assert_eq!(spread.apart, Paid { bodies: 4, rests: 4, rest: 280 });
        // A function that calls itself in the region says nothing.
        recorder.enter(0, true);
        assert_eq!(recorder.spread(1), None);
    }
}
