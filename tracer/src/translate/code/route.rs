//! Routes: the paths that are seen to be taken from superblocks that run often.
//!
//! The first translation follows the program's code along the side of each branch that is likely by its form, and ends
//! where the code does not show how it goes on. The records show that. When a superblock was met often enough among
//! them, it is translated again, along what the records say was run from its head on, through returns and indirect
//! jumps. That makes one record of many.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use trace_format::Kind;

use crate::translate::addresses::ProgramPc;
use crate::translate::code::superblock::MAX_HOT_INSTRUCTIONS;

/// One in so many records is looked at: a prime number, so that loops do not hide between.
const SAMPLE_STEP: usize = 61;
/// About how many words a record has where values are recorded: in FFT and radix sort of `workloads` it is 14 and 60.
pub const WORDS_OF_RECORD: usize = 8;
/// Records that stand for fewer instructions than this are short: a better route may need fewer records.
const SHORT: usize = MAX_HOT_INSTRUCTIONS * 3 / 4;
/// Code with so many short records among those looked at runs often: about four thousand of them were written. Each
/// time a route was looked for, it takes twice as many to look again, up to 2^[`MOST_DOUBLINGS`] as many. Programs have
/// phases, and what is good in one may not be in the next.
const HOT_SAMPLES: u64 = 64;
/// See [`HOT_SAMPLES`].
const MOST_DOUBLINGS: u32 = 6;
/// A route is what most of so many looks agree on, if at least two do.
const LOOKS: usize = 8;
/// A new route must stand for this part more than the present one, and for as much more again for each time that
/// another one was chosen, since translating is expensive.
const GAIN: usize = 8;

/// A path through the program's code: the addresses of its instructions, and where it ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Route(Vec<ProgramPc>);

impl Route {
    /// A route through these instructions, to the last address.
    #[cfg(test)]
    pub fn through(pcs: &[ProgramPc]) -> Route {
        Route(pcs.to_vec())
    }

    /// The address of an instruction; that of the one after the last is where the route ends.
    #[must_use]
    pub fn pc(&self, instruction: usize) -> Option<ProgramPc> {
        self.0.get(instruction).copied()
    }

    /// The addresses, with the last one.
    pub fn pcs(&self) -> impl Iterator<Item = ProgramPc> {
        self.0.iter().copied()
    }

    /// About how many bytes of our memory it takes.
    fn size(&self) -> u64 {
        8 * self.0.len() as u64 + 100
    }

    /// How many instructions it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() - 1
    }
}

/// What the records show from the head of a superblock on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// The instructions that were run, and the one that came then.
    pcs: Vec<ProgramPc>,
    /// How many of them the first record stands for.
    alone: usize,
}

/// What is known about the routes from one address on.
#[derive(Clone, Default)]
struct Head {
    route: Option<Rc<Route>>,
    /// How many short records were met since a route was looked for.
    short: u64,
    /// How often a route was looked for.
    tries: u32,
    /// How often one was chosen.
    chosen: usize,
    /// What was seen so far in looking for one.
    sights: Vec<Sight>,
}

/// The routes of a process.
#[derive(Clone)]
pub struct Routes {
    /// One in so many records is looked at.
    pub step: usize,
    /// Code with so many short records among those runs often.
    hot: u64,
    heads: FxHashMap<ProgramPc, Head>,
    /// About how many bytes of our memory they take.
    held: u64,
}

impl Routes {
    /// None yet. With `at_once` there will be some after the first looks.
    #[must_use]
    pub fn new(at_once: bool) -> Routes {
        let (step, hot) = if at_once { (3, 1) } else { (SAMPLE_STEP, HOT_SAMPLES) };
        Routes { step, hot, heads: FxHashMap::default(), held: 0 }
    }

    /// Forgets all routes.
    pub fn forget_all(&mut self) {
        self.heads = FxHashMap::default();
        self.held = 0;
    }

    /// This route was taken from `head` on in earlier runs. It is given up only for one that is much better.
    pub fn recall(&mut self, head: ProgramPc, pcs: Vec<ProgramPc>) {
        if pcs.first() == Some(&head) && (2..=MAX_HOT_INSTRUCTIONS + 1).contains(&pcs.len()) {
            let route = Route(pcs);
            self.held += route.size() + size_of::<(ProgramPc, Head)>() as u64;
            let known = Head { route: Some(Rc::new(route)), tries: 1, chosen: 1, ..Head::default() };
            self.heads.entry(head).or_insert(known);
        }
    }

    /// The route from this address on.
    #[must_use]
    pub fn from(&self, head: ProgramPc) -> Option<Rc<Route>> {
        self.heads.get(&head)?.route.clone()
    }

    /// About how many bytes of our memory they take.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Counts one more record from this address on, and says whether it is time to look for a better route.
    pub fn is_time_to_look(&mut self, head: ProgramPc, executed: u16) -> bool {
        let is_short = usize::from(executed) < SHORT;
        let Some(known) = self.heads.get_mut(&head) else {
            if is_short {
                self.held += size_of::<(ProgramPc, Head)>() as u64;
                self.heads.insert(head, Head { short: 1, ..Head::default() });
            }
            return is_short && self.hot <= 1;
        };
        known.short += u64::from(is_short);
        // Then long records are looked at as well, so that the route that results is good for all.
        known.short >= self.hot << known.tries.min(MOST_DOUBLINGS)
    }

    /// Adds what was seen from this address on. Says whether there is a better route now.
    pub fn add(&mut self, head: ProgramPc, sight: Sight) -> bool {
        let Some(known) = self.heads.get_mut(&head) else { return false };
        known.sights.push(sight);
        if known.sights.len() < LOOKS {
            return false;
        }
        let route = best(&std::mem::take(&mut known.sights), known.chosen);
        (known.short, known.tries) = (0, known.tries + 1);
        let Some(route) = route.filter(|route| known.route.as_deref() != Some(route)) else { return false };
        self.held += route.size();
        self.held -= known.route.as_ref().map_or(0, |old| old.size());
        known.route = Some(Rc::new(route));
        known.chosen += 1;
        true
    }
}

/// A path that was run.
pub struct Ran<I> {
    /// They.
    pub instructions: I,
    /// How many they are.
    pub executed: usize,
    /// How many words its record has.
    pub words: usize,
}

/// What the records show from the first on; none when they end too early. `run_by` says what a record stands for.
pub fn look_along<I: Iterator<Item = (ProgramPc, Kind)>>(
    records: &[u32],
    run_by: impl Fn(u32) -> Option<Ran<I>>,
) -> Option<Sight> {
    let mut sight = Sight { pcs: Vec::with_capacity(MAX_HOT_INSTRUCTIONS + 1), alone: 0 };
    let pcs = &mut sight.pcs;
    let (mut rest, mut goes_on) = (records, true);
    while goes_on && pcs.len() <= MAX_HOT_INSTRUCTIONS {
        let Some(ran) = run_by(*rest.first()?) else { break };
        if pcs.is_empty() {
            sight.alone = ran.executed;
        }
        let left = MAX_HOT_INSTRUCTIONS + 1 - pcs.len();
        for (pc, kind) in ran.instructions.take(left) {
            pcs.push(pc);
            goes_on = kind != Kind::Syscall;
        }
        rest = rest.get(ran.words..).unwrap_or_default();
    }
    Some(sight)
}

/// The better of two routes: the one that most were seen to take, and one round a loop as often as there is room. None
/// if one record for it does not stand for more than the present records do. `chosen` says how often a route was.
fn best(sights: &[Sight], chosen: usize) -> Option<Route> {
    let sights: Vec<&Sight> = sights.iter().filter(|sight| !sight.pcs.is_empty()).collect();
    let mut ways = vec![agreed(&sights)];
    ways.extend(sights.iter().filter_map(|sight| round_and_round(&sight.pcs)));
    let taken = |pcs: &Vec<ProgramPc>| -> usize { sights.iter().map(|sight| in_common(pcs, &sight.pcs)).sum() };
    let best = ways.into_iter().max_by_key(taken)?;
    let alone: usize = sights.iter().map(|sight| sight.alone).sum();
    (taken(&best) > alone + alone * (chosen + 1) / GAIN).then_some(Route(best))
}

/// The first turn (iteration) of a loop, over and over: when the loop ends earlier, that is still one record.
fn round_and_round(pcs: &[ProgramPc]) -> Option<Vec<ProgramPc>> {
    let turn = pcs.iter().skip(1).position(|pc| *pc == pcs[0])? + 1;
    let len = MAX_HOT_INSTRUCTIONS / turn * turn;
    Some(pcs[..turn].iter().copied().cycle().take(len + 1).collect())
}

/// The path that most were seen to take, up to where no two take the same, or to where a loop begins again for the last
/// time.
fn agreed(sights: &[&Sight]) -> Vec<ProgramPc> {
    let mut together = sights.to_vec();
    let mut pcs = Vec::with_capacity(MAX_HOT_INSTRUCTIONS + 1);
    loop {
        let next = |sight: &Sight| sight.pcs.get(pcs.len()).copied();
        let voters = |pc: ProgramPc| together.iter().filter(|sight| next(sight) == Some(pc)).count();
        let Some(most) = together.iter().filter_map(|sight| next(sight)).max_by_key(|pc| voters(*pc)) else { break };
        if voters(most) < 2 {
            break;
        }
        together.retain(|sight| next(sight) == Some(most));
        pcs.push(most);
    }
    // A loop is left where it begins again.
    let last_turn = pcs.iter().rposition(|pc| *pc == pcs[0]).filter(|&last| last > 0);
    pcs.truncate(last_turn.map_or(pcs.len(), |last| last + 1));
    pcs
}

/// How many instructions two paths have in common from their start on; the last address of each is where it ends.
fn in_common(one: &[ProgramPc], other: &[ProgramPc]) -> usize {
    let addresses = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    addresses.min(one.len().min(other.len()).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Record n is of four instructions at 0x1000 * n; a record of more than 9 is no path.
    fn four(word: u32) -> Option<Ran<impl Iterator<Item = (ProgramPc, Kind)>>> {
        let kind = if word == 9 { Kind::Syscall } else { Kind::Plain };
        let instructions = (0..4).map(move |i| (ProgramPc(0x1000 * u64::from(word) + i), kind));
        (word <= 9).then_some(Ran { instructions, executed: 4, words: 1 })
    }

    fn look(records: &[u32]) -> Option<Sight> {
        look_along(records, four)
    }

    /// The route when each look shows the same.
    fn seen(records: &[u32]) -> Option<Route> {
        best(&[look(records)?, look(records)?], 0)
    }

    #[test]
    fn a_loop_goes_round_as_often_as_there_is_room() {
        let route = seen(&[1, 2, 3].repeat(MAX_HOT_INSTRUCTIONS / 12 + 2)).unwrap();
        assert_eq!((route.len(), route.pc(route.len())), (MAX_HOT_INSTRUCTIONS / 12 * 12, Some(ProgramPc(0x1000))));
        assert_eq!(
            (route.pc(4), route.pc(12), route.pc(route.len() + 1)),
            (Some(ProgramPc(0x2000)), Some(ProgramPc(0x1000)), None)
        );
    }

    #[test]
    fn where_records_end_too_early_nothing_is_seen() {
        assert_eq!(look(&[1, 2, 3]), None);
    }

    #[test]
    fn what_is_no_path_ends_it() {
        let route = seen(&[1, 2, 77, 3]).unwrap();
        assert_eq!((route.len(), route.pc(7)), (7, Some(ProgramPc(0x2003))));
        assert_eq!(seen(&[1, 77, 3]), None);
        assert_eq!(seen(&[77, 1]), None);
    }

    #[test]
    fn system_calls_are_not_gone_through() {
        let route = seen(&[1, 9, 1, 2]).unwrap();
        assert_eq!(route.pc(route.len()), Some(ProgramPc(0x9003)));
    }

    #[test]
    fn a_loop_that_some_stay_in_goes_round_as_often_as_there_is_room() {
        let sights = [&[1, 1, 2, 77][..], &[1, 1, 2, 77], &[1, 1, 1, 1, 1, 1, 77]];
        let route = best(&sights.map(|records| look(records).unwrap()), 0).unwrap();
        assert_eq!((route.len(), route.pc(route.len())), (MAX_HOT_INSTRUCTIONS, Some(ProgramPc(0x1000))));
    }

    #[test]
    fn a_loop_that_all_leave_alike_is_left() {
        let route = seen(&[1, 1, 2, 1, 1, 2, 1, 1, 77]).unwrap();
        assert_eq!(
            (route.len(), route.pc(8), route.pc(route.len())),
            (28, Some(ProgramPc(0x2000)), Some(ProgramPc(0x1000)))
        );
    }

    #[test]
    fn a_route_that_was_chosen_often_needs_much_to_be_given_up() {
        let sights = [1, 2].map(|_| look(&[1, 2, 77]).unwrap());
        assert!(best(&sights, GAIN / 2).is_some());
        assert_eq!(best(&sights, GAIN), None);
    }

    #[test]
    fn what_is_no_longer_than_a_record_is_no_route() {
        assert_eq!(seen(&[1, 77]), None);
        let apart = [[1, 2, 77], [1, 3, 77], [1, 4, 77]].map(|records| look(&records).unwrap());
        assert_eq!(best(&apart, 0), None);
    }

    #[test]
    fn most_say_where_it_goes_and_it_ends_where_no_two_agree() {
        let sights = [[1, 2, 3, 4, 77], [1, 5, 3, 4, 77], [1, 2, 3, 6, 77], [1, 2, 7, 4, 77]];
        let route = best(&sights.map(|records| look(&records).unwrap()), 0).unwrap();
        let ends: Vec<u64> = (0..).map_while(|i| route.pc(i)).map(|pc| pc.0).collect();
        assert_eq!((ends.len(), ends[4], ends[11]), (12, 0x2000, 0x3003));
    }
}
