//! Semaphores: a lock with several places, or a way to hand something over.

/// What a thread does with a semaphore.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::view) struct SemaphoreUse {
    /// How often it has waited and not yet posted.
    held: u32,
    /// It posted without that.
    gives: bool,
}

impl SemaphoreUse {
    /// The thread has waited.
    pub fn wait(&mut self) {
        self.held += 1;
    }

    /// The thread posts.
    pub fn post(&mut self) {
        self.gives |= self.held == 0;
        self.held = self.held.saturating_sub(1);
    }

    /// Whether the thread posts for others, or leaves posting to them: the semaphore is no lock.
    pub fn is_handed_over(self) -> bool {
        self.gives || self.held > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_and_then_posts_takes_a_place_and_who_only_does_one_hands_over() {
        let mut place = SemaphoreUse::default();
        place.wait();
        assert!(place.is_handed_over(), "others must post for it");
        place.post();
        assert!(!place.is_handed_over());
        place.post();
        assert!(place.is_handed_over());
    }
}
