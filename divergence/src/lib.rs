//! Divergence analysis with affine constraints: which values are the same for all threads that run together, which are
//! an affine function of the thread's number (c1·tid + c2), and which are neither.
//!
//! Threads are *together* when they fetch an instruction in lockstep. Threads that parted meet again at the immediate
//! post-dominator of the branch. Every statement about a value is about threads that are together.
//!
//! | part | holds |
//! |---|---|
//! | [`Function`] | what is analysed: blocks, values, operations; made by a [`Builder`], without a compiler |
//! | [`Gates`] | which branches decide what a join or a loop's end sees |
//! | [`Gated`] | gated SSA form: γ, μ and η, printable |
//! | [`Fact`] | the lattice: coefficients are numbers or unknowns that are the same for all threads |
//! | [`Rule`] | the constraint rules |
//! | [`Analysis`] | the solver and its answers |
//! | [`Boolean`] | the older analysis that knows uniform and divergent only |
//!
//! Source: Sampaio, Martins, Pereira and Collange, *Divergence analysis with affine constraints*, 2012. Beyond the
//! paper: coefficients with symbols, widths, three dimensions of thread numbers, comparisons of values with the same
//! stride, iterations of loops that meet inside, irreducible loops.

mod analysis;
mod arithmetic;
mod boolean;
mod dependents;
mod fact;
mod function;
mod gated;
mod gates;
mod parts;
mod rules;
mod warp;
mod worklist;

pub use analysis::{Analysis, Mode, Options};
pub use boolean::Boolean;
pub use fact::{Affine, Class, DIMENSIONS, Fact, Form, Symbol};
pub use function::{
    Binary, Builder, Cast, Decision, Function, Kind, Memory, Op, Predicate, Promise, Return, Value, ValueId,
};
pub use gated::{Eta, Gated, NodeRef};
pub use gates::{Arrival, Choice, GateId, Gates, Scope, ScopeId, Selection};
pub use rules::Rule;
pub use warp::{Given, InWarp};
