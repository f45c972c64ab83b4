//! `replay --dependences`: what lanes that are parts of threads need of each other.

use attribution::Source;
use attribution::dependences::Found;

use super::options::Asked;
use crate::output::{WithColours, print, say, show};
use crate::shown::dependences;

pub(super) fn run(asked: &Asked, source: &mut Source) -> anyhow::Result<()> {
    let Asked { typed, trace, .. } = asked;
    let view = typed.selection.view(trace)?;
    let taken = view.summary().to_string();
    let lanes = typed.selection.question(trace, asked.subject.clone())?.lanes.lanes;
    let found = Found::of(&view, &lanes, source)?;
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    if typed.json {
        let setting = typed.selection.setting(&typed.trace, trace, &view);
        print(&format!("{:#}\n", dependences::to_json(&found, &setting, &taken)), WithColours::No)?;
    } else {
        say!("{taken}");
        show(&dependences::table(&found, typed.top), WithColours::No)?;
    }
    Ok(())
}
