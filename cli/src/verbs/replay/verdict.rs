//! `replay --verdict`: one page on how lanes would run.

use attribution::Source;
use verdict::as_lanes;

use super::options::Asked;
use crate::output::{WithColours, print, say, show};
use crate::shown;

pub(super) fn run(asked: &Asked, source: &mut Source) -> anyhow::Result<()> {
    let Asked { typed, trace, .. } = asked;
    let view = typed.selection.view(trace)?;
    let question = typed.selection.question(trace, asked.subject.clone())?;
    let page = as_lanes::of(&question, trace, (&view, &view), None, source)?;
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    if typed.json {
        print(&format!("{:#}\n", page.json()), WithColours::No)?;
    } else {
        say!("{}", view.summary());
        show(&shown::as_lanes::text(&page), WithColours::No)?;
    }
    Ok(())
}
