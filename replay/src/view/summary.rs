//! What a view took of a trace, in numbers and in one line.

use std::fmt;

use trace_format::{Pc, ThreadId};

use crate::LockId;

/// Threads that are no lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The threads, in order.
    pub threads: Vec<ThreadId>,
    /// Why they are none.
    pub reason: String,
}

/// A loop that is replayed, and whose turns write no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopSeen {
    /// Where its turns begin.
    pub pc: Pc,
    /// How many instructions its turns have, in all of the trace.
    pub instructions: u64,
    /// Whether it looks like waiting, which is not sure; else what it carries from turn to turn is used later.
    pub looks_like_waiting: bool,
}

/// A part of a run that `--region auto` chooses from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// What it is: `start routine work`.
    pub region: String,
    /// The name of its function, where one is known: what `--region` takes.
    pub name: Option<String>,
    /// Whether it is OpenMP tasks, which `--lanes tasks` takes.
    pub is_of_tasks: bool,
    /// How many threads ran it.
    pub threads: usize,
    /// The thread instructions in it.
    pub instructions: u64,
    /// Whether it was taken.
    pub is_taken: bool,
}

/// How threads were cut into lanes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CutInto {
    /// What each lane is, for people: `iterations of the loop at 0x401136 (in solve)`.
    pub what: String,
    /// How many launches the lanes are of: each loop once for each time that the program reached it.
    pub launches: usize,
    /// Instructions in lanes.
    pub kept: u64,
    /// Instructions of the region that are in no lane.
    pub outside: u64,
    /// Calls of mathematical functions in lanes, and of the region that are in none.
    pub mathematics: [u64; 2],
    /// Instructions of last turns that only found that there were no more.
    pub last_tests: u64,
    /// Times that a lane reached a barrier: lanes that are not threads don't wait there.
    pub barriers: u64,
    /// Whether threads were dealt the iterations of a loop in several chunks.
    pub dealt: bool,
    /// How lanes are numbered, for people.
    pub order: &'static str,
    /// The loops whose turns the lanes are.
    pub loops: Vec<LoopTaken>,
    /// Whether the program shares out all of these loops, and so says that their turns may run side by side.
    pub is_shared_out: bool,
    /// Why these may be other lanes than those that were asked for, with the way out; empty where nothing says so.
    pub doubts: Vec<String>,
    /// Whether nothing can be said of the lanes where there are doubts: nobody named the loop.
    pub is_withheld: bool,
}

impl CutInto {
    /// Why no verdict is given on these lanes, if none is.
    #[must_use]
    pub fn withheld(&self) -> Option<&str> {
        self.doubts.first().filter(|_| self.is_withheld).map(String::as_str)
    }
}

/// A loop whose turns are lanes. Branches are those at the end of a turn, to which compilers give the line of the `for`
/// or `while`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopTaken {
    /// The first instruction of its header.
    pub header: Pc,
    /// The branch at the end of its turns.
    pub back: Pc,
    /// The instructions at which it can be left beside the test that ends it: `break`, `return`, the second half of
    /// `i < n && a[i] != x`.
    pub early_exits: Vec<Pc>,
}

/// What a view took of a trace. All numbers of instructions are thread instructions; [`Summary::kept`] and the
/// dropped ones add up to [`Summary::instructions`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Summary {
    /// How many lanes there are.
    pub lanes: usize,
    /// How many generations the lanes are of.
    pub generations: usize,
    /// Joins of threads where it is unknown whom they joined.
    pub unsure_joins: usize,
    /// How many threads the trace has.
    pub threads: usize,
    /// What the region is, for people.
    pub region: String,
    /// Instructions in the trace.
    pub instructions: u64,
    /// Instructions in the lanes' streams.
    pub kept: u64,
    /// Instructions outside of the region, those of threads that are no lanes among them.
    pub outside_region: u64,
    /// Instructions in the region, but not in the main executable, where only that was asked for.
    pub outside_main: u64,
    /// Instructions in the region that belong to synchronisation and the thread runtime.
    pub sync_runtime: u64,
    /// Instructions in the lanes inside of mathematical functions of the C library: of the region's, where lanes are
    /// parts of threads, the share that their calls are.
    pub mathematics: u64,
    /// Instructions of critical sections, where those were to be dropped.
    pub critical: u64,
    /// Instructions of spin-waiting.
    pub spin: u64,
    /// At how many places in the code the lanes begin, where only a part of the run was recorded; else 0.
    pub beginnings: usize,
    /// Loops whose turns write no memory, in code that is replayed, those with the most instructions first.
    pub loops: Vec<LoopSeen>,
    /// The threads that are no lanes.
    pub left_out: Vec<LeftOut>,
    /// What is not sure of the region, for people.
    pub doubts: Vec<String>,
    /// What there was to choose from, the part taken first; empty where the region was named.
    pub shares: Vec<Share>,
    /// How threads were cut into lanes; none where each is one.
    pub cut: Option<CutInto>,
    /// Whether threads waited on a condition variable or a semaphore in what they were started for, as those do that
    /// take their work from a common queue.
    pub waits_for_work: bool,
    /// Whether a thread worked in several teams of nested OpenMP regions, as clang's runtime takes threads from one
    /// pool: chance decided for whom.
    pub teams_are_mixed: bool,
    /// Whether threads took mutexes in what they were started for, as those do that take their work from a common queue
    /// which is never empty.
    pub takes_locks: bool,
    /// How many OpenMP tasks the program ran, and the instructions of those that were run inside of no other one.
    pub tasks: (usize, u64),
    /// How often lanes waited in the kernel (at futexes) outside of all functions that are known to wait, as at locks
    /// of the program's own.
    pub own_waits: u64,
    /// How often lanes asked the kernel for what another may give them (`read`, `poll`).
    pub asks: u64,
    /// What looks like a lock of the program's own, and counts as one.
    pub own_locks: Vec<LockId>,
    /// Waits that were seen and order no lanes, for people.
    pub unordered: Vec<String>,
}

impl Summary {
    /// Instructions that are not replayed, by reason; only reasons that hold for some.
    #[must_use]
    pub fn dropped(&self) -> Vec<(&'static str, u64)> {
        let (outside, last_tests) = self.cut.as_ref().map_or((0, 0), |cut| (cut.outside, cut.last_tests));
        let all = [
            ("outside the region", self.outside_region),
            ("outside the lanes", outside),
            ("in last tests of loops", last_tests),
            ("outside the main executable", self.outside_main),
            ("in synchronisation and thread runtime", self.sync_runtime),
            ("in mathematical functions", self.mathematics),
            ("in critical sections", self.critical),
            ("spin-waiting", self.spin),
        ];
        all.into_iter().filter(|(_, n)| *n > 0).collect()
    }

    /// Says the second name of each pair for the first.
    pub(super) fn rename(&mut self, names: &[(String, String)]) {
        let shares = self.shares.iter_mut().flat_map(|share| std::iter::once(&mut share.region).chain(&mut share.name));
        let left_out = self.left_out.iter_mut().map(|left| &mut left.reason);
        let cut = self.cut.iter_mut().map(|cut| &mut cut.what);
        for text in std::iter::once(&mut self.region).chain(shares).chain(left_out).chain(cut) {
            names.iter().for_each(|(from, to)| *text = text.replace(from, to));
        }
    }

    /// The share of the trace's instructions that so many are: 0 to 1.
    #[must_use]
    pub fn share_of_all(&self, instructions: u64) -> f64 {
        instructions as f64 / self.instructions.max(1) as f64
    }

    /// The loops that look like waiting and are not left out, as that is not sure, those with the most instructions
    /// first. None where together they are a thousandth of the trace or less: that is nothing to speak of. Loops are
    /// found in all of the trace, outside of the region too, except in code of which no lane keeps anything.
    pub fn waiting_loops_kept(&self) -> impl Iterator<Item = &LoopSeen> {
        let looks = || self.loops.iter().filter(|seen| seen.looks_like_waiting);
        let matters = looks().map(|seen| seen.instructions).sum::<u64>() > self.instructions / 1000;
        looks().filter(move |_| matters)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { lanes, generations, threads, region, instructions, kept, .. } = self;
        write!(f, "{} of {}, ", plural(*lanes, "lane"), plural(*threads, "thread"))?;
        if let Some(cut) = &self.cut {
            write!(f, "{}", cut.what)?;
            if cut.launches > 1 {
                write!(f, ", in {} launches", cut.launches)?;
            }
            write!(f, ", {}; from: ", cut.order)?;
        }
        write!(f, "{region}")?;
        if *generations > 1 {
            write!(f, ", in {generations} generations, one after another, as the program joins its threads")?;
        }
        write!(f, "; {kept} of {instructions} thread instructions kept")?;
        for (i, (reason, n)) in self.dropped().into_iter().enumerate() {
            f.write_str(if i == 0 { "; dropped: " } else { ", " })?;
            write!(f, "{n} {reason}")?;
        }
        for (i, left) in self.left_out.iter().enumerate() {
            f.write_str(if i == 0 { "; left out: " } else { ", " })?;
            let s = if left.threads.len() == 1 { "" } else { "s" };
            write!(f, "thread{s} {} ({})", ranges(&left.threads), left.reason)?;
        }
        let looks: Vec<&LoopSeen> = self.waiting_loops_kept().collect();
        let waiting: u64 = looks.iter().map(|seen| seen.instructions).sum();
        if !looks.is_empty() {
            let share = 100.0 * self.share_of_all(waiting);
            let places: Vec<String> = looks.iter().take(3).map(|seen| seen.pc.to_string()).collect();
            write!(
                f,
                "; {share:.1}% of the thread instructions recorded look like spin-waiting but are not left out, since \
                 that is not certain: at {}",
                places.join(", ")
            )?;
        }
        if self.unsure_joins > 0 {
            let (joins, them) = (plural(self.unsure_joins, "join"), if self.unsure_joins == 1 { "it" } else { "them" });
            write!(f, "; which threads {joins} joined is not certain, so no order is taken from {them}")?;
        }
        for doubt in self.doubts.iter().chain(self.cut.iter().flat_map(|cut| &cut.doubts)) {
            write!(f, "; not sure: {doubt}")?;
        }
        if let Some(CutInto { barriers: 1.., .. }) = &self.cut {
            write!(f, "; lanes that are not threads do not wait at barriers")?;
        }
        if self.beginnings > 1 {
            write!(f, "; lanes begin at {} places, where the recording found them", self.beginnings)?;
        }
        Ok(())
    }
}

fn plural(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// Numbers with commas, runs as `a-b`.
fn ranges(threads: &[ThreadId]) -> String {
    let mut text = String::new();
    for run in threads.chunk_by(|a, b| a.0 + 1 == b.0) {
        let comma = if text.is_empty() { "" } else { "," };
        text += &match run {
            [one] => format!("{comma}{one}"),
            [first, .., last] => format!("{comma}{first}-{last}"),
            [] => String::new(),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_what_was_taken_and_why_the_rest_was_not() {
        let summary = Summary {
            lanes: 2,
            threads: 6,
            region: "start routine slave".into(),
            instructions: 100,
            kept: 60,
            outside_region: 30,
            sync_runtime: 8,
            spin: 2,
            left_out: vec![
                LeftOut { threads: vec![ThreadId(0)], reason: "never in the region".into() },
                LeftOut { threads: [2, 3, 5].map(ThreadId).to_vec(), reason: "start routine logger".into() },
            ],
            ..Summary::default()
        };
        assert_eq!(
            summary.to_string(),
            "2 lanes of 6 threads, start routine slave; 60 of 100 thread instructions kept; dropped: 30 outside the \
             region, 8 in synchronisation and thread runtime, 2 spin-waiting; left out: thread 0 (never in the region), \
             threads 2-3,5 (start routine logger)"
        );
    }

    #[test]
    fn what_was_taken_whole_says_nothing_of_dropping() {
        let summary = Summary {
            lanes: 1,
            threads: 1,
            region: "whole threads".into(),
            instructions: 7,
            kept: 7,
            ..Summary::default()
        };
        assert_eq!(summary.to_string(), "1 lane of 1 thread, whole threads; 7 of 7 thread instructions kept");
    }
}
