//! `replay --reorder PLACE`: rows of lanes that are regrouped at a place, and what that gains and costs.

use std::process::ExitCode;

use attribution::Source;
use replay::Prepared;
use replay::view::View;

use super::options::Asked;
use super::rows::{Found, Request};

pub(super) fn run(asked: &Asked, source: &mut Source) -> anyhow::Result<ExitCode> {
    Request::of(asked).run(source, regrouped)
}

/// No verdict is given: it tries other lanes and groupings, which would not be regrouped.
fn regrouped(request: &Request, view: &View, source: &mut Source) -> anyhow::Result<Found> {
    let Asked { typed, trace, ref subject, .. } = *request.asked;
    let reorder = typed.reorder.meant().expect("this mode follows from it");
    let options = request.options(view);
    let predicted = request.predicted(view, source)?;
    let whole = Prepared::new(view, true)?;
    let lanes = reorder.lanes(&whole, trace, source)?;
    let mut prepared = lanes.prepared(&whole)?;
    let outcomes = request.outcomes(&mut prepared, predicted, &options, source)?;
    let range = subject.range(&prepared, view, source, outcomes.first(), &options)?;
    let compared = reorder.compared(&whole, &lanes, &prepared, trace, &subject.models, &options)?;
    Ok(Found { range, reorder: Some(compared), ..Found::of(outcomes) })
}
