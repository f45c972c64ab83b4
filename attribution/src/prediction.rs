//! Places at which lanes might be collected, as they are typed behind `replay --predict`.

use replay::suggest::{Candidate, Pattern};

use crate::Source;

/// The address of a candidate, or `call:NAME` of a function whose calls are meant: `call:ADDRESS` where it has no name.
#[must_use]
pub fn typed_prediction(candidate: &Candidate, source: &Source) -> String {
    match candidate.pattern {
        Pattern::CommonCall if source.function_start(candidate.at) == Some(candidate.at) => {
            format!("call:{}", source.function(candidate.at))
        }
        Pattern::CommonCall => format!("call:{}", candidate.at),
        _ => candidate.at.to_string(),
    }
}
