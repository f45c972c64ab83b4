//! Registries that a program can add to.

use std::sync::OnceLock;

/// A registry: what its crate brings, and behind that what the program adds before it looks at any of it.
pub struct Registered<T: 'static> {
    own: &'static [T],
    all: OnceLock<Vec<T>>,
}

impl<T: Copy + 'static> Registered<T> {
    /// A registry of these.
    #[must_use]
    pub const fn new(own: &'static [T]) -> Registered<T> {
        Registered { own, all: OnceLock::new() }
    }

    /// All of them, in order.
    pub fn all(&self) -> &[T] {
        self.all.get_or_init(|| self.own.to_vec())
    }

    /// Adds these. False, and nothing is added, where the registry has been looked at or added to before.
    pub fn add(&self, more: &[T]) -> bool {
        self.all.set([self.own, more].concat()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_comes_behind_and_only_before_anybody_looks() {
        let registry = Registered::new(&[1, 2]);
        assert!(registry.add(&[3]));
        assert_eq!(registry.all(), [1, 2, 3]);
        assert!(!registry.add(&[4]));
        let seen = Registered::new(&[1]);
        assert_eq!(seen.all(), [1]);
        assert!(!seen.add(&[2]));
        assert_eq!(seen.all(), [1]);
    }
}
