//! The conformance vectors: 24 random programs under 21 configurations, against what the simulator of Milanez et al.
//! does with them, to the last bit. See heuristics/conformance/README.md.

use std::path::{Path, PathBuf};

use heuristics::Spec;
use replay::metrics::{Checker, MemoryClasses, ScheduleHashes, Traffic};
use replay::view::{View, ViewOptions};
use replay::{Outcome, ReplayOptions, ScheduleFile, replay};
use serde_json::Value;
use trace_format::Trace;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../heuristics/conformance")
}

/// The simulator's names and parameters as ours.
fn spec(result: &Value) -> Spec {
    let parameters: Vec<&str> = result["parameters"].as_str().unwrap().split(' ').collect();
    let text = match result["heuristic"].as_str().unwrap() {
        "MinPC" => "minpc".to_owned(),
        "MinSP_PC" => "minsp-pc".to_owned(),
        "MaxFun_MinPC" => format!("maxfun-minpc:mode={}", parameters[0]),
        "Long" => format!("long:n={}", parameters[0]),
        "Long_MinPC" => format!("long-minpc:n={}", parameters[0]),
        "Long_MinSP_PC" => format!("long-minsp-pc:n={}", parameters[0]),
        "Long_IRB" => format!("long-irb:n={}", parameters[0]),
        "RD_MinSP_PC" => {
            let [hysteresis, threshold, decrement] = parameters[..] else { panic!("{parameters:?}") };
            format!("rd-minsp-pc:hysteresis={hysteresis},threshold={threshold},decrement={decrement}")
        }
        "Lee" => "lee".to_owned(),
        "RoundRobin" => "round-robin".to_owned(),
        "RoundRobin_Eq" => "round-robin-eq".to_owned(),
        name => panic!("no heuristic stands for {name}"),
    };
    Spec::parse(&text).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

fn compare(case: &str, expected: &Value, outcome: &Outcome, head: &[String]) {
    let context = format!("{case} {}", outcome.heuristic);
    assert!(outcome.is_complete(), "{context}: {}", outcome.status());
    let expected_head: Vec<String> = expected["schedule_head"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| format!("{} {}", f[0].as_str().unwrap(), f[1].as_str().unwrap()))
        .collect();
    assert_eq!(&head[..expected_head.len()], expected_head, "{context}");
    assert_eq!(outcome.counts.fetches(), expected["fetches"].as_u64().unwrap(), "{context}");
    assert_eq!(outcome.counts.thread_instructions(), expected["instructions"].as_u64().unwrap(), "{context}");
    assert_eq!(outcome.counts.active, numbers(&expected["active_histogram"]), "{context}");
    let hash = format!("{:016x}", outcome.found::<ScheduleHashes>().unwrap().value());
    assert_eq!(hash, expected["schedule_fnv1a64"].as_str().unwrap(), "{context}");
    let memory = &outcome.found::<MemoryClasses>().unwrap().by_active;
    let by = |class: fn(&replay::metrics::Classes) -> u64| memory.iter().map(class).collect::<Vec<_>>();
    let classes = &expected["memory_by_active"];
    assert_eq!(by(|c| c.uniform), numbers(&classes["uniform"]), "{context}");
    // That simulator calls affine accesses with a negative stride scattered.
    assert_eq!(by(|c| c.affine - c.affine_downwards), numbers(&classes["affine"]), "{context}");
    assert_eq!(by(|c| c.scattered + c.affine_downwards), numbers(&classes["scattered"]), "{context}");
    assert_eq!(by(|c| c.total()), numbers(&classes["total"]), "{context}");
}

#[test]
fn every_vector_matches_to_the_last_bit() {
    let expected: Value = serde_json::from_slice(&std::fs::read(folder().join("expected.json")).unwrap()).unwrap();
    let mut compared = 0;
    for case in expected.as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        let trace = Trace::open(&folder().join(format!("{name}.trace.gz"))).unwrap();
        let view = View::new(&trace, &ViewOptions::default()).unwrap();
        let lengths = numbers(&case["instructions_per_thread"]);
        for result in case["results"].as_array().unwrap() {
            let options = ReplayOptions {
                measures: vec![
                    ScheduleHashes::measure(),
                    MemoryClasses::measure(),
                    Traffic::measure(),
                    Checker::measure(),
                ],
                ..ReplayOptions::default()
            };
            let mut schedule = Vec::new();
            let file = ScheduleFile { out: &mut schedule, path: Path::new("memory") };
            let outcomes = replay(&view, &[spec(result)], &options, Some(file), &|_, _| {}).unwrap();
            assert_eq!(outcomes[0].lane_instructions, lengths, "{name}");
            let head: Vec<String> =
                String::from_utf8(schedule).unwrap().lines().skip(1).take(12).map(str::to_owned).collect();
            compare(name, result, &outcomes[0], &head);
            // Runs of segments, which steps with metrics don't use, must give the same counts.
            let by_runs = replay(&view, &[spec(result)], &ReplayOptions::default(), None, &|_, _| {}).unwrap();
            assert_eq!(by_runs[0].counts, outcomes[0].counts, "{name} {}", outcomes[0].heuristic);
            compared += 1;
        }
    }
    assert_eq!(compared, 24 * 21);
}

#[test]
fn models_of_gpus_replay_every_trace() {
    let specs = Spec::parse_list(
        "ipdom,wave,hanoi,hanoi:placement=binary,hanoi:placement=nak,barrier,barrier:placement=structured,\
         barrier:placement=nak,barrier:meet=anywhere,distance:placement=structured,dws:placement=structured",
    )
    .unwrap();
    for case in 0..24 {
        let trace = Trace::open(&folder().join(format!("case-{case:02}.trace.gz"))).unwrap();
        let view = View::new(&trace, &ViewOptions::default()).unwrap();
        let options = ReplayOptions { measures: vec![Checker::measure()], ..ReplayOptions::default() };
        let outcomes = replay(&view, &specs, &options, None, &|_, _| {}).unwrap();
        for outcome in &outcomes {
            let context = format!("case {case:02} {}", outcome.heuristic);
            assert!(outcome.is_complete(), "{context}: {}", outcome.status());
            assert_eq!(outcome.counts.thread_instructions(), outcome.upper_bound, "{context}");
            assert!(outcome.counts.fetches() >= outcome.lower_bound, "{context}");
        }
        let of = |model: &str| &outcomes.iter().find(|o| o.heuristic == model).unwrap().counts;
        let stack = of("ipdom:placement=binary,predicate=0");
        assert_eq!(stack, of("hanoi:registers=16,placement=binary,predicate=0"), "case {case:02}");
        assert_eq!(
            stack,
            of("barrier:yield=yes,meet=barriers,placement=binary,order=pc,predicate=0"),
            "case {case:02}"
        );
    }
}
