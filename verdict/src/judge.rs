//! The judge: which further replays a verdict takes, so that the worst places have a remedy.

use std::collections::BTreeMap;

use attribution::Source;
use heuristics::{Program, Spec};
use replay::metrics::{Causes, Contention, GpuMemory, Measure};
use replay::suggest::{Search, Suggestions, at_branches};
use replay::view::{LoopRan, Region, View, ViewOptions};
use replay::{Grouping, Locks, Outcome, Prepared, ReplayOptions};
use trace_format::{ThreadId, Trace};

use crate::lanes::{self, FEW, WARP};
use crate::pieces::{self, Candidate, Turns};
use crate::verdict::Case;
use crate::verdict::balance::Schedule;
use crate::verdict::locking::LockTrials;
use crate::{Balance, Evidence, Figure, Items, Machine, Question, Verdict, collecting, efficiency};

/// The most branches with a call on both sides for which the gain of a single call is replayed.
const BRANCHES: usize = 4;

/// The least share of the lost lane-slots that such a branch must lose.
const WORTH_TRYING: f64 = 0.02;

/// The fewest warps that are replayed of pieces of work.
const LEAST: usize = 16;

/// Lanes that were replayed, and what was asked about them.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its lanes.
    pub view: &'a View,
    /// What was asked; its machine may be another than the one that is judged for.
    pub question: &'a Question,
    /// The machine's model.
    pub model: &'a Spec,
    /// How the model was replayed: in the machine's warps.
    pub options: &'a ReplayOptions,
}

/// What is measured for a verdict: what was asked for, what lane-slots are lost to, what locks cost, and what a GPU's
/// time takes.
#[must_use]
pub fn measures(asked: &[Measure], view: &View) -> Vec<Measure> {
    let mut all = asked.to_vec();
    if view.lanes().len() > 1 {
        let of_locks = view.locks().are_taken().then(Contention::measure);
        let of_time = view.has_memory().then(GpuMemory::measure);
        for measure in std::iter::once(Causes::measure()).chain(of_locks).chain(of_time) {
            if !all.iter().any(|known| known.name() == measure.name()) {
                all.push(measure);
            }
        }
    }
    all
}

/// Takes out of outcomes what was measured for the verdict alone.
pub fn forget(outcomes: &mut [Outcome], asked: &[Measure]) {
    let is_asked = |measure: &Measure| asked.iter().any(|known| known.name() == measure.name());
    for outcome in outcomes {
        if !is_asked(&Causes::measure()) {
            outcome.findings.forget::<Causes>();
        }
        if !is_asked(&Contention::measure()) {
            outcome.findings.forget::<Contention>();
        }
        if !is_asked(&GpuMemory::measure()) {
            outcome.findings.forget::<GpuMemory>();
        }
    }
}

impl Judge<'_> {
    /// What a verdict on an outcome of the machine's model takes besides the outcome.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn evidence(
        &self,
        prepared: &Prepared,
        outcome: &Outcome,
        figure: &Figure,
        source: &mut Source,
    ) -> replay::Result<Evidence> {
        let mut evidence = if self.is_long() { Evidence::default() } else { self.of_lanes(prepared, outcome)? };
        evidence.items = self.items(&evidence.loops, outcome, figure, source)?;
        evidence.locks = self.lock_trials(prepared, outcome)?;
        Ok(evidence)
    }

    /// The lanes with other rules for locks, where one of them waits for a lock.
    fn lock_trials(&self, prepared: &Prepared, outcome: &Outcome) -> replay::Result<Option<LockTrials>> {
        // Where that was not asked for, as of a page's first replays, locks were taken at least.
        let waits = match outcome.found::<Contention>() {
            Some(contention) => contention.locks.values().any(|used| used.waits > 0),
            None => outcome.counts.lock_fetches > 0,
        };
        if !waits {
            return Ok(None);
        }
        let replayed = |locks: Locks| -> replay::Result<Option<Outcome>> {
            // Which locks lanes wait for where they meet behind each.
            let measures = vec![Contention::measure()];
            let options = ReplayOptions { locks: Some(locks), measures, ..self.plain() };
            Ok(prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next())
        };
        let is_port = outcome.deadlock.is_none() && self.view.locks() != Locks::Simt;
        let meeting = if is_port { replayed(Locks::Simt)? } else { None };
        Ok(replayed(Locks::Ignore)?.map(|ignored| LockTrials { meeting, ignored }))
    }

    /// Whether further replays of all lanes would take long.
    fn is_long(&self) -> bool {
        self.view.summary().kept > FEW
    }

    /// The further results for the same lanes.
    fn of_lanes(&self, prepared: &Prepared, outcome: &Outcome) -> replay::Result<Evidence> {
        let plain = self.plain();
        let regrouped = || -> replay::Result<Option<Outcome>> {
            if outcome.warps < 2 || plain.grouping == Grouping::Similarity {
                return Ok(None);
            }
            let options = ReplayOptions { grouping: Grouping::Similarity, ..plain.clone() };
            Ok(prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next())
        };
        let model = &collecting(self.model);
        let unit = self.question.subject.unit();
        let search = Search { model, most: BRANCHES, thresholds: &[], together: 1, least: 0.0, unit };
        let estimates = || at_branches(prepared, search, &plain, (outcome, WORTH_TRYING));
        let loops = || self.view.loops_ran(outcome.warp_size);
        let (regrouped, (estimates, loops)) = rayon::join(regrouped, || rayon::join(estimates, loops));
        Ok(Evidence { loops: loops?, regrouped: regrouped?, estimates: estimates?, ..Evidence::default() })
    }

    fn plain(&self) -> ReplayOptions {
        ReplayOptions { measures: Vec::new(), ..self.options.clone() }
    }

    /// The verdict on an outcome of the machine's model.
    #[must_use]
    pub fn verdict(
        &self,
        program: &Program,
        outcome: &Outcome,
        figure: Figure,
        evidence: &Evidence,
        suggestions: Option<&Suggestions>,
        source: &mut Source,
    ) -> Verdict {
        let case = Case { trace: self.trace, view: self.view, program, outcome, figure, evidence, suggestions };
        let verdict = Verdict::of(&case, source);
        match &evidence.items {
            Some((_, Some(of_items))) if !verdict.holds => verdict.with_places_of(of_items),
            _ => verdict,
        }
    }

    /// The verdict with what it takes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn judge(
        &self,
        prepared: &Prepared,
        outcome: &Outcome,
        figure: Figure,
        source: &mut Source,
    ) -> replay::Result<Verdict> {
        let evidence = self.evidence(prepared, outcome, &figure, source)?;
        Ok(self.verdict(prepared.program(), outcome, figure, &evidence, None, source))
    }

    /// Pieces of work as lanes: OpenMP's iterations or tasks. Else, where lanes are threads: pieces of work of a thread
    /// that is alone, or of threads that are uneven and took pieces whenever they were free.
    fn items(
        &self,
        loops: &[LoopRan],
        outcome: &Outcome,
        figure: &Figure,
        source: &mut Source,
    ) -> replay::Result<Option<(Items, Option<Verdict>)>> {
        let summary = self.view.summary();
        let balance = Balance::of(self.trace, self.view, outcome);
        let takes_work =
            balance.as_ref().is_some_and(|b| b.schedule.is_some_and(|schedule| schedule.deals_out() || b.is_uneven()));
        let is_needed = outcome.lanes < 2 || takes_work;
        let asked = &self.question.lanes;
        let is_openmp = summary.region.starts_with("OpenMP parallel regions");
        // In a region threads may take pieces beside what OpenMP deals out.
        let is_open = |b: &Balance| b.schedule.is_none() && b.is_uneven() && Schedule::taken(self.view).is_some();
        let may_take = is_openmp && balance.as_ref().is_some_and(is_open);
        if summary.cut.is_some() || self.is_long() && !is_needed && !may_take {
            return Ok(None);
        }
        if is_openmp {
            let mut of =
                |candidate, least| self.of_candidate(candidate, least, figure, is_needed.then_some(&mut *source));
            let mut found = of(pieces::iterations(asked), 0)?;
            if pieces::are_tasks(summary) {
                // Those of a taskloop say more than its tasks do.
                let tasks = of(pieces::tasks(asked), pieces::TIMES * outcome.lanes)?;
                let in_tasks = tasks.as_ref().map_or(0.0, |found| pieces::ABOUT_AS_MUCH * found.kept as f64);
                found = found.filter(|found| found.kept as f64 >= in_tasks).or(tasks);
            }
            let holds_most = |found: &Found| found.kept as f64 >= pieces::MOST_OF_IT * summary.kept as f64;
            if may_take && !found.as_ref().is_some_and(holds_most) {
                found = self.turns((loops, true), outcome, figure, source)?.filter(Found::tells).or(found);
            }
            return Ok(found.map(|found| found.pieces));
        }
        if self.trace.threads().len() < 2 || !is_needed {
            return Ok(None);
        }
        // A single lane is a task that holds others: what other threads took of it is not in it.
        let whole = match outcome.lanes < 2 && asked.region == Region::Auto {
            true => Some(lanes::view(self.trace, &ViewOptions { region: Region::All, ..asked.clone() })?.0),
            false => None,
        };
        let least = pieces::TIMES * outcome.lanes.max(2);
        let causes = outcome.found::<Causes>().filter(|_| whole.is_none());
        let mut found = None;
        for candidate in pieces::calls(self.trace, whole.as_ref().unwrap_or(self.view), causes, asked)? {
            found = self.of_candidate(candidate, least, figure, Some(source))?;
            if found.is_some() {
                break;
            }
        }
        if !found.as_ref().is_some_and(Found::tells) {
            let taken = self.turns((loops, found.is_some()), outcome, figure, source)?;
            found = if taken.as_ref().is_some_and(Found::tells) { taken } else { found.or(taken) };
        }
        Ok(found.map(|found| found.pieces))
    }

    /// The iterations of a loop that could be pieces of work: of the outermost one, or of those in each of which
    /// something is taken (`only_taken`: of these alone), the first of which threads ran unlike numbers.
    fn turns(
        &self,
        (loops, only_taken): (&[LoopRan], bool),
        outcome: &Outcome,
        figure: &Figure,
        source: &mut Source,
    ) -> replay::Result<Option<Found>> {
        let of_long = if self.is_long() { self.view.loops_ran(outcome.warp_size)? } else { Vec::new() };
        let all = Turns::of(self.view, if self.is_long() { &of_long } else { loops }, source);
        let mut first = None;
        for (turns, is_taken) in Turns::to_try(&all).into_iter().filter(|(_, is_taken)| *is_taken || !only_taken) {
            let Some(candidate) = turns.candidate(self.trace, &self.question.lanes, source) else { continue };
            let least = pieces::TIMES * outcome.lanes.max(2);
            let Some(mut found) = self.of_candidate(candidate, least, figure, Some(source))? else { continue };
            found.pieces.0.are_taken = is_taken;
            if found.tells() {
                return Ok(Some(found));
            }
            first = first.or(Some(found));
        }
        Ok(first)
    }

    /// Pieces of work as lanes, if there are at least so many and it is sure what they are; with a verdict where
    /// a source is given. Of many instructions a sample is replayed.
    fn of_candidate(
        &self,
        Candidate { lanes, typed, what }: Candidate,
        least: usize,
        figure: &Figure,
        source: Option<&mut Source>,
    ) -> replay::Result<Option<Found>> {
        let Ok((mut view, _)) = lanes::view(self.trace, &lanes) else { return Ok(None) };
        let all = view.lanes().len();
        let is_unsure = view.summary().cut.as_ref().is_some_and(|cut| cut.withheld().is_some());
        if all < least.max(2) || is_unsure {
            return Ok(None);
        }
        let kept = view.summary().kept;
        let dealt = spread_over_threads(&view, self.view.lanes().len());
        let warp_size = self.question.replay.warp_size.unwrap_or(WARP.min(all));
        if kept > FEW {
            // So many that one of them, as the last that is not full, does not decide.
            let wanted = (all.div_ceil(warp_size) as f64 * FEW as f64 / kept as f64) as usize;
            let sample = warps_of_sample(&view, warp_size, wanted.max(LEAST));
            view = view.sample(&sample);
        }
        let measures = measures(&[], &view);
        let options = ReplayOptions { warp_size: Some(warp_size), measures, ..self.plain() };
        let prepared = Prepared::new(&view, true)?;
        let outcome = prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next();
        let machine = figure.machine.and_then(Machine::named);
        let Some((outcome, efficiency)) = outcome.and_then(|o| efficiency(&o, machine).map(|e| (o, e))) else {
            return Ok(None);
        };
        let replayed = Some(outcome.lanes).filter(|replayed| *replayed < all);
        let mut items =
            Items { typed, what, lanes: all, replayed, warp_size, efficiency, meeting: None, dealt, are_taken: false };
        let Some(source) = source else { return Ok(Some(Found { pieces: (items, None), kept })) };
        let question = Question { lanes, ..self.question.clone() };
        let judge = Judge { view: &view, question: &question, options: &options, ..*self };
        let mut evidence = if kept > FEW { Evidence::default() } else { judge.of_lanes(&prepared, &outcome)? };
        evidence.locks = judge.lock_trials(&prepared, &outcome)?;
        let figure = Figure { efficiency, least: efficiency, most: efficiency, has_others: false, ..figure.clone() };
        let verdict = judge.verdict(prepared.program(), &outcome, figure, &evidence, None, source);
        items.meeting = verdict.locking.as_ref().and_then(|locking| locking.meeting);
        Ok(Some(Found { pieces: (items, Some(verdict)), kept }))
    }
}

/// Pieces of work as lanes, with the verdict on them where that was wanted, and the instructions of all.
struct Found {
    pieces: (Items, Option<Verdict>),
    kept: u64,
}

impl Found {
    /// Whether they tell that threads took pieces whenever they were free.
    fn tells(&self) -> bool {
        self.pieces.0.are_dealt_unevenly()
    }
}

/// The lanes of so many warps of this size, at most all, that lie evenly in the run.
#[must_use]
pub fn warps_of_sample(view: &View, warp_size: usize, wanted: usize) -> Vec<usize> {
    let lanes: Vec<usize> = (0..view.lanes().len()).collect();
    let generation = |lane: &usize| view.lanes()[*lane].generation;
    let launches = lanes.chunk_by(|a, b| generation(a) == generation(b));
    let warps: Vec<&[usize]> = launches.flat_map(|launch| launch.chunks(warp_size)).collect();
    let wanted = wanted.min(warps.len());
    (0..wanted).flat_map(|warp| warps[warp * warps.len() / wanted]).copied().collect()
}

/// The share of the lanes that the busiest thread ran, times the number of threads: 1 where all ran as many. A thread
/// that ran none is one of them.
fn spread_over_threads(pieces: &View, threads: usize) -> f64 {
    let mut of_thread: BTreeMap<ThreadId, usize> = BTreeMap::new();
    pieces.lanes().iter().for_each(|lane| *of_thread.entry(lane.thread).or_default() += 1);
    let most = of_thread.values().max().copied().unwrap_or(0);
    most as f64 * of_thread.len().max(threads) as f64 / pieces.lanes().len().max(1) as f64
}
