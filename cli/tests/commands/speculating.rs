//! The benchmarks of speculative reconvergence (workloads/speculation): what collecting lanes at their marks gains,
//! with which thresholds, and whether `lockstep suggest` finds the place itself. Damani et al. (CGO 2020), section 5.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{root, succeed};

/// A trace of a benchmark with 32 threads and so many tasks.
fn traced(folder: &Path, program: &str, tasks: u32) -> PathBuf {
    traced_by(folder, program, 32, tasks)
}

/// The same with so many threads.
fn traced_by(folder: &Path, program: &str, threads: u32, tasks: u32) -> PathBuf {
    let (binary, trace) = (folder.join(program), folder.join(format!("{program}.{tasks}")));
    let source = root().join(format!("workloads/speculation/{program}/{program}.c"));
    let mut command = Command::new("gcc");
    command.args(["-std=gnu11", "-O2", "-g", "-fno-math-errno", "-pthread", "-I"]).arg(root().join("include"));
    let built = command.arg("-o").args([&binary, &source]).arg("-lm").output().expect("gcc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let [threads, tasks] = [threads, tasks].map(|number| number.to_string());
    succeed("trace", &["-o", trace.to_str().unwrap(), binary.to_str().unwrap(), "-p", &threads, "-n", &tasks]);
    trace
}

/// The paper's mechanism alone. Under `hanoi` lanes of mcb, mc-gpu and gpu-mcml meet at the marks without a prediction.
const MODEL: &str = "barrier:placement=structured,predicate=4";

/// The rows without and with a prediction.
fn replayed(trace: &Path, prediction: &str) -> [Value; 2] {
    under(MODEL, trace, prediction)
}

fn under(model: &str, trace: &Path, prediction: &str) -> [Value; 2] {
    let how = ["-H", model, "--predict", prediction, "--check", "--schedule-hash", "--json", "-W", "32"];
    let arguments = [&how[..], &[trace.to_str().unwrap()]].concat();
    let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
    [0, 1].map(|i| json["results"][i].clone())
}

fn fetches(row: &Value) -> u64 {
    row["fetches"].as_u64().unwrap()
}

/// What is issued: fetches, and instructions of the predictions' barriers.
fn issued(row: &Value) -> u64 {
    fetches(row) + row["barrier_operations"].as_u64().unwrap()
}

#[test]
fn rsbench_pathtracer_and_gpu_mcml_come_half_of_the_way_to_full_warps() {
    let folder = tempfile::tempdir().unwrap();
    for (program, tasks) in [("rsbench", 512), ("pathtracer", 256), ("gpu-mcml", 384)] {
        let [before, after] = replayed(&traced(folder.path(), program, tasks), "marks");
        // Figure 3(b)(ii) packs the inner loops' turns of all lanes into full warps, and leaves prolog and epilog as
        // they are. No schedule of that kind has fewer fetches than one in which everything is packed.
        let packed = before["thread_instructions"].as_u64().unwrap() / 32;
        let (gained, to_gain) = (fetches(&before) - fetches(&after), fetches(&before) - packed);
        assert!(2 * gained >= to_gain, "{program}: {} to {}, packed {packed}", fetches(&before), fetches(&after));
    }
}

#[test]
fn a_wait_gains_nothing_where_lanes_that_yielded_meet_already() {
    // By an H200's counters, without any wait and with one of all lanes at the mark, in thousandths.
    let folder = tempfile::tempdir().unwrap();
    for (program, without, with) in [("mcb", 292, 303), ("mc-gpu", 201, 212)] {
        let trace = traced_by(folder.path(), program, 256, 2048);
        let [before, after] = under("hanoi:predicate=4", &trace, "marks");
        assert_eq!(before["fetches"], after["fetches"], "{program}");
        let efficiency = (before["gpu_efficiency"].as_f64().unwrap() * 1000.0) as i64;
        assert!((efficiency - without).abs() < 40 && (efficiency - with).abs() < 40, "{program}: {efficiency}");
        // Else they wait for each other behind the inner loop.
        let [apart, _] = under(MODEL, &trace, "marks");
        assert!(10 * fetches(&apart) > 11 * fetches(&before), "{program}");
    }
}

#[test]
fn lanes_of_a_program_that_the_rule_was_not_made_by_meet_where_they_yield() {
    // By an H200's counters mcx has an efficiency of 35.2% (docs/fidelity.md).
    let folder = tempfile::tempdir().unwrap();
    let [binary, trace] = ["mcx", "mcx.trace"].map(|name| folder.path().join(name));
    let mut command = Command::new("gcc");
    command.args(["-std=gnu11", "-O2", "-g", "-pthread"]);
    for headers in ["include", "workloads/include"] {
        command.arg("-I").arg(root().join(headers));
    }
    let source = root().join("workloads/linearization/mcx/mcx.c");
    assert!(command.arg("-o").args([&binary, &source]).arg("-lm").status().expect("gcc runs").success());
    succeed("trace", &["-o", trace.to_str().unwrap(), binary.to_str().unwrap(), "-p", "256"]);
    let efficiency = |model: &str| {
        let how = ["-H", model, "--json", "-W", "32", trace.to_str().unwrap()];
        let json: Value = serde_json::from_str(&succeed("replay", &how)).unwrap();
        json["results"][0]["gpu_efficiency"].as_f64().unwrap()
    };
    assert!((efficiency("hanoi:predicate=4") - 0.352).abs() < 0.03, "{}", efficiency("hanoi:predicate=4"));
    assert!(efficiency(MODEL) < 0.3, "{}", efficiency(MODEL));
}

#[test]
fn pathtracer_is_best_with_all_lanes_and_xsbench_with_eight_or_fewer() {
    let folder = tempfile::tempdir().unwrap();
    let thresholds = [32, 16, 8, 4];
    let best = |program: &str, tasks: u32| {
        let trace = traced(folder.path(), program, tasks);
        let of = |lanes: u32| issued(&replayed(&trace, &format!("marks,threshold={lanes}"))[1]);
        let all: Vec<(u64, u32)> = thresholds.iter().map(|lanes| (of(*lanes), *lanes)).collect();
        let [before, _] = replayed(&trace, "marks");
        let best = *all.iter().min().unwrap();
        assert!(best.0 < fetches(&before), "{program}: {all:?}");
        best.1
    };
    assert_eq!(best("pathtracer", 256), 32);
    assert!(best("xsbench", 1024) <= 8);
}

#[test]
fn the_marked_place_is_suggested_first_of_those_that_look_alike() {
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        ("rsbench", 128),
        ("xsbench", 128),
        ("mcb", 512),
        ("pathtracer", 128),
        ("mc-gpu", 512),
        ("mummer", 256),
        ("meiyamd5", 128),
        ("gpu-mcml", 64),
    ];
    let mut others = Vec::new();
    for (program, tasks) in programs {
        let trace = traced(folder.path(), program, tasks);
        let json: Value = serde_json::from_str(&succeed(
            "lockstep",
            &["suggest", "-H", MODEL, "--candidates", "8", "--together", "1", "--json", trace.to_str().unwrap()],
        ))
        .unwrap();
        let best = &json["places"][0];
        let trial = &best["trials"][0];
        let lanes = trial["threshold"].as_u64().unwrap_or(32);
        let place = format!("{},threshold={lanes}", best["address"].as_str().unwrap());
        let hash = |prediction: &str| replayed(&trace, prediction)[1]["schedule_fnv1a64"].clone();
        if hash(&place) != hash(&format!("marks,threshold={lanes}")) {
            others.push(format!("{program}: {}", best["place"]));
        }
        let before = json["before"]["fetches"].as_u64().unwrap();
        assert!(trial["fetches"].as_u64().unwrap() < before, "{program}: {json}");
        // The places that look alike gain less, if anything.
        let of_place = |place: &Value| issued(&place["trials"][0]);
        let places = json["places"].as_array().unwrap();
        let decoys = places.iter().filter(|place| 50 * of_place(place) > 51 * of_place(best)).count();
        assert!(decoys >= 3, "{program}: {json}");
    }
    assert!(others.len() <= 2, "{others:?}");
}
