//! Lost lane-slots by branch, line, function, cause or call path.
//!
//! Where a place is asked for, every slot is counted twice: as *parted*, at the place where the lane left the active
//! ones, and as *lost*, at the place that was fetched without it. Each of the two sums is the total.

use std::collections::{BTreeSet, HashMap};

use replay::metrics::{Cause, Causes, Issued, PathId};
use trace_format::Pc;

use crate::{Source, Subject};

/// What lost lane-slots are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The branch at which lanes parted.
    Branch,
    /// The source line.
    Line,
    /// The function.
    Function,
    /// The cause.
    Cause,
    /// The call path of the instructions fetched without the lanes.
    Path,
}

impl By {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            By::Branch => "branch",
            By::Line => "line",
            By::Function => "function",
            By::Cause => "cause",
            By::Path => "path",
        }
    }

    /// Whether rows know where lanes parted.
    #[must_use]
    pub fn has_parted(self) -> bool {
        matches!(self, By::Branch | By::Line | By::Function)
    }

    /// Whether rows know what was lost in them.
    #[must_use]
    pub fn has_lost(self) -> bool {
        self != By::Branch
    }

    /// Whether rows know what was fetched.
    #[must_use]
    pub fn has_issued(self) -> bool {
        matches!(self, By::Line | By::Function | By::Path)
    }
}

/// Lane-slots by cause, in the order of [`Cause::ALL`].
pub type ByCause = [u64; Cause::ALL.len()];

/// What was lost to or in a branch, line, function, cause or path.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What it is about.
    pub subject: Subject,
    /// Lane-slots lost by lanes that parted here.
    pub parted: u64,
    /// Those, by cause.
    pub parted_by: ByCause,
    /// Lane-slots lost in fetches of this.
    pub lost: u64,
    /// Those, by cause.
    pub lost_by: ByCause,
    /// What was fetched of this.
    pub issued: Issued,
}

impl Row {
    /// Thread instructions / (fetches x warp size); none where nothing was fetched.
    #[must_use]
    pub fn efficiency(&self, warp_size: usize) -> Option<f64> {
        let slots = self.issued.fetches as f64 * warp_size as f64;
        (slots > 0.0).then(|| self.issued.thread_instructions as f64 / slots)
    }
}

/// The rows of one outcome, those with the largest loss first.
#[must_use]
pub fn rows(by: By, causes: &Causes, source: &mut Source) -> Vec<Row> {
    let mut rows = Rows { by, all: Vec::new(), labels: HashMap::new(), places: HashMap::new(), paths: HashMap::new() };
    let paths = causes.issued.iter().map(|((_, path), _)| *path);
    source.know_entries(paths.flat_map(|path| causes.paths.entries(path)).collect::<BTreeSet<Pc>>());
    for (charge, slots) in &causes.charges {
        let cause = charge.cause as usize;
        if by.has_parted() {
            let row = rows.at(charge.parted_at, source);
            row.parted += slots;
            row.parted_by[cause] += slots;
        }
        let lost = match by {
            By::Line | By::Function => rows.at(Some(charge.issued), source),
            By::Path => rows.path(charge.path, causes, source),
            By::Cause => rows.about(Subject::Cause(charge.cause)),
            By::Branch => continue,
        };
        lost.lost += slots;
        lost.lost_by[cause] += slots;
    }
    for ((pc, path), issued) in &causes.issued {
        let row = match by {
            By::Line | By::Function => rows.at(Some(*pc), source),
            By::Path => rows.path(*path, causes, source),
            By::Branch | By::Cause => continue,
        };
        row.issued.fetches += issued.fetches;
        row.issued.thread_instructions += issued.thread_instructions;
    }
    let Rows { all, .. } = rows;
    let mut labelled: Vec<(String, Row)> = all
        .into_iter()
        .filter(|row| row.parted + row.lost + row.issued.fetches > 0)
        .map(|row| (row.subject.to_string(), row))
        .collect();
    labelled.sort_by(|(a_label, a), (b_label, b)| (b.parted, b.lost, a_label).cmp(&(a.parted, a.lost, b_label)));
    labelled.into_iter().map(|(_, row)| row).collect()
}

struct Rows {
    by: By,
    all: Vec<Row>,
    /// By the text of the subject.
    labels: HashMap<String, usize>,
    places: HashMap<Option<Pc>, usize>,
    paths: HashMap<PathId, usize>,
}

impl Rows {
    fn about(&mut self, subject: Subject) -> &mut Row {
        let at = self.index(subject);
        &mut self.all[at]
    }

    fn index(&mut self, subject: Subject) -> usize {
        *self.labels.entry(subject.to_string()).or_insert_with(|| {
            self.all.push(Row { subject, ..Row::default() });
            self.all.len() - 1
        })
    }

    fn path(&mut self, path: PathId, causes: &Causes, source: &Source) -> &mut Row {
        let at = self.paths.get(&path).copied().unwrap_or_else(|| {
            let functions = causes.paths.entries(path).iter().map(|pc| source.function(*pc)).collect();
            self.index(Subject::Path(functions))
        });
        self.paths.insert(path, at);
        &mut self.all[at]
    }

    /// The row of the branch, line or function at this address.
    fn at(&mut self, pc: Option<Pc>, source: &mut Source) -> &mut Row {
        let at = self.places.get(&pc).copied().unwrap_or_else(|| {
            let subject = match (pc, self.by) {
                (None, _) => Subject::Nowhere,
                (Some(pc), By::Function) => Subject::Function(source.function(pc)),
                (Some(pc), By::Line) => Subject::line(pc, source),
                (Some(pc), _) => Subject::instruction(pc, source),
            };
            self.index(subject)
        });
        self.places.insert(pc, at);
        &mut self.all[at]
    }
}

/// The causes with at least a tenth of the slots, the first with the most.
#[must_use]
pub fn main_causes(slots: &ByCause) -> String {
    let total: u64 = slots.iter().sum();
    let mut named: Vec<(u64, Cause)> = slots.iter().copied().zip(Cause::ALL).collect();
    named.sort_by_key(|(slots, cause)| (std::cmp::Reverse(*slots), *cause));
    let large = named.iter().filter(|(slots, _)| *slots > 0 && *slots >= total / 10);
    large.map(|(_, cause)| cause.name()).collect::<Vec<_>>().join(", ")
}
