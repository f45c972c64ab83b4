//! Lanes that walk through random control-flow graphs, reducible and not, under every model and placement: the checker
//! finds no rule broken, no lane is lost, and none waits for ever.

use flowgraph::{Builder, Loops, NodeId};
use heuristics::{
    BarrierAction, BarrierOperation, Deconflict, Placement, Prediction, REGISTRY, Spec, barrier_faults,
    barrier_operations,
};
use rayon::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::metrics::Checker;
use replay::suggest::{Search, suggest};
use replay::{Prepared, ReplayOptions, ScheduleFile, Unit, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

use crate::ten_thousand::{Numbers, PLACED};
use crate::{PLACEMENTS, is_whole, of_one_theory, part_of};

const GRAPHS: u64 = 10_000;

fn below(numbers: &mut Numbers, limit: usize) -> usize {
    numbers.below(limit as u64) as usize
}

/// Blocks with one or two successors, or more for one in eight; the last returns.
fn graph(numbers: &mut Numbers) -> Vec<Vec<usize>> {
    let blocks = 2 + below(numbers, 14);
    let mut successors: Vec<Vec<usize>> = (0..blocks - 1)
        .map(|block| {
            let ways = if below(numbers, 8) == 0 { 3 } else { 1 + below(numbers, 2) };
            // Near ones more often, as in programs; edges back and into the midst of loops all the same.
            (0..ways)
                .map(|_| if below(numbers, 2) == 0 { (block + 1).min(blocks - 1) } else { below(numbers, blocks) })
                .collect()
        })
        .collect();
    successors.push(Vec::new());
    successors
}

/// A walk to the return, which can be reached: at random for a while, then by the shortest way.
fn walk(graph: &[Vec<usize>], distances: &[Option<usize>], numbers: &mut Numbers) -> Vec<Does> {
    let (mut at, mut does, mut steps) = (0, Vec::new(), below(numbers, 40));
    loop {
        let kind = match graph[at].len() {
            0 => Kind::Return,
            1 => Kind::Jump,
            _ => Kind::Branch,
        };
        for (i, kind) in [Kind::Plain, kind].into_iter().enumerate() {
            let pc = Pc(0x1000 + 16 * at as u64 + 4 * i as u64);
            does.push(Does::Runs(Instruction { pc, len: 4, kind, sp: SpEffect::Add(0), memory: 0 }, Vec::new()));
        }
        if graph[at].is_empty() {
            return does;
        }
        let leads_out = |next: &&usize| distances[**next].is_some();
        let ways: Vec<usize> = graph[at].iter().filter(leads_out).copied().collect();
        at = if steps > 0 {
            steps -= 1;
            ways[below(numbers, ways.len())]
        } else {
            ways.into_iter().min_by_key(|next| distances[*next]).expect("a way that leads out")
        };
    }
}

/// Where functions begin that blocks call: one with an `if`, and one that calls the other.
const FUNCTIONS: [Pc; 2] = [Pc(0x9000), Pc(0xA000)];

/// The same walk, in which some blocks call one of the functions first.
fn with_calls(lane: Vec<Does>, numbers: &mut Numbers, seed: u64) -> Vec<Does> {
    let runs = |pc: u64, kind, sp| {
        Does::Runs(Instruction { pc: Pc(pc), len: 4, kind, sp: SpEffect::Add(sp), memory: 0 }, Vec::new())
    };
    let mut all = Vec::new();
    for does in lane {
        let Does::Runs(Instruction { pc, kind, .. }, _) = &does else { continue };
        // One block in four calls the first, one the second.
        let called = (pc.0 / 16 + seed) % 4;
        if *kind != Kind::Plain || called > 1 {
            all.push(does);
            continue;
        }
        all.push(runs(pc.0, Kind::Call, -8));
        if called == 1 {
            all.push(runs(0xA000, Kind::Call, -8));
        }
        all.extend([runs(0x9000, Kind::Plain, 0), runs(0x9004, Kind::Branch, 0)]);
        if below(numbers, 2) == 0 {
            all.extend([runs(0x9008, Kind::Plain, 0), runs(0x900C, Kind::Plain, 0)]);
        }
        all.push(runs(0x9010, Kind::Return, 8));
        if called == 1 {
            all.push(runs(0xA004, Kind::Return, 8));
        }
    }
    all
}

/// By block: how many steps lead to the return.
fn distances(graph: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut distances = vec![None; graph.len()];
    distances[graph.len() - 1] = Some(0);
    for _ in 0..graph.len() {
        for block in 0..graph.len() - 1 {
            let next = graph[block].iter().filter_map(|&to| distances[to]).min().map(|steps: usize| steps + 1);
            distances[block] = distances[block].into_iter().chain(next).min();
        }
    }
    distances
}

/// Judges the schedule of `wave` by what its docs promise, from the lanes' ways alone. The blocks that lanes went
/// through are put in an order of which every edge leads forward, or to the head of a loop; then the wave may go
/// forward, not past a block of which a lane is, or back to the head of a loop that it is in and nobody waits in.
fn passed_by(lanes: &[Vec<Does>]) -> Option<String> {
    let block = |does: &Does| match does {
        Does::Runs(instruction, _) => ((instruction.pc.0 - 0x1000) / 16) as usize,
        Does::Comes(_) => unreachable!("walks have no barriers"),
    };
    let ways: Vec<Vec<usize>> = lanes.iter().map(|lane| lane.iter().step_by(2).map(block).collect()).collect();
    let blocks = 1 + ways.iter().flatten().max()?;
    let mut edges: Vec<(usize, usize)> = ways.iter().flat_map(|way| way.windows(2).map(|w| (w[0], w[1]))).collect();
    edges.sort_unstable();
    let mut graph = Builder::new(blocks);
    for &(from, to) in &edges {
        graph.edge(NodeId(from as u32), NodeId(to as u32));
    }
    let loops = Loops::of(&graph.build(NodeId(0)));
    let mut rank = vec![usize::MAX; blocks];
    loops.order().iter().enumerate().for_each(|(place, node)| rank[node.index()] = place);
    let is_head_around = |head: usize, inside: usize| {
        let headed = loops.headed_by(NodeId(head as u32));
        headed.is_some_and(|id| loops.contains(id, NodeId(inside as u32)))
    };
    let (mut written, wave) = (Vec::new(), [Spec::parse("wave").unwrap()]);
    let file = ScheduleFile { out: &mut written, path: "in memory".as_ref() };
    let source = InMemory::new(lanes);
    replay(&source, &wave, &ReplayOptions::default(), Some(file), &|_, _| {}).ok()?;
    let schedule = String::from_utf8(written).expect("a schedule is text");
    // Each block has two instructions.
    let fetches: Vec<(usize, u64)> = schedule
        .lines()
        .skip(1)
        .step_by(2)
        .map(|line| {
            let (pc, mask) = line.split_once(' ').expect("a line is a pc and a mask");
            let block = (u64::from_str_radix(pc, 16).expect("a pc") - 0x1000) / 16;
            (block as usize, u64::from_str_radix(mask, 2).expect("a mask"))
        })
        .collect();
    let mut at = vec![0; lanes.len()];
    for (i, &(block, mask)) in fetches.iter().enumerate() {
        let waiting: Vec<usize> = (0..lanes.len()).filter_map(|lane| ways[lane].get(at[lane]).copied()).collect();
        if (0..lanes.len()).any(|lane| (ways[lane].get(at[lane]) == Some(&block)) != (mask >> lane & 1 == 1)) {
            return Some(format!("fetch {i}: not all lanes at block {block} run it"));
        }
        let from = i.checked_sub(1).map_or(0, |before| fetches[before].0);
        let forward = i == 0 || rank[block] > rank[from];
        if !forward && !is_head_around(block, from) {
            return Some(format!("fetch {i}: from block {from} back to {block}, which is no head of a loop around it"));
        }
        // Who waits is ahead of the wave, or at the head of a loop that it is in, or in which it was.
        let passed = waiting.iter().copied().find(|&w| match forward {
            true => {
                rank[from] < rank[w] && rank[w] < rank[block]
                    || rank[w] <= rank[from] && w != block && !is_head_around(w, block)
            }
            false => w != block && is_head_around(block, w),
        });
        if let (Some(passed), true) = (passed, i > 0) {
            return Some(format!("fetch {i}: from block {from} to {block} past {passed}"));
        }
        (0..lanes.len()).filter(|lane| mask >> lane & 1 == 1).for_each(|lane| at[lane] += 1);
    }
    None
}

fn specs() -> Vec<Spec> {
    let mut specs: Vec<Spec> = REGISTRY.iter().map(|entry| Spec::parse(entry.name).unwrap()).collect();
    specs.extend(Spec::parse_list(PLACED).unwrap());
    specs.extend(Spec::parse_list("barrier:placement=structured,yield=no,hanoi:registers=1").unwrap());
    specs
}

#[test]
fn no_lane_is_lost_on_any_random_graph() {
    let specs = specs();
    let fault = |seed: u64| -> Option<String> {
        let mut numbers = Numbers::of(seed);
        let graph = graph(&mut numbers);
        let distances = distances(&graph);
        let lanes: Vec<_> = (0..2 + seed % 7).map(|_| walk(&graph, &distances, &mut numbers)).collect();
        let source = InMemory::new(&lanes);
        let options = ReplayOptions { measures: vec![Checker::measure()], ..ReplayOptions::default() };
        let outcomes = match replay(&source, &specs, &options, None, &|_, _| {}) {
            Ok(outcomes) => outcomes,
            Err(error) => return Some(format!("seed {seed}: {error}")),
        };
        for placement in PLACEMENTS {
            let outcomes = match replay(&source, &of_one_theory(placement), &options, None, &|_, _| {}) {
                Ok(outcomes) => outcomes,
                Err(error) => return Some(format!("seed {seed}: {error}")),
            };
            if let Some(other) = outcomes.iter().find(|outcome| outcome.counts != outcomes[0].counts) {
                let (counts, first) = (&other.counts, &outcomes[0].counts);
                return Some(format!("seed {seed}: {}: {counts:?}, not {first:?}", other.heuristic));
            }
        }
        if let Some(fault) = passed_by(&lanes) {
            return Some(format!("seed {seed}: {fault}"));
        }
        let lost = outcomes.iter().find(|outcome| !outcome.is_complete())?;
        Some(format!("seed {seed}: {}: {}", lost.heuristic, lost.status()))
    };
    let ran = |seed: &u64| {
        let mut numbers = Numbers::of(*seed);
        let graph = graph(&mut numbers);
        distances(&graph)[0].is_some()
    };
    // Some graphs never reach the return; there must be as many as are asked for without those.
    let seeds: Vec<u64> = (0..).filter(ran).take(part_of(GRAPHS) as usize).collect();
    let faults: Vec<String> = seeds.into_par_iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{} of them: {:?}", faults.len(), &faults[..faults.len().min(5)]);
}

/// One to three predictions, at places and of functions, from somewhere or everywhere, soft and hard.
fn predictions(numbers: &mut Numbers, blocks: usize, seed: u64) -> Vec<Prediction> {
    let mut place = || Pc(0x1000 + 16 * below(numbers, blocks) as u64);
    let mut prediction = |i| {
        let of = match (seed / 18 + i) % 4 {
            0 => Prediction::of_calls(FUNCTIONS[(seed % 2) as usize]),
            _ => Prediction::at(place()),
        };
        Prediction {
            from: (i == 1 || seed.is_multiple_of(5)).then(&mut place).into_iter().collect(),
            threshold: [None, Some(2), Some(3)][(seed / 3 % 3) as usize],
            deconflict: if (seed / 9).is_multiple_of(2) { Deconflict::Dynamic } else { Deconflict::Static },
            ..of
        }
    };
    (0..1 + seed % 3).map(&mut prediction).collect()
}

/// What the check of operations on barriers says about those of the predictions; and it must say something when one of
/// them is left out that matters to lanes.
fn operations_fault(prepared: &Prepared) -> Option<String> {
    let (flow, predictions) = (&prepared.program().control_flow, &prepared.program().predictions);
    let all = barrier_operations(predictions, flow, Placement::Binary);
    let faults = barrier_faults(&all, predictions, flow);
    if !faults.is_empty() {
        return Some(format!("{all:?}: {faults:?}"));
    }
    (0..all.len()).find_map(|left_out| {
        let BarrierOperation { barrier, action, .. } = all[left_out];
        let of_barrier = |action| all.iter().filter(|o| o.barrier == barrier && o.action == action).count();
        let matters = match action {
            // Of several ways in, one without a join leaves lanes unjoined on that one only, which is allowed.
            BarrierAction::Join => of_barrier(BarrierAction::Join) == 1,
            BarrierAction::Cancel | BarrierAction::Wait | BarrierAction::WaitFor(_) => true,
            _ => false,
        };
        let others: Vec<BarrierOperation> =
            all.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, o)| *o).collect();
        let is_missed = matters && barrier_faults(&others, predictions, flow).is_empty();
        is_missed.then(|| format!("nobody misses {:?} of {all:?}", all[left_out]))
    })
}

#[test]
fn lanes_that_are_collected_at_random_places_all_go_on() {
    let specs = Spec::parse_list(
        "barrier,barrier:placement=structured,barrier:placement=nak,barrier:predicate=4,barrier:order=pc-last,\
         barrier:order=most-lanes,barrier:order=fewest-lanes,hanoi:placement=binary,hanoi,hanoi:placement=nak,\
         hanoi:predicate=4",
    )
    .unwrap();
    let fault = |seed: u64| -> Option<String> {
        let mut numbers = Numbers::of(seed);
        let graph = graph(&mut numbers);
        let distances = distances(&graph);
        distances[0]?;
        let mut lane = || {
            let walked = walk(&graph, &distances, &mut numbers);
            with_calls(walked, &mut numbers, seed)
        };
        let lanes: Vec<_> = (0..2 + seed % 7).map(|_| lane()).collect();
        let predictions = predictions(&mut numbers, graph.len(), seed);
        let source = InMemory::new(&lanes);
        let mut prepared = Prepared::new(&source, true).unwrap();
        prepared.predict(&predictions);
        if let Some(fault) = operations_fault(&prepared) {
            return Some(format!("seed {seed}: {fault}"));
        }
        let options = ReplayOptions { measures: vec![Checker::measure()], ..ReplayOptions::default() };
        let outcomes = match prepared.replay(&specs, &options, None, &|_, _| {}) {
            Ok(outcomes) => outcomes,
            Err(error) => return Some(format!("seed {seed}: {error}")),
        };
        // Each lane ran what it has, whatever was waited for: both strategies, all placements and orders.
        let instructions: u64 = lanes.iter().map(|lane| lane.len() as u64).sum();
        let is_well = |o: &&replay::Outcome| {
            o.is_complete() && o.tally.yields.unwrap_or(0) == 0 && o.counts.thread_instructions() == instructions
        };
        let faulty = outcomes.iter().find(|outcome| !is_well(outcome))?;
        Some(format!("seed {seed}: {}: {} {:?}", faulty.heuristic, faulty.status(), faulty.tally.yields))
    };
    let faults: Vec<String> = (0..part_of(GRAPHS)).into_par_iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{} of them: {:?}", faults.len(), &faults[..faults.len().min(5)]);
}

#[test]
fn hardly_a_place_pays_more_than_the_best_that_is_tried() {
    for model in Spec::parse_list("barrier,hanoi").unwrap() {
        hardly_a_place_pays_more_than_the_best_under(&model);
    }
}

fn hardly_a_place_pays_more_than_the_best_under(model: &Spec) {
    let (options, unit) = (ReplayOptions::default(), Unit::default());
    // By graph: how many fetches fewer collecting lanes buys, at the best of all places and at the best candidate.
    let gains = |seed: u64| -> Option<(u64, u64)> {
        let mut numbers = Numbers::of(seed);
        let graph = graph(&mut numbers);
        let distances = distances(&graph);
        distances[0]?;
        let lanes: Vec<_> = (0..2 + seed % 7).map(|_| walk(&graph, &distances, &mut numbers)).collect();
        let source = InMemory::new(&lanes);
        let mut prepared = Prepared::new(&source, true).unwrap();
        let search = Search { model, most: usize::MAX, thresholds: &[], together: 1, least: 0.0, unit };
        let found = suggest(&prepared, search, &options, &|_, _| {}).unwrap();
        let before = found.before.counts.fetches();
        let mut least = before;
        for block in 0..graph.len() as u64 {
            prepared.predict(&[Prediction::at(Pc(0x1000 + 16 * block))]);
            let outcome = &prepared.replay(std::slice::from_ref(model), &options, None, &|_, _| {}).unwrap()[0];
            least = least.min(outcome.counts.fetches());
        }
        let tried = found.tried.iter().flat_map(|tried| &tried.trials).map(|trial| trial.outcome.counts.fetches());
        let suggested = tried.min().unwrap_or(before).min(before);
        Some((before - least, before - suggested))
    };
    let all: Vec<(u64, u64)> =
        (0..part_of(GRAPHS)).into_par_iter().filter_map(gains).filter(|(best, _)| *best > 0).collect();
    let missed = all.iter().filter(|(best, suggested)| best != suggested).count();
    let (best, suggested) = all.iter().fold((0, 0), |sum, gain| (sum.0 + gain.0, sum.1 + gain.1));
    println!("{model}: {} graphs gain, {missed} less than they could: {suggested} fetches of {best}", all.len());
    // Of places that the same lanes run in the same fetches only the first is tried, which is another one to wait at.
    // One of a hundred graphs is missed; of few graphs it may be some more.
    let hundredths = if is_whole() { 1 } else { 3 };
    assert!(all.len() as u64 > part_of(1_000) && missed * 100 < hundredths * all.len() && suggested * 100 > best * 99);
}
