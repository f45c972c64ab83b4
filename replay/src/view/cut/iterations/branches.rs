//! Branches that compare what a runtime gave a thread.

use flowgraph::NodeId;
use rustc_hash::FxHashMap;

/// Branches that compare what a runtime gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tests(pub FxHashMap<NodeId, Test>);

/// One of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Test {
    /// Whether a constant was added to what it compares: an iteration came before it, or it looks further ahead.
    pub is_stepped: bool,
    /// Whether the number of threads was added to what it compares: of iterations that are dealt out in turn, one came
    /// before it.
    pub is_counted: bool,
    /// Whether it compares two values that hang on the thread's number, and both as they are.
    pub is_of_bounds: bool,
    /// Whether it compares two values that hang on the thread's number, whatever was made of it.
    pub is_of_two: bool,
    /// Whether it asks whether a thread's share is more than so many iterations, one or more.
    pub is_of_share: bool,
    /// Whether no lane took its other side.
    pub is_one_way: bool,
    /// How far the one is from a number that it compares with another which is less far.
    pub ahead: Option<i64>,
}

impl Test {
    /// Whether it asks whether there is an iteration so many further on.
    pub fn is_of_next(self) -> bool {
        self.is_stepped && self.is_of_bounds && self.is_of_two
    }
}

impl Tests {
    /// Whether the branch at the end of this node asks whether there is an iteration so many further on, or whether a
    /// thread's share is more than so many.
    pub fn is_rung(&self, node: NodeId) -> bool {
        self.of(node).is_some_and(|test| test.is_of_next() || test.is_of_share)
    }

    /// Whether it asks whether there is any iteration.
    pub fn is_of_first(&self, node: NodeId) -> bool {
        self.of(node).is_some_and(|test| test.is_of_bounds && !test.is_stepped)
    }

    /// The branch at the end of this node, if it is one.
    pub fn of(&self, node: NodeId) -> Option<Test> {
        self.0.get(&node).copied()
    }
}
