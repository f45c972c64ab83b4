//! What tests have the engine do that it would do seldom, or late.

/// What is asked for; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Throws all translations away at random moments as well, chosen by this number.
    pub thrown_away_at_random: Option<u64>,
    /// Follows the ways that the records show after the first looks, not only where code runs often.
    pub routes_at_once: bool,
}

/// When translations are thrown away for no reason, so that tests see it happen anywhere.
pub struct Moments(Option<u64>);

impl Moments {
    /// Never without a seed, else about once in 16 stops.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Moments {
        Moments(seed.map(|seed| seed | 1))
    }

    /// Whether it is time to.
    pub fn now(&mut self) -> bool {
        let Some(state) = &mut self.0 else { return false };
        // xorshift64
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state >> 60 == 0
    }
}
