//! `lockstep diff`: what changed from one program, trace or file of rows to another, per heuristic or per source line.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use attribution::table::{Align, grouped, percent as percent_of};
use attribution::unlike::{Facts, unlike};
use attribution::{Source, Subject as About, Versions, Was, locks, lost};
use replay::metrics::Causes;
use replay::{ReplayOptions, Unit};
use report::Row;
use serde_json::{Value, json};
use verdict::{Balance, Subject};

use crate::output::{WithColours, print, say, show};
use crate::typed::{models, selection};
use crate::verbs::compare;
use crate::width;

/// Show what changed between two programs, traces or results
///
/// Two programs are traced and replayed, and shown side by side: lockstep diff fft.none fft.fcs -- -p 16. Both get the
/// same arguments and must print the same; if they do not, the exit status is 9, after the table. Two traces are
/// compared by source line, two files of rows by heuristic.
#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    both: compare::Args,

    /// For traces: the most lines to show, those that changed most first
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

/// The row of all lines together.
const ALL: &str = "(all)";

/// A number before and after.
struct Change {
    /// What it is a number of.
    name: &'static str,
    before: f64,
    after: f64,
}

/// What changed of a heuristic or line; the name comes first.
struct Changed {
    name: String,
    /// What a line is called after, where that is something else.
    now: Option<String>,
    changes: Vec<Change>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let compare::Args { before, after, json, wide, .. } = &args.both;
    match (is_program(before), is_program(after)) {
        (true, true) => return compare::run(&args.both),
        (false, false) => {}
        _ => {
            let text = "one file is a program and the other is not: name two programs, two traces, or two files that \
                 `replay --csv` wrote";
            return Err(replay::Error::Request(text.to_owned()).into());
        }
    }
    if let Some(option) = args.both.for_programs() {
        let text = format!("{option}: these are for two programs, and {} is none", before.display());
        return Err(replay::Error::Request(text).into());
    }
    wide.apply();
    let (what, all, changed, notes) = match (is_rows(before), is_rows(after)) {
        (true, true) => {
            let (changed, notes) = of_rows(&report::read_rows(before)?, &report::read_rows(after)?);
            ("heuristic", None, changed, notes)
        }
        (false, false) => {
            let (all, changed, notes) = of_traces(args)?;
            ("line", Some(all), changed, notes)
        }
        _ => {
            let text = "one file is a trace and the other is not: name two traces, or two files that `replay --csv` \
                 wrote";
            return Err(replay::Error::Request(text.to_owned()).into());
        }
    };
    if *json {
        print(&as_json(what, all.as_ref(), &changed, &notes)?, WithColours::No)?;
    } else {
        notes.iter().for_each(|note| say!("lockstep: {note}"));
        let sentence = all.as_ref().map_or_else(String::new, Changed::sentence);
        show(&format!("{sentence}{}", as_table(what, all.iter().chain(&changed))), WithColours::No)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the file can be traced: a binary or a script.
fn is_program(path: &Path) -> bool {
    let mut first = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && (first == *b"\x7fELF" || first.starts_with(b"#!"))
}

/// Whether the file begins like rows. If it cannot be read, the reader of traces says why.
fn is_rows(path: &Path) -> bool {
    /// More bytes than the names of all columns take.
    const HEADER_BYTES: u64 = 64 << 10;
    let Ok(file) = std::fs::File::open(path) else { return path.extension().is_some_and(|e| e == "csv") };
    let mut header = Vec::new();
    let read = BufReader::new(std::io::Read::take(file, HEADER_BYTES)).read_until(b'\n', &mut header);
    read.is_ok() && String::from_utf8(header).is_ok_and(|h| h.split(',').any(|name| name.trim() == "heuristic"))
}

/// Rows are matched by heuristic; several rows of one heuristic are matched in order.
fn of_rows(before: &[Row], after: &[Row]) -> (Vec<Changed>, Vec<String>) {
    let mut left: HashMap<&str, Vec<&Row>> = HashMap::new();
    after.iter().rev().for_each(|row| left.entry(&row.heuristic).or_default().push(row));
    let (mut changed, mut notes) = (Vec::new(), Vec::new());
    let facts = |rows: &[Row]| Facts {
        command: rows.first().map_or_else(String::new, |row| row.command.clone()),
        ..Facts::default()
    };
    notes.extend(unlike(&facts(before), &facts(after)));
    for old in before {
        let Some(new) = left.get_mut(old.heuristic.as_str()).and_then(Vec::pop) else {
            notes.push(format!("{}: only in the first file", old.heuristic));
            continue;
        };
        notes.extend(setting_note(old, new));
        match (old.counts(), new.counts()) {
            (Some(before), Some(after)) => {
                let changes = counted(before).into_iter().zip(counted(after));
                let changes = changes.map(|((name, before), (_, after))| Change { name, before, after }).collect();
                changed.push(Changed { name: old.heuristic.clone(), now: None, changes });
            }
            (None, Some(_)) => notes.push(format!("{}: no numbers in the first file", old.heuristic)),
            (Some(_), None) => notes.push(format!("{}: no numbers in the second file", old.heuristic)),
            (None, None) => notes.push(format!("{}: no numbers in either file", old.heuristic)),
        }
    }
    let mut only: Vec<&Row> = left.into_values().flatten().collect();
    only.sort_by_key(|row| after.iter().position(|r| std::ptr::eq(r, *row)));
    notes.extend(only.iter().map(|row| format!("{}: only in the second file", row.heuristic)));
    (changed, notes)
}

fn counted(counts: &report::Counts) -> [(&'static str, f64); 6] {
    [
        ("fetches", counts.fetches as f64),
        ("thread_instructions", counts.thread_instructions as f64),
        ("simt_efficiency", counts.simt_efficiency),
        ("divergent_fetches", counts.divergent_fetches as f64),
        ("divergent_instructions", counts.divergent_instructions as f64),
        ("lower_bound", counts.lower_bound as f64),
    ]
}

/// The settings in which the two replays differ, which may be why their numbers differ.
fn setting_note(old: &Row, new: &Row) -> Option<String> {
    let of = |r: &Row| {
        let lanes = r.lanes.map_or_else(String::new, |l| l.to_string());
        [r.region.clone(), r.code.clone(), r.locks.clone(), r.group.clone(), r.warp_size.clone(), lanes]
    };
    let names = ["region", "code", "locks", "group", "warp_size", "lanes"];
    let (before, after) = (of(old), of(new));
    let differ: Vec<String> = (0..names.len())
        .filter(|i| before[*i] != after[*i])
        .map(|i| format!("{} was {:?} and is {:?}", names[i], before[i], after[i]))
        .collect();
    (!differ.is_empty()).then(|| format!("{}: not replayed alike: {}", old.heuristic, differ.join(", ")))
}

/// Both traces replayed alike: all of it, and each line that changed; lines are matched by [`Versions`] of their files.
fn of_traces(args: &Args) -> anyhow::Result<(Changed, Vec<Changed>, Vec<String>)> {
    let models = models::all_of(&args.both.heuristic);
    if models.len() > 1 {
        let text = "two traces are compared under one model: name one with --heuristic, or write rows of each with \
             `replay --csv` and compare those";
        return Err(replay::Error::Request(text.to_owned()).into());
    }
    let subject = Subject::of(args.both.machine, models);
    let (of_before, all_before, before) = by_line(&args.both, &subject, &args.both.before)?;
    let (of_after, all_after, after) = by_line(&args.both, &subject, &args.both.after)?;
    let mut changed = changed_lines(&before, &after);
    // The sort is stable: lines that changed alike stay in the order of their names.
    changed.sort_by(|a, b| b.most().total_cmp(&a.most()));
    changed.truncate(args.top);
    let all = all_before.into_iter().zip(all_after);
    let changes = all.map(|((name, before), (_, after))| Change { name, before, after }).collect();
    let all = Changed { name: ALL.to_owned(), now: None, changes };
    Ok((all, changed, unlike(&of_before, &of_after)))
}

/// The lines that changed, by name.
fn changed_lines(before: &[OfLine], after: &[OfLine]) -> Vec<Changed> {
    let files = |lines: &[OfLine]| -> BTreeSet<String> {
        let file = |(about, _): &OfLine| if let About::Line(line) = about { Some(line.file.clone()) } else { None };
        lines.iter().filter_map(file).collect()
    };
    let versions = Versions::of(&files(before), &files(after));
    // What is new comes under a name that no line had before, even where another line had its number.
    let mut lines = BTreeMap::<(String, bool), (Option<String>, [[u64; 3]; 2])>::new();
    for (side, of_side) in [before, after].into_iter().enumerate() {
        for (about, numbers) in of_side {
            let was = match about {
                About::Line(line) if side == 1 => versions.was(line),
                _ => Was::At(about.short()),
            };
            let key = match was {
                Was::At(label) => (label, false),
                Was::New => (about.short(), true),
            };
            let now = (side == 1 && key.0 != about.short()).then(|| about.short());
            let found = lines.entry(key).or_default();
            found.0 = now.or(found.0.take());
            found.1[side].iter_mut().zip(numbers).for_each(|(sum, more)| *sum += more);
        }
    }
    let changed = lines.into_iter().map(|((name, _), (now, [old, new]))| {
        let names = ["lost_slots", "parted_slots", "fetches"];
        let changes = (0..3).map(|i| Change { name: names[i], before: old[i] as f64, after: new[i] as f64 });
        Changed { name, now, changes: changes.collect() }
    });
    changed.filter(|c| c.changes.iter().any(|c| c.before != c.after)).collect()
}

impl Changed {
    /// Whether it became better, in a sentence: by what is issued for the same work.
    fn sentence(&self) -> String {
        /// Less is not worth a word.
        const SAME: f64 = 0.5;
        let of = |name: &str| self.changes.iter().find(|change| change.name == name);
        let (Some(issued), Some(efficiency), Some(work)) = (
            of("gpu_issued").or_else(|| of("fetches")),
            of("gpu_efficiency").or_else(|| of("simt_efficiency")),
            of("thread_instructions"),
        ) else {
            return String::new();
        };
        let what = if issued.name == "fetches" { "warp instructions" } else { "GPU instructions" };
        let amount = |change: &Change, percent: f64| {
            format!("{:.1}% {}", percent.abs(), if change.after < change.before { "fewer" } else { "more" })
        };
        let percent = issued.percent().unwrap_or_default();
        let word = match percent {
            _ if issued.before == issued.after => "no difference: as many".to_owned(),
            percent if percent.abs() < SAME => format!("hardly a difference: {}", amount(issued, percent)),
            percent if percent < 0.0 => format!("after is better: {}", amount(issued, percent)),
            percent => format!("after is worse: {}", amount(issued, percent)),
        };
        let more = work
            .percent()
            .filter(|percent| percent.abs() >= SAME)
            .map_or_else(String::new, |percent| format!("; the threads run {} instructions", amount(work, percent)));
        let [before, after] = [efficiency.before, efficiency.after].map(percent_of);
        format!("{word} {what}; SIMT efficiency {before} -> {after}{more}\n")
    }

    fn most(&self) -> f64 {
        self.changes.iter().map(|c| (c.after - c.before).abs()).fold(0.0, f64::max)
    }
}

/// Numbers by their names.
type Totals = Vec<(&'static str, f64)>;

/// A line, and the lane-slots lost in its fetches, those lost by lanes that parted there, and its fetches.
type OfLine = (About, [u64; 3]);

/// What was replayed, all of it together, and line by line.
fn by_line(args: &compare::Args, subject: &Subject, path: &Path) -> anyhow::Result<(Facts, Totals, Vec<OfLine>)> {
    let trace = selection::open(path)?;
    let view = args.selection.view(&trace)?;
    let options = ReplayOptions { measures: vec![Causes::measure()], ..args.selection.options() };
    let options = subject.options(options, &view);
    let mut outcomes = replay::replay(&view, &subject.models, &options, None, &|_, _| {})?;
    let (mut lines, mut source) = (Vec::new(), Source::new(&trace));
    locks::locate(&mut outcomes, &view, &mut source);
    let balance = outcomes.first().and_then(|outcome| Balance::of(&trace, &view, outcome));
    if let Some(doubt) = balance.as_ref().and_then(Balance::doubt) {
        say!("lockstep: {}: {doubt}", path.display());
    }
    let setting = args.selection.setting(path, &trace, &view);
    let facts = outcomes.first().map_or_else(Facts::default, |outcome| Facts::of(&setting, outcome));
    for outcome in &outcomes {
        if let Some(deadlock) = &outcome.deadlock {
            say!("lockstep: {}: {deadlock}; the lines are those with --locks simt", path.display());
        }
        if !outcome.is_complete() {
            return Err(replay::Error::Request(format!("{}: {}", path.display(), outcome.status())).into());
        }
        for row in
            outcome.found::<Causes>().into_iter().flat_map(|causes| lost::rows(lost::By::Line, causes, &mut source))
        {
            lines.push((row.subject, [row.lost, row.parted, row.issued.fetches]));
        }
        source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    }
    let sum = |of: fn(&replay::Outcome) -> u64| outcomes.iter().map(of).sum::<u64>() as f64;
    let mut totals = vec![
        ("fetches", sum(|outcome| outcome.counts.fetches())),
        ("thread_instructions", sum(|outcome| outcome.counts.thread_instructions())),
        ("simt_efficiency", outcomes.first().and_then(replay::Outcome::simt_efficiency).unwrap_or_default()),
        ("lost_slots", sum(replay::Outcome::lost_slots)),
    ];
    // The verdict's figure, of the GPU's instructions as it is.
    if subject.unit() == Unit::Gpu {
        totals.push(("gpu_issued", sum(|outcome| outcome.issued(Unit::Gpu))));
        totals.push(("gpu_efficiency", outcomes.first().and_then(|one| subject.efficiency(one)).unwrap_or_default()));
    }
    Ok((facts, totals, lines))
}

impl Change {
    /// The change in percent; none if the number was 0 before.
    fn percent(&self) -> Option<f64> {
        (self.before != 0.0).then(|| 100.0 * (self.after - self.before) / self.before)
    }

    /// Whether it became better or worse, in a word. Nothing for numbers that are neither: more work is no fault.
    fn word(&self) -> &'static str {
        let more_is_better = match self.name {
            "simt_efficiency" | "gpu_efficiency" => true,
            "thread_instructions" | "lower_bound" => return "",
            _ => false,
        };
        let is_better = match self.after.partial_cmp(&self.before) {
            Some(Ordering::Less) => !more_is_better,
            Some(Ordering::Greater) => more_is_better,
            _ => return "",
        };
        if is_better { " better" } else { " worse" }
    }

    fn shown(&self, number: f64) -> String {
        if self.name.ends_with("_efficiency") { format!("{number:.4}") } else { grouped(number as u64) }
    }
}

fn as_table<'c>(what: &str, changed: impl Iterator<Item = &'c Changed>) -> String {
    let mut rows = vec![[what, "number of", "before", "after", "change"].map(str::to_owned)];
    for one in changed {
        let is_shown = |change: &&Change| one.name == ALL || change.before != change.after || what != "line";
        for (i, change) in one.changes.iter().filter(is_shown).enumerate() {
            let percent = match change.percent() {
                Some(percent) => format!("{percent:+.1}%{}", change.word()),
                None if change.after == 0.0 => "+0.0%".to_owned(),
                None => format!("new{}", change.word()),
            };
            let now = one.now.as_ref().map_or_else(String::new, |now| format!(" -> {now}"));
            let name = if i == 0 { format!("{}{now}", one.name) } else { String::new() };
            let (before, after) = (change.shown(change.before), change.shown(change.after));
            rows.push([name, change.name.to_owned(), before, after, percent]);
        }
    }
    width::of_results().table(&rows, |column| if column < 2 { Align::Left } else { Align::Right })
}

fn as_json(what: &str, all: Option<&Changed>, changed: &[Changed], notes: &[String]) -> anyhow::Result<String> {
    let numbers = |one: &Changed| -> Value {
        let number = |c: &Change| json!({ "before": c.before, "after": c.after, "percent": c.percent() });
        one.changes.iter().map(|change| (change.name.to_owned(), number(change))).collect()
    };
    let rows: Vec<Value> =
        changed.iter().map(|one| json!({ what: one.name, "after": one.now, "changes": numbers(one) })).collect();
    let mut whole = json!({ "rows": rows, "notes": notes });
    if let Some(all) = all {
        whole["all"] = numbers(all);
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&whole)?))
}
