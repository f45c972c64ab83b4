//! The settings under which rows were measured: which rows belong together, and how settings differ.

use crate::Row;
use crate::drawing::text::short_function;

/// What a row says about its setting. The first fields tell settings apart first, in the order in which readers ask.
const FIELDS: [Field; 10] = [
    Field { value: |r| some(&r.command), words: |v| v.to_owned() },
    Field { value: |r| number(r.lanes), words: |v| counted(v, "lane") },
    Field { value: |r| number(r.threads), words: |v| counted(v, "thread") },
    Field { value: |r| number(r.warps), words: |v| counted(v, "warp") },
    Field { value: |r| some(&r.warp_size), words: |v| format!("warp size {v}") },
    Field { value: |r| some(&r.group), words: |v| format!("grouping {v}") },
    Field { value: |r| some(&r.region), words: |v| format!("region {}", short_function(v)) },
    Field { value: |r| some(&r.code), words: |v| format!("code {v}") },
    Field { value: |r| some(&r.locks), words: |v| format!("locks {v}") },
    Field { value: |r| some(&r.trace), words: |v| v.to_owned() },
];
const COMMAND: usize = 0;
const LANES: usize = 1;
const WARPS: usize = 3;
const WARP_SIZE: usize = 4;
const GROUP: usize = 5;
const REGION: usize = 6;
const CODE: usize = 7;
const LOCKS: usize = 8;
const TRACE: usize = 9;

/// What the mark of [`Row::label`] says.
const TURNS: &str = ", * deadlocks so: lanes take turns";

struct Field {
    value: fn(&Row) -> Option<String>,
    words: fn(&str) -> String,
}

/// The values of [`FIELDS`]; none where a row does not say, as a replay that failed may not.
type Values = [Option<String>; FIELDS.len()];

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(n: Option<u64>) -> Option<String> {
    n.map(|n| n.to_string())
}

fn counted(n: &str, what: &str) -> String {
    if n == "1" { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Rows measured under one setting.
pub(crate) struct Setting<'a> {
    /// What tells it from the others; none when it is the only one.
    pub(crate) heading: Option<String>,
    /// Its rows, in their order.
    pub(crate) rows: Vec<&'a Row>,
}

/// Rows by setting.
pub(crate) struct Settings<'a> {
    /// The program and its lanes, as far as all rows agree; may be empty.
    pub(crate) title: String,
    /// How it was replayed, as far as all rows agree; may be empty.
    pub(crate) subtitle: String,
    /// The settings, in order of first appearance.
    pub(crate) settings: Vec<Setting<'a>>,
}

/// Puts the rows of one setting together. A row that does not say all of its setting joins the first one that it does
/// not contradict.
pub(crate) fn settings(rows: &[Row]) -> Settings<'_> {
    let mut found: Vec<(Values, Vec<&Row>)> = Vec::new();
    for row in rows {
        let values: Values = FIELDS.each_ref().map(|field| (field.value)(row));
        let fits = |known: &Values| known.iter().zip(&values).all(|(a, b)| a.is_none() || b.is_none() || a == b);
        if let Some((known, rows)) = found.iter_mut().find(|(known, _)| fits(known)) {
            for (known, value) in known.iter_mut().zip(values) {
                *known = known.take().or(value);
            }
            rows.push(row);
        } else {
            found.push((values, vec![row]));
        }
    }
    let all: Vec<&Values> = found.iter().map(|(values, _)| values).collect();
    let telling = telling_fields(&all);
    let title = title(&all);
    let mut subtitle = subtitle(&all);
    if rows.iter().any(|row| row.takes_turns) {
        subtitle += TURNS;
    }
    let settings = found
        .iter()
        .map(|(values, rows)| Setting {
            heading: (found.len() > 1).then(|| words(values, &telling).join(" · ")),
            rows: rows.clone(),
        })
        .collect();
    Settings { title, subtitle, settings }
}

/// The fewest fields, taken from the front, that tell all settings apart; the number of lanes wherever it differs,
/// since an efficiency means little without it.
fn telling_fields(all: &[&Values]) -> Vec<usize> {
    let parts = |fields: &[usize]| {
        let mut keys: Vec<Vec<&Option<String>>> = all.iter().map(|v| fields.iter().map(|&f| &v[f]).collect()).collect();
        keys.sort();
        keys.dedup();
        keys.len()
    };
    let mut fields = Vec::new();
    for field in 0..FIELDS.len() {
        let with: Vec<usize> = fields.iter().copied().chain([field]).collect();
        if parts(&with) > parts(&fields) || (field == LANES && common(all, &[LANES]).is_empty()) {
            fields = with;
        }
    }
    fields
}

/// The fields that all settings agree on, of those given.
fn common(all: &[&Values], fields: &[usize]) -> Vec<usize> {
    fields.iter().copied().filter(|&f| all[1..].iter().all(|v| v[f] == all[0][f])).collect()
}

fn words(values: &Values, fields: &[usize]) -> Vec<String> {
    fields.iter().filter_map(|&f| values[f].as_deref().map(FIELDS[f].words)).collect()
}

fn several_warps(all: &[&Values]) -> bool {
    all.iter().any(|v| v[WARPS].as_deref().is_some_and(|n| n != "1"))
}

fn title(all: &[&Values]) -> String {
    let named = if all.iter().all(|v| v[COMMAND].is_none()) { TRACE } else { COMMAND };
    let mut fields = vec![named, LANES];
    if several_warps(all) {
        fields.extend([WARPS, WARP_SIZE]);
    }
    let mut words = words(all[0], &common(all, &fields));
    // What all have in common tells none from another: the program's folder is left out.
    if let Some(command) = words.first_mut().filter(|_| named == COMMAND) {
        let program = command.split(' ').next().unwrap_or_default();
        let folder = program.rfind('/').map_or(0, |slash| slash + 1);
        command.drain(..folder);
    }
    words.join(" · ")
}

fn subtitle(all: &[&Values]) -> String {
    let mut fields = vec![REGION, CODE, LOCKS];
    if several_warps(all) {
        fields.push(GROUP);
    }
    words(all[0], &common(all, &fields)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    fn row(command: &str, lanes: Option<u64>) -> Row {
        Row {
            trace: "t.bin".into(),
            command: command.into(),
            region: "auto".into(),
            code: "all".into(),
            locks: "drop".into(),
            heuristic: "minpc".into(),
            warp_size: "16".into(),
            group: "number".into(),
            threads: lanes,
            lanes,
            warps: Some(1),
            takes_turns: false,
            outcome: Outcome::Failed("no matter".into()),
        }
    }

    fn headings(rows: &[Row]) -> Vec<Option<String>> {
        settings(rows).settings.into_iter().map(|s| s.heading).collect()
    }

    #[test]
    fn one_setting_needs_no_heading() {
        let rows = [row("fft -p 16", Some(16)), row("fft -p 16", Some(16))];
        let found = settings(&rows);
        assert_eq!((found.settings.len(), found.settings[0].heading.as_deref()), (1, None));
        assert_eq!(
            (found.title.as_str(), found.subtitle.as_str()),
            ("fft -p 16 · 16 lanes", "region auto, code all, locks drop")
        );
    }

    #[test]
    fn a_field_that_tells_nothing_new_is_not_told() {
        let rows = [row("fft -p 8", Some(8)), row("fft -p 16", Some(16))];
        assert_eq!(headings(&rows), [Some("fft -p 8 · 8 lanes".to_owned()), Some("fft -p 16 · 16 lanes".to_owned())]);
        assert_eq!(settings(&rows).title, "");
        let rows = [row("fft", Some(8)), row("fft", Some(16))];
        assert_eq!(headings(&rows), [Some("8 lanes".to_owned()), Some("16 lanes".to_owned())]);
        assert_eq!(settings(&rows).title, "fft");
    }

    #[test]
    fn a_failed_row_without_numbers_stays_with_its_trace() {
        let failed = Row { warps: None, warp_size: String::new(), ..row("fft", None) };
        assert_eq!(headings(&[failed.clone(), row("fft", Some(8)), failed]), [None]);
    }
}
