//! `replay -W 4,8 --group all`: several widths, several ways to put lanes into warps; a row for each, from one reading
//! of the trace.

use replay::{Prepared, ReplayOptions};
use verdict::grouping;

use super::options::Asked;
use crate::output::{Output, WithColours, print, say, show};
use crate::shown;
use crate::typed::widths::Widths;

pub(super) fn run(asked: &Asked) -> anyhow::Result<()> {
    let Asked { typed, trace, subject, measures, .. } = asked;
    let selection = &typed.selection;
    let view = selection.view(trace)?;
    if !typed.json {
        say!("{}", view.summary());
    }
    let measures = grouping::with_traffic(measures, trace);
    let options = subject.options(ReplayOptions { measures, ..selection.options() }, &view);
    let prepared = Prepared::new(&view, asked.needs_control_flow(&options))?;
    let widths = selection.warp_size.as_ref().map_or(&[][..], Widths::all);
    let tried = grouping::replay(&prepared, &subject.models, widths, selection.group.all(), &options)?;
    if let Some(path) = &typed.csv {
        let setting = selection.setting(&typed.trace, trace, &view);
        let mut out = Output::create(path)?;
        let rows = shown::grouping::rows(&tried, &setting);
        replay::write_csv_of(rows.iter().map(|(setting, outcome)| (setting, *outcome)), &mut out, path)?;
        out.finish()?;
    }
    match (typed.json, &typed.csv) {
        (true, _) => print(&format!("{:#}\n", shown::grouping::json(&tried)), WithColours::No)?,
        (false, Some(path)) if path.as_os_str() == "-" => {}
        (false, _) => show(&shown::grouping::table(&tried), WithColours::No)?,
    }
    Ok(())
}
