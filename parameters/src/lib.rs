//! Names with parameters, as users type them: `long:n=4`, `fcs:threshold=8,layout`.
//!
//! A registry is a list of things that implement [`Named`]: reconvergence models, passes. [`Spec`] is one of them with
//! values for its parameters. [`Spec::parse_list`] reads a list of them. The text of a [`Spec`], with all its
//! parameters, reads back as the same [`Spec`].

mod nearest;
mod registered;
mod spec;
mod values;

pub use nearest::{did_you_mean, nearest};
pub use registered::Registered;
pub use spec::{Error, Named, Spec};
pub use values::{Parameter, Settings, Values};
