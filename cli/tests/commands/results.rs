//! Results are the same in every form, whatever the number of workers, and from text and gzipped traces alike.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{build, root, run, succeed};
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

/// A program whose loop turns so often, recorded; turn i of it runs a second loop i % 50 times.
fn turns(folder: &Path, count: usize) -> String {
    let text = "#include <stdlib.h>\nint main(int argc, char **argv) {\n    volatile long sum = 0;\n    \
                long i = 0, n = atol(argv[argc - 1]);\n    do {\n        \
                for (long j = 0; j < i % 50; j++) sum += j;\n    } while (++i < n);\n    return 0;\n}\n";
    let (source, program) = (folder.join("turns.c"), folder.join("turns"));
    fs::write(&source, text).unwrap();
    build(&source, &program, &["-O1", "-g"]);
    let trace = folder.join(format!("{count}.bin")).to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program.to_str().unwrap(), &count.to_string()]);
    trace
}

#[test]
fn results_list_4096_lanes_and_count_more_by_length_and_a_file_has_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lanes.csv").to_str().unwrap().to_owned();
    for count in [4096, 4097] {
        let trace = turns(folder.path(), count);
        let lanes = ["--loop", "turns.c:7", "-W", "32", &trace];
        let json = succeed("replay", &[&["--json", "--lanes-out", &file, "-H", "minpc,ipdom"], &lanes[..]].concat());
        let results = serde_json::from_str::<Value>(&json).unwrap()["results"].take();
        let text = fs::read_to_string(&file).unwrap();
        let mut rows = text.lines();
        assert_eq!(rows.next(), Some("locks,lane,thread,generation,thread_instructions"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(',').collect()).collect();
        assert_eq!(rows.len(), count);
        for (lane, row) in rows.iter().enumerate() {
            assert_eq!(row[..4], ["serialize", &lane.to_string(), "0", "0"]);
        }
        let lengths: Vec<u64> = rows.iter().map(|row| row[4].parse().unwrap()).collect();
        // A lane's length grows by the same with each turn of the inner loop.
        assert!((0..50).all(|i| lengths[i + 50] == lengths[i] && (i == 0 || lengths[i] > lengths[i - 1])));
        let mut by_length = vec![0u64; 65];
        lengths.iter().for_each(|n| by_length[(0..64).find(|bits| n >> bits == 0).unwrap_or(64)] += 1);
        by_length.truncate(1 + by_length.iter().rposition(|lanes| *lanes > 0).unwrap());
        for result in results.as_array().unwrap() {
            assert_eq!(result["thread_instructions"], lengths.iter().sum::<u64>());
            assert_eq!(result["lane_histogram"], serde_json::json!(by_length));
            let listed = if count > 4096 { Value::Null } else { serde_json::json!(lengths) };
            assert_eq!(result["lane_instructions"], listed);
        }
        // What is written beside the table, to standard output, and under two rules for locks.
        assert_eq!(succeed("replay", &[&["--lanes-out", "-"], &lanes[..]].concat()), text);
        succeed("replay", &[&["--lanes-out", &file, "--locks", "serialize,ignore"], &lanes[..]].concat());
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1 + 2 * count);
    }
    let both = run("replay", &["--lanes-out", "-", "--json", &vector(1)]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn a_page_of_many_lanes_is_no_larger_than_one_of_few() {
    let folder = tempfile::tempdir().unwrap();
    let size = |count: usize| {
        let (trace, page) = (turns(folder.path(), count), folder.path().join(format!("{count}.html")));
        succeed("lockstep", &["report", &trace, "--loop", "turns.c:7", "-W", "32", "-o", page.to_str().unwrap()]);
        fs::metadata(page).unwrap().len()
    };
    let (few, many) = (size(400), size(12_000));
    assert!(many < few + few / 2, "{few} {many}");
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
