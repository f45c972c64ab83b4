//! The models that a page can be switched to: what each costs by line and by branch.

use crate::page::{LineCosts, Switched};
use replay::Outcome;
use replay::metrics::Causes;

use super::branches;
use super::code::Code;

/// How many branches are kept of each.
const BRANCHES: usize = 12;

/// How many lines are kept of all together: about 60 bytes each in the page.
const MOST_LINES: usize = 20_000;

/// Costs of these models; models that cost the same everywhere share an entry. `outcomes` are those that results come
/// from.
pub(crate) fn of(
    switched: &[Outcome],
    outcomes: &[Outcome],
    code: &mut Code,
    notes: &mut Vec<String>,
) -> Vec<Switched> {
    let mut all: Vec<Switched> = Vec::new();
    let (mut lines, mut left) = (0, 0);
    for outcome in switched {
        let Some(causes) = outcome.found::<Causes>().filter(|_| outcome.is_complete()) else { continue };
        let Some(result) = outcomes.iter().position(|other| other.heuristic == outcome.heuristic) else { continue };
        let costs: Vec<LineCosts> = code.costs(outcome, causes);
        let mut branches = branches::of(outcome, causes, code);
        branches.truncate(BRANCHES);
        if let Some(known) = all.iter_mut().find(|known| known.lines == costs && known.branches == branches) {
            known.results.push(result);
            continue;
        }
        lines += costs.len();
        if lines > MOST_LINES {
            left += 1;
            continue;
        }
        all.push(Switched { results: vec![result], lines: costs, branches });
    }
    if left > 0 {
        notes.push(format!("the page cannot be switched to {left} of the models: it would become too large"));
    }
    all
}
