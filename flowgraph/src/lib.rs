//! Graphs of blocks: walks, dominators, post-dominators, strongly connected components, loops, layout.
//!
//! A node is a dense index, so the same code serves the blocks of a binary function and the blocks of an IR function.
//! The caller keeps what a node stands for in a vector beside the graph.
//!
//! | question | answered by | time for n nodes and m edges |
//! |---|---|---|
//! | which nodes does control reach, in which order | [`DepthFirst`] | O(n + m) |
//! | which node must have run before this one | [`Dominators`] | O((n + m) log n) |
//! | where do the paths from this node meet again | [`PostDominators`] | O((n + m) log n) |
//! | the same, where the turns of a loop end in one place | [`StructuredJoins`] | O(d (n + m) log n), loops nested d deep |
//! | the same, where who continues or returns early is left out | [`IfJoins`] | O(n s), branches that dominate s nodes |
//! | where do some of the paths from a branch meet before all do | [`PartialJoins`] | O(n s), s nodes between a node and its dominator |
//! | how far is it to the end of a loop's turn | [`TurnDistances`] | O(d m log n), loops nested d deep |
//! | which nodes lie on common cycles | [`Components`] | O(n + m) |
//! | which loops are there, inside which others | [`Loops`] | O((n + m) log n) |
//! | where do the nodes end that a node dominates; which joins need phis | [`DominanceFrontiers`] | O(n + m + answer) |
//! | which branches decide whether this node runs | [`ControlDependence`] | O(n + m + answer) |
//! | which parts have one way in and one way out, inside which others | [`Regions`] | O((n + m) log n) |
//! | is it structured, and what is left if not | [`Reduction`] | O((n + m) d log n), branches of d ways |
//! | which edges make it unstructured | [`unstructured_edges`] | O((n + m) d), loops nested d deep |
//! | are two parts of the same shape, and which node stands for which | [`isomorphism()`] | O(n + m), mostly |
//! | where may threads wait while this node runs | [`frontiers()`] | O(n m) at worst |
//! | where are lanes that a point is predicted for joined, waited for and let go | [`CollectingRegion`] | O(n + m); operations O(n m) at worst |
//! | in which order to lay the blocks out, or to prefer them | [`loop_order`], [`priorities`] | as [`Loops`] |
//!
//! Nothing recurses: a graph of a million nodes in a row needs no more stack than a graph of two. Every answer depends
//! on the graph alone (the node numbers and the order of the edges), never on addresses or on a hasher.
//!
//! ```
//! use flowgraph::{Builder, NodeId, PostDominators};
//!
//! // if (0) { 1 } else { 2 } 3
//! let mut builder = Builder::new(4);
//! for (from, to) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
//!     builder.edge(NodeId(from), NodeId(to));
//! }
//! let graph = builder.build(NodeId(0));
//! let post = PostDominators::of(&graph, &[NodeId(3)]);
//! assert_eq!(post.ipdom(NodeId(0)), Some(NodeId(3)));
//! assert_eq!(post.ipdom(NodeId(3)), None);
//! ```

mod cycles;
mod dominance;
mod graph;
mod joins;
mod structure;
mod walk;

pub use cycles::components::{ComponentId, Components};
pub use cycles::layout::{loop_order, priorities};
pub use cycles::loops::{LoopId, Loops};
pub use cycles::turn_distances::{Stop, TurnDistances};
pub use dominance::control_dependence::ControlDependence;
pub use dominance::dominance_frontiers::DominanceFrontiers;
pub use dominance::dominators::Dominators;
pub use dominance::post_dominators::PostDominators;
pub use graph::{Builder, Graph, NodeId};
pub use joins::collecting::{
    BarrierAction, BarrierFault, Collecting, CollectingRegion, Copies, barrier_faults, copies_of_a_point, points_apart,
    reached,
};
pub use joins::frontiers::frontiers;
pub use joins::if_joins::IfJoins;
pub use joins::partial_joins::PartialJoins;
pub use joins::structured::{Join, StructuredJoins};
pub use structure::isomorphism::{Part, isomorphism};
pub use structure::reduction::Reduction;
pub use structure::regions::{RegionId, Regions};
pub use structure::unstructured::{UnstructuredEdge, unstructured_edges};
pub use walk::DepthFirst;

/// Marks "none" in vectors of dense indices.
const NONE: u32 = u32::MAX;
