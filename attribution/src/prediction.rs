//! Places at which lanes might be collected, as they are typed behind `replay --predict`.

use replay::suggest::{Candidate, Pattern};

use crate::Source;

/// The address of a candidate, or `call:NAME` of a function whose calls are meant.
#[must_use]
pub fn typed_prediction(candidate: &Candidate, source: &Source) -> String {
    match candidate.pattern {
        Pattern::CommonCall => format!("call:{}", source.function(candidate.at)),
        _ => candidate.at.to_string(),
    }
}
