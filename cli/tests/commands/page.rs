//! `lockstep report`: the numbers on the page are those of `replay --json`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{build, root, run, succeed};
use serde_json::Value;

/// FFT with 16 threads, traced once for the benches; its binary is not there.
fn stored() -> PathBuf {
    root().join("replay/benches/fft-p16-m12.trace.bin")
}

/// The data that a page holds.
pub(crate) fn data(page: &Path) -> Value {
    let html = std::fs::read_to_string(page).unwrap();
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").expect("the page holds data");
    serde_json::from_str(rest.split_once("</script>").expect("it ends").0).expect("it is JSON")
}

fn page_of(traces: &[&Path], options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let traces: Vec<&str> = traces.iter().map(|t| t.to_str().unwrap()).collect();
    succeed("lockstep", &[&["report", "-o", page.to_str().unwrap()], options, &traces[..]].concat());
    data(&page)
}

fn sum(list: &Value) -> u64 {
    list.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
}

fn json(arguments: &[&str]) -> Value {
    let text = succeed("replay", &[arguments, &["--json", stored().to_str().unwrap()]].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_number_of_a_model_is_that_of_replay() {
    let page = page_of(&[&stored()], &["--heuristic", "ipdom", "--models", "minsp-pc,lee,ipdom"]);
    let program = &page["programs"][0];
    let mut expected = json(&["--heuristic", "ipdom,minsp-pc,lee", "--by", "line"]);
    for (result, name) in expected["results"].as_array_mut().unwrap().iter_mut().zip(["ipdom", "minsp-pc", "lee"]) {
        result.as_object_mut().unwrap().remove("by");
        if name != "ipdom" {
            // Causes are looked for only under the model that the page is about.
            result.as_object_mut().unwrap().retain(|name, _| !name.starts_with("lost_to_"));
        }
    }
    assert_eq!(program["replayed"], expected);
    for width in program["widths"].as_array().unwrap() {
        let size = width["warp_size"].to_string();
        assert_eq!(*width, json(&["--heuristic", "ipdom", "-W", &size])["results"][0], "warp size {size}");
    }
}

#[test]
fn of_many_lanes_the_page_shows_warps_drawn_evenly() {
    let source = "#include <stdio.h>
#define N 60000
static unsigned a[N];
int main(void) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++) {
        unsigned x = i * 2654435761u, t = 0;
        for (int k = x >> 20 & 31; k >= 0; k--) { t = t * 31 + x; if (t & 4) t ^= x >> 3; }
        a[i] = t;
    }
    return printf(\"%u\\n\", a[N / 2]) < 0;
}
";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("many.c"), source).unwrap();
    let program = at("many");
    build(&at("many.c"), &program, &["-fopenmp"]);
    let trace = at("trace.bin");
    let words = ["-o", trace.to_str().unwrap(), program.to_str().unwrap()];
    let traced = Command::new("env").arg("OMP_NUM_THREADS=4").arg(env!("CARGO_BIN_EXE_trace")).args(words).output();
    assert!(traced.unwrap().status.success());
    // Of two traces as many warps of each.
    let page = page_of(&[&trace, &trace], &["--lanes", "iterations", "--models", "minpc"]);
    let of_all = succeed("replay", &["--json", "--lanes", "iterations", trace.to_str().unwrap()]);
    let of_all: Value = serde_json::from_str(&of_all).unwrap();
    for program in page["programs"].as_array().unwrap() {
        let shown = &program["replayed"];
        let lanes = shown["results"][0]["lanes"].as_u64().unwrap();
        assert!((4096..50_000).contains(&lanes) && lanes % 32 == 0, "{lanes}");
        assert_eq!(shown["results"][1]["lanes"], lanes);
        let efficiency = |of: &Value| of["results"][0]["simt_efficiency"].as_f64().unwrap();
        assert!((efficiency(shown) - efficiency(&of_all)).abs() < 0.01);
        assert_eq!(shown["verdict"]["headline"], of_all["verdict"]["headline"]);
        let notes = program["notes"].as_array().unwrap();
        assert!(
            notes.iter().any(|note| note.as_str().unwrap().contains("of 60,000 lanes, in warps drawn")),
            "{notes:?}"
        );
    }
}

#[test]
fn every_line_and_branch_is_that_of_replay_by_line_and_by_branch() {
    let page = page_of(&[&stored()], &["--models", "minsp-pc"]);
    let program = &page["programs"][0];
    let by_line = &json(&["--by", "line"])["results"][0]["by"];
    let lines = program["lines"].as_array().unwrap();
    for row in by_line["rows"].as_array().unwrap() {
        let name = row["file"].as_str().and_then(|file| file.rsplit('/').next());
        // Of libraries whose debug information is installed, lines are known.
        let label = name.map_or_else(|| row["line"].clone(), |name| format!("{name}:{}", row["line"]).into());
        let line = lines.iter().find(|l| l["label"] == label).unwrap_or_else(|| panic!("no line {label} of {row}"));
        assert_eq!((&line["fetches"], &line["thread_instructions"]), (&row["fetches"], &row["thread_instructions"]));
        assert_eq!(
            [sum(&line["lost_by"]), sum(&line["parted_by"])],
            ["lost_slots", "parted_slots"].map(|n| row[n].as_u64().unwrap())
        );
        assert_eq!(sum(&line["active"]), row["fetches"].as_u64().unwrap());
    }
    let by_branch = json(&["--by", "branch"])["results"][0]["by"]["rows"].clone();
    let branches = program["branches"].as_array().unwrap();
    for row in by_branch.as_array().unwrap().iter().filter(|row| row["place"].is_string()) {
        let branch = branches
            .iter()
            .find(|b| b["place"] == row["place"])
            .unwrap_or_else(|| panic!("no branch {}", row["place"]));
        assert_eq!(sum(&branch["lost_by"]), row["parted_slots"].as_u64().unwrap());
    }
    assert_eq!(sum(&program["flame"]["lost_by"]), program["replayed"]["results"][0]["lost_slots"].as_u64().unwrap());
}

#[test]
fn graphs_hold_what_their_functions_lose() {
    let page = page_of(&[&stored()], &["--models", "minsp-pc"]);
    let program = &page["programs"][0];
    let graphs = program["graphs"].as_array().unwrap();
    assert!(!graphs.is_empty());
    for graph in graphs {
        let function = &program["functions"][graph["function"].as_u64().unwrap() as usize];
        let lost: u64 = graph["nodes"].as_array().unwrap().iter().map(|n| n["lost"].as_u64().unwrap()).sum();
        assert_eq!(lost, function["lost"].as_u64().unwrap(), "{}", function["name"]);
    }
}

#[test]
fn warp_sizes_end_where_every_lane_has_a_seat() {
    let page = page_of(&[&stored()], &["--models", "minsp-pc"]);
    let sizes = page["programs"][0]["widths"].as_array().unwrap().iter().map(|width| width["warp_size"].as_u64());
    assert_eq!(sizes.map(Option::unwrap).collect::<Vec<_>>(), [2, 4, 8, 16]);
}

#[test]
fn the_page_of_one_lane_has_one_model_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let trace = crate::comparing::join_before_arm(folder.path(), "1");
    let page = page_of(&[trace.as_ref()], &[]);
    let program = &page["programs"][0];
    assert_eq!(program["replayed"]["results"].as_array().unwrap().len(), 1);
    assert!(program["notes"].to_string().contains("a single lane runs the same under every model"), "{program}");
}

#[test]
fn a_page_can_be_switched_to_models_whose_lines_are_those_of_replay() {
    let page = page_of(&[&stored()], &["--model", "minsp-pc", "--models", "minsp-pc,ipdom,barrier"]);
    let program = &page["programs"][0];
    let results = program["replayed"]["results"].as_array().unwrap();
    let switched = program["switched"].as_array().unwrap();
    let of = |at: &Value| switched.iter().find(|s| s["results"].as_array().unwrap().contains(at)).unwrap();
    for (at, result) in results.iter().enumerate().skip(1) {
        let lost = |line: &Value| -> u64 {
            line["lost_by"].as_array().unwrap().iter().map(|pair| pair[1].as_u64().unwrap()).sum()
        };
        let lines = of(&Value::from(at))["lines"].as_array().unwrap();
        let sum: u64 = lines.iter().map(lost).sum();
        assert_eq!(sum, result["lost_slots"].as_u64().unwrap(), "{}", result["heuristic"]);
        let fetches: u64 = lines.iter().map(|line| line["fetches"].as_u64().unwrap()).sum();
        assert_eq!(fetches, result["fetches"].as_u64().unwrap());
    }
}

#[test]
fn a_page_says_why_lines_are_missing() {
    let page = page_of(&[&stored()], &["--models", "minsp-pc"]);
    let notes = page["programs"][0]["notes"].to_string();
    assert!(notes.contains("no source lines of") && notes.contains("fft"), "{notes}");
}

#[test]
fn of_two_traces_both_are_on_the_page() {
    let page = page_of(&[&stored(), &stored()], &["--models", "minsp-pc"]);
    assert_eq!(page["programs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_page_about_a_model_that_deadlocks_shows_lanes_that_take_turns_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    build(&root().join("workloads/micro/lock_contention.c"), at("program").as_ref(), &[]);
    succeed("trace", &["-o", &at("trace.bin"), &at("program"), "-p", "4"]);
    let ask = |model| {
        run("lockstep", &["report", "--region", "kernel", "--model", model, "-o", &at("x.html"), &at("trace.bin")])
    };
    let shown = ask("ipdom");
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert_eq!(shown.status.code(), Some(0), "{said}");
    assert!(said.contains("ipdom:placement=binary,predicate=0 deadlocks") && said.contains("--locks simt"), "{said}");
    let page = std::fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert!(page.contains("ipdom:placement=binary,predicate=0 deadlocks: lanes"));
    assert!(ask("minsp-pc").status.success());
}
