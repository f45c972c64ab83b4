//! Random SPMD programs, replayed under every heuristic: no model breaks a rule, none beats the lower bound, and
//! neither the way in which the engine runs (by runs of segments or by steps) nor the number of workers changes a
//! result.

mod blocks;
mod divergence;
mod graphs;
mod programs;
mod ten_thousand;
mod turns;

use heuristics::{REGISTRY, Spec};
use programs::{does, has_locks, lanes_of, statements, without_locks};
use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::metrics::{
    ActiveLanes, Alu, Cause, Causes, Checker, Contention, Cycles, Divergence, Edges, Ended, Finding, LaneMapPlan,
    LaneMaps, Measure, MemoryClasses, Metric, Passes, ScheduleHashes, SpillMemory, Stalls, Step, Traffic,
};
use replay::{Control, EpisodeId, Outcome, ReplayOptions, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

/// Whether `scripts/check --whole` runs the tests.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("LOCKSTEP_WHOLE").is_some()
}

/// How many random cases to try, of so many: all for `scripts/check --whole`, else a tenth.
pub(crate) fn part_of(all: u64) -> u64 {
    if is_whole() { all } else { all / 10 }
}

/// Models that say in their heads where they deadlock: on locks.
const DEADLOCK: [&str; 9] = ["ipdom", "tf-stack", "tf-branch", "dual-path", "multi-path", "wave", "dws", "tbc", "lwm"];

/// Where lanes that part may wait for each other.
pub(crate) const PLACEMENTS: [&str; 3] = ["binary", "structured", "nak"];

/// Models that differ only in the order in which paths that can run do so: the last pushed, the smallest pc, the
/// fall-through, the pair on top.
pub(crate) fn of_one_theory(placement: &str) -> Vec<Spec> {
    let models = ["ipdom", "dual-path", "multi-path", "barrier", "hanoi"];
    let specs = models.map(|model| format!("{model}:placement={placement}"));
    Spec::parse_list(&specs.join(",")).unwrap()
}

/// Has the engine ask the model before each segment, and finds nothing.
struct EachStep;

impl Metric for EachStep {
    fn step(&mut self, _step: &Step) -> replay::Result<()> {
        Ok(())
    }

    fn asks_each_step(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> replay::Result<Finding> {
        Ok(Finding::nothing())
    }
}

pub(crate) fn each_step() -> Measure {
    Measure::new("each-step", |_| Some(Box::new(EachStep)))
}

fn everything(source: &InMemory, options: &ReplayOptions) -> Vec<Outcome> {
    let mut specs: Vec<Spec> = REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect();
    specs.extend(
        Spec::parse_list(
            "maxfun-minpc:mode=2,rd-minsp-pc:hysteresis=0,threshold=8,decrement=yes,long:n=1,multi-path:merge=yes,dws:order=turns,dws:longest=2,\
             dwf:policy=minority,dwf:policy=time,dwf:policy=pc,\
             oracle:horizon=3,beta=0,ipdom:placement=structured,barrier:placement=structured,barrier:meet=anywhere,\
             barrier:meet=anywhere,placement=structured,hanoi:placement=binary,distance:placement=structured",
        )
        .unwrap(),
    );
    replay(source, &specs, options, None, &|_, _| {}).unwrap()
}

/// Lane 0 waits in a function that is not replayed, and goes on in its caller: under `lee` it leaves the function's
/// frame with its next instruction, and lane 1 goes before it from then on.
#[test]
fn a_level_that_changed_while_a_lane_waited_counts_before_the_lane_runs_on() {
    let at = |pc: u64, kind: Kind| {
        Does::Runs(Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(0), memory: 0 }, Vec::new())
    };
    let meets = || Does::Comes(Control::Meet(EpisodeId(0)));
    let calls = vec![
        at(1, Kind::Call),
        meets(),
        Does::Comes(Control::Level(1)),
        at(20, Kind::Jump),
        at(21, Kind::Jump),
        at(22, Kind::Plain),
    ];
    let source = InMemory::new(&[calls, vec![at(5, Kind::Jump), meets(), at(10, Kind::Jump), at(11, Kind::Plain)]]);
    let with = |measures| everything(&source, &ReplayOptions { measures, ..ReplayOptions::default() });
    let by_runs = with(vec![ScheduleHashes::measure()]);
    let by_steps = with(vec![ScheduleHashes::measure(), each_step()]);
    for (runs, steps) in by_runs.iter().zip(&by_steps) {
        assert_eq!(runs.found::<ScheduleHashes>(), steps.found::<ScheduleHashes>(), "{}", runs.heuristic);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_model_breaks_a_rule_or_beats_the_lower_bound(program in statements(3), lanes in 1u64..9, size in 1usize..9) {
        let source = lanes_of(&program, lanes);
        let checked = ReplayOptions { measures: vec![Checker::measure()], warp_size: Some(size), ..ReplayOptions::default() };
        for outcome in everything(&source, &checked) {
            if outcome.is_complete() {
                prop_assert!(outcome.counts.fetches() >= outcome.lower_bound, "{}", outcome.heuristic);
                prop_assert!(outcome.counts.fetches() <= outcome.upper_bound, "{}", outcome.heuristic);
                prop_assert_eq!(outcome.counts.thread_instructions(), outcome.upper_bound);
                prop_assert_eq!(outcome.counts.forced, 0);
            } else {
                let name = outcome.heuristic.split(':').next().unwrap();
                prop_assert!(DEADLOCK.contains(&name) && has_locks(&program), "{}", outcome.status());
            }
        }
    }

    /// Their paths are the same; only the order in which they take turns differs.
    #[test]
    fn stacks_tables_of_paths_and_barriers_need_as_many_fetches(program in statements(4), lanes in 1u64..9) {
        let source = lanes_of(&without_locks(&program), lanes);
        for placement in PLACEMENTS {
            let outcomes = replay(&source, &of_one_theory(placement), &ReplayOptions::default(), None, &|_, _| {}).unwrap();
            for other in &outcomes[1..] {
                prop_assert_eq!(&outcomes[0].counts, &other.counts, "{}", other.heuristic);
            }
        }
    }

    /// A warp that is never subdivided has the splits and joins of `multi-path`.
    #[test]
    fn without_subdivision_parts_are_those_that_wait_for_joins(program in statements(4), lanes in 1u64..9) {
        let source = lanes_of(&without_locks(&program), lanes);
        let specs = Spec::parse_list("multi-path:merge=yes,dws:longest=0").unwrap();
        let options = ReplayOptions { measures: vec![ScheduleHashes::measure()], ..ReplayOptions::default() };
        let outcomes = replay(&source, &specs, &options, None, &|_, _| {}).unwrap();
        prop_assert_eq!(outcomes[0].found::<ScheduleHashes>(), outcomes[1].found::<ScheduleHashes>());
    }

    #[test]
    fn every_lost_slot_is_charged_once(program in statements(3), lanes in 1u64..9, size in 1usize..9) {
        let source = lanes_of(&program, lanes);
        let plain = ReplayOptions { warp_size: Some(size), ..ReplayOptions::default() };
        let charged = ReplayOptions { measures: vec![Causes::measure()], ..plain.clone() };
        for (without, outcome) in everything(&source, &plain).iter().zip(everything(&source, &charged)) {
            prop_assert_eq!(&without.counts, &outcome.counts, "{}", outcome.heuristic);
            let causes = outcome.found::<Causes>().unwrap();
            prop_assert_eq!(causes.total(), outcome.lost_slots(), "{}", outcome.heuristic);
            prop_assert_eq!(Cause::ALL.iter().map(|c| causes.lost_to(*c)).sum::<u64>(), outcome.lost_slots());
            let mut fetches = 0;
            for ((pc, path), issued) in &causes.issued {
                let here = causes.charges.iter().filter(|(c, _)| (c.issued, c.path) == (*pc, *path));
                let lost: u64 = here.map(|(_, slots)| slots).sum();
                prop_assert_eq!(lost + issued.thread_instructions, issued.fetches * size as u64);
                fetches += issued.fetches;
            }
            prop_assert_eq!(fetches, outcome.counts.fetches());
            for (charge, _) in &causes.charges {
                let at_a_transfer =
                    matches!(charge.cause, Cause::Branch | Cause::LoopTripCount | Cause::CallTarget);
                prop_assert!(charge.parted_at.is_some() || !at_a_transfer, "{charge:?}");
            }
        }
    }

    /// The same sums, by runs of segments and by steps.
    #[test]
    fn paths_by_call_are_the_paths_with_calls_told_apart(program in statements(3), lanes in 1u64..9, size in 1usize..9) {
        let source = lanes_of(&program, lanes);
        let plain = ReplayOptions { warp_size: Some(size), ..ReplayOptions::default() };
        let with = |measures| everything(&source, &ReplayOptions { measures, ..plain.clone() });
        let (by_function, by_call) = (with(vec![Causes::measure()]), with(vec![Causes::by_call()]));
        let stepped = with(vec![Causes::by_call(), each_step()]);
        for ((by_function, by_call), stepped) in by_function.iter().zip(&by_call).zip(&stepped) {
            let [merged, apart, stepped] = [by_function, by_call, stepped].map(|o| o.found::<Causes>().unwrap());
            prop_assert_eq!(apart, stepped, "{}", by_call.heuristic);
            prop_assert_eq!(&apart.charges.iter().map(|(_, slots)| slots).sum::<u64>(), &by_call.lost_slots());
            let sums = |causes: &Causes| {
                let mut sums = std::collections::BTreeMap::<_, [u64; 2]>::new();
                for ((pc, path), issued) in &causes.issued {
                    let sum = sums.entry((*pc, causes.paths.entries(*path))).or_default();
                    *sum = [sum[0] + issued.fetches, sum[1] + issued.thread_instructions];
                }
                sums
            };
            prop_assert_eq!(sums(merged), sums(apart));
            for path in apart.issued.iter().map(|((_, path), _)| *path) {
                // Who calls runs in the function before.
                for calls in apart.paths.functions(path).windows(2) {
                    prop_assert!(calls[1].called_at.is_some_and(|at| calls[0].entry <= at), "{calls:?}");
                }
            }
        }
    }

    /// However the streams come in pieces, and however far beyond a piece a model looks.
    #[test]
    fn pieces_of_streams_change_nothing(program in statements(3), lanes in 1u64..9, codes in 1usize..9) {
        let does = does(&program, lanes);
        let options = ReplayOptions { measures: vec![ScheduleHashes::measure(), MemoryClasses::measure(), Traffic::measure(), Checker::measure()], ..ReplayOptions::default() };
        let (whole, pieces) = (InMemory::new(&does), InMemory::in_batches(&does, codes));
        for (whole, pieces) in everything(&whole, &options).iter().zip(everything(&pieces, &options)) {
            prop_assert_eq!(whole.found::<ScheduleHashes>(), pieces.found::<ScheduleHashes>(), "{}", whole.heuristic);
            prop_assert_eq!(whole.found::<MemoryClasses>(), pieces.found::<MemoryClasses>(), "{}", whole.heuristic);
        }
    }

    #[test]
    fn one_worker_and_three_give_the_same(program in statements(3), lanes in 1u64..17, size in 1usize..5) {
        let source = lanes_of(&program, lanes);
        let options = ReplayOptions { measures: vec![ScheduleHashes::measure()], warp_size: Some(size), ..ReplayOptions::default() };
        let with = |workers: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
            pool.install(|| everything(&source, &options)).iter().map(|o| format!("{o:?}")).collect::<Vec<_>>()
        };
        prop_assert_eq!(with(1), with(3));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn runs_of_segments_give_what_steps_give(program in statements(3), lanes in 1u64..9, size in 1usize..9) {
        let source = lanes_of(&program, lanes);
        let measures = vec![
            ScheduleHashes::measure(), Checker::measure(), Causes::measure(), Divergence::measure(), Edges::measure(),
            ActiveLanes::measure(), Contention::measure(), Alu::measure(), Cycles::measure(2), Stalls::measure(7),
            MemoryClasses::measure(), Traffic::measure(), Passes::measure(2), SpillMemory::measure(512),
            LaneMaps::measure(LaneMapPlan { classes: Vec::new(), fetches: vec![Some(50); 9] }),
        ];
        let plain = ReplayOptions { warp_size: Some(size), ..ReplayOptions::default() };
        let by_runs = ReplayOptions { measures: measures.clone(), ..plain.clone() };
        let by_steps = ReplayOptions { measures: [measures, vec![each_step()]].concat(), ..plain.clone() };
        let (by_runs, by_steps) = (everything(&source, &by_runs), everything(&source, &by_steps));
        for ((runs, steps), plain) in by_runs.iter().zip(&by_steps).zip(everything(&source, &plain)) {
            prop_assert_eq!(format!("{runs:?}"), format!("{steps:?}"));
            prop_assert_eq!((&plain.counts, &plain.end), (&runs.counts, &runs.end), "{}", plain.heuristic);
            if plain.is_complete() {
                prop_assert_eq!(&plain.tally, &runs.tally, "{}", plain.heuristic);
            }
        }
    }
}
