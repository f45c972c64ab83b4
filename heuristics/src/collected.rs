//! Loops whose inner trips differ (Damani et al., CGO 2020, figures 3 and 6), at random: what `barrier` and `hanoi` do
//! with their lanes against what the paper promises, and against figure 6 run block by block.

use crate::example::{schedule_predicted, tally_predicted};
use crate::warp::prediction::Prediction;
use trace_format::Pc;

/// The trips of the inner loop in each iteration of the outer one, at least one.
type Trips = Vec<u32>;

/// 1 is the prolog, 2 the inner loop's body, 3 the epilog, 9 what stands behind.
fn lane(trips: &Trips) -> String {
    let turn = |trips: &u32| format!("1 {}3b ", "2b ".repeat(*trips as usize));
    trips.iter().map(turn).collect::<String>() + "9"
}

/// Lanes of 1 to 4 iterations with 1 to 6 trips, by a number.
fn random(seed: u64) -> Vec<Trips> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let lanes = 2 + below(6);
    (0..lanes).map(|_| (0..1 + below(4)).map(|_| 1 + below(6) as u32).collect()).collect()
}

fn scheduled(model: &str, lanes: &[Trips], threshold: Option<usize>) -> String {
    let lanes: Vec<String> = lanes.iter().map(lane).collect();
    let lanes: Vec<&str> = lanes.iter().map(String::as_str).collect();
    schedule_predicted(model, &lanes, &[Prediction { threshold, ..Prediction::at(Pc(2)) }])
}

/// The fetches of a schedule: the block, and its lanes.
fn fetches(schedule: &str) -> Vec<(u32, Vec<usize>)> {
    let number = |text: &str| text.parse::<usize>().unwrap();
    let lanes = |text: &str| -> Vec<usize> {
        let of = |part: &str| match part.split_once('-') {
            Some((first, last)) => (number(first)..=number(last)).collect(),
            None => vec![number(part)],
        };
        text.split(',').flat_map(of).collect()
    };
    let fetch = |text: &str| {
        let (block, own) = text.split_once(':').unwrap();
        (block.parse().unwrap(), lanes(own))
    };
    schedule.split(' ').map(fetch).collect()
}

/// Registers of figure 6: masks of lanes.
#[derive(Default)]
struct Registers {
    all: Vec<usize>,
    temporary: Vec<usize>,
    count: Vec<usize>,
    /// One for each time that lanes parted, the innermost last: its mask, and who waits.
    post_dominator: Vec<(Vec<usize>, Vec<usize>)>,
}

impl Registers {
    /// JoinBarrier(bPdom), unless they are on the innermost one.
    fn part(&mut self, own: &[usize]) {
        let holds_all = |mask: &[usize]| own.iter().all(|lane| mask.contains(lane));
        if !self.post_dominator.iter().any(|(mask, _)| holds_all(mask)) {
            let mut mask = own.to_vec();
            mask.sort_unstable();
            self.post_dominator.push((mask, Vec::new()));
        }
    }

    /// WaitBarrier(bPdom): whether the lane is on one.
    fn wait(&mut self, lane: usize) -> bool {
        let inner = self.post_dominator.iter_mut().rfind(|(mask, _)| mask.contains(&lane));
        inner.map(|(_, waiting)| join(waiting, &[lane])).is_some()
    }
}

fn cancel(register: &mut Vec<usize>, lane: usize) {
    register.retain(|other| *other != lane);
}

fn join(register: &mut Vec<usize>, lanes: &[usize]) {
    for lane in lanes {
        cancel(register, *lane);
        register.push(*lane);
    }
    register.sort_unstable();
}

/// Lanes that run together: whether they passed the point, the block at which they stand, and they.
type Group = (bool, u32, Vec<usize>);

/// Which group goes first; none where there is none.
type First = fn(&[Group]) -> Option<usize>;

/// The models, and which group goes first under each: in the order of the code, or that of a stack; who passed last.
const MODELS: [(&str, First); 2] = [
    ("barrier", |groups| (0..groups.len()).min_by_key(|i| &groups[*i])),
    ("hanoi", |groups| (0..groups.len()).max_by_key(|i| !groups[*i].0)),
];

/// Figure 6, one block of its control-flow graph after the other, by the primitives that stand in them: join, wait,
/// cancel, the number of lanes that arrived, and moves of masks. `threshold` lanes are enough, so that those wait that
/// are fewer.
///
/// What it leaves open, and one thing that it does not: who has waited for `bCount` is off it; groups run in the order
/// of the code, those last that stand at the convergence point and need not wait, and these together. `barrier` has
/// lanes join `bPdom` where they part, not before the loop: who waited at the point is on it again behind the next
/// parting.
fn figure_6(lanes: &[Trips], threshold: usize, first: First) -> String {
    let everyone: Vec<usize> = (0..lanes.len()).collect();
    let mut registers = Registers::default();
    // BB0: JoinBarrier(bAll); bTemp = bAll.
    join(&mut registers.all, &everyone);
    registers.temporary.clone_from(&registers.all);
    let mut left: Vec<Vec<u32>> = lanes.iter().map(|trips| trips.iter().rev().copied().collect()).collect();
    // Groups that can run: whether they passed, the block, the lanes. Lanes that wait, by register.
    let mut groups = vec![(false, 1, everyone)];
    let mut at_temporary: Vec<usize> = Vec::new();
    let (mut schedule, mut ended) = (Vec::new(), Vec::new());
    let shown = |lanes: &[usize]| {
        let set: crate::LaneSet = lanes.iter().map(|lane| crate::Lane(*lane as u8)).collect();
        set.to_string()
    };
    loop {
        // WaitBarrier: who is waited for has come.
        while let Some(open) = registers.post_dominator.iter().rposition(|(mask, waiting)| mask == waiting) {
            let (lanes, _) = registers.post_dominator.remove(open);
            let goes: Vec<usize> = lanes.into_iter().filter(|lane| !registers.wait(*lane)).collect();
            if !goes.is_empty() {
                groups.push((false, 3, goes));
            }
        }
        if !at_temporary.is_empty() && at_temporary == registers.temporary {
            // BB6: bTemp = bAll.
            registers.temporary.clone_from(&registers.all);
            at_temporary.iter().for_each(|lane| cancel(&mut registers.count, *lane));
            groups.push((false, 2, std::mem::take(&mut at_temporary)));
        }
        let Some(next) = first(&groups) else { break };
        let (_, block, own) = groups.remove(next);
        schedule.push(format!("{block}:{}", shown(&own)));
        let mut arrive = |own: Vec<usize>, registers: &mut Registers, groups: &mut Vec<Group>| {
            if own.is_empty() {
                return;
            }
            // BB2: JoinBarrier(bCount); p = arrivedThreads(bCount) < threshold.
            join(&mut registers.count, &own);
            if registers.count.len() < threshold {
                // BB4: CancelBarrier(bPdom); BB6: WaitBarrier(bTemp).
                for (mask, _) in &mut registers.post_dominator {
                    own.iter().for_each(|lane| cancel(mask, *lane));
                }
                join(&mut at_temporary, &own);
                return;
            }
            // BB5: bTemp = bCount; BB6: WaitBarrier(bTemp), where all of it are; bTemp = bAll.
            let mut passing = std::mem::take(&mut registers.count);
            at_temporary.clear();
            groups.retain(|(passes, _, lanes)| {
                if *passes {
                    join(&mut passing, lanes);
                }
                !passes
            });
            groups.push((true, 2, passing));
        };
        match block {
            1 => arrive(own, &mut registers, &mut groups),
            2 => {
                let (mut leaves, mut stays) = (Vec::new(), Vec::new());
                for &lane in &own {
                    let trips = left[lane].last_mut().unwrap();
                    *trips -= 1;
                    if *trips == 0 { leaves.push(lane) } else { stays.push(lane) }
                }
                if !leaves.is_empty() && !stays.is_empty() {
                    registers.part(&own);
                }
                arrive(stays, &mut registers, &mut groups);
                // BB7: WaitBarrier(bPdom), for those that are on it.
                let goes: Vec<usize> = leaves.into_iter().filter(|lane| !registers.wait(*lane)).collect();
                if !goes.is_empty() {
                    groups.push((false, 3, goes));
                }
            }
            3 => {
                let mut again = Vec::new();
                for lane in own {
                    left[lane].pop();
                    if left[lane].is_empty() {
                        // BB8: CancelBarrier(bTemp); CancelBarrier(bAll).
                        cancel(&mut registers.temporary, lane);
                        cancel(&mut registers.all, lane);
                        ended.push(lane);
                    } else {
                        again.push(lane);
                    }
                }
                if !again.is_empty() {
                    groups.push((false, 1, again));
                }
            }
            _ => {}
        }
        if ended.len() == lanes.len() && block != 9 {
            groups.push((false, 9, (0..lanes.len()).collect()));
        }
    }
    schedule.join(" ")
}

#[test]
fn a_body_is_run_for_all_that_still_have_to_run_it_or_for_as_many_as_are_enough() {
    for seed in 0..2_000 {
        let lanes = random(seed);
        for (threshold, (model, _)) in
            [None, Some(2), Some(3), Some(5)].into_iter().flat_map(|of| MODELS.map(|model| (of, model)))
        {
            let schedule = scheduled(model, &lanes, threshold);
            let mut left: Vec<u32> = lanes.iter().map(|trips| trips.iter().sum()).collect();
            for (_, own) in fetches(&schedule).into_iter().filter(|(block, _)| *block == 2) {
                let others = (0..lanes.len()).filter(|lane| left[*lane] > 0 && !own.contains(lane)).count();
                // Fewer go only once the rest have left for good.
                let is_enough = threshold.is_some_and(|threshold| own.len() >= threshold);
                assert!(others == 0 || is_enough, "{seed} {threshold:?} {lanes:?}: {schedule}");
                own.iter().for_each(|lane| left[*lane] -= 1);
            }
            assert!(left.iter().all(|left| *left == 0));
        }
    }
}

#[test]
fn soft_barriers_do_what_figure_6_does_block_by_block() {
    let worked = [vec![3, 1], vec![3, 1], vec![1, 3]];
    let expected = "1:0-2 2:0-2 2:0-1 2:0-1 3:0-2 1:0-2 2:0-2 3:0-1 2:2 2:2 3:2 9:0-2";
    assert_eq!(figure_6(&worked, 2, MODELS[0].1), expected);
    assert_eq!(scheduled("barrier", &worked, Some(2)), expected);
    let mut differ = Vec::new();
    for seed in 0..2_000 {
        let lanes = random(seed);
        // Without an outer loop the region ends before the epilog.
        if lanes.iter().all(|trips| trips.len() == 1) {
            continue;
        }
        for (threshold, (model, first)) in [2, 3, 5].into_iter().flat_map(|threshold| MODELS.map(|of| (threshold, of)))
        {
            let (ours, figure) = (scheduled(model, &lanes, Some(threshold)), figure_6(&lanes, threshold, first));
            if ours != figure {
                differ.push((seed, model, threshold, lanes.clone(), ours, figure));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ: {:#?}", differ.len(), &differ[..differ.len().min(3)]);
}

/// Figure 2(a): 1 prolog, 2 the condition, 3 the expensive code, 4 epilog.
const DELAYED: [&str; 2] = ["1 2b 3 4b 1 2b 4b 5", "1 2b 4b 1 2b 3 4b 5"];

fn at_3() -> Prediction {
    Prediction::at(Pc(3))
}

/// Operations on barriers, and instructions of the code by which lanes wait.
fn taken(lanes: &[&str], prediction: Prediction) -> (Option<u64>, Option<u64>) {
    let tallies = ["barrier", "hanoi"].map(|model| tally_predicted(model, lanes, std::slice::from_ref(&prediction)));
    let [barrier, hanoi] = tallies.map(|tally| (tally.barrier_operations, tally.wait_instructions));
    assert_eq!(barrier, hanoi);
    hanoi
}

#[test]
fn the_barriers_of_a_prediction_take_instructions() {
    // Both join together (2), lane 0 waits at 3 (1), and so does lane 1 (1), both go on and join again (1), lane 1
    // cancels as it leaves (2), and lane 0 after another turn (2).
    // In code: join (3), come twice (2 each), go on (5; with a threshold 7), leave twice (4 each).
    assert_eq!(taken(&DELAYED, at_3()), (Some(9), Some(20)));
    assert_eq!(taken(&DELAYED, Prediction { threshold: Some(2), ..at_3() }), (Some(17), Some(22)));
    assert_eq!(tally_predicted("barrier", &DELAYED, &[]).barrier_operations, None);
    // Lanes that stay together wait and join again all the same: at 3, between 2 to join and 2 to cancel.
    assert_eq!(taken(&["1 2b 3 4b 5", "1 2b 3 4b 5"], at_3()), (Some(6), Some(14)));
}

#[test]
fn barriers_of_predictions_take_registers_of_hanoi() {
    // Of DELAYED: where lanes part at 2, one is filled behind the loop and one for the branch; this one is not where
    // lane 0 waits at once. The prediction has one more, with a threshold three.
    let spills = |registers: usize, predictions: &[Prediction]| {
        let tally = tally_predicted(&format!("hanoi:registers={registers}"), &DELAYED, predictions);
        tally.barrier_spills.unwrap()
    };
    assert!(spills(2, &[]) == 0 && spills(1, &[]) > 0);
    assert!(spills(2, &[at_3()]) == 0 && spills(1, &[at_3()]) > 0);
    let soft = Prediction { threshold: Some(2), ..at_3() };
    assert!(spills(4, std::slice::from_ref(&soft)) == 0 && spills(3, &[soft]) > 0);
}
