//! Results are the same in every form, whatever the number of workers, and from text and gzipped traces alike.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{root, run, succeed};
use serde_json::Value;

fn vector(case: u32) -> String {
    root().join(format!("heuristics/conformance/case-{case:02}.trace.gz")).to_str().unwrap().to_owned()
}

#[test]
fn json_has_what_is_promised() {
    let json: Value =
        serde_json::from_str(&succeed("replay", &["--heuristic", "all", "--schedule-hash", "--json", &vector(3)]))
            .unwrap();
    let results = json["results"].as_array().unwrap();
    assert_eq!(results.len(), heuristics::REGISTRY.len());
    for result in results {
        for name in [
            "fetches",
            "thread_instructions",
            "divergent_fetches",
            "divergent_instructions",
            "lower_bound",
            "upper_bound",
        ] {
            assert!(result[name].is_u64(), "{name}: {result}");
        }
        assert!(result["simt_efficiency"].is_f64() && result["schedule_fnv1a64"].is_string());
        assert_eq!(result["active_histogram"].as_array().unwrap().len(), 16);
    }
    let names: Vec<&str> = results.iter().map(|r| r["heuristic"].as_str().unwrap()).collect();
    for name in ["long:n=4", "maxfun-minpc:mode=1", "rd-minsp-pc:hysteresis=4,threshold=0,decrement=no"] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn csv_and_json_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    let arguments = ["--heuristic", "minpc,lee", "--csv", csv.to_str().unwrap(), "--json", "--memory", &vector(3)];
    let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
    let mut rows = csv::Reader::from_path(&csv).unwrap();
    let names: Vec<String> = rows.headers().unwrap().iter().map(str::to_owned).collect();
    for (row, result) in rows.records().zip(json["results"].as_array().unwrap()) {
        for (name, field) in names.iter().zip(row.unwrap().iter()) {
            let value = if result[name].is_null() { &json[name] } else { &result[name] };
            let shown = match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                Value::Object(counts) => {
                    counts.iter().map(|(key, count)| format!("{key}:{count}")).collect::<Vec<_>>().join(" ")
                }
                Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
                value => value.to_string(),
            };
            assert_eq!(field, shown, "{name}");
        }
    }
}

#[test]
fn one_worker_and_four_print_the_same() {
    let with = |workers: &str| {
        let arguments = ["--heuristic", "all", "--json", "--schedule-hash", "--warp-size", "3", "--workers", workers];
        succeed("replay", &[&arguments[..], &[&vector(1)]].concat())
    };
    assert_eq!(with("1"), with("4"));
}

#[test]
fn every_grouping_runs_every_lane_once() {
    let of = |group: &str| -> Value {
        let arguments = ["--json", "--check", "--warp-size", "4", "--group", group, &vector(1)];
        serde_json::from_str(&succeed("replay", &arguments)).unwrap()
    };
    let instructions: Vec<Value> = ["consecutive", "round-robin", "similarity"]
        .map(|g| of(g)["results"][0]["thread_instructions"].clone())
        .to_vec();
    assert!(instructions.iter().all(|i| *i == instructions[0] && i.as_u64() > Some(0)), "{instructions:?}");
}

#[test]
fn a_text_trace_and_its_dump_replay_alike() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("trace.txt");
    succeed("lockstep", &["dump", "--text", "-o", text.to_str().unwrap(), &vector(5)]);
    let hash = |trace: &str| {
        let json = succeed("replay", &["--json", "--schedule-hash", "--heuristic", "long", trace]);
        serde_json::from_str::<Value>(&json).unwrap()["results"][0]["schedule_fnv1a64"].clone()
    };
    assert_eq!(hash(text.to_str().unwrap()), hash(&vector(5)));
}

#[test]
fn the_schedule_file_holds_every_fetch() {
    let schedule = succeed("replay", &["--schedule", "-", "--heuristic", "minpc", &vector(12)]);
    let json: Value =
        serde_json::from_str(&succeed("replay", &["--json", "--heuristic", "minpc", &vector(12)])).unwrap();
    assert!(schedule.starts_with("heuristic minpc warp 0\n"));
    assert_eq!(schedule.lines().count() as u64 - 1, json["results"][0]["fetches"].as_u64().unwrap());
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let mut dump = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["dump", "--text", &vector(1)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(dump.stdout.take());
    let output = dump.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn rows_become_a_chart() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, svg) = (folder.path().join("rows.csv"), folder.path().join("chart.svg"));
    let csv = csv.to_str().unwrap();
    // Of two traces with several numbers of lanes and two warp sizes: what charts of several programs compare.
    let again = folder.path().join("again.trace.gz");
    fs::copy(vector(3), &again).unwrap();
    let mut all = Vec::new();
    for (trace, size) in [(&*vector(3), "2"), (&*vector(3), "4"), (&*vector(4), "2"), (again.to_str().unwrap(), "2")] {
        let rows = folder.path().join(format!("{}.csv", all.len()));
        succeed("replay", &["--heuristic", "all", "-W", size, "--csv", rows.to_str().unwrap(), trace]);
        all.push(rows.to_str().unwrap().to_owned());
    }
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    succeed("replay", &["--heuristic", "all", "--csv", csv, &vector(3)]);
    for kind in report::CHARTS.iter().map(|c| c.name()) {
        succeed("lockstep", &[&["plot"], &all[..], &["--kind", kind, "-o", svg.to_str().unwrap()]].concat());
        assert!(fs::read_to_string(&svg).unwrap().contains("minsp-pc"), "{kind}");
    }
    succeed("lockstep", &["plot", csv, "--kind", "divergent", "--shares", "-o", svg.to_str().unwrap()]);
    assert!(fs::read_to_string(&svg).unwrap().contains("share of thread instructions"));
    assert_eq!(run("lockstep", &["plot", csv, "--shares", "-o", svg.to_str().unwrap()]).status.code(), Some(2));
}

#[test]
fn help_of_every_command_names_the_exit_statuses() {
    for arguments in
        [&["--help"][..], &["replay", "--help"], &["trace", "--help"], &["plot", "--help"], &["dump", "--help"]]
    {
        assert!(!succeed("lockstep", arguments).is_empty());
    }
    let help = succeed("lockstep", &["--help"]);
    for (status, _) in cli::STATUSES {
        assert!(help.contains(&status.to_string()), "{status}");
    }
    assert_eq!(run("lockstep", &["nonsense"]).status.code(), Some(2));
}
