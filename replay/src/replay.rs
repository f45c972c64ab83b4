//! A replay from lanes to outcomes: survey, warps and blocks of warps, one job per heuristic and warp or block on all cores, sums.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use heuristics::{Program, Spec, Tally};
use rayon::prelude::*;

use crate::bounds::{Optimum, least_fetches, optimum};
use crate::engine::{Brief, Counts, End, Replay, Replayed};
use crate::metrics::{
    ActiveCounter, Causes, Checker, Contention, ContentionMeter, Divergence, DivergenceMeter, EdgeCounter, FetchUnits,
    LaneMap, LaneMapPlan, LaneMapper, LostSlots, MemoryClasses, Metric, ScheduleHash, ScheduleWriter, Traffic,
    TrafficMeter,
};
use crate::outcome::{Profile, rank};
use crate::survey::Survey;
use crate::warps::{Grouping, Unit, blocks, generations, single_warps, warp_size, warps};
use crate::{Error, LaneSource, Outcome, Result};

/// What lanes do that come to a lock which another lane has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Contended {
    /// They wait, in the order in which they came, as the program is written. Models that would never run the lane that
    /// has it deadlock.
    #[default]
    Wait,
    /// They take turns: see `engine/turns.rs`. No model deadlocks.
    TakeTurns,
    /// They wait; under a model that deadlocks so they take turns, and the outcome says both.
    WaitOrTakeTurns,
}

/// What is asked of a replay beside its heuristics.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Seats in a warp, 1 to [`heuristics::MAX_LANES`]. Default: all lanes in one warp (of at most that many).
    pub warp_size: Option<usize>,
    /// How lanes are put into warps. Default: consecutive.
    pub grouping: Grouping,
    /// Warps in a block, for the models that run blocks ([`Spec::runs_blocks`]). Default: as many as have [`heuristics::MAX_LANES`] lanes together.
    pub warps_per_block: Option<usize>,
    /// What lanes do at locks. Default: they wait.
    pub contended: Contended,
    /// Whether the checker judges every step. Default: no.
    pub check: bool,
    /// Whether to hash the schedule. Default: no.
    pub schedule_hash: bool,
    /// Whether to classify memory accesses and count their transactions; for traces that have addresses. Default: no.
    pub memory: bool,
    /// Whether to charge every lost lane-slot to a cause, a branch and an instruction. Default: no.
    pub causes: bool,
    /// Whether to measure what each lock costs; for views that serialize locks. Default: no.
    pub contention: bool,
    /// Whether to measure how long and how far lanes diverge. Default: no.
    pub divergence: bool,
    /// Fetch units on which to place the fetches, 1 to [`crate::metrics::MOST_FETCH_UNITS`]. Default: cycles are not counted.
    pub fetch_units: Option<usize>,
    /// Whether to count edges and active lanes of each place of the code. Default: no.
    pub profile: bool,
    /// The lane maps to draw; the plan holds for one heuristic. Default: none.
    pub lane_map: Option<LaneMapPlan>,
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
    hash: Option<u64>,
    memory: Option<MemoryClasses>,
    traffic: Option<Traffic>,
    contention: Option<Contention>,
    divergence: Option<Divergence>,
    cycles: Option<u64>,
    causes: Option<Causes>,
    profile: Option<Profile>,
    lane_map: Option<LaneMap>,
}

/// Lanes that were read once, ready to be replayed again and again.
pub struct Prepared<'a> {
    survey: Survey<'a>,
    program: Program,
    briefs: Vec<Brief>,
}

/// Replays the lanes under each heuristic. `done` is called after each job (one heuristic on one warp or block) with the jobs done so far and
/// all jobs. Results do not depend on the number of workers.
///
/// # Errors
/// When the trace cannot be read, a schedule cannot be written, the warp size is not possible, or a rule of replay is broken (a bug).
pub fn replay(
    source: &dyn LaneSource,
    specs: &[Spec],
    options: &ReplayOptions,
    schedule: Option<ScheduleFile>,
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Outcome>> {
    let with_control_flow = options.causes || specs.iter().any(Spec::needs_control_flow);
    Prepared::new(source, with_control_flow)?.replay(specs, options, schedule, done)
}

impl<'a> Prepared<'a> {
    /// Reads every lane once. The control-flow graph is needed by some heuristics ([`Spec::needs_control_flow`]), and for causes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn new(source: &'a dyn LaneSource, with_control_flow: bool) -> Result<Prepared<'a>> {
        let mut survey = Survey::new(source, with_control_flow)?;
        let program =
            Program { segments: source.segments().clone(), control_flow: std::mem::take(&mut survey.control_flow) };
        let briefs = Brief::all(&program.segments);
        Ok(Prepared { survey, program, briefs })
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
        mut schedule: Option<ScheduleFile>,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Outcome>> {
        let survey = &self.survey;
        if options.check {
            survey.check_kept()?;
        }
        let generations = generations(survey);
        let size = warp_size(&generations, options.warp_size)?;
        let warps = warps(survey, &generations, size, options.grouping);
        let kinds = [
            Units::new(survey, single_warps(&warps, size))?,
            match specs.iter().any(Spec::runs_blocks) {
                true => Units::new(survey, blocks(survey, &warps, size, options.warps_per_block)?)?,
                false => Units::new(survey, Vec::new())?,
            },
        ];
        let warps = (warps.len(), size, &kinds);
        let mut outcomes = self.replay_as(specs, options, options.contended, warps, schedule.as_mut(), done)?;
        if options.contended == Contended::WaitOrTakeTurns {
            let stuck: Vec<usize> = (0..specs.len()).filter(|i| !outcomes[*i].is_complete()).collect();
            let again: Vec<Spec> = stuck.iter().map(|i| specs[*i].clone()).collect();
            let turns = self.replay_as(&again, options, Contended::TakeTurns, warps, schedule.as_mut(), &|_, _| {})?;
            for (index, turn) in stuck.into_iter().zip(turns) {
                let deadlock = outcomes[index].deadlock().cloned();
                outcomes[index] = Outcome { deadlock, ..turn };
            }
        }
        rank(&mut outcomes);
        Ok(outcomes)
    }

    /// The outcomes of these heuristics when lanes do this at locks, without ranks.
    fn replay_as(
        &self,
        specs: &[Spec],
        options: &ReplayOptions,
        contended: Contended,
        (warps, size, kinds): (usize, usize, &[Units; 2]),
        schedule: Option<&mut ScheduleFile>,
        done: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Outcome>> {
        let Prepared { survey, program, briefs } = self;
        let source = survey.source();
        let take_turns = contended == Contended::TakeTurns;
        let units_of = |spec: &Spec| &kinds[usize::from(spec.runs_blocks())];
        let jobs: Vec<(usize, usize)> =
            specs.iter().enumerate().flat_map(|(s, spec)| (0..units_of(spec).all.len()).map(move |u| (s, u))).collect();
        let run = |(spec, unit): (usize, usize), out: Option<(&mut dyn Write, &Path)>| {
            let spec = &specs[spec];
            run_job(survey, program, briefs, spec, (unit, &units_of(spec).all[unit]), (options, take_turns), out)
        };
        let parts: Vec<Part> = match schedule {
            // A file has one order of fetches: the jobs run one after another.
            Some(file) => {
                let mut parts = Vec::with_capacity(jobs.len());
                for (n, job) in jobs.iter().enumerate() {
                    let kind = if specs[job.0].runs_blocks() { "block" } else { "warp" };
                    // A second schedule of one heuristic is that of lanes that take turns.
                    let marked = if options.contended == contended || !take_turns { "" } else { " simt" };
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
            schedule_fnv1a64: parts
                .iter()
                .map(|p| p.hash)
                .collect::<Option<Vec<u64>>>()
                .map(|h| ScheduleHash::of_warps(&h)),
            memory: sum_memory(parts),
            traffic: sum_traffic(parts),
            contention: sum_contention(parts),
            divergence: sum_divergence(parts),
            fetch_units: options.fetch_units,
            cycles: parts.iter().map(|p| p.cycles).sum(),
            causes: sum_causes(parts),
            warp_fetches: parts.iter().map(|p| p.counts.fetches()).collect(),
            profile: sum_profile(parts),
            lane_maps: parts.iter().filter_map(|p| p.lane_map.clone()).collect(),
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
        let bounds: Vec<u64> = all.par_iter().map(|u| least_fetches(survey, u)).collect::<Result<_>>()?;
        let optima: Vec<Optimum> = all.par_iter().map(|u| optimum(survey, u)).collect::<Result<_>>()?;
        let optimum = optima.into_iter().fold(Optimum::Fetches(0), Optimum::plus);
        Ok(Units { all, lower_bound: bounds.iter().sum(), optimum })
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
    (options, take_turns): (&ReplayOptions, bool),
    out: Option<(&mut dyn Write, &Path)>,
) -> Result<Part> {
    let (lanes, seats) = (&unit.lanes, &unit.seats);
    let most_active = lanes.len().min(seats.width());
    let mut heuristic = spec.build(lanes.len(), program);
    let mut checker = options.check.then(|| Checker::new(survey, &program.segments, &unit.warps()));
    let mut hash = options.schedule_hash.then(|| ScheduleHash::new(lanes.len()));
    let mut memory = options.memory.then(|| MemoryClasses::new(most_active));
    let mut traffic = options.memory.then(TrafficMeter::default);
    let mut contention = options.contention.then(ContentionMeter::default);
    let mut divergence = options.divergence.then(DivergenceMeter::default);
    let mut fetch_units = options.fetch_units.map(FetchUnits::new);
    let mut lost = options.causes.then(|| LostSlots::new(lanes.len(), seats));
    let mut edges = options.profile.then(|| EdgeCounter::new(lanes.len(), seats.width()));
    let mut active = options.profile.then(|| ActiveCounter::new(most_active));
    let mut mapper = options.lane_map.as_ref().and_then(|plan| LaneMapper::new(lanes.len(), number, plan));
    let mut writer = out.map(|(out, path)| ScheduleWriter::new(out, path, lanes.len()));
    let mut metrics: Vec<&mut dyn Metric> = Vec::new();
    metrics.extend(checker.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(hash.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(memory.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(traffic.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(contention.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(divergence.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(fetch_units.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(lost.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(edges.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(active.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(mapper.as_mut().map(|m| m as &mut dyn Metric));
    metrics.extend(writer.as_mut().map(|m| m as &mut dyn Metric));
    let replay = Replay::new(survey, program, briefs, unit, take_turns)?;
    let Replayed { counts, end, tally: of_turns } = replay.run(spec, &mut *heuristic, &mut metrics)?;
    let mut tally = heuristic.tally();
    tally.add(&of_turns);
    if let Some(checker) = checker {
        checker.finish(&counts, &end)?;
    }
    let causes = lost.map(|l| l.finish(program));
    let profile = edges.zip(active);
    let profile =
        profile.map(|(edges, active)| Profile { edges: edges.finish(), active_lanes: active.finish(program) });
    let lane_map = mapper.map(|m| m.finish(number, lanes));
    let traffic = traffic.map(|t| t.finish(program));
    let contention = contention.map(ContentionMeter::finish);
    let divergence = divergence.map(DivergenceMeter::finish);
    let cycles = fetch_units.map(|f| f.cycles());
    Ok(Part {
        counts,
        end,
        tally,
        hash: hash.map(|h| h.value()),
        memory,
        traffic,
        contention,
        divergence,
        cycles,
        causes,
        profile,
        lane_map,
    })
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

fn sum_memory(parts: &[Part]) -> Option<MemoryClasses> {
    let mut sum = MemoryClasses::default();
    for part in parts {
        sum.add(part.memory.as_ref()?);
    }
    (!parts.is_empty()).then_some(sum)
}

fn sum_traffic(parts: &[Part]) -> Option<Traffic> {
    let mut sum = Traffic::default();
    for part in parts {
        sum.add(part.traffic.as_ref()?);
    }
    (!parts.is_empty()).then_some(sum)
}

fn sum_contention(parts: &[Part]) -> Option<Contention> {
    let mut sum = Contention::default();
    for part in parts {
        sum.add(part.contention.as_ref()?);
    }
    (!parts.is_empty()).then_some(sum)
}

fn sum_divergence(parts: &[Part]) -> Option<Divergence> {
    let mut sum = Divergence::default();
    for part in parts {
        sum.add(part.divergence.as_ref()?);
    }
    (!parts.is_empty()).then_some(sum)
}

fn sum_causes(parts: &[Part]) -> Option<Causes> {
    let mut sum = Causes::default();
    for part in parts {
        sum.add(part.causes.as_ref()?);
    }
    (!parts.is_empty()).then_some(sum)
}

fn sum_profile(parts: &[Part]) -> Option<Profile> {
    let mut sum = Profile::default();
    for part in parts {
        let more = part.profile.as_ref()?;
        sum.edges.add(&more.edges);
        sum.active_lanes.add(&more.active_lanes);
    }
    (!parts.is_empty()).then_some(sum)
}

fn first_deadlock(parts: &[Part]) -> End {
    parts.iter().find(|p| p.end != End::Complete).map_or(End::Complete, |p| p.end.clone())
}
