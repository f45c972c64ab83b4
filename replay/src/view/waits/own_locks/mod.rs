//! Locks of a program's own, known by their form: words of memory that atomic instructions take and give. Tickets,
//! queues and barriers have forms of their own, in files of these names; `undone` and `unseen` find words that may be
//! locks.
//!
//! ```text
//! xor eax, eax; mov ecx, 1; lock cmpxchg [w], ecx      takes w: 0 becomes another number; so does `xchg` with one
//! xor eax, eax; xchg [w], eax                          gives it: it becomes 0, or is counted down
//! ```
//!
//! So are Rust's `Mutex` and `RwLock`, parking_lot's, and spin locks. A word is a lock where two threads took it, each
//! gave it back as often as it took it, and none that takes it gave it without. Where a thread tries again, it takes
//! the word once: from its first try on. Who never takes it may give it once: to begin with.
//!
//! Where nothing looks at what `xchg` finds, it is a store, as of a flag that others wait for.
//!
//! A `cmpxchg` whose numbers are unknown may take a share, as of an `RwLock`, or be anything else: it is a share of a
//! word that is also taken alone; and the word is taken alone by it where threads wait for the word in the kernel. Of a
//! word that is counted down again, and of which neither is so, threads only take shares: nobody waits.
//!
//! A plain store of 0 gives a word where its address stands in the code. Where it does not, such a store gives the word
//! that the thread took last, if one instruction stores so many bytes just once each time that the same instruction has
//! taken the word; of several, the last of those that find the word by the register and distance by which it was taken,
//! or else the last. Where a lock is given on several ways, each time just one of those must have been run.

mod acts;
mod barriers;
mod by_block;
mod queues;
mod tickets;
mod undone;
mod unseen;
mod uses;

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::Pc;

use self::acts::OnWord;
pub(in crate::view) use self::acts::{Acts, Does};
pub(in crate::view) use self::barriers::Barriers;
use self::by_block::Act;
use self::queues::Queues;
use self::tickets::Tickets;
pub(in crate::view) use self::uses::Uses;
use self::uses::{Flag, Use};

/// The words that are locks.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct OwnLocks {
    /// Whether lanes may share it.
    pub words: FxHashMap<u64, bool>,
    /// The words of which threads only take shares: no locks, but it may take several tries to get one.
    pub shares: FxHashSet<u64>,
    /// What acts on them; true: on the word that the thread took last.
    pub acts: FxHashMap<Pc, (Does, bool)>,
    /// By another address that gives one: the word.
    pub given_at: FxHashMap<u64, u64>,
    /// The words that are no locks, but barriers'.
    pub barriers: Barriers,
    /// How many other words may be locks.
    pub doubtful: usize,
}

impl OwnLocks {
    pub fn new<'a>(threads: impl Iterator<Item = &'a Uses> + Clone, acts: &Acts) -> OwnLocks {
        let mut all = OwnLocks::default();
        let mut of_word: FxHashMap<u64, Vec<&Use>> = FxHashMap::default();
        for (word, used) in threads.clone().flat_map(|thread| &thread.words) {
            of_word.entry(*word).or_default().push(used);
        }
        let waited: FxHashSet<u64> = threads.clone().flat_map(|thread| &thread.waited).copied().collect();
        let mut refuted: FxHashSet<Pc> = threads.clone().flat_map(|thread| &thread.refuted).copied().collect();
        let mut resolved: FxHashMap<Pc, Option<Does>> = FxHashMap::default();
        for (pc, does) in threads.clone().flat_map(|thread| &thread.resolved) {
            if resolved.insert(*pc, *does).is_some_and(|before| before != *does) {
                refuted.insert(*pc);
            }
        }
        let never: FxHashSet<Pc> = threads.clone().flat_map(|thread| &thread.never).copied().collect();
        let done = |act: &Act<OnWord>| resolved.get(&act.pc).copied().unwrap_or(Some(act.does.does));
        let mut places: FxHashMap<u64, FxHashSet<Pc>> = FxHashMap::default();
        for (word, of_thread) in threads.clone().flat_map(|thread| &thread.places) {
            places.entry(*word).or_default().extend(of_thread.difference(&refuted));
        }
        let all_acts = || acts.words.acts.iter().filter(|act| !refuted.contains(&act.pc));
        let shares: FxHashSet<Pc> =
            all_acts().filter(|act| done(act) == Some(Does::MayTake)).map(|act| act.pc).collect();
        let mut doubtful = undone::doubtful(threads.clone().map(|thread| &thread.undone));
        doubtful.extend(unseen::doubtful(threads.clone().map(|thread| &thread.unseen)));
        for (word, uses) in of_word {
            let is_taken = uses.iter().any(|used| used.takes > 0);
            let takes = |used: &&&Use| used.takes + used.may_take > 0;
            let is_given = |used: &&Use| {
                let is_stored = used.giving(|pc| !never.contains(&pc), |_| false).is_some();
                !used.has && used.strays == 0 && is_stored && used.gives == used.takes + used.may_take
            };
            let is_balanced = uses.iter().filter(takes).count() > 1
                && uses.iter().filter(takes).all(is_given)
                && uses.iter().filter(|used| !takes(used)).map(|used| used.strays).sum::<u32>() <= 1;
            if is_balanced && (is_taken || waited.contains(&word)) {
                let is_shared = places.get(&word).is_some_and(|places| !places.is_disjoint(&shares));
                all.words.insert(word, is_taken && is_shared);
            } else if is_balanced && uses.iter().all(|used| used.sure == used.gives) {
                doubtful.insert(word);
            } else if is_balanced {
                all.shares.insert(word);
            }
        }
        places.retain(|word, _| all.words.contains_key(word) || all.shares.contains(word));
        let places: FxHashSet<Pc> = places.into_values().flatten().collect();
        let of_last = |act: &Act<OnWord>| act.does.is_store && act.does.place.is_none();
        let those = all_acts().filter(|act| places.contains(&act.pc) && !never.contains(&act.pc));
        all.acts = those.filter_map(|act| Some((act.pc, (done(act)?, of_last(act))))).collect();
        let queues = Queues::new(threads.clone().map(|thread| &thread.queues));
        // Who queues waits for a flag.
        if queues.words.is_empty() {
            all.doubtful += flags(threads.clone().map(|thread| &thread.flags));
        }
        all.add_queues(queues);
        all.add(Tickets::new(threads.clone().map(|thread| &thread.tickets)));
        let is_lock = |word| all.words.contains_key(&word);
        let barriers = Barriers::new(threads.map(|thread| &thread.barriers), is_lock);
        barriers.pcs.iter().for_each(|pc| _ = all.acts.entry(*pc).or_insert((Does::Arrives, false)));
        all.barriers = barriers;
        let is_known = |word| is_lock(word) || all.barriers.rounds.contains_key(&word);
        all.doubtful += doubtful.into_iter().filter(|word| !is_known(*word)).count();
        all
    }

    fn add_queues(&mut self, queues: Queues) {
        let words = queues.words.into_iter().map(|word| (word, false));
        self.words.extend(words);
        self.acts.extend(queues.gives.into_iter().map(|pc| (pc, (Does::Gives, true))));
        self.acts.extend(queues.leaves.into_iter().map(|pc| (pc, (Does::Gives, false))));
        self.acts.extend(queues.queues.into_iter().map(|pc| (pc, (Does::Draws, false))));
    }

    fn add(&mut self, tickets: Tickets) {
        self.words.extend(tickets.words.into_iter().map(|word| (word, false)));
        self.acts.extend(tickets.gives.into_iter().map(|(pc, has_address)| (pc, (Does::Gives, !has_address))));
        self.acts.extend(tickets.draws.into_iter().map(|pc| (pc, (Does::Draws, false))));
        self.given_at = tickets.served;
        self.doubtful += tickets.doubtful;
    }
}

/// How many words there are in which threads put 0 and something else, and look at nothing: flags for which others may
/// wait. Either several threads put them into one word, or each of several has a word of its own, and puts it up again.
fn flags<'a>(threads: impl Iterator<Item = &'a FxHashMap<u64, Flag>>) -> usize {
    let mut of_word: FxHashMap<u64, ([bool; 2], usize, bool)> = FxHashMap::default();
    let mut owners = 0;
    for thread in threads {
        owners += usize::from(thread.values().any(Flag::is_up_again));
        for (word, flag) in thread {
            let (puts, threads, is_up_again) = of_word.entry(*word).or_default();
            (*puts, *threads) = ([puts[0] | flag.puts[0], puts[1] | flag.puts[1]], *threads + 1);
            *is_up_again |= flag.is_up_again();
        }
    }
    let of_several = |puts: [bool; 2], threads: usize| puts == [true; 2] && threads > 1;
    let is_one = |(puts, threads, is_up_again)| of_several(puts, threads) || is_up_again && owners > 1;
    of_word.into_values().filter(|flag| is_one(*flag)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_put_up_and_down_by_several_threads() {
        let thread = |word, zeroes: &[bool]| {
            let mut flag = Flag::default();
            zeroes.iter().for_each(|is_zero| flag.put(*is_zero, true));
            [(word, flag)].into_iter().collect::<FxHashMap<u64, Flag>>()
        };
        let flags = |threads: &[FxHashMap<u64, Flag>]| flags(threads.iter());
        assert_eq!(flags(&[thread(64, &[true]), thread(64, &[false])]), 1);
        assert_eq!(flags(&[thread(64, &[true]), thread(64, &[true])]), 0);
        let again = [false, true, false, true];
        assert_eq!(flags(&[thread(64, &again), thread(72, &again)]), 2, "each has its own");
        assert_eq!(flags(&[thread(64, &again), thread(72, &again[..2])]), 0, "only one thread puts it up again");
    }
}
