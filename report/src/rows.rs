//! The rows: what `replay --csv` says about one trace under one heuristic.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use csv::{ErrorKind, StringRecord};

use crate::condition::{Condition, met};
use crate::{Action, Error, Result};

/// One trace under one heuristic.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the trace's file.
    pub trace: String,
    /// The traced program and its arguments, with spaces between.
    pub command: String,
    /// Which part of the threads' runs was replayed, as given to `--region`.
    pub region: String,
    /// Whose code was kept, as given to `--code`.
    pub code: String,
    /// How locks counted, as given to `--locks`.
    pub locks: String,
    /// The heuristic, as typed: `long:n=4`.
    pub heuristic: String,
    /// How many lanes a warp has, as the row says it; empty when it says nothing.
    pub warp_size: String,
    /// How threads were grouped to warps.
    pub group: String,
    /// How many threads the trace has.
    pub threads: Option<u64>,
    /// How many lanes were replayed.
    pub lanes: Option<u64>,
    /// How many warps they made.
    pub warps: Option<u64>,
    /// Whether the heuristic deadlocks with the program as it is written: the counts are then of lanes that take turns
    /// at locks.
    pub takes_turns: bool,
    /// The result.
    pub outcome: Outcome,
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran to its end.
    Counted(Counts),
    /// It did not: the sentence says why.
    Failed(String),
}

/// What a replay counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// Instructions issued for a warp, each for its active lanes.
    pub fetches: u64,
    /// Instructions executed by lanes.
    pub thread_instructions: u64,
    /// Thread instructions / (fetches x lanes of a warp), 0 to 1; 0 when there were no fetches.
    pub simt_efficiency: f64,
    /// Fetches with fewer active than live lanes.
    pub divergent_fetches: u64,
    /// Thread instructions in divergent fetches.
    pub divergent_instructions: u64,
    /// Fetches that every schedule needs at least.
    pub lower_bound: u64,
    /// Fetches when the lanes run one after another.
    pub upper_bound: u64,
    /// Fetches by number of active lanes: the first count is for 1 lane, the last for a full warp.
    pub active_histogram: Vec<u64>,
}

impl Counts {
    /// The SIMT efficiency that the same thread instructions would have in this many fetches. 0 when there were none.
    #[must_use]
    pub fn efficiency_in(&self, fetches: u64) -> f64 {
        if fetches == 0 { 0.0 } else { (self.simt_efficiency * self.fetches as f64 / fetches as f64).min(1.0) }
    }
}

impl Row {
    /// The heuristic, with a mark where the counts are not those of the program as it is written.
    #[must_use]
    pub fn label(&self) -> String {
        label_of(&self.heuristic, [self])
    }

    /// The counts, where the replay ran to its end.
    #[must_use]
    pub fn counts(&self) -> Option<&Counts> {
        match &self.outcome {
            Outcome::Counted(counts) => Some(counts),
            Outcome::Failed(_) => None,
        }
    }
}

/// The heuristic, with the parameters alone that are not at their defaults, and a mark where the counts of one of these
/// rows of it are not those of the program as it is written.
pub(crate) fn label_of<'a>(heuristic: &str, rows: impl IntoIterator<Item = &'a Row>) -> String {
    let marked = rows.into_iter().any(|row| row.heuristic == heuristic && row.takes_turns);
    let name = heuristics::brief(heuristic);
    if marked { format!("{name} *") } else { name }
}

/// Reads the rows of a file, in their order.
///
/// Columns may stand in any order and unknown ones are ignored. A header that comes again is skipped, so that files of
/// rows can be joined with `cat`.
///
/// # Errors
/// The file cannot be read, holds no rows, lacks a column, or has a line or field that cannot be right.
pub fn read_rows(path: &Path) -> Result<Vec<Row>> {
    read_rows_where(path, &[])
}

/// Reads those rows of a file, or of standard input for the name `-`, that meet the conditions, in their order. A
/// condition may name any column of the file.
///
/// # Errors
/// As [`read_rows`]; or the file has no column that a condition names, or no row meets them.
pub fn read_rows_where(path: &Path, conditions: &[Condition]) -> Result<Vec<Row>> {
    if path.as_os_str() == "-" {
        return parse_rows(io::stdin().lock(), Path::new("standard input"), conditions);
    }
    let open_error = |source| Error::Io {
        path: path.to_owned(),
        action: Action::Open,
        source,
        way_out: ": give a file that `replay --csv FILE TRACE` wrote",
    };
    let file = File::open(path).map_err(open_error)?;
    if file.metadata().map_err(open_error)?.is_dir() {
        return Err(open_error(io::ErrorKind::IsADirectory.into()));
    }
    parse_rows(file, path, conditions)
}

/// Reads rows from anywhere; `path` is what errors call it.
///
/// # Errors
/// As [`read_rows_where`].
pub fn parse_rows(input: impl Read, path: &Path, conditions: &[Condition]) -> Result<Vec<Row>> {
    let mut table = csv::ReaderBuilder::new().has_headers(false).from_reader(input);
    let mut records = table.records();
    let Some(header) = records.next() else { return Err(Error::Empty { path: path.to_owned() }) };
    let header = header.map_err(|e| line_error(path, e))?;
    let columns = Columns::find(&header, path)?;
    let place = |column: &str| header.iter().position(|name| name.trim_start_matches('\u{feff}').trim() == column);
    if let Some(unknown) = conditions.iter().find(|c| place(&c.column).is_none()) {
        let (column, possible) = (unknown.column.clone(), names(&header));
        return Err(Error::UnknownColumn { path: path.to_owned(), column, possible });
    }
    let (mut rows, mut left_out) = (Vec::new(), 0);
    for record in records {
        let record = record.map_err(|e| line_error(path, e))?;
        if record == header {
            continue;
        }
        if met(conditions, |column| place(column).and_then(|i| record.get(i)).unwrap_or("").trim()) {
            rows.push(columns.row(&record, path)?);
        } else {
            left_out += 1;
        }
    }
    if rows.is_empty() && left_out > 0 {
        return Err(Error::NoneMeets { path: path.to_owned(), rows: left_out });
    }
    if rows.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    Ok(rows)
}

/// The columns that are read, in the order in which replay writes them.
const COLUMNS: [&str; 20] = [
    "trace",
    "command",
    "region",
    "code",
    "locks",
    "heuristic",
    "warp_size",
    "group",
    "threads",
    "lanes",
    "warps",
    "fetches",
    "thread_instructions",
    "simt_efficiency",
    "divergent_fetches",
    "divergent_instructions",
    "lower_bound",
    "upper_bound",
    "active_histogram",
    "status",
];

/// The column that says where a heuristic deadlocks; rows of earlier versions have none.
const DEADLOCK: &str = "deadlock";

/// Where each of [`COLUMNS`] stands in a record, and [`DEADLOCK`].
struct Columns([usize; COLUMNS.len()], Option<usize>);

impl Columns {
    fn find(header: &StringRecord, path: &Path) -> Result<Columns> {
        let fail = |fault| Err(Error::Header { path: path.to_owned(), line: line_of(header), fault });
        let mut places = [0; COLUMNS.len()];
        for (place, name) in places.iter_mut().zip(COLUMNS) {
            // A spreadsheet may have put a byte order mark before the first name.
            let mut found = (0..header.len()).filter(|&i| header[i].trim_start_matches('\u{feff}').trim() == name);
            match (found.next(), found.next()) {
                (Some(index), None) => *place = index,
                (Some(_), Some(_)) => return fail(format!("the column {name:?} occurs twice")),
                (None, _) => {
                    return fail(format!("there is no column {name:?} among {}", names(header)));
                }
            }
        }
        let deadlock = header.iter().position(|name| name.trim_start_matches('\u{feff}').trim() == DEADLOCK);
        Ok(Columns(places, deadlock))
    }

    fn row(&self, record: &StringRecord, path: &Path) -> Result<Row> {
        let fields = Fields { columns: self, record, path };
        let status = fields.text("status");
        let outcome = if status == "ok" {
            Outcome::Counted(fields.counts()?)
        } else if status.is_empty() {
            return Err(fields.fault("status", "it is empty, but must be \"ok\" or say what went wrong"));
        } else {
            Outcome::Failed(status.to_owned())
        };
        if fields.text("heuristic").is_empty() {
            return Err(fields.fault("heuristic", "it is empty, but must name what the row is about"));
        }
        let text = |column| fields.text(column).to_owned();
        Ok(Row {
            trace: text("trace"),
            command: text("command"),
            region: text("region"),
            code: text("code"),
            locks: text("locks"),
            heuristic: text("heuristic"),
            warp_size: text("warp_size"),
            group: text("group"),
            threads: fields.optional_number("threads")?,
            lanes: fields.optional_number("lanes")?,
            warps: fields.optional_number("warps")?,
            takes_turns: self.1.and_then(|place| record.get(place)).is_some_and(|text| !text.trim().is_empty()),
            outcome,
        })
    }
}

/// One record, read by the names of its columns.
struct Fields<'a> {
    columns: &'a Columns,
    record: &'a StringRecord,
    path: &'a Path,
}

impl Fields<'_> {
    fn text(&self, column: &str) -> &str {
        let place = COLUMNS.iter().position(|&c| c == column).map(|i| self.columns.0[i]);
        place.and_then(|i| self.record.get(i)).unwrap_or("").trim()
    }

    fn fault(&self, column: &'static str, fault: impl Into<String>) -> Error {
        Error::Field { path: self.path.to_owned(), line: line_of(self.record), column, fault: fault.into() }
    }

    fn number<T: FromStr>(&self, column: &'static str) -> Result<T> {
        let text = self.text(column);
        text.parse().map_err(|_| {
            let fault = if text.is_empty() {
                "it is empty, but the row's status is ok: write the row again with `replay --csv`".to_owned()
            } else {
                format!("{text:?} is not a count: write the row again with `replay --csv`")
            };
            self.fault(column, fault)
        })
    }

    fn optional_number(&self, column: &'static str) -> Result<Option<u64>> {
        if self.text(column).is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }

    /// Counts that agree with each other: a wrong number is worse than a stop.
    fn counts(&self) -> Result<Counts> {
        let counts = Counts {
            fetches: self.number("fetches")?,
            thread_instructions: self.number("thread_instructions")?,
            simt_efficiency: self.efficiency()?,
            divergent_fetches: self.number("divergent_fetches")?,
            divergent_instructions: self.number("divergent_instructions")?,
            lower_bound: self.number("lower_bound")?,
            upper_bound: self.number("upper_bound")?,
            active_histogram: self.histogram()?,
        };
        let disagree = |column, what: String| {
            Err(self
                .fault(column, format!("{what}: the row was altered or damaged; write it again with `replay --csv`")))
        };
        // Sums in u128: the counts of a damaged row may be anything.
        let histogram = || (1_u128..).zip(counts.active_histogram.iter().map(|&n| u128::from(n)));
        let fetches: u128 = histogram().map(|(_, n)| n).sum();
        if fetches != u128::from(counts.fetches) {
            return disagree("active_histogram", format!("it sums to {fetches} fetches, not to {}", counts.fetches));
        }
        let instructions: u128 = histogram().map(|(lanes, n)| lanes * n).sum();
        if instructions != u128::from(counts.thread_instructions) {
            let said = counts.thread_instructions;
            return disagree("active_histogram", format!("it makes {instructions} thread instructions, not {said}"));
        }
        if counts.divergent_fetches > counts.fetches {
            return disagree("divergent_fetches", format!("more than all {} fetches", counts.fetches));
        }
        if counts.divergent_instructions > counts.thread_instructions {
            let all = counts.thread_instructions;
            return disagree("divergent_instructions", format!("more than all {all} thread instructions"));
        }
        if counts.lower_bound > counts.fetches {
            return disagree("lower_bound", format!("more than the {} fetches that sufficed", counts.fetches));
        }
        if counts.upper_bound < counts.fetches {
            return disagree("upper_bound", format!("less than the {} fetches that were needed", counts.fetches));
        }
        Ok(counts)
    }

    fn efficiency(&self) -> Result<f64> {
        let text = self.text("simt_efficiency");
        match text.parse::<f64>() {
            Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
            // Without fetches there is nothing to divide by.
            _ if text.is_empty() && self.text("fetches") == "0" => Ok(0.0),
            _ => Err(self.fault(
                "simt_efficiency",
                format!("{text:?} is not a number from 0 to 1: write the row again with `replay --csv`"),
            )),
        }
    }

    fn histogram(&self) -> Result<Vec<u64>> {
        let counts: std::result::Result<Vec<u64>, _> =
            self.text("active_histogram").split_ascii_whitespace().map(str::parse).collect();
        match counts {
            Ok(counts) if !counts.is_empty() || self.text("fetches") == "0" => Ok(counts),
            _ => {
                let fault = "it must be counts separated by spaces, for 1 lane up to a full warp: write the row \
                     again with `replay --csv`";
                Err(self.fault("active_histogram", fault))
            }
        }
    }
}

fn names(header: &StringRecord) -> String {
    const SHOWN: usize = 30;
    let mut names: Vec<String> = header.iter().take(SHOWN).map(|n| n.chars().take(SHOWN).collect()).collect();
    if header.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn line_of(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

fn line_error(path: &Path, error: csv::Error) -> Error {
    let path = path.to_owned();
    let line = error.position().map_or(0, csv::Position::line);
    match error.into_kind() {
        ErrorKind::Io(source) => Error::Io { path, action: Action::Read, source, way_out: "" },
        ErrorKind::Utf8 { .. } => {
            Error::Line { path, line, fault: "it is not text (UTF-8): give a file that `replay --csv` wrote".into() }
        }
        ErrorKind::UnequalLengths { expected_len, len, .. } => Error::Line {
            path,
            line,
            fault: format!(
                "it has {len} fields, the header has {expected_len}: the line was cut or altered; write it again \
                 with `replay --csv`"
            ),
        },
        other => Error::Line { path, line, fault: format!("it cannot be read: {other:?}") },
    }
}
