//! `replay --reorder`: what regrouping lanes gains and costs.

use attribution::table::grouped;
use replay::Outcome;
use serde_json::{Value, json};
use verdict::reorder::Compared;

use crate::shown::grouping;

/// For people.
pub(crate) fn text(compared: &Compared) -> String {
    let instructions = compared.tried[0].outcomes.first().map_or(0, |outcome: &Outcome| outcome.upper_bound);
    let times = |n: u64| if n == 1 { "once".to_owned() } else { format!("{} times", grouped(n)) };
    format!(
        "\nlanes regrouped at {} by {}: {}, {} visits by lanes in all, one for {} thread instructions\n{}",
        compared.reorder.place,
        compared.reorder.key,
        times(compared.regroupings),
        grouped(compared.visits),
        grouped(instructions / compared.visits.max(1)),
        grouping::table(&compared.tried)
    )
}

/// For programs.
pub(crate) fn to_json(compared: &Compared) -> Value {
    json!({
        "place": compared.reorder.place.to_string(),
        "key": compared.reorder.key.to_string(),
        "regroupings": compared.regroupings,
        "visits": compared.visits,
        "rows": grouping::json(&compared.tried),
    })
}
