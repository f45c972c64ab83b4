//! `lockstep export`: what other tools read is what replay says.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::comparing::join_before_arm;
use crate::support::{root, succeed};
use serde_json::Value;

/// FFT with 16 threads, traced once for the benches.
fn stored() -> PathBuf {
    root().join("replay/benches/fft-p16-m12.trace.bin")
}

fn result() -> Value {
    let text = succeed("replay", &["--json", "--by", "cause", stored().to_str().unwrap()]);
    serde_json::from_str::<Value>(&text).unwrap()["results"][0].take()
}

#[test]
fn folded_stacks_sum_up_to_the_lost_slots() {
    let text = succeed("lockstep", &["export", "--format", "folded", stored().to_str().unwrap()]);
    let mut all = 0;
    for line in text.lines() {
        let (stack, slots) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?} has no number"));
        assert!(stack.ends_with(']') && stack.contains(";["), "{line} ends in a cause");
        all += slots.parse::<u64>().unwrap();
    }
    let lost = result()["lost_slots"].as_u64().unwrap();
    assert_eq!(all, lost);
    // The binary is not there: instructions stand for lines.
    assert!(text.contains("worker;transform;transpose_rows;transpose_patch;transpose_patch+0x"), "{text}");
}

#[test]
fn the_time_line_has_every_thread_instruction_of_every_lane() {
    let text = succeed("lockstep", &["export", "--format", "perfetto", stored().to_str().unwrap()]);
    let shown: Value = serde_json::from_str(&text).unwrap();
    let mut by_lane: HashMap<u64, u64> = HashMap::new();
    for event in shown["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X") {
        *by_lane.entry(event["tid"].as_u64().unwrap()).or_default() += event["dur"].as_u64().unwrap();
    }
    let result = result();
    let counters = shown["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "C");
    let counted: Vec<[f64; 2]> =
        counters.map(|e| [e["ts"].as_f64().unwrap(), e["args"]["lanes"].as_f64().unwrap()]).collect();
    let active: f64 = counted.windows(2).map(|two| (two[1][0] - two[0][0]) * two[0][1]).sum();
    assert_eq!(Some(active), result["thread_instructions"].as_f64());
    let expected = result["lane_instructions"].clone();
    let found: Vec<u64> = (1..=16).map(|thread| by_lane[&thread]).collect();
    assert_eq!(serde_json::json!(found), expected);
}

#[test]
fn without_a_model_that_of_the_machine_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let trace = join_before_arm(folder.path(), "40");
    let folded =
        |options: &[&str]| succeed("lockstep", &[&["export", "--format", "folded"], options, &[&trace]].concat());
    let json = succeed("replay", &["--json", &trace]);
    let row = serde_json::from_str::<Value>(&json).unwrap()["results"][0].take();
    let (model, seats) = (row["heuristic"].as_str().unwrap(), row["warp_size"].to_string());
    assert_eq!((seats.as_str(), &row["warps"]), ("32", &2.into()), "{row}");
    assert_eq!(folded(&[]), folded(&["--model", model, "--warp-size", &seats]));
    assert_ne!(folded(&[]), folded(&["--model", model]), "a model that is named has all lanes in one warp");
    assert_ne!(folded(&[]), folded(&["--model", "minsp-pc", "--warp-size", &seats]));
}
