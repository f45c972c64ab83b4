//! Who calls a function.

use super::sources::Sources;
use crate::llvm::Function;

/// Whether all that calls a function, or starts threads on it, was found.
pub(super) fn all_callers_known(function: Function<'_>, whole: bool, sources: &Sources<'_>) -> bool {
    let (users, complete) = function.as_value().users_in_code();
    let is_only_called = |user: &crate::llvm::Instruction<'_>| {
        let starts = sources.starts.iter().any(|s| s.runs == function && s.call == *user);
        let passed = user.arguments().contains(&function.as_value());
        // A function that passes it on to a call that starts threads was looked into.
        let started = sources.starts.iter().any(|s| s.runs == function && user.callee() == Some(s.within.as_value()));
        let calls = user.callee() == Some(function.as_value()) && !passed;
        starts || calls || started
    };
    (whole || function.is_internal()) && complete && !users.is_empty() && users.iter().all(is_only_called)
}
