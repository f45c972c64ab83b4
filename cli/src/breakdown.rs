//! Lost lane-slots by branch, line, function, cause or call path: as a table for people, and as JSON.
//!
//! Every slot is counted twice where a place is asked for: as *parted*, at the place where the lane left the active ones, and as *lost*,
//! at the place that was fetched without it. Each of the two sums is the total.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use replay::metrics::{Cause, Causes, Issued, PathId};
use serde_json::{Map, Value, json};
use trace_format::Pc;

use crate::source::Source;
use crate::table::{Align, grouped, percent};

/// What lost lane-slots are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// The branch at which lanes parted
    Branch,
    /// The source line (from the binary's DWARF)
    Line,
    /// The function
    Function,
    /// What they are lost to: branch, loop trip count, call target, lock, barrier, finished, empty seat, schedule
    Cause,
    /// The call path of what was fetched without them
    Path,
    /// The lock: what it cost, instead of lost lane-slots
    Lock,
    /// The start routine or parallel region: which there are and what each holds, instead of lost lane-slots
    Region,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Branch => "branch",
            By::Line => "line",
            By::Function => "function",
            By::Cause => "cause",
            By::Path => "path",
            By::Lock => "lock",
            By::Region => "region",
        }
    }

    /// Whether rows are of lost lane-slots.
    pub(crate) fn is_of_lost(self) -> bool {
        !matches!(self, By::Lock | By::Region)
    }

    /// Whether rows know where lanes parted.
    fn has_parted(self) -> bool {
        matches!(self, By::Branch | By::Line | By::Function)
    }

    /// Whether rows know what was lost in them.
    fn has_lost(self) -> bool {
        self.is_of_lost() && self != By::Branch
    }

    /// Whether rows know what was fetched.
    fn has_issued(self) -> bool {
        matches!(self, By::Line | By::Function | By::Path)
    }
}

/// A branch, line, function, cause or path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// What it is, for people; rows with one label are one row.
    pub label: String,
    /// What else there is to say about it, for people.
    pub beside: String,
    /// The same and more, by name.
    facts: Map<String, Value>,
    /// Lane-slots lost by lanes that parted here.
    pub parted: u64,
    /// Those, by cause.
    parted_by: [u64; Cause::ALL.len()],
    /// Lane-slots lost in fetches of this.
    pub lost: u64,
    /// Those, by cause.
    lost_by: [u64; Cause::ALL.len()],
    /// What was fetched of this.
    pub issued: Issued,
}

impl Row {
    /// Its label, of a line without the file's folders.
    pub(crate) fn short(&self) -> &str {
        let is_line = self.facts.contains_key("inlined_into");
        if is_line { self.label.rsplit('/').next().unwrap_or(&self.label) } else { &self.label }
    }

    /// The file and number of a line.
    pub(crate) fn line(&self) -> Option<(&str, u32)> {
        let number = self.facts.get("line").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok())?;
        Some((self.facts.get("file")?.as_str()?, number))
    }

    /// The main causes of what is lost in its fetches, for people.
    pub(crate) fn lost_to(&self) -> String {
        most(&self.lost_by)
    }

    /// Thread instructions / (fetches x warp size); none where nothing was fetched.
    pub(crate) fn efficiency(&self, warp_size: usize) -> Option<f64> {
        let slots = self.issued.fetches as f64 * warp_size as f64;
        (slots > 0.0).then(|| self.issued.thread_instructions as f64 / slots)
    }
}

/// The place of charges that have none.
const NOWHERE: &str = "(no shared fetch)";

/// The rows of one outcome, those that most is lost by first.
pub(crate) fn rows(by: By, causes: &Causes, source: &mut Source) -> Vec<Row> {
    let mut rows = Rows { by, all: Vec::new(), labels: HashMap::new(), places: HashMap::new(), paths: HashMap::new() };
    let paths = causes.issued.iter().map(|((_, path), _)| *path);
    source.know_entries(paths.flat_map(|path| causes.paths.entries(path)).collect::<BTreeSet<Pc>>());
    for (charge, slots) in &causes.charges {
        let cause = charge.cause as usize;
        let parted = match by {
            By::Cause | By::Path | By::Lock | By::Region => None,
            _ => Some(rows.at(charge.parted_at, source)),
        };
        if let Some(row) = parted {
            row.parted += slots;
            row.parted_by[cause] += slots;
        }
        let lost = match by {
            By::Line | By::Function => Some(rows.at(Some(charge.issued), source)),
            By::Path => Some(rows.path(charge.path, causes, source)),
            By::Cause => Some(rows.named(charge.cause.name())),
            By::Branch | By::Lock | By::Region => None,
        };
        if let Some(row) = lost {
            row.lost += slots;
            row.lost_by[cause] += slots;
        }
    }
    for ((pc, path), issued) in &causes.issued {
        let row = match by {
            By::Line | By::Function => rows.at(Some(*pc), source),
            By::Path => rows.path(*path, causes, source),
            _ => continue,
        };
        row.issued.fetches += issued.fetches;
        row.issued.thread_instructions += issued.thread_instructions;
    }
    rows.all.retain(|row| row.parted + row.lost + row.issued.fetches > 0);
    rows.all.sort_by(|a, b| (b.parted, b.lost, &a.label).cmp(&(a.parted, a.lost, &b.label)));
    rows.all
}

struct Rows {
    by: By,
    all: Vec<Row>,
    labels: HashMap<String, usize>,
    places: HashMap<Option<Pc>, usize>,
    paths: HashMap<PathId, usize>,
}

impl Rows {
    fn named(&mut self, label: &str) -> &mut Row {
        let at = self.index(label.to_owned());
        &mut self.all[at]
    }

    fn path(&mut self, path: PathId, causes: &Causes, source: &Source) -> &mut Row {
        let at = self.paths.get(&path).copied().unwrap_or_else(|| {
            let functions: Vec<String> = causes.paths.entries(path).iter().map(|pc| source.function(*pc)).collect();
            self.index(functions.join(" > "))
        });
        self.paths.insert(path, at);
        &mut self.all[at]
    }

    fn index(&mut self, label: String) -> usize {
        if let Some(at) = self.labels.get(&label) {
            return *at;
        }
        let facts = Map::from_iter([(self.by.name().to_owned(), json!(label))]);
        self.labels.insert(label.clone(), self.all.len());
        self.all.push(Row { label, facts, ..Row::default() });
        self.all.len() - 1
    }

    /// The row of the branch, line or function at this address.
    fn at(&mut self, pc: Option<Pc>, source: &mut Source) -> &mut Row {
        if let Some(at) = self.places.get(&pc) {
            return &mut self.all[*at];
        }
        let at = match pc {
            None => self.index(NOWHERE.to_owned()),
            Some(pc) => self.place(pc, source),
        };
        self.places.insert(pc, at);
        &mut self.all[at]
    }

    fn place(&mut self, pc: Pc, source: &mut Source) -> usize {
        match self.by {
            By::Function => self.index(source.function(pc)),
            By::Line => match source.line(pc) {
                Some(line) => {
                    let at = self.index(format!("{}:{}", line.file, line.line));
                    let row = &mut self.all[at];
                    row.facts.insert("file".into(), json!(line.file));
                    row.facts.insert("line".into(), json!(line.line));
                    if !row.facts.contains_key("function") {
                        row.facts.insert("function".into(), json!(line.functions.first()));
                        row.facts.insert("inlined_into".into(), json!(line.functions.get(1..).unwrap_or_default()));
                        row.beside = line.functions.join(", inlined into ");
                    }
                    at
                }
                None => {
                    let at = self.index(source.without_line(pc));
                    self.all[at].facts.insert("function".into(), json!(source.function(pc)));
                    at
                }
            },
            _ => {
                let at = self.index(pc.to_string());
                let line = source.line(pc);
                let row = &mut self.all[at];
                let place = source.place(pc);
                row.facts.insert("place".into(), json!(place));
                row.facts.insert("function".into(), json!(source.function(pc)));
                row.beside = place;
                if let Some(line) = line {
                    row.facts.insert("file".into(), json!(line.file));
                    row.facts.insert("line".into(), json!(line.line));
                    let _ = write!(row.beside, " {}", line.short());
                }
                at
            }
        }
    }
}

/// The rows as JSON: `by`, the total, and the first `top` rows (all of them by default).
pub(crate) fn to_json(by: By, rows: &[Row], total: u64, warp_size: usize, top: Option<usize>) -> Value {
    let list: Vec<Value> = rows.iter().take(top.unwrap_or(usize::MAX)).map(|r| row_json(by, r, warp_size)).collect();
    json!({ "by": by.name(), "lost_slots": total, "rows": list })
}

fn row_json(by: By, row: &Row, warp_size: usize) -> Value {
    let causes = |slots: &[u64]| -> Map<String, Value> {
        let named = Cause::ALL.iter().zip(slots).filter(|(_, slots)| **slots > 0);
        named.map(|(cause, slots)| (cause.name().to_owned(), json!(slots))).collect()
    };
    let mut all = row.facts.clone();
    if by.has_parted() {
        all.insert("parted_slots".into(), json!(row.parted));
        all.insert("parted_causes".into(), causes(&row.parted_by).into());
    }
    if by.has_lost() {
        all.insert("lost_slots".into(), json!(row.lost));
    }
    if by.has_issued() {
        all.insert("lost_causes".into(), causes(&row.lost_by).into());
        all.insert("fetches".into(), json!(row.issued.fetches));
        all.insert("thread_instructions".into(), json!(row.issued.thread_instructions));
        all.insert("simt_efficiency".into(), json!(row.efficiency(warp_size)));
    }
    Value::Object(all)
}

/// The first `top` rows (20 by default) as a table, and what its columns are.
pub(crate) fn table(by: By, rows: &[Row], total: u64, warp_size: usize, top: Option<usize>) -> String {
    let share = |slots: u64| percent(slots as f64 / total.max(1) as f64);
    let mut header = Vec::new();
    if by.has_parted() {
        header.extend(["parted", "share"]);
    }
    if by.has_lost() {
        header.extend(["lost", "share"]);
    }
    if by.has_issued() {
        header.extend(["fetches", "SIMT efficiency"]);
    }
    header.extend([by.name(), if by == By::Cause { "" } else { "lost to" }, ""]);
    let mut text: Vec<Vec<String>> = vec![header.into_iter().map(str::to_owned).collect()];
    let shown = top.unwrap_or(20).min(rows.len());
    for row in &rows[..shown] {
        let mut cells = Vec::new();
        if by.has_parted() {
            cells.extend([grouped(row.parted), share(row.parted)]);
        }
        if by.has_lost() {
            cells.extend([grouped(row.lost), share(row.lost)]);
        }
        if by.has_issued() {
            let efficiency = row.efficiency(warp_size).map_or_else(String::new, percent);
            cells.extend([grouped(row.issued.fetches), efficiency]);
        }
        let lost_to = match by {
            By::Cause => String::new(),
            _ if row.parted > 0 => most(&row.parted_by),
            _ => most(&row.lost_by),
        };
        cells.extend([row.short().to_owned(), lost_to, row.beside.clone()]);
        text.push(cells);
    }
    let numbers = text[0].len() - 3;
    let mut table = crate::table::aligned(&text, |column| if column < numbers { Align::Right } else { Align::Left });
    if shown < rows.len() {
        let _ = writeln!(table, "({} more rows: --top N shows N)", rows.len() - shown);
    }
    table
}

/// The causes with at least a tenth of the slots, the first with the most.
fn most(slots: &[u64]) -> String {
    let total: u64 = slots.iter().sum();
    let mut named: Vec<(u64, Cause)> = slots.iter().copied().zip(Cause::ALL).collect();
    named.sort_by_key(|(slots, cause)| (std::cmp::Reverse(*slots), *cause));
    let large = named.iter().filter(|(slots, _)| *slots > 0 && *slots >= total / 10);
    large.map(|(_, cause)| cause.name()).collect::<Vec<_>>().join(", ")
}

/// What the columns are.
pub(crate) fn legend(by: By, total: u64) -> String {
    let mut text = format!("of {} lost lane-slots (fetches x warp size - thread instructions)", grouped(total));
    if by.has_parted() {
        text += "; parted: those whose lane left the active ones here";
    }
    if by.has_issued() {
        text += "; lost: those of fetches of this";
    }
    text
}
