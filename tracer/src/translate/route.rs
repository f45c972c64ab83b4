//! Routes: the ways that are seen to be taken from superblocks that run often.
//!
//! What is translated first follows the program's code along the side of each branch that is likely by its form, and ends where the code does
//! not tell how it goes on. The records tell: when a superblock was met often enough among them, it is translated anew, along what the records say
//! was run from its head on, through returns and indirect jumps. That makes one record of many.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use trace_format::Kind;

use super::layout::record;
use super::superblock::MAX_HOT_INSTRUCTIONS;
use super::translator::Translator;

/// One in so many records is looked at: a prime number, so that loops do not hide between.
const SAMPLE_STEP: usize = 61;
/// A superblock met so often runs often: it has run about four thousand times.
const HOT_SAMPLES: u32 = 64;
/// Counts for superblocks that need not be counted any more.
const SETTLED: u32 = u32::MAX;
/// Programs have phases: a route that is mostly left before a quarter of it was run is looked for again, so often at most.
const TRIES: u32 = 8;
/// A route is what most of so many looks agree on, as long as two do.
const LOOKS: usize = 4;

/// A way through the program's code: the addresses of its instructions, and where it ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Route(Vec<u64>);

impl Route {
    /// A way through these instructions, to the last address.
    #[cfg(test)]
    pub fn through(pcs: &[u64]) -> Route {
        Route(pcs.to_vec())
    }

    /// The address of an instruction; that of the one behind the last is where the route ends.
    #[must_use]
    pub fn pc(&self, instruction: usize) -> Option<u64> {
        self.0.get(instruction).copied()
    }

    /// How many instructions it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() - 1
    }
}

/// What the records show from the head of a superblock on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sight {
    /// The instructions that were run, and the one that came then.
    pcs: Vec<u64>,
    /// How many of them the first record stands for.
    alone: usize,
}

/// The routes of a process.
#[derive(Clone)]
pub struct Routes {
    /// One in so many records is looked at.
    step: usize,
    /// A superblock that was met so often runs often.
    hot: u32,
    by_head: FxHashMap<u64, Rc<Route>>,
    /// How often routes were looked for, by head.
    tries: FxHashMap<u64, u32>,
    /// How often superblocks were met among the records looked at; those with a route, where it was left early.
    samples: Vec<u32>,
    /// What was seen so far from heads that have no route yet.
    sights: FxHashMap<u64, Vec<Sight>>,
    /// About how many bytes of our memory they take.
    held: u64,
}

impl Routes {
    /// None yet. With `at_once` there will be some after the first looks.
    #[must_use]
    pub fn new(at_once: bool) -> Routes {
        let (step, hot) = if at_once { (3, 1) } else { (SAMPLE_STEP, HOT_SAMPLES) };
        Routes {
            step,
            hot,
            by_head: FxHashMap::default(),
            tries: FxHashMap::default(),
            samples: Vec::new(),
            sights: FxHashMap::default(),
            held: 0,
        }
    }

    /// Forgets all routes.
    pub fn forget_all(&mut self) {
        *self = Routes { step: self.step, hot: self.hot, ..Routes::new(false) };
    }

    /// The route from this address on.
    #[must_use]
    pub fn from(&self, head: u64) -> Option<Rc<Route>> {
        self.by_head.get(&head).cloned()
    }

    /// About how many bytes of our memory they take.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    fn add(&mut self, head: u64, route: Route) {
        self.held += 8 * route.0.len() as u64 + 100;
        self.by_head.insert(head, Rc::new(route));
    }

    /// Counts the superblock once more, and says whether it runs often.
    fn is_hot(&mut self, superblock: u32) -> bool {
        let number = superblock as usize;
        if self.samples.len() <= number {
            self.samples.resize(number + 1, 0);
        }
        let count = &mut self.samples[number];
        if *count != SETTLED {
            *count += 1;
        }
        *count >= self.hot && *count != SETTLED
    }

    /// Whether a route may be looked for once more.
    fn may_try(&mut self, head: u64) -> bool {
        let tries = self.tries.entry(head).or_default();
        *tries += 1;
        *tries <= TRIES
    }

    fn settle(&mut self, superblock: u32) {
        self.samples[superblock as usize] = SETTLED;
    }
}

impl Translator {
    /// Looks at some of the records, for superblocks that run often: they are translated anew, along the way that is taken from them.
    pub fn sample(&mut self, words: &[u32]) {
        for at in (0..words.len()).step_by(self.routes.step) {
            // Some of the words are no path numbers, and count for a superblock that has not run: what comes of it is right, but of no use.
            let Some(path) = self.path(words[at]) else { continue };
            let head = self.superblock(path.superblock).head;
            let route = self.routes.by_head.get(&head);
            let as_expected = route.is_some_and(|route| 4 * usize::from(path.executed) >= route.len());
            if as_expected || !self.routes.is_hot(path.superblock) {
                continue;
            }
            let sight = look_along(&words[at..], |word| self.run_by(word));
            let sights = self.routes.sights.entry(head).or_default();
            sights.extend(sight);
            if sights.len() < LOOKS {
                continue;
            }
            self.routes.settle(path.superblock);
            let sights = self.routes.sights.remove(&head).unwrap_or_default();
            let known = self.routes.by_head.get(&head);
            let new = agreed(&sights).filter(|route| known.is_none_or(|known| **known != *route));
            if let Some(route) = new.filter(|_| self.routes.may_try(head)) {
                self.routes.add(head, route);
                self.give_up(head);
            }
        }
    }

    /// What a record says that was run.
    fn run_by(&self, word: u32) -> Option<Ran> {
        let path = self.path(word)?;
        let superblock = self.superblock(path.superblock);
        let instructions = superblock.instructions().take(path.executed.into()).map(|i| (i.pc.0, i.kind)).collect();
        Some(Ran { instructions, words: (record::path_len(self.values_of(path)) / 4) as usize })
    }
}

/// A path that was run.
struct Ran {
    instructions: Vec<(u64, Kind)>,
    /// How many words its record has.
    words: usize,
}

/// What the records show from the first on; none when they end too early. `run_by` says what a record stands for.
fn look_along(records: &[u32], run_by: impl Fn(u32) -> Option<Ran>) -> Option<Sight> {
    let mut sight = Sight { pcs: Vec::with_capacity(MAX_HOT_INSTRUCTIONS + 1), alone: 0 };
    let pcs = &mut sight.pcs;
    let (mut rest, mut goes_on) = (records, true);
    while goes_on && pcs.len() <= MAX_HOT_INSTRUCTIONS {
        let Some(ran) = run_by(*rest.first()?) else { break };
        if pcs.is_empty() {
            sight.alone = ran.instructions.len();
        }
        let left = MAX_HOT_INSTRUCTIONS + 1 - pcs.len();
        for &(pc, kind) in ran.instructions.iter().take(left) {
            pcs.push(pc);
            goes_on = kind != Kind::Syscall;
        }
        rest = rest.get(ran.words..).unwrap_or_default();
    }
    Some(sight)
}

/// The way that most were seen to take, up to where no two take the same, if it is longer than what one record stands for now.
fn agreed(sights: &[Sight]) -> Option<Route> {
    let mut together: Vec<&Sight> = sights.iter().filter(|sight| !sight.pcs.is_empty()).collect();
    let alone = together.iter().map(|sight| sight.alone).max()?;
    let mut pcs = Vec::with_capacity(MAX_HOT_INSTRUCTIONS + 1);
    loop {
        let next = |sight: &Sight| sight.pcs.get(pcs.len()).copied();
        let voters = |pc: u64| together.iter().filter(|sight| next(sight) == Some(pc)).count();
        let Some(most) = together.iter().filter_map(|sight| next(sight)).max_by_key(|pc| voters(*pc)) else { break };
        if voters(most) < 2 {
            break;
        }
        together.retain(|sight| next(sight) == Some(most));
        pcs.push(most);
    }
    // Loops go round as often as one look has shown: when they end earlier, that is one record all the same.
    let turns = |sight: &&Sight| sight.pcs.iter().filter(|pc| **pc == sight.pcs[0]).count();
    let longest = sights.iter().filter(|sight| !sight.pcs.is_empty()).max_by_key(turns)?;
    if turns(&longest) > 2 && to_last_turn(&longest.pcs) > to_last_turn(&pcs) {
        pcs.clone_from(&longest.pcs);
    }
    // A loop is left where it begins anew.
    pcs.truncate(to_last_turn(&pcs));
    (pcs.len() > alone + 1).then_some(Route(pcs))
}

/// How much of a way there is up to the last place that is its first as well; all of it where there is none.
fn to_last_turn(pcs: &[u64]) -> usize {
    pcs.iter().rposition(|pc| *pc == pcs[0]).filter(|&last| last > 0).map_or(pcs.len(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Record n is of four instructions at 0x1000 * n; a record of more than 9 is no path.
    fn four(word: u32) -> Option<Ran> {
        let kind = if word == 9 { Kind::Syscall } else { Kind::Plain };
        let instructions = (0..4).map(|i| (0x1000 * u64::from(word) + i, kind)).collect();
        (word <= 9).then_some(Ran { instructions, words: 1 })
    }

    fn look(records: &[u32]) -> Option<Sight> {
        look_along(records, four)
    }

    /// The route when each look shows the same.
    fn seen(records: &[u32]) -> Option<Route> {
        agreed(&[look(records)?, look(records)?])
    }

    #[test]
    fn a_loop_goes_round_as_often_as_there_is_room() {
        let route = seen(&[1, 2, 3].repeat(40)).unwrap();
        assert_eq!((route.len(), route.pc(route.len())), (MAX_HOT_INSTRUCTIONS / 12 * 12, Some(0x1000)));
        assert_eq!((route.pc(4), route.pc(12), route.pc(route.len() + 1)), (Some(0x2000), Some(0x1000), None));
    }

    #[test]
    fn where_records_end_too_early_nothing_is_seen() {
        assert_eq!(look(&[1, 2, 3]), None);
    }

    #[test]
    fn what_is_no_path_ends_it() {
        let route = seen(&[1, 2, 77, 3]).unwrap();
        assert_eq!((route.len(), route.pc(7)), (7, Some(0x2003)));
        assert_eq!(seen(&[1, 77, 3]), None);
        assert_eq!(seen(&[77, 1]), None);
    }

    #[test]
    fn system_calls_are_not_gone_through() {
        let route = seen(&[1, 9, 1, 2]).unwrap();
        assert_eq!(route.pc(route.len()), Some(0x9003));
    }

    #[test]
    fn a_loop_goes_round_as_often_as_the_longest_look_shows() {
        let sights = [[1, 1, 2, 2, 77], [1, 1, 2, 2, 77], [1, 1, 1, 1, 77]];
        let route = agreed(&sights.map(|records| look(&records).unwrap())).unwrap();
        assert_eq!((route.len(), route.pc(route.len())), (12, Some(0x1000)));
    }

    #[test]
    fn most_say_where_it_goes_and_it_ends_where_no_two_agree() {
        let sights = [[1, 2, 3, 4, 77], [1, 5, 3, 4, 77], [1, 2, 3, 6, 77], [1, 2, 7, 4, 77]];
        let route = agreed(&sights.map(|records| look(&records).unwrap())).unwrap();
        let ends: Vec<u64> = (0..).map_while(|i| route.pc(i)).collect();
        assert_eq!((ends.len(), ends[4], ends[11]), (12, 0x2000, 0x3003));
    }
}
