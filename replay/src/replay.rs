//! A replay from lanes to outcomes, in steps: survey; warps and blocks of warps; one job per heuristic and warp or
//! block, on all cores; sums.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use heuristics::{Prediction, Predictions, Program, SegmentTable, Spec, Tally};
use rayon::prelude::*;

use crate::bounds::{Least, Optimum, optimum_of_all};
use crate::engine::{Counts, End, Replay, Replayed};
use crate::grouping::{
    EXACT_LANES, Grouping, generations, improved, least_of_any, partitions, subsets, warp_size, warps,
};
use crate::lanes::brief::Brief;
use crate::metrics::{Ended, Finding, Findings, Measure, Metric, ScheduleWriter, Warp, checker};
use crate::outcome::rank;
use crate::survey::Survey;
use crate::warps::{Unit, blocks, single_warps};
use crate::{Error, LaneSource, Locks, Outcome, Result};

/// The options of a replay, besides its heuristics.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Seats in a warp, 1 to [`heuristics::MAX_LANES`]. Default: all lanes in one warp (of at most that many).
    pub warp_size: Option<usize>,
    /// How lanes are put into warps. Default: consecutive.
    pub grouping: Grouping,
    /// Warps in a block, for the models that run blocks ([`heuristics::Entry::runs_blocks`]). Default: as many as have
    /// [`heuristics::MAX_LANES`] lanes together.
    pub warps_per_block: Option<usize>,
    /// What to measure besides the engine's counts. Default: nothing.
    pub measures: Vec<Measure>,
    /// How locks that lanes take count: [`Locks::Simt`] or [`Locks::Ignore`]. Default: as the lanes say.
    pub locks: Option<Locks>,
}

/// Where every fetch is written: the file and its name in errors.
pub struct ScheduleFile<'a> {
    /// The file.
    pub out: &'a mut (dyn Write + Send),
    /// Its name.
    pub path: &'a Path,
}

/// What a job, one heuristic on one warp or block, found.
struct Part {
    counts: Counts,
    end: End,
    tally: Tally,
    findings: Vec<Finding>,
}

/// Lanes that were read once, ready to be replayed again and again.
pub struct Prepared<'a> {
    survey: Survey<'a>,
    program: Program,
    briefs: Vec<Brief>,
}

/// Replays the lanes under each heuristic. `done` is called after each job (one heuristic on one warp or block) with
/// the jobs done so far and all jobs. Results do not depend on the number of workers.
///
/// # Errors
/// When the trace cannot be read, a schedule cannot be written, the warp size is not possible, or a rule of replay is
/// broken (a bug).
pub fn replay(
    source: &dyn LaneSource,
    specs: &[Spec],
    options: &ReplayOptions,
    schedule: Option<ScheduleFile>,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Outcome>> {
    let of_measures = options.measures.iter().any(Measure::needs_control_flow);
    let with_control_flow = of_measures || specs.iter().any(|spec| spec.entry().needs_control_flow);
    Prepared::new(source, with_control_flow)?.replay(specs, options, schedule, done)
}

/// By place: whether a GPU has no instruction for it.
fn free_places(segments: &SegmentTable, briefs: &[Brief]) -> Vec<bool> {
    let mut free = vec![true; segments.places()];
    briefs.iter().for_each(|brief| free[brief.place.0 as usize] &= brief.gpu.tenths == 0);
    free
}

impl<'a> Prepared<'a> {
    /// Reads every lane once. The control-flow graph is needed by some heuristics
    /// ([`heuristics::Entry::needs_control_flow`]), and for causes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn new(source: &'a dyn LaneSource, with_control_flow: bool) -> Result<Prepared<'a>> {
        let mut survey = Survey::new(source, with_control_flow)?;
        let program = Program {
            segments: source.segments().clone(),
            control_flow: std::mem::take(&mut survey.control_flow).into(),
            ..Program::default()
        };
        let briefs = Brief::with_costs(&program.segments, &|id| source.gpu_cost(id));
        let program = Program { free: free_places(&program.segments, &briefs).into(), ..program };
        Ok(Prepared { survey, program, briefs })
    }

    /// Reads every lane once; the program is known already.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn with_program(source: &'a dyn LaneSource, program: Program) -> Result<Prepared<'a>> {
        let survey = Survey::new(source, false)?;
        let briefs = Brief::with_costs(&program.segments, &|id| source.gpu_cost(id));
        Ok(Prepared { survey, program, briefs })
    }

    /// What was found when the lanes were read.
    pub(crate) fn survey(&self) -> &Survey<'a> {
        &self.survey
    }

    /// Makes predictions for the replays that follow, in place of those before: where models that obey them collect
    /// lanes. Nothing is predicted where the control-flow graph was not asked for.
    pub fn predict(&mut self, predictions: &[Prediction]) {
        self.program.predictions = Predictions::new(predictions, &self.program.control_flow);
    }

    /// The static program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// As [`replay()`].
    ///
    /// # Errors
    /// As [`replay()`].
    pub fn replay(
        &self,
        specs: &[Spec],
        options: &ReplayOptions,
        schedule: Option<ScheduleFile>,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Outcome>> {
        self.replay_program(&self.program, (specs, options), schedule, done)
    }

    /// As [`replay()`], with these predictions in place of those that were made; several threads may do so at once.
    ///
    /// # Errors
    /// As [`replay()`].
    pub fn replay_predicting(
        &self,
        predictions: &[Prediction],
        specs: &[Spec],
        options: &ReplayOptions,
    ) -> Result<Vec<Outcome>> {
        let predictions = Predictions::new(predictions, &self.program.control_flow);
        let program = Program { predictions, ..self.program.clone() };
        self.replay_program(&program, (specs, options), None, &|_, _| {})
    }

    fn replay_program(
        &self,
        program: &Program,
        (specs, options): (&[Spec], &ReplayOptions),
        mut schedule: Option<ScheduleFile>,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Outcome>> {
        let survey = &self.survey;
        if options.measures.iter().any(|measure| measure.name() == checker::ENTRY.name) {
            survey.check_kept()?;
        }
        let generations = generations(survey);
        let size = warp_size(&generations, options.warp_size)?;
        let mut outcomes = Vec::new();
        if options.grouping.is_oracle() {
            for spec in specs {
                let one = std::slice::from_ref(spec);
                let warps = self.best_warps(program, (spec, options), (&generations, size))?;
                let schedule =
                    schedule.as_mut().map(|schedule| ScheduleFile { out: &mut *schedule.out, path: schedule.path });
                outcomes.extend(self.replay_warps(program, (one, options), (&warps, size, true), schedule, done)?);
            }
        } else {
            let warps = warps(survey, &generations, size, options.grouping)?;
            outcomes = self.replay_warps(program, (specs, options), (&warps, size, true), schedule, done)?;
        }
        rank(&mut outcomes);
        Ok(outcomes)
    }

    /// No grouping of the lanes into warps of this size needs fewer fetches, under any model that runs each warp on its
    /// own.
    ///
    /// # Errors
    /// When the trace cannot be read, or warps cannot have that size.
    pub fn least_of_any_grouping(&self, warp_size: Option<usize>) -> Result<u64> {
        let generations = generations(&self.survey);
        let size = crate::grouping::warp_size(&generations, warp_size)?;
        generations.iter().map(|lanes| least_of_any(&self.survey, lanes, size)).sum()
    }

    /// The warps that [`Grouping::Oracle`] stands for under this model.
    fn best_warps(
        &self,
        program: &Program,
        (spec, options): (&Spec, &ReplayOptions),
        (generations, size): (&[Vec<usize>], usize),
    ) -> Result<Vec<Vec<usize>>> {
        let survey = &self.survey;
        let plain = ReplayOptions { measures: Vec::new(), ..options.clone() };
        // By warp, or block of warps; the most where one deadlocks.
        let cost = |warps: &[Vec<usize>]| -> Result<Vec<u64>> {
            let one = std::slice::from_ref(spec);
            let outcome = self.replay_warps(program, (one, &plain), (warps, size, false), None, &|_, _| {})?;
            let outcome = outcome.into_iter().next();
            Ok(outcome.filter(Outcome::is_complete).map(|outcome| outcome.warp_fetches).unwrap_or_default())
        };
        if !spec.entry().runs_blocks && generations.iter().all(|lanes| lanes.len() <= EXACT_LANES) {
            let mut best = Vec::new();
            for lanes in generations {
                let all = subsets(lanes, size);
                let costs = cost(&all)?;
                best.extend(if costs.len() == all.len() { partitions(lanes, size, &costs) } else { Vec::new() });
            }
            if best.iter().map(Vec::len).sum::<usize>() == survey.lanes.len() {
                return Ok(best);
            }
        }
        let total = |warps: &[Vec<usize>]| -> Result<u64> {
            let fetches = cost(warps)?;
            Ok(if fetches.is_empty() { u64::MAX } else { fetches.iter().sum() })
        };
        let mut best: Option<(u64, Vec<Vec<usize>>)> = None;
        for grouping in Grouping::ALL.into_iter().filter(|grouping| !grouping.is_oracle()) {
            let candidate = warps(survey, generations, size, grouping)?;
            let fetches = total(&candidate)?;
            if best.as_ref().is_none_or(|(least, _)| fetches < *least) {
                best = Some((fetches, candidate));
            }
        }
        let (least, start) = best.unwrap_or_default();
        let generation = |warp: &Vec<usize>| warp.first().map(|lane| survey.source().generation(*lane));
        let of_one = start.chunk_by(|a, b| generation(a) == generation(b));
        let exchanged = of_one.map(|warps| improved(survey, warps)).collect::<Result<Vec<_>>>()?.concat();
        Ok(if total(&exchanged)? < least { exchanged } else { start })
    }

    /// The outcomes of these warps, without ranks; bounds only where they are wanted.
    fn replay_warps(
        &self,
        program: &Program,
        (specs, options): (&[Spec], &ReplayOptions),
        (warps, size, with_bounds): (&[Vec<usize>], usize, bool),
        mut schedule: Option<ScheduleFile>,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Outcome>> {
        let survey = &self.survey;
        let units = |all: Vec<Unit>| if with_bounds { Units::new(survey, all) } else { Ok(Units::plain(all)) };
        let kinds = [
            units(single_warps(warps, size))?,
            match specs.iter().any(|spec| spec.entry().runs_blocks) {
                true => units(blocks(survey, warps, size, options.warps_per_block)?)?,
                false => Units::plain(Vec::new()),
            },
        ];
        let warps = (warps.len(), size, &kinds);
        let locks = options.locks.unwrap_or_else(|| survey.source().locks());
        let mut outcomes = self.replay_as((program, specs), (options, locks), warps, schedule.as_mut(), done)?;
        if !matches!(locks, Locks::Wait | Locks::Simt) {
            let stuck: Vec<usize> = (0..specs.len()).filter(|i| !outcomes[*i].is_complete()).collect();
            let again: Vec<Spec> = stuck.iter().map(|i| specs[*i].clone()).collect();
            let turns =
                self.replay_as((program, &again), (options, Locks::Simt), warps, schedule.as_mut(), &|_, _| {})?;
            for (index, turn) in stuck.into_iter().zip(turns) {
                let deadlock = outcomes[index].deadlock().cloned();
                outcomes[index] = Outcome { deadlock, ..turn };
            }
        }
        Ok(outcomes)
    }

    /// The outcomes of these heuristics under this rule for locks, without ranks.
    fn replay_as(
        &self,
        (program, specs): (&Program, &[Spec]),
        (options, locks): (&ReplayOptions, Locks),
        (warps, size, kinds): (usize, usize, &[Units; 2]),
        schedule: Option<&mut ScheduleFile>,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Outcome>> {
        let Prepared { survey, briefs, .. } = self;
        let source = survey.source();
        let take_turns = locks == Locks::Simt;
        let units_of = |spec: &Spec| &kinds[usize::from(spec.entry().runs_blocks)];
        let jobs: Vec<(usize, usize)> =
            specs.iter().enumerate().flat_map(|(s, spec)| (0..units_of(spec).all.len()).map(move |u| (s, u))).collect();
        let run = |(spec, unit): (usize, usize), out: Option<(&mut dyn Write, &Path)>| {
            let spec = &specs[spec];
            run_job(survey, program, briefs, spec, (unit, &units_of(spec).all[unit]), (options, locks), out)
        };
        let parts: Vec<Part> = match schedule {
            // A file has one order of fetches: the jobs run one after another.
            Some(file) => {
                let mut parts = Vec::with_capacity(jobs.len());
                for (n, job) in jobs.iter().enumerate() {
                    let kind = if specs[job.0].entry().runs_blocks { "block" } else { "warp" };
                    // A second schedule of one heuristic is that of lanes that take turns.
                    let marked = if source.locks() == locks || !take_turns { "" } else { " simt" };
                    writeln!(file.out, "heuristic {} {kind} {}{marked}", specs[job.0], job.1)
                        .map_err(|source| Error::Write { path: file.path.to_owned(), source })?;
                    parts.push(run(*job, Some((file.out, file.path)))?);
                    done(n + 1, jobs.len());
                }
                file.out.flush().map_err(|source| Error::Write { path: file.path.to_owned(), source })?;
                parts
            }
            None => {
                let finished = Mutex::new(0);
                jobs.par_iter()
                    .map(|job| {
                        let part = run(*job, None)?;
                        let mut finished = finished.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        *finished += 1;
                        done(*finished, jobs.len());
                        Ok(part)
                    })
                    .collect::<Result<_>>()?
            }
        };
        let lane_instructions: Vec<u64> = survey.lanes.iter().map(|l| l.instructions).collect();
        let outcome = |(spec, parts): (&Spec, &[Part])| Outcome {
            heuristic: spec.to_string(),
            locks: None,
            lanes: source.lanes(),
            warp_size: size,
            warps,
            counts: sum_counts(parts, size),
            end: first_deadlock(parts),
            deadlock: None,
            tally: sum_tally(parts),
            warps_per_block: units_of(spec).most_warps(),
            lower_bound: units_of(spec).lower_bound,
            optimum: units_of(spec).optimum,
            upper_bound: lane_instructions.iter().sum(),
            rank: None,
            lane_instructions: lane_instructions.clone(),
            warp_fetches: parts.iter().map(|p| p.counts.fetches()).collect(),
            findings: sum_findings(parts),
        };
        let mut left = &parts[..];
        let outcomes = specs.iter().map(|spec| {
            let (own, rest) = left.split_at(units_of(spec).all.len());
            left = rest;
            outcome((spec, own))
        });
        Ok(outcomes.collect())
    }
}

/// Warps or blocks, and what holds for all of them together.
struct Units {
    all: Vec<Unit>,
    lower_bound: u64,
    optimum: Optimum,
}

impl Units {
    fn new(survey: &Survey, all: Vec<Unit>) -> Result<Units> {
        let least = Least::new(survey);
        let bounds: Vec<u64> =
            all.par_iter().map_init(|| least.clone(), |least, unit| least.fetches(unit)).collect::<Result<_>>()?;
        let optimum = optimum_of_all(survey, &all)?;
        Ok(Units { all, lower_bound: bounds.iter().sum(), optimum })
    }

    /// Without what needs another look at the lanes.
    fn plain(all: Vec<Unit>) -> Units {
        Units { all, lower_bound: 0, optimum: Optimum::Fetches(0) }
    }

    fn most_warps(&self) -> usize {
        self.all.iter().map(|unit| unit.seats.warps().len()).max().unwrap_or(1)
    }
}

fn run_job(
    survey: &Survey,
    program: &Program,
    briefs: &[Brief],
    spec: &Spec,
    (number, unit): (usize, &Unit),
    (options, locks): (&ReplayOptions, Locks),
    out: Option<(&mut dyn Write, &Path)>,
) -> Result<Part> {
    let lanes = &unit.lanes;
    let warp = Warp { survey, program, unit, number };
    let mut heuristic = heuristics::build(spec, lanes.len(), program);
    let mut metrics: Vec<Box<dyn Metric + '_>> = options.measures.iter().filter_map(|m| m.start(&warp)).collect();
    if let Some((out, path)) = out {
        metrics.push(Box::new(ScheduleWriter::new(out, path, lanes.len())));
    }
    let replay = Replay::new(survey, program, briefs, unit, locks)?;
    let Replayed { counts, end, tally: of_turns } = replay.run(spec, &mut *heuristic, &mut metrics)?;
    let mut tally = heuristic.tally();
    tally.add(&of_turns);
    let ended = Ended { warp, counts: &counts, end: &end };
    let findings = metrics.into_iter().map(|metric| metric.finish(&ended)).collect::<Result<_>>()?;
    Ok(Part { counts, end, tally, findings })
}

fn sum_counts(parts: &[Part], warp_size: usize) -> Counts {
    let mut sum = Counts::new(warp_size);
    parts.iter().for_each(|p| sum.add(&p.counts));
    sum
}

fn sum_tally(parts: &[Part]) -> Tally {
    let mut sum = Tally::default();
    parts.iter().for_each(|p| sum.add(&p.tally));
    sum
}

fn sum_findings(parts: &[Part]) -> Findings {
    let mut sum = Findings::default();
    parts.iter().flat_map(|p| &p.findings).for_each(|finding| sum.add(finding));
    sum
}

fn first_deadlock(parts: &[Part]) -> End {
    parts.iter().find(|p| p.end != End::Complete).map_or(End::Complete, |p| p.end.clone())
}
