//! Kinds of models, by how lanes that parted meet again.

/// A kind of heuristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A stack of paths; the innermost runs until it reaches its join.
    Stack,
    /// A pc per lane; lanes that parted wait for each other in barriers.
    Barriers,
    /// Blocks have an order, and the first block at which lanes stand runs.
    Frontiers,
    /// At each step one of the places at which lanes stand is picked, by pc, call level or what was seen before.
    MinPc,
    /// Warps are split into parts, or lanes of several warps share a fetch.
    SeveralWarps,
    /// Models that no hardware implements: the ends of the scale, and schedules that need to know the future.
    Bounds,
}

impl Family {
    /// All of them, in the order in which they are shown: those that are nearest to hardware first.
    pub const ALL: [Family; 6] =
        [Family::Stack, Family::Barriers, Family::Frontiers, Family::MinPc, Family::SeveralWarps, Family::Bounds];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Stack => "stack",
            Family::Barriers => "barriers",
            Family::Frontiers => "frontiers",
            Family::MinPc => "min-pc family",
            Family::SeveralWarps => "several warps",
            Family::Bounds => "bounds",
        }
    }

    /// What its models have in common, in a few words.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Family::Stack => "paths on a stack, the innermost runs to its join",
            Family::Barriers => "a pc per lane, lanes that parted wait in barriers",
            Family::Frontiers => "the first block in the program's order runs",
            Family::MinPc => "one place is picked at each step, by pc or call level",
            Family::SeveralWarps => "warps are split, or their lanes share fetches",
            Family::Bounds => "no hardware: the ends of the scale",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::REGISTRY;

    #[test]
    fn every_family_has_a_model_and_stands_once_in_the_list() {
        for family in Family::ALL {
            assert!(REGISTRY.iter().any(|entry| entry.family == family), "{} has no model", family.name());
            assert_eq!(Family::ALL.iter().filter(|other| **other == family).count(), 1);
        }
        assert!(REGISTRY.iter().all(|entry| Family::ALL.contains(&entry.family)));
    }
}
