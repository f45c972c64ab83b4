//! What is the same for the lanes of a warp, where warps are runs of threads in the order of their numbers, though not
//! for all threads: `thread % 64 < 32` parts a group of 64 threads, and no warp of 32.
//!
//! An integer's bits below the warp's width are looked at apart from those above: a thread's number has the lane in the
//! one, and the same for the whole warp in the others. Arithmetic and comparisons keep that where they keep the two
//! apart.

use flowgraph::NodeId;

use crate::fact::Affine;
use crate::{Analysis, Binary, Cast, Decision, Fact, Kind, NodeRef, Op, Predicate, ValueId};

/// What is known of a value within one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InWarp {
    /// It is the same for all lanes.
    Same,
    /// It is the same for all lanes, and a multiple of the warp's width.
    Multiple,
    /// It is such a multiple and the lane's number, which fits below it. `positive`: not below 0 as a signed number.
    Lane {
        /// Whether it is known not to be negative.
        positive: bool,
    },
    /// Nothing is known.
    Unknown,
}

/// So many operations behind each other are looked at; a call counts as some.
const MOST_STEPS: u32 = 8;
const STEPS_OF_CALL: u32 = 3;

/// What is known of parameters of which the analysis knows nothing, that many steps on: by their callers.
pub type Given<'a> = &'a dyn Fn(ValueId, u32) -> InWarp;

impl InWarp {
    /// What holds of a value that is one or the other.
    #[must_use]
    pub fn or(self, other: InWarp) -> InWarp {
        match (self, other) {
            (InWarp::Lane { positive: one }, InWarp::Lane { positive: two }) => InWarp::Lane { positive: one && two },
            (one, two) if one == two => one,
            (one, two) if one.is_same() && two.is_same() => InWarp::Same,
            _ => InWarp::Unknown,
        }
    }

    /// Whether all lanes of a warp have it.
    #[must_use]
    pub fn is_same(self) -> bool {
        matches!(self, InWarp::Same | InWarp::Multiple)
    }
}

/// One question: warps of so many lanes, a power of 2.
struct Warps<'a> {
    analysis: &'a Analysis,
    width: i64,
    given: Given<'a>,
}

impl Analysis {
    /// Whether the lanes of each warp of `width` (a power of 2) that come to the end of a block together all take the
    /// same way. False where it is not known. `given` tells of parameters.
    #[must_use]
    pub fn agree_in_warps(&self, block: NodeId, width: u32, given: Given<'_>) -> bool {
        match self.gated().decision(block) {
            Decision::By(node) => self.in_warp(node, width, given, 0).is_same(),
            Decision::None => true,
            Decision::Unknown => false,
        }
    }

    /// What is known of a value within a warp of `width` lanes, a power of 2, so many steps on.
    #[must_use]
    pub fn in_warp(&self, node: NodeRef, width: u32, given: Given<'_>, steps: u32) -> InWarp {
        Warps { analysis: self, width: i64::from(width), given }.of(node, steps)
    }
}

impl Warps<'_> {
    fn of(&self, node: NodeRef, steps: u32) -> InWarp {
        match self.analysis.fact(node) {
            Fact::Affine(affine) if affine.is_uniform() => self.number(affine.base.as_number()),
            Fact::Affine(affine) => self.lane(node, &affine).unwrap_or_else(|| self.made(node, steps)),
            Fact::Top => InWarp::Same,
            Fact::Divergent => self.made(node, steps),
        }
    }

    fn number(&self, number: Option<i64>) -> InWarp {
        if number.is_some_and(|number| number % self.width == 0) { InWarp::Multiple } else { InWarp::Same }
    }

    /// A thread's number, counted from a multiple of the width.
    fn lane(&self, node: NodeRef, affine: &Affine) -> Option<InWarp> {
        let base = affine.base.as_number()?;
        let is_row = affine.strides[0].as_number() == Some(1) && affine.strides[1..].iter().all(|s| s.is_zero());
        (is_row && base % self.width == 0 && self.holds_lanes(node))
            .then_some(InWarp::Lane { positive: affine.signed && base >= 0 })
    }

    /// Whether a value has more bits than a lane's number.
    fn holds_lanes(&self, node: NodeRef) -> bool {
        matches!(self.analysis.gated().kind(node), Kind::Bits(bits) if bits > self.width.ilog2() as u8)
    }

    /// What an operation makes of what is known of its operands.
    fn made(&self, node: NodeRef, steps: u32) -> InWarp {
        let gated = self.analysis.gated();
        // What leaves a loop may be of one turn for one lane, and of another for the next.
        if steps > MOST_STEPS || gated.eta(node).is_some() {
            return InWarp::Unknown;
        }
        let of = |node: &NodeRef| self.of(*node, steps + 1);
        let same = |all: &[NodeRef]| match all.iter().all(|node| of(node).is_same()) {
            true => InWarp::Same,
            false => InWarp::Unknown,
        };
        match gated.op(node) {
            Op::Given(_) => (self.given)(gated.value_of(node), steps + STEPS_OF_CALL),
            Op::Copy(from) => of(from),
            Op::Binary(binary, a, b, _) => self.binary(*binary, [of(a), of(b)], self.number_of(*b)),
            Op::Cast(cast, from) if self.holds_lanes(node) => match (of(from), cast) {
                (InWarp::Lane { positive }, Cast::Truncate(promise)) => {
                    InWarp::Lane { positive: positive && promise.signed }
                }
                (InWarp::Lane { .. }, Cast::Zero { .. }) => InWarp::Lane { positive: true },
                (known, _) => known,
            },
            Op::Cast(_, from) => same(&[*from]),
            Op::Compare(predicate, a, b) => self.compare(*predicate, [*a, *b], [of(a), of(b)]),
            Op::Select(which, one, other) if of(which).is_same() => of(one).or(of(other)),
            Op::General(all) => same(all),
            _ => InWarp::Unknown,
        }
    }

    fn number_of(&self, node: NodeRef) -> Option<i64> {
        self.analysis.fact(node).affine().filter(|affine| affine.is_uniform())?.base.as_number()
    }

    fn binary(&self, binary: Binary, operands: [InWarp; 2], by: Option<i64>) -> InWarp {
        use InWarp::{Lane, Multiple, Same, Unknown};
        let whole = by.is_some_and(|by| by > 0 && by % self.width == 0);
        match (binary, operands) {
            (Binary::And, [Lane { .. }, Multiple] | [Multiple, Lane { .. }]) => Multiple,
            (Binary::And, [Lane { positive }, Same]) => match by {
                Some(mask) if mask.wrapping_add(1) % self.width == 0 => Lane { positive: positive || mask >= 0 },
                _ => Unknown,
            },
            (Binary::And, [Multiple, other] | [other, Multiple]) if other.is_same() => Multiple,
            (Binary::Add | Binary::Sub, [Lane { .. }, Multiple]) => Lane { positive: false },
            (Binary::Or | Binary::DisjointOr | Binary::Xor, [Lane { positive }, Multiple]) => {
                Lane { positive: positive && by.is_some_and(|by| by >= 0) }
            }
            (Binary::Add | Binary::Or | Binary::DisjointOr | Binary::Xor, [Multiple, Lane { .. }]) => {
                Lane { positive: false }
            }
            (Binary::Lshr | Binary::Ashr, [Lane { .. }, Same | Multiple]) => match by {
                Some(by) if by >= i64::from(self.width.ilog2()) => Same,
                _ => Unknown,
            },
            (Binary::Udiv, [Lane { .. }, _]) | (Binary::Sdiv, [Lane { positive: true }, _]) if whole => Same,
            (Binary::Urem, [Lane { .. }, _]) | (Binary::Srem, [Lane { positive: true }, _]) if whole => {
                Lane { positive: true }
            }
            (Binary::Add | Binary::Sub | Binary::Or | Binary::DisjointOr | Binary::Xor, [Multiple, Multiple]) => {
                Multiple
            }
            (_, [one, other]) if one.is_same() && other.is_same() => Same,
            _ => Unknown,
        }
    }

    /// A lane's number stands on one side of a multiple of the width for a whole warp.
    fn compare(&self, predicate: Predicate, nodes: [NodeRef; 2], operands: [InWarp; 2]) -> InWarp {
        let Predicate::Order { less, or_equal, .. } = predicate else {
            return if operands.iter().all(|known| known.is_same()) { InWarp::Same } else { InWarp::Unknown };
        };
        let is_whole = |known: InWarp, node: NodeRef, behind: bool| match behind {
            false => known == InWarp::Multiple,
            true => self.number_of(node).is_some_and(|number| number.wrapping_add(1) % self.width == 0),
        };
        let agree = match operands {
            [one, other] if one.is_same() && other.is_same() => true,
            // `lane < 32` and `lane >= 32`; `lane <= 31` and `lane > 31`.
            [InWarp::Lane { .. }, known] => is_whole(known, nodes[1], less == or_equal),
            [known, InWarp::Lane { .. }] => is_whole(known, nodes[0], less != or_equal),
            _ => false,
        };
        if agree { InWarp::Same } else { InWarp::Unknown }
    }
}
