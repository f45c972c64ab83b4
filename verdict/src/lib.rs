//! What a replay says about a program: how well its lanes run on a machine, what limits them, and what to try first.
//!
//! A [`Question`] is asked of a trace; its [`Answer`] is what `lockstep replay` prints first:
//!
//! ```
//! use trace_format::Trace;
//! use verdict::Question;
//!
//! let trace = Trace::open("../heuristics/conformance/case-00.trace.gz".as_ref())?;
//! let answer = Question::default().ask(&trace)?;
//! println!("{answer}");
//! for place in answer.verdict.iter().flat_map(|verdict| &verdict.places) {
//!     let remedy = place.remedy.as_ref().map(|remedy| (&remedy.text, remedy.efficiency));
//!     println!("{}: {:.1}% of what is lost; {remedy:?}", place.subject.short(), 100.0 * place.share);
//! }
//! # assert!(answer.to_string().starts_with("verdict: "));
//! # Ok::<(), replay::Error>(())
//! ```
//!
//! [`Machine`]s are models that stand for them. A [`Judge`] tries what the [`Verdict`] on an outcome takes: other
//! groupings, passes, and [pieces of work](Items) as lanes. [`as_lanes`] is the page of `replay --verdict`;
//! [`grouping`], [`reorder`] and [`loops`] are further trials, whose results a user reads beside those of a replay.

mod answer;
pub mod as_lanes;
pub mod grouping;
mod judge;
pub mod lanes;
pub mod loops;
mod machine;
mod pieces;
mod question;
pub mod reorder;
mod verdict;

use heuristics::Spec;

pub use answer::Answer;
pub use judge::{Judge, forget, measures, warps_of_sample};
pub use machine::{Machine, Range, Subject, efficiency};
pub use question::Question;
pub use verdict::advice::{Kind, Place, Remedy};
pub use verdict::balance::{Balance, Schedule};
pub use verdict::coverage::Coverage;
pub use verdict::locking::{LockTrials, Locking};
pub use verdict::{Evidence, Figure, Items, Verdict};

/// A model that collects lanes at predicted places: this one, or that of the default machine.
#[must_use]
pub fn collecting(model: &Spec) -> Spec {
    if heuristics::collects(model) { model.clone() } else { Subject::default().models.remove(0) }
}

/// How many waiting lanes are tried as enough where none is named: a half, a quarter and an eighth of a warp.
#[must_use]
pub fn thresholds(lanes: usize) -> Vec<usize> {
    [8, 4, 2].map(|part| lanes / part).into_iter().filter(|lanes| *lanes > 1).collect()
}
