//! Places at which lanes might be collected, as typed after `replay --predict`.

use replay::suggest::{Candidate, Pattern};

use crate::Source;

/// The address of a candidate, or `call:NAME` of a function whose calls are meant: `call:ADDRESS` where it has no name;
/// with `from=` where lanes join that call it through others.
#[must_use]
pub fn typed_prediction(candidate: &Candidate, source: &Source) -> String {
    let named = |at| match source.function_start(at) == Some(at) {
        true => source.function(at),
        false => at.to_string(),
    };
    match (candidate.pattern, candidate.from) {
        (Pattern::CommonCall, None) => format!("call:{}", named(candidate.at)),
        (Pattern::CommonCall, Some(from)) => format!("call:{},from={}", named(candidate.at), named(from)),
        _ => candidate.at.to_string(),
    }
}
