//! Divergence-reducing passes over LLVM IR, and a compiler wrapper that applies them.
//!
//! | part | holds |
//! |---|---|
//! | [`REGISTRY`] | the passes by name; [`Pipeline`] runs several, then LLVM's verifier |
//! | [`Remark`] | a place where a pass could have changed the program, and why it did or did not |
//! | [`wrapper`] | a compiler that applies passes between its optimiser and its code generation |
//! | [`Context`] | what a pass is given besides a function: analyses, costs, settings |
//! | [`CostModel`] | what code costs; [`X86_64`] is taken unless told otherwise |
//! | [`Trips`] | what a trace says of loops in loops: which pay as one |
//! | [`spmd`] | divergence analysis: which values are the same for all threads, or affine in their numbers |
//! | [`llvm`] | LLVM IR behind safe types |
//!
//! Analyses come from `flowgraph`: LLVM's C interface has none.

#![allow(
    clippy::mutable_key_type,
    reason = "handles are hashed and compared by the address that they hold, which does not change"
)]

mod alignment;
mod alike;
mod context;
mod cost;
mod error;
mod flow;
mod iterations;
mod joining;
pub mod llvm;
mod pass;
mod passes;
mod refusal;
mod registry;
mod remark;
pub mod spmd;
mod ssa;
mod trips;
mod waits;
pub mod wrapper;

pub use context::Context;
pub use cost::{Cost, CostModel, X86_64};
pub use error::{APT_LINE, Error, Result};
pub use flow::Flow;
pub use pass::Pass;
pub use registry::{Pipeline, REGISTRY};
pub use remark::{
    Added, Aligned, BarrierPlace, Format, GuardKind, Kind, Linearized, MarkFault, MeldCase, Melding, Place, Reason,
    Remark, Spills, Split, Unmeldable,
};
pub use trips::{InnerLoop, LoopTurns, Paid, PlaceRan, PredictedPlace, Site, Trips};
