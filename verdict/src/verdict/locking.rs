//! What locks cost, and what to do about them.
//!
//! A program with a lock for which lanes wait has two figures. *As a port of the lock would run*: on NVIDIA's GPUs
//! since Volta, lanes that have to wait for a lock are not waited for behind it (the model `hanoi`). *With lanes made
//! to meet behind the lock*: they take turns and then go on together (`--locks simt`), which takes one `__syncwarp()`.
//!
//! So what is lost has two parts, and they are the differences of three replays: *behind* the lock, what the port loses
//! and lanes that meet do not; *in* the lock, what those lose and lanes that run through it do not (`--locks ignore`).
//! What a warp waits for lanes of other warps, *around* the lock, is in no replay, since each warp is replayed alone;
//! it is said where that can be.
//!
//! Worked example: 32 lanes take a number under a lock and work for 100,000 instructions. 31/32 of 32 times as many
//! slots are lost behind the lock, and some 31 times the lock's few instructions in it.

use attribution::locks;
use attribution::{Source, table::grouped};
use replay::metrics::Contention;
use replay::suggest::Basis;
use replay::view::View;
use replay::{Outcome, metrics::LockUse};
use serde_json::{Value, json};

use super::advice::{Kind, Remedy};
use super::coverage::share;
use crate::{Machine, efficiency};

/// A section of so few instructions, on average, is worth a try as an atomic operation.
const SHORT: f64 = 8.0;

/// A remedy must leave at least so many times the efficiency.
const WORTH_DOING: f64 = 1.01;

/// A model's lanes with other rules for locks.
#[derive(Clone, Debug)]
pub struct LockTrials {
    /// They meet behind the lock; none where the model's own figure is that already.
    pub(crate) meeting: Option<Outcome>,
    /// They run through it.
    pub(crate) ignored: Outcome,
}

/// What locks cost.
#[derive(Clone, Debug)]
pub struct Locking {
    /// The lock for which lanes wait most.
    pub name: String,
    /// What was done with it.
    pub used: LockUse,
    /// The efficiency with lanes made to meet behind the lock; none where the figure is that already.
    pub meeting: Option<f64>,
    /// The lane-slots lost in locks, and behind them, as shares of all that are lost; none where that was not replayed.
    pub lost: Option<(f64, f64)>,
    /// The efficiency where lanes run through locks, and where half of each section is outside of the lock.
    free: Option<(f64, f64)>,
    /// How many of the warps took the lock, where lanes of several did.
    warps: Option<u64>,
    /// For how many locks lanes wait that meet behind each, and which share of that is for this one; none for one lock.
    among: Option<(usize, f64)>,
}

impl Locking {
    /// What locks cost in this outcome; none where no lane waited for one.
    pub(crate) fn of(
        outcome: &Outcome,
        (trials, machine): (Option<&LockTrials>, Option<Machine>),
        view: &View,
        source: &mut Source,
    ) -> Option<Locking> {
        let rows = locks::rows(outcome.found::<Contention>()?, view, source);
        // Lanes that part behind one lock come to the next one alone: what they would wait for there shows where they
        // meet.
        let meeting = trials.and_then(|trials| trials.meeting.as_ref()?.found::<Contention>());
        let all = meeting.map(|contention| locks::rows(contention, view, source));
        let row = rows.into_iter().next().filter(|row| row.used.waiting_slots > 0)?;
        let port = outcome.lost_slots() as f64;
        let lost = trials.map(|trials| {
            let meeting = trials.meeting.as_ref().map_or(port, |outcome| outcome.lost_slots() as f64);
            let free = trials.ignored.lost_slots() as f64;
            let part = |slots: f64| (slots / port.max(1.0)).clamp(0.0, 1.0);
            (part(meeting - free), part(port - meeting))
        });
        Some(Locking {
            meeting: trials.and_then(|trials| efficiency(trials.meeting.as_ref()?, machine)),
            lost,
            free: trials
                .and_then(|trials| Some((efficiency(&trials.ignored, machine)?, halved(outcome, trials, machine)?))),
            warps: Some(row.used.warps).filter(|warps| *warps > 1),
            among: all.and_then(|all| among(&all, &row.name)),
            name: row.name,
            used: row.used,
        })
    }

    /// Instructions of a section, on average.
    fn section(&self) -> f64 {
        self.used.instructions_held as f64 / self.used.acquisitions.max(1) as f64
    }

    /// What to do where so much efficiency is left, the least change first.
    pub(super) fn remedies(&self, now: f64) -> Vec<Remedy> {
        let lock = &self.name;
        let remedy = |kind, efficiency: f64, basis, text: String| {
            (efficiency > WORTH_DOING * now).then_some(Remedy { kind, text, efficiency, basis })
        };
        let meeting = self.meeting.and_then(|efficiency| {
            let text = format!(
                "lanes that had to wait for {lock} are not waited for behind it: make the lanes of a warp meet there \
                 (__syncwarp() behind the lock, run by all of them; --locks simt)"
            );
            remedy(Kind::Meet, efficiency, Basis::Replayed, text)
        });
        let Some((free, halved)) = self.free else { return meeting.into_iter().collect() };
        let section = self.section();
        let without = match section <= SHORT {
            true => (
                Kind::TakeNumber,
                format!(
                    "what {lock} guards is {section:.0} instructions: where that is a number \
                that each lane takes or adds to, use an atomic operation in its place"
                ),
            ),
            false => (
                Kind::Lock,
                format!(
                    "lanes hold {lock} one after another: give each lane a copy of the data it \
                guards and combine the copies at the end, or use a lock for each part of the data"
                ),
            ),
        };
        let (kind, text) = without;
        let without = remedy(kind, free, Basis::Replayed, format!("{text} ({})", self.all_left_out()));
        let shorten = (section > SHORT).then(|| {
            let text = format!(
                "a lane runs {section:.0} instructions each time it holds {lock}: move half of them out of it, and \
                 make lanes meet behind it"
            );
            remedy(Kind::Shorten, halved, Basis::About, text)
        });
        [meeting, shorten.flatten(), without].into_iter().flatten().collect()
    }

    /// What the gain without locks is of.
    fn all_left_out(&self) -> String {
        match self.among {
            None => "--locks ignore, which leaves out all locks".to_owned(),
            Some((locks, of_waiting)) => format!(
                "--locks ignore, which leaves out all {locks} locks for which lanes wait; {} of the waiting is for \
                 this one",
                share(of_waiting)
            ),
        }
    }

    /// Where the loss lies, in a sentence.
    pub(super) fn sentence(&self) -> Option<String> {
        let (inside, behind) = self.lost?;
        let around = self.warps.map_or_else(String::new, |warps| {
            format!(
                "; lanes of {} warps take it, and what one warp waits for another around it is in no figure here",
                grouped(warps)
            )
        });
        Some(format!(
            "{}: {} of the lost lane-slots are lost in locks, where lanes wait in line, and {} behind them, where \
             lanes that waited are not met again{around}.",
            self.name,
            share(inside),
            share(behind)
        ))
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "lock": self.name,
            "with_lanes_that_meet": self.meeting,
            "lost_in_locks": self.lost.map(|(inside, _)| inside),
            "lost_behind_locks": self.lost.map(|(_, behind)| behind),
            "warps": self.used.warps,
        })
    }
}

/// How many of these locks are waited for, and which share of the waiting is for the one of this name.
fn among(rows: &[locks::Row], name: &str) -> Option<(usize, f64)> {
    let waited: Vec<&locks::Row> = rows.iter().filter(|row| row.used.waiting_slots > 0).collect();
    let slots =
        |rows: &mut dyn Iterator<Item = &&locks::Row>| rows.map(|row| row.used.waiting_slots).sum::<u64>() as f64;
    let of_name = slots(&mut waited.iter().filter(|row| row.name == name));
    (waited.len() > 1).then(|| (waited.len(), of_name / slots(&mut waited.iter())))
}

/// The efficiency of lanes that meet, if half of what is run in turns were run together.
fn halved(outcome: &Outcome, trials: &LockTrials, machine: Option<Machine>) -> Option<f64> {
    let meeting = trials.meeting.as_ref().unwrap_or(outcome);
    let (with, without) = (meeting.counts.fetches(), trials.ignored.counts.fetches());
    let saved = with.saturating_sub(without) as f64 / 2.0;
    Some((efficiency(meeting, machine)? * with as f64 / (with as f64 - saved).max(1.0)).min(1.0))
}
