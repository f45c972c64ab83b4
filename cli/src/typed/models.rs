//! The models that were asked for.

use heuristics::{ParseError, Spec};

/// What one `--heuristic` says: names with parameters, several with commas, or `all`.
#[derive(Clone)]
pub(crate) struct Models(Vec<Spec>);

impl Models {
    /// Reads them.
    ///
    /// # Errors
    /// When one is not there, or has no such parameter.
    pub(crate) fn parse(text: &str) -> Result<Models, ParseError> {
        Spec::parse_list(text).map(Models)
    }
}

/// All that several say, each model once, in order.
pub(crate) fn all_of(lists: &[Models]) -> Vec<Spec> {
    each_once(lists.iter().flat_map(|list| &list.0))
}

/// Each model once, in order.
pub(crate) fn each_once<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Vec<Spec> {
    let mut once: Vec<Spec> = Vec::new();
    for spec in specs {
        if !once.iter().any(|known| known.to_string() == spec.to_string()) {
            once.push(spec.clone());
        }
    }
    once
}
