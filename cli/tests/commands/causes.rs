//! `replay --by`: the lines that a person would name, and sums that are the total.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{build, root, run, succeed};
use serde_json::Value;

/// A workload, built and traced in a folder of its own.
struct Traced {
    folder: tempfile::TempDir,
    source: PathBuf,
}

impl Traced {
    fn new(workload: &str, flags: &[&str], arguments: &[&str]) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        let source = root().join(format!("workloads/{workload}/{workload}.c"));
        let traced = Traced { folder, source };
        build(&traced.source, &traced.program(), flags);
        let (program, trace) = (traced.program(), traced.trace());
        let command = ["-o", trace.to_str().unwrap(), program.to_str().unwrap()];
        succeed("trace", &[&command[..], arguments].concat());
        traced
    }

    fn fft() -> Traced {
        Traced::new("fft", &[], &["-p", "4", "-m", "8"])
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace.bin")
    }

    fn replayed(&self, arguments: &[&str]) -> Value {
        replayed(&self.trace(), arguments)
    }

    /// The numbers of the source's lines that hold this text.
    fn lines_with(&self, text: &str) -> Vec<u64> {
        let source = fs::read_to_string(&self.source).unwrap();
        source.lines().zip(1..).filter(|(line, _)| line.contains(text)).map(|(_, number)| number).collect()
    }
}

/// The result of the first heuristic.
fn replayed(trace: &Path, arguments: &[&str]) -> Value {
    let json = succeed("replay", &[&["--json", trace.to_str().unwrap()], arguments].concat());
    serde_json::from_str::<Value>(&json).unwrap()["results"][0].take()
}

/// FFT with 16 threads, traced once for the benches; its binary is not there.
fn stored() -> PathBuf {
    root().join("replay/benches/fft-p16-m12.trace.bin")
}

fn rows(result: &Value) -> &[Value] {
    result["by"]["rows"].as_array().unwrap()
}

fn sum(rows: &[Value], name: &str) -> u64 {
    rows.iter().map(|r| r[name].as_u64().unwrap()).sum()
}

#[test]
fn of_fft_the_timing_by_thread_0_and_the_loops_over_partners_part_the_lanes() {
    let fft = Traced::fft();
    let result = fft.replayed(&["--by", "line", "--heuristic", "minsp-pc"]);
    let rows = rows(&result);
    let total = result["lost_slots"].as_u64().unwrap();
    // Both compilers copy what stands between two tests of one condition into both arms, and lay out thread 0's arm
    // behind the others'.
    let timing = fft.lines_with("if (id == 0 || time_all)");
    let loops = fft.lines_with("for (long partner = ");
    let of = |lines: &[u64], function: &str| -> Vec<Value> {
        let is_of = |r: &&Value| r["function"] == function && r["line"].as_u64().is_some_and(|n| lines.contains(&n));
        rows.iter().filter(is_of).cloned().collect()
    };
    let (timing, loops) = (of(&timing, "transform"), of(&loops, "transpose_rows"));
    assert!(sum(&timing, "parted_slots") * 10 > total * 7, "{timing:?}");
    assert_eq!(loops.len(), 2, "{loops:?}");
    assert!(loops.iter().all(|r| r["parted_causes"]["loop trip count"].as_u64() > Some(0)), "{loops:?}");
    assert!((sum(&timing, "parted_slots") + sum(&loops, "parted_slots")) * 100 > total * 95, "{:?}", &rows[..6]);
    // The patch is inlined into each of the three parts of a transpose.
    let copy = fft.lines_with("to[r * side + c].re = ")[0];
    let in_patch = of(&[copy], "transpose_patch");
    assert!(in_patch.iter().any(|r| r["inlined_into"][0] == "transpose_rows" && r["lost_slots"].as_u64() > Some(0)));
}

#[test]
fn of_mandelbrot_the_loop_until_escape_is_named_with_its_inlined_frames() {
    let mandelbrot = Traced::new("mandelbrot", &["-fopenmp"], &["-p", "4", "-n", "16"]);
    let result = mandelbrot.replayed(&["--by", "line"]);
    let first = &rows(&result)[0];
    assert_eq!(first["line"].as_u64(), Some(mandelbrot.lines_with("while (iterations < most_iterations")[0]));
    assert!(first["file"].as_str().unwrap().ends_with("mandelbrot.c"));
    assert_eq!((&first["function"], &first["inlined_into"][0]), (&"escape".into(), &"compute_row".into()));
    let of_loop = first["parted_causes"]["loop trip count"].as_u64().unwrap();
    assert!(of_loop * 10 > result["lost_slots"].as_u64().unwrap() * 9, "{first}");
}

#[test]
fn rows_add_up_to_the_total_however_they_are_made() {
    for (by, sums) in [
        ("branch", &["parted_slots"][..]),
        ("line", &["parted_slots", "lost_slots"]),
        ("function", &["parted_slots", "lost_slots"]),
        ("cause", &["lost_slots"]),
        ("path", &["lost_slots"]),
    ] {
        for model in ["minsp-pc", "ipdom", "lee"] {
            let result = replayed(&stored(), &["--by", by, "--heuristic", model, "--warp-size", "5"]);
            let total = result["lost_slots"].as_u64().unwrap();
            assert!(total > 0 && result["by"]["lost_slots"] == total);
            for name in sums {
                assert_eq!(sum(rows(&result), name), total, "{model} by {by}");
            }
            if sums.len() == 2 || by == "path" {
                assert_eq!(sum(rows(&result), "fetches"), result["fetches"].as_u64().unwrap(), "{model} by {by}");
            }
            let columns = ["branch", "loop", "call_target", "lock", "barrier", "schedule", "finished", "empty_seat"];
            let by_column = columns.map(|c| result[format!("lost_to_{c}")].as_u64().unwrap());
            assert_eq!(by_column.iter().sum::<u64>(), total);
        }
    }
}

#[test]
fn causes_are_not_looked_for_unless_asked_for() {
    let result = replayed(&stored(), &[]);
    assert!(result["by"].is_null() && result["lost_to_branch"].is_null() && result["lost_slots"].is_u64());
}

#[test]
fn the_table_has_as_many_rows_as_asked_for_and_names_paths() {
    let trace = stored();
    let of = |arguments: &[&str]| succeed("replay", &[arguments, &[trace.to_str().unwrap()]].concat());
    let text = of(&["--by", "path", "--top", "1"]);
    assert!(text.contains("worker > transform > transpose_rows > transpose_patch"), "{text}");
    assert!(text.contains("more rows; --top"), "{text}");
    assert!(of(&["--by", "branch"]).contains("transpose_rows+0x"));
    assert_eq!(run("replay", &["--top", "1", trace.to_str().unwrap()]).status.code(), Some(2));
}

#[test]
fn without_the_binary_that_was_traced_there_are_addresses_and_a_note() {
    let fft = Traced::fft();
    let trace = fft.trace();
    let lines = || {
        let output = run("replay", &["--by", "line", trace.to_str().unwrap()]);
        assert!(output.status.success());
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    build(Path::new(&fft.source), &fft.program(), &["-DOTHER", "-O1"]);
    let (table, said) = lines();
    assert!(said.contains("build id differs") && table.contains("transpose_rows+0x"), "{said}{table}");
    assert!(!table.contains("fft.c:"), "{table}");
    fs::remove_file(fft.program()).unwrap();
    let (table, said) = lines();
    assert!(said.contains("cannot be read") && table.contains("transpose_rows+0x"), "{said}{table}");
}
