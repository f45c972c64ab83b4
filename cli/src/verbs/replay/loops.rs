//! `replay --loops`: the loops that ran, and how their iterations would run as lanes.

use attribution::Source;

use super::options::Asked;
use crate::output::{WithColours, print, say, show};
use crate::shown::loops;

pub(super) fn run(asked: &Asked, source: &mut Source) -> anyhow::Result<()> {
    let Asked { typed, trace, .. } = asked;
    let question = typed.selection.question(trace, asked.subject.clone())?;
    // The table has no room for how turns differ.
    let found = verdict::loops::of(&question, trace, source, typed.json, typed.top.unwrap_or(usize::MAX))?;
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    if typed.json {
        print(&format!("{:#}\n", loops::to_json(&found, typed.top)), WithColours::No)?;
    } else {
        say!("{}", found.taken);
        show(&loops::table(&found, typed.top), WithColours::No)?;
    }
    Ok(())
}
