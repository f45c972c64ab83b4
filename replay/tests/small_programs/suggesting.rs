//! What is suggested for programs of which it is known where collecting lanes pays.

use heuristics::{Deconflict, Prediction, Spec};
use replay::in_memory::{Does, InMemory};
use replay::suggest::{Basis, Estimate, Pass, Pattern, Search, Suggestions, Tried, passes, suggest};
use replay::{Outcome, Prepared, ReplayOptions, Unit};
use trace_format::Pc;

const UNIT: Unit = Unit::Processor;

/// Lanes by the blocks that they run: block `b` is `lengths[b]` branches at `0x1000 * b`.
fn lanes_of(lengths: &[u64], lanes: &[Vec<usize>]) -> Vec<Vec<Does>> {
    let block = |b: &usize| (0..lengths[*b]).map(|i| Does::branches(0x1000 * *b as u64 + i)).collect::<Vec<_>>();
    lanes.iter().map(|lane| lane.iter().flat_map(block).collect()).collect()
}

fn suggested(lengths: &[u64], lanes: &[Vec<usize>]) -> Suggestions {
    let lanes = lanes_of(lengths, lanes);
    let source = InMemory::new(&lanes);
    let prepared = Prepared::new(&source, true).unwrap();
    let [found, other] = ["barrier", "hanoi:placement=binary"].map(|model| {
        let model = &Spec::parse(model).unwrap();
        let search = Search { model, most: usize::MAX, thresholds: &[2], together: 3, least: 0.0, unit: UNIT };
        suggest(&prepared, search, &ReplayOptions::default(), &|_, _| {}).unwrap()
    });
    // Both collect lanes alike.
    let best = |found: &Suggestions| (found.before.counts.fetches(), found.best(), found.tried[0].issued(UNIT));
    assert_eq!(best(&found), best(&other));
    found
}

fn at(found: &Suggestions, block: u64) -> &Tried {
    let is_there = |tried: &&Tried| tried.candidate.at == Pc(0x1000 * block);
    found.tried.iter().find(is_there).unwrap_or_else(|| panic!("block {block} was not tried: {found:?}"))
}

/// A loop of so many turns, 1 its prolog, 3 what a lane runs in the turns of which its number is the remainder, 4 its
/// epilog.
fn delayed(lanes: usize, turns: usize) -> Vec<Vec<usize>> {
    let turn = |lane: usize, turn: usize| if turn % lanes == lane { vec![1, 3, 4] } else { vec![1, 4] };
    let lane = |lane: usize| (0..turns).flat_map(|t| turn(lane, t)).chain([5]).collect();
    (0..lanes).map(lane).collect()
}

#[test]
fn an_expensive_body_that_lanes_run_in_different_turns_is_where_to_wait() {
    let found = suggested(&[0, 1, 0, 40, 1, 1], &delayed(4, 16));
    // Apart: 16 bodies of 40; together: 4, and a few turns more of the cheap rest.
    assert_eq!(found.before.counts.fetches(), 16 * 42 + 1);
    let best = &found.tried[0];
    assert_eq!((best.candidate.at, best.candidate.pattern), (Pc(0x3000), Pattern::IterationDelay));
    assert!(best.issued(UNIT).unwrap() < 4 * 40 + 4 * 16 * 2, "{found:?}");
    assert_eq!(best.trials[0].prediction.threshold, None);
}

#[test]
fn a_rare_cheap_body_behind_an_expensive_prolog_is_not() {
    let found = suggested(&[0, 40, 0, 1, 1, 1], &delayed(4, 16));
    let before = found.before.counts.fetches();
    assert_eq!(before, 16 * 42 + 1);
    assert!(at(&found, 3).trials.iter().all(|trial| trial.outcome.counts.fetches() > before), "{found:?}");
    assert!(found.tried.iter().all(|tried| tried.issued(UNIT) >= Some(before)), "{found:?}");
}

#[test]
fn of_three_nested_loops_the_one_is_found_whose_turns_differ() {
    // 1 the outer loop's block, 2 the middle one's, 3 the inner one's: it runs as often as lane and turn have it, and
    // the middle one twice for each.
    let trips = |lane: usize, turn: usize| if (lane + turn).is_multiple_of(4) { 16 } else { 1 };
    let lane = |lane: usize| -> Vec<usize> {
        let middle = |turn: usize| std::iter::once(2).chain(std::iter::repeat_n(3, trips(lane, turn)));
        let outer = |turn: usize| std::iter::once(1).chain(middle(turn)).chain(middle(turn));
        (0..8).flat_map(outer).chain([4]).collect()
    };
    let found = suggested(&[0, 2, 2, 5, 1], &(0..4).map(lane).collect::<Vec<_>>());
    let best = &found.tried[0];
    assert_eq!((best.candidate.at, best.candidate.pattern), (Pc(0x3000), Pattern::LoopMerge));
    let (before, after) = (found.before.counts.fetches(), best.issued(UNIT).unwrap());
    assert!(after * 3 < before * 2, "{before} {after}");
    assert!(at(&found, 2).issued(UNIT).unwrap() > after && at(&found, 1).issued(UNIT).unwrap() > after);
}

/// The same lanes with predictions.
fn predicted(lengths: &[u64], lanes: &[Vec<usize>], predictions: &[Prediction]) -> Outcome {
    let lanes = lanes_of(lengths, lanes);
    let source = InMemory::new(&lanes);
    let mut prepared = Prepared::new(&source, true).unwrap();
    prepared.predict(predictions);
    let model = [Spec::parse("barrier").unwrap()];
    prepared.replay(&model, &ReplayOptions::default(), None, &|_, _| {}).unwrap().remove(0)
}

#[test]
fn two_places_are_suggested_together_where_both_pay() {
    // Two loops as above, one behind the other: 1, 3, 4 and 6, 8, 9.
    let lengths = [0, 1, 0, 40, 1, 1, 1, 0, 30, 1, 1];
    let second = |block: usize| if block == 5 { 10 } else { block + 5 };
    let lanes: Vec<Vec<usize>> = delayed(4, 16)
        .into_iter()
        .map(|lane| lane.iter().copied().chain(lane.iter().map(|b| second(*b))).collect())
        .collect();
    let found = suggested(&lengths, &lanes);
    let together = found.together.as_ref().expect("two pay");
    let mut at: Vec<u64> = together.places.iter().map(|(candidate, _)| candidate.at.0).collect();
    at.sort_unstable();
    assert_eq!(at, [0x3000, 0x8000]);
    assert_eq!(found.best(), together.places);
    let predictions: Vec<Prediction> = together.places.iter().map(|(_, prediction)| prediction.clone()).collect();
    let replayed = predicted(&lengths, &lanes, &predictions);
    assert_eq!(replayed.counts.fetches(), together.outcome.counts.fetches());
    // Each saves nearly three quarters of its bodies; the better one alone leaves the other's.
    let (one, both) = (found.tried[0].issued(UNIT).unwrap(), replayed.counts.fetches());
    assert!(both + 16 * 30 / 2 < one, "{one} {both}");
    assert_eq!(found.tried[0].candidate.at, Pc(0x3000));
}

#[test]
fn no_second_place_is_suggested_where_none_adds_anything() {
    assert!(suggested(&[0, 1, 0, 40, 1, 1], &delayed(4, 16)).together.is_none());
}

#[test]
fn a_point_that_is_rarely_entered_makes_dynamic_deconfliction_beat_static() {
    // An expensive prolog and epilog; of 4 lanes one reaches the place, in one turn of 16, and half of them to another
    // arm of the same branch in each.
    let lengths = [0, 40, 0, 1, 40, 1, 1];
    let turn = |lane: usize, turn: usize| match (lane, turn) {
        (2, 7) => vec![1, 3, 4],
        _ if (lane + turn).is_multiple_of(2) => vec![1, 6, 4],
        _ => vec![1, 4],
    };
    let lanes: Vec<Vec<usize>> = (0..4).map(|lane| (0..16).flat_map(|t| turn(lane, t)).chain([5]).collect()).collect();
    let of = |deconflict| predicted(&lengths, &lanes, &[Prediction { deconflict, ..Prediction::at(Pc(0x3000)) }]);
    let (dynamic, fixed) = (of(Deconflict::Dynamic), of(Deconflict::Static));
    assert!(3 * dynamic.counts.fetches() < 2 * fixed.counts.fetches(), "{:?} {:?}", dynamic.counts, fixed.counts);
    // Every lane ran the same under both.
    assert_eq!(dynamic.lane_instructions, fixed.lane_instructions);
    assert_eq!(dynamic.counts.thread_instructions(), fixed.counts.thread_instructions());
    assert_eq!((dynamic.tally.yields, fixed.tally.yields), (Some(0), Some(0)));
    // Where all lanes reach it in each turn they part by nothing, and neither strategy has anything to do.
    let always: Vec<Vec<usize>> = vec![[1, 3, 4].repeat(8).into_iter().chain([5]).collect(); 4];
    let of = |deconflict| {
        predicted(&lengths, &always, &[Prediction { deconflict, ..Prediction::at(Pc(0x3000)) }]).counts.fetches()
    };
    assert_eq!(of(Deconflict::Dynamic), of(Deconflict::Static));
}

#[test]
fn structured_control_flow_is_estimated_by_its_meetings() {
    // if (a || b) x; y: 1 asks a, 2 asks b, 3 is x, 4 y. Lanes for which a holds reach x before those for which b does,
    // and wait for each other behind it.
    let lengths = [0, 1, 1, 10, 1];
    let lane = |lane: usize| match lane {
        0 => vec![1, 3, 4],
        1 | 2 => vec![1, 2, 3, 4],
        _ => vec![1, 2, 4],
    };
    let lanes = lanes_of(&lengths, &(0..4).map(lane).collect::<Vec<_>>());
    let source = InMemory::new(&lanes);
    let prepared = Prepared::new(&source, true).unwrap();
    let model = Spec::parse("barrier").unwrap();
    let search = Search { model: &model, most: 8, thresholds: &[], together: 1, least: 0.0, unit: UNIT };
    let found = suggest(&prepared, search, &ReplayOptions::default(), &|_, _| {}).unwrap();
    let all = passes(&prepared, search, &ReplayOptions::default(), &found.before).unwrap();
    let structured =
        replay::replay(&source, &[Spec::parse("tf-stack").unwrap()], &ReplayOptions::default(), None, &|_, _| {});
    let fetches = structured.unwrap()[0].counts.fetches();
    // x is run once for lanes 0 to 2, not for 0 and then for 1 and 2.
    assert_eq!((found.before.counts.fetches(), fetches), (1 + 1 + 10 + 10 + 1, 1 + 1 + 10 + 1));
    let (before, basis) = (found.before.counts.fetches(), Basis::AtMost);
    let expected = Estimate { pass: Pass::Linearize, at: None, callee: None, before, issued: fetches, basis };
    assert!(all.contains(&expected), "{all:?}");
}
