//! The stacks that a thread runs on: its own, and those of green threads. Where lanes are calls of a function, one ends
//! with its stack for a while, and goes on when its thread comes back to it.
//!
//! A stack is known by the stack pointers with which it was reached and left. One that the thread comes to for the
//! first time begins there, but for a few bytes that are popped.

use std::collections::BTreeMap;

/// How far above the first stack pointer on a stack others lie at most, in bytes: a context that was made has its
/// registers on the stack, and its first function may pop what its maker pushed.
const ABOVE: u64 = 1 << 10;

/// How far above a stack pointer the thread's own stack reaches at most, where its first one is not known.
const UNKNOWN: u64 = 1 << 20;

/// What is kept of a stack while the thread is on another; the default is nothing.
pub(super) trait Waits: Default {
    /// Whether nothing of the region waits there.
    fn is_empty(&self) -> bool;

    /// Whether this stack pointer lies above what waits there.
    fn is_gone_at(&self, sp: u64) -> bool;
}

/// One that the thread is not on.
struct Stack<W> {
    name: u32,
    /// The lowest stack pointer with which it was left, and the last one.
    low: u64,
    at: u64,
    waits: W,
}

/// The stack that a thread is on.
#[derive(Clone, Copy, Debug)]
struct Here {
    name: u32,
    low: u64,
    high: u64,
    /// The stack pointer before it was left.
    at: u64,
    /// How many instructions outside of the region the thread had run when it came.
    outside: u64,
}

/// All of a thread's.
#[derive(Default)]
pub(super) struct Stacks<W> {
    /// None while the thread has been on no other.
    here: Option<Here>,
    /// Those that it is not on, by the highest stack pointer.
    others: BTreeMap<u64, Stack<W>>,
    /// The last name given.
    names: u32,
    ran: OnStacks,
}

/// What a thread ran on stacks other than its own.
#[derive(Clone, Debug, Default)]
pub(super) struct OnStacks {
    /// By a stack's highest stack pointer: the lowest with which it was left, and whether calls waited there.
    stacks: BTreeMap<u64, (u64, bool)>,
    /// How many calls the thread never came back to.
    pub left: usize,
    /// Instructions that it ran in no call, while calls waited on other stacks.
    pub beside: u64,
}

/// The thread's own stack.
const OWN: u32 = 0;

impl<W: Waits> Stacks<W> {
    /// Whether an instruction that sets the stack pointer from `before` to `sp` leads to another stack. `top` is the
    /// thread's first stack pointer, 0 if that is not known. One that stays within the stack is a long jump, unless it
    /// is `sure` to go to another stack: such may lie inside of the thread's own.
    pub fn leads(&mut self, (before, sp): (u64, u64), top: u64, sure: bool) -> bool {
        let high = if top == 0 { before.saturating_add(UNKNOWN) } else { top.max(before) };
        let here = self.here.get_or_insert(Here { name: OWN, low: before, high, at: before, outside: 0 });
        (here.low, here.at) = (here.low.min(before), before);
        if !(here.low..=here.high.saturating_add(ABOVE)).contains(&sp) {
            return true;
        }
        here.name == OWN && (sure && sp > before.saturating_add(ABOVE) || self.find(sp).is_some())
    }

    /// The highest stack pointer of the known stack on which this one lies: the inner one, if one is inside of another.
    fn find(&self, sp: u64) -> Option<u64> {
        let mut above = self.others.range(sp.saturating_sub(ABOVE)..);
        above.find(|(_, stack)| stack.low <= sp).map(|(high, _)| *high)
    }

    /// The thread leaves its stack for the one on which this stack pointer lies; so much waits on the first, and the
    /// thread has run so many instructions outside of the region. What waits on the other.
    pub fn go_to(&mut self, sp: u64, waits: W, outside: u64) -> W {
        let Some(here) = self.here else { return waits };
        if here.name != OWN {
            if waits.is_empty() && self.others.values().any(|other| !other.waits.is_empty()) {
                self.ran.beside += outside - here.outside;
            }
            self.ran.note(here, !waits.is_empty());
            // Stacks that lay where this one lies are gone.
            let gone: Vec<u64> = self.others.range(here.low..here.high).map(|(high, _)| *high).collect();
            let gone = gone.into_iter().filter_map(|high| self.others.remove(&high));
            self.ran.left += gone.filter(|stack| !stack.waits.is_empty()).count();
        }
        let to = self.find(sp).and_then(|high| Some((high, self.others.remove(&high)?)));
        self.others.insert(here.high, Stack { name: here.name, low: here.low, at: here.at, waits });
        let (here, waits) = match to {
            Some((high, Stack { name, low, at, mut waits })) => {
                // Another green thread runs there now than the one that waits.
                if !waits.is_empty() && (waits.is_gone_at(sp) || sp.abs_diff(at) > ABOVE) {
                    self.ran.left += 1;
                    waits = W::default();
                }
                (Here { name, low, high: high.max(sp), at: sp, outside }, waits)
            }
            None => {
                self.names += 1;
                (Here { name: self.names, low: sp, high: sp, at: sp, outside }, W::default())
            }
        };
        self.here = Some(here);
        waits
    }

    /// The program was replaced by another, which has none of them.
    pub fn forget(&mut self) {
        *self = Stacks { ran: std::mem::take(self).ran(), ..Stacks::default() };
    }

    /// The name of the stack that the thread is on.
    pub fn name(&self) -> u32 {
        self.here.map_or(OWN, |here| here.name)
    }

    /// What ran on them, at the thread's end.
    pub fn ran(mut self) -> OnStacks {
        self.ran.left += self.others.values().filter(|stack| !stack.waits.is_empty()).count();
        if let Some(here) = self.here.filter(|here| here.name != OWN) {
            self.ran.note(here, false);
        }
        self.ran
    }
}

impl OnStacks {
    fn note(&mut self, here: Here, calls_wait: bool) {
        let (low, calls) = self.stacks.entry(here.high).or_insert((here.low, false));
        (*low, *calls) = (here.low.min(*low), *calls || calls_wait);
    }

    /// Whether a thread came to where calls of another one had waited, and not to the stack's beginning, as one does
    /// that begins anew on memory that was given back.
    pub fn are_shared(all: &[OnStacks]) -> bool {
        let mut highs: Vec<(u64, usize)> =
            (0..).zip(all).flat_map(|(t, of)| of.stacks.keys().map(move |h| (*h, t))).collect();
        highs.sort_unstable();
        let is_come_to = |thread: usize, low: u64, high: u64| {
            let from = highs.partition_point(|(at, _)| *at < low);
            highs[from..].iter().take_while(|(at, _)| *at < high).any(|(_, other)| *other != thread)
        };
        let mut all = all.iter().enumerate();
        all.any(|(t, of)| of.stacks.iter().any(|(high, (low, calls))| *calls && is_come_to(t, *low, *high)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Waits for bool {
        fn is_empty(&self) -> bool {
            !self
        }

        fn is_gone_at(&self, _: u64) -> bool {
            false
        }
    }

    /// Goes from one stack pointer to another.
    fn goes(stacks: &mut Stacks<bool>, before: u64, sp: u64) -> Option<u32> {
        let leads = stacks.leads((before, sp), 0x9_0000, false);
        leads.then(|| {
            stacks.go_to(sp, false, 0);
            stacks.name()
        })
    }

    #[test]
    fn a_stack_is_known_again() {
        let mut stacks = Stacks::<bool>::default();
        assert_eq!(goes(&mut stacks, 0x8_f000, 0x8_ff00), None, "a long jump on the thread's own");
        assert_eq!(goes(&mut stacks, 0x8_f000, 0x2_0000), Some(1));
        assert_eq!(goes(&mut stacks, 0x1_f000, 0x1_fff0), None, "one on another");
        assert_eq!(goes(&mut stacks, 0x1_f000, 0x8_f008), Some(OWN));
        assert_eq!(goes(&mut stacks, 0x8_e000, 0xb_0000), Some(2), "one above the thread's");
        assert_eq!(goes(&mut stacks, 0xa_f000, 0x1_f008), Some(1));
        assert_eq!(goes(&mut stacks, 0x2_0100, 0xa_f008), Some(2));
        assert_eq!(goes(&mut stacks, 0xa_e000, 0x8_e008), Some(OWN));
    }

    #[test]
    fn one_inside_of_the_threads_own_is_known_by_a_function_that_is_sure() {
        let mut stacks = Stacks::<bool>::default();
        assert!(!stacks.leads((0x8_0000, 0x8_8000), 0x9_0000, false));
        assert!(stacks.leads((0x8_0000, 0x8_8000), 0x9_0000, true));
        stacks.go_to(0x8_8000, false, 0);
        assert_eq!(goes(&mut stacks, 0x8_7000, 0x8_0008), Some(OWN));
        assert!(stacks.leads((0x8_0000, 0x8_c000), 0x9_0000, true));
        stacks.go_to(0x8_c000, false, 0);
        assert_eq!(goes(&mut stacks, 0x8_b000, 0x8_0008), Some(OWN));
        assert_eq!(goes(&mut stacks, 0x8_0000, 0x8_7008), Some(1));
    }

    #[test]
    fn who_comes_into_the_middle_of_a_stack_goes_on_with_what_another_thread_began() {
        let of = |stacks: &[(u64, (u64, bool))]| OnStacks {
            stacks: stacks.iter().copied().collect(),
            ..OnStacks::default()
        };
        let first = || of(&[(0x2000, (0x1800, true)), (0x3000, (0x2c00, false))]);
        assert!(OnStacks::are_shared(&[first(), of(&[(0x1f00, (0x1900, false))])]));
        assert!(!OnStacks::are_shared(&[first(), of(&[(0x2000, (0x1900, true))])]), "another one on the same memory");
        assert!(!OnStacks::are_shared(&[first(), of(&[(0x2d00, (0x2c00, false))])]), "no call waited there");
        assert!(!OnStacks::are_shared(&[first(), of(&[(0x1000, (0x0800, true)), (0x5000, (0x4000, true))])]));
    }
}
