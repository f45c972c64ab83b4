//! What tests ask of the engine: things that it would do seldom, or late.

/// What is asked for; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Throws all translations away at random moments as well, chosen by this number.
    pub thrown_away_at_random: Option<u64>,
    /// Follows the routes that the records show after the first looks, not only where code runs often.
    pub routes_at_once: bool,
    /// Uses little of each buffer, each time as much as this number chooses, so that buffers fill at every point.
    pub small_buffers: Option<u64>,
    /// Kills the program when so many of its stops have been handled, before the next one is.
    pub killed_after: Option<u64>,
}

/// A row of numbers that a seed chooses.
#[derive(Clone, Copy, Debug)]
struct Chosen(u64);

impl Chosen {
    fn by(seed: u64) -> Chosen {
        Chosen(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 32
    }
}

/// The most words that a small buffer has for records.
const MOST_WORDS: u64 = 64;

/// How many bytes of a buffer are used, where tests ask for small ones.
#[derive(Clone, Copy, Debug)]
pub struct SmallBuffers(Option<Chosen>);

impl SmallBuffers {
    /// None without a seed.
    #[must_use]
    pub fn new(seed: Option<u64>) -> SmallBuffers {
        SmallBuffers(seed.map(Chosen::by))
    }

    /// Whether the thread of this slot may have two: of small ones half of the threads have one.
    #[must_use]
    pub fn may_be_two(&self, slot: u32) -> bool {
        self.0.is_none() || slot.is_multiple_of(2)
    }

    /// The bytes of the next one, which holds `kept` bytes of a record already that did not fit into the one before.
    pub fn next(&mut self, kept: u64) -> Option<u64> {
        // Twice as many: one that a record fills alone is not followed by another such.
        self.0.as_mut().map(|chosen| 2 * kept + 4 * (1 + chosen.next() % MOST_WORDS))
    }
}

/// When translations are thrown away for no reason, so that tests see it happen anywhere.
pub struct Moments(Option<Chosen>);

impl Moments {
    /// Never without a seed, else about once in 16 stops.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Moments {
        Moments(seed.map(Chosen::by))
    }

    /// Whether it is time to.
    pub fn now(&mut self) -> bool {
        self.0.as_mut().is_some_and(|chosen| chosen.next() % 16 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_buffers_differ_and_have_room_for_what_was_kept() {
        assert_eq!(SmallBuffers::new(None).next(100), None);
        assert!(SmallBuffers::new(None).may_be_two(1) && !SmallBuffers::new(Some(7)).may_be_two(1));
        let mut buffers = SmallBuffers::new(Some(7));
        let first: Vec<u64> = (0..1000).filter_map(|_| buffers.next(0)).collect();
        assert!(first.iter().all(|bytes| bytes % 4 == 0 && (4..=4 * MOST_WORDS).contains(bytes)));
        assert!((1..=MOST_WORDS).all(|words| first.contains(&(4 * words))));
        assert!(buffers.next(400).is_some_and(|bytes| bytes > 800));
    }
}
