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
/// Routes that have become so long end where another one begins.
const LONG_ENOUGH: usize = 32;

/// A way through the program's code: the addresses of its instructions, and where it ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Route(Vec<u64>);

impl Route {
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

/// What came of looking for a route.
#[derive(Debug, PartialEq, Eq)]
enum Sight {
    /// There is one.
    Route(Route),
    /// What follows is not among these records.
    Unseen,
    /// The superblock is as good as its route would be.
    Pointless,
}

/// The routes of a process.
#[derive(Default)]
pub struct Routes {
    by_head: FxHashMap<u64, Rc<Route>>,
    /// How often superblocks were met among the records looked at.
    samples: Vec<u32>,
    /// About how many bytes of our memory they take.
    held: u64,
}

impl Routes {
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
        *count >= HOT_SAMPLES && *count != SETTLED
    }

    fn settle(&mut self, superblock: u32) {
        self.samples[superblock as usize] = SETTLED;
    }
}

impl Translator {
    /// Looks at some of the records, for superblocks that run often: they are translated anew, along the way that is taken from them.
    pub fn sample(&mut self, words: &[u32]) {
        for at in (0..words.len()).step_by(SAMPLE_STEP) {
            // Some of the words are no path numbers, and count for a superblock that has not run: what comes of it is right, but of no use.
            let Some(path) = self.path(words[at]) else { continue };
            if !self.routes.is_hot(path.superblock) {
                continue;
            }
            let head = self.superblock(path.superblock).head;
            if self.routes.by_head.contains_key(&head) {
                self.routes.settle(path.superblock);
                continue;
            }
            match self.route_of(&words[at..]) {
                Sight::Route(route) => {
                    self.routes.settle(path.superblock);
                    self.routes.add(head, route);
                    self.give_up(head);
                }
                Sight::Pointless => self.routes.settle(path.superblock),
                Sight::Unseen => {}
            }
        }
    }

    /// The route that the records begin with.
    fn route_of(&self, records: &[u32]) -> Sight {
        let mut pcs: Vec<u64> = Vec::with_capacity(MAX_HOT_INSTRUCTIONS + 1);
        let (mut rest, mut alone) = (records, 0);
        let mut goes_on = true;
        while goes_on && pcs.len() <= MAX_HOT_INSTRUCTIONS {
            let Some(&word) = rest.first() else { return Sight::Unseen };
            let Some(path) = self.path(word) else { break };
            let superblock = self.superblock(path.superblock);
            if pcs.len() >= LONG_ENOUGH && self.routes.by_head.contains_key(&superblock.head) {
                pcs.push(superblock.head);
                break;
            }
            let left = MAX_HOT_INSTRUCTIONS + 1 - pcs.len();
            for instruction in superblock.instructions().take(usize::from(path.executed).min(left)) {
                pcs.push(instruction.pc.0);
                goes_on = instruction.kind != Kind::Syscall;
            }
            if alone == 0 {
                alone = usize::from(path.executed);
            }
            rest = rest.get((record::path_len(self.values_of(path)) / 4) as usize..).unwrap_or_default();
        }
        // A loop is left where it begins anew.
        if let Some(last) = pcs.iter().rposition(|pc| *pc == pcs[0]).filter(|&last| last > 0) {
            pcs.truncate(last + 1);
        }
        if pcs.len() - 1 > alone { Sight::Route(Route(pcs)) } else { Sight::Pointless }
    }
}
