//! Divergence-reducing passes over LLVM IR, and a compiler wrapper that applies them.
//!
//! | part | holds |
//! |---|---|
//! | [`REGISTRY`] | the passes by name; [`Pipeline`] runs several, and LLVM's verifier after each |
//! | [`Candidate`] | a place where a pass could have changed the program, and why it did or did not |
//! | [`wrapper`] | a compiler that applies passes between its optimiser and its code generation |
//! | [`llvm`] | LLVM IR behind safe types |
//!
//! Analyses come from `flowgraph`: LLVM's C interface has none.

#![allow(
    clippy::mutable_key_type,
    reason = "handles are hashed and compared by the address that they hold, which does not change"
)]

mod candidate;
mod cost;
mod error;
mod flow;
pub mod llvm;
mod passes;
mod refusal;
mod registry;
mod ssa;
pub mod wrapper;

pub use candidate::{Candidate, Verdict};
pub use error::{APT_LINE, Error, Result};
pub use registry::{Options, Pass, Pipeline, REGISTRY};
