//! The efficiency that a machine would have, whatever the compiler of the traced program did to the control flow.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::page::data;
use crate::support::{is_whole, root, run, succeed};

/// Kernels with doubled ends of loops, rotated and unrolled loops, switches, several exits and early returns.
const KERNELS: [&str; 12] = [
    "collatz",
    "search",
    "fallthrough",
    "short_circuit",
    "early_returns",
    "nqueens",
    "ray_march",
    "list_walk",
    "sieve",
    "mandelbrot",
    "heap_sort",
    "calendar",
];

const BUILDS: [[&str; 2]; 5] =
    [["gcc", "-O1"], ["gcc", "-O2"], ["gcc", "-O3"], ["clang-19", "-O1"], ["clang-19", "-O2"]];

/// By kernel: its efficiency under the regions of NVIDIA's assembler.
fn references() -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string(root().join("results/2026-11-23-gpu/kernels.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    let column = |name: &str| header.iter().position(|cell| *cell == name).unwrap();
    let (kernel, reference) = (column("kernel"), column("reference"));
    rows.map(|row| (row[kernel].to_owned(), row[reference].parse().unwrap())).collect()
}

/// Traces what a compiler makes of a kernel; the trace.
fn traced(folder: &Path, kernel: &str, build: [&str; 2]) -> String {
    traced_source(folder, &root().join(format!("workloads/gpu-kernels/{kernel}.c")), build)
}

fn traced_source(folder: &Path, source: &Path, [compiler, level]: [&str; 2]) -> String {
    let (program, trace) = (folder.join("program"), folder.join("trace.bin"));
    let mut command = Command::new(compiler);
    command.args([level, "-w", "-g", "-pthread", "-o"]).args([program.as_path(), source]);
    let built = command.output().unwrap();
    assert!(built.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&built.stderr));
    let trace = trace.to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program.to_str().unwrap()]);
    trace
}

fn machine(trace: &str, arguments: &[&str]) -> Value {
    let json: Value = serde_json::from_str(&succeed("replay", &[arguments, &["--json", trace]].concat())).unwrap();
    json["machine"].clone()
}

#[test]
fn builds_of_a_kernel_have_one_efficiency_and_it_is_the_reference() {
    let (folder, references) = (tempfile::tempdir().unwrap(), references());
    for (number, kernel) in KERNELS.into_iter().enumerate() {
        let reference = references[kernel];
        let of = |build| {
            machine(&traced(folder.path(), kernel, build), &["--machine", "nvidia"])["efficiency"].as_f64().unwrap()
        };
        // Three builds of five in turn, of both compilers; all for `scripts/check --whole`.
        let builds = (0..BUILDS.len()).filter(|turn| is_whole() || (turn * 2 + number) % BUILDS.len() < 3);
        let all: Vec<f64> = builds.map(|turn| of(BUILDS[turn])).chain([reference]).collect();
        let (least, most) = all.iter().fold((1.0_f64, 0.0_f64), |(a, b), e| (a.min(*e), b.max(*e)));
        assert!(most / least <= 1.15, "{kernel}: {all:?}, the last the reference");
    }
}

#[test]
fn what_a_compiler_did_to_gotos_leaves_the_efficiency() {
    // By the control flow of its build for NVPTX, joined at post-dominators, with the IR's instructions as weights.
    const REFERENCE: f64 = 0.523;
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("cli/tests/programs/gotos.c");
    let of = |build| machine(&traced_source(folder.path(), &source, build), &[])["efficiency"].as_f64().unwrap();
    let all: Vec<f64> = BUILDS.into_iter().map(of).chain([REFERENCE]).collect();
    let (least, most) = all.iter().fold((1.0_f64, 0.0_f64), |(a, b), e| (a.min(*e), b.max(*e)));
    assert!(most / least <= 1.15, "{all:?}, the last the reference");
}

#[test]
fn a_machine_has_its_warps_and_says_how_far_its_models_agree() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "collatz", ["gcc", "-O2"]);
    let nvidia = machine(&trace, &["--machine", "nvidia"]);
    let [least, efficiency, most] = ["least", "efficiency", "most"].map(|key| nvidia[key].as_f64().unwrap());
    assert!(least < efficiency && efficiency <= most, "{nvidia}");
    assert_eq!(nvidia["heuristic"], "hanoi:registers=16,placement=structured,predicate=4");
    let table = succeed("replay", &["--machine", "nvidia", "-W", "16", &trace]);
    assert!(table.contains("of 2 warps of 16 lanes"), "{table}");
    assert!(table.contains("nvidia: ") && table.contains("SIMT efficiency (of the GPU's instructions, by hanoi:"));
    // A build whose control flow is a GPU's leaves nothing to advise.
    let clear = succeed("replay", &["--machine", "nvidia", &traced(folder.path(), "collatz", ["clang-19", "-O1"])]);
    assert!(table.contains("--shape gpu") && !clear.contains("--shape gpu"), "{clear}");
    // The line of what its models differ about is told.
    assert!(table.contains(" most at collatz.c:"), "{table}");
    assert!(nvidia["worst"]["at"].as_str().is_some_and(|at| at.starts_with("collatz.c:")), "{nvidia}");
    let trace = traced(folder.path(), "collatz", ["gcc", "-O2"]);
    // There are 32 lanes.
    for (name, warps) in [("nvidia", "1 warp of 32"), ("amd", "1 warp of 32"), ("intel-gpu", "2 warps of 16")] {
        let table = succeed("replay", &["--machine", name, &trace]);
        assert!(table.contains(&format!("of {warps} lanes")) && table.contains(&format!("{name}: ")), "{table}");
    }
    for verb in ["replay", "report", "check"] {
        let refused = run("lockstep", &[verb, "--machine", "nvidia", "--heuristic", "ipdom", &trace]);
        assert_eq!(refused.status.code(), Some(2), "{verb}");
    }
}

#[test]
fn without_a_heuristic_every_verb_is_about_nvidia() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "search", ["gcc", "-O2"]);
    assert_eq!(succeed("replay", &[&trace]), succeed("replay", &["--machine", "nvidia", &trace]));
    assert_eq!(succeed("replay", &["--csv", "-", &trace]).lines().count(), 2, "a header and the machine's model");
    let nvidia = machine(&trace, &[]);
    let others = nvidia["others"].as_array().unwrap();
    let model = nvidia["heuristic"].as_str().unwrap();
    let all = others.iter().map(|other| other["heuristic"].as_str().unwrap()).chain([model]);
    // Each by its name alone has the same figure.
    let named: Vec<f64> = all
        .map(|name| {
            let json = succeed("replay", &["--heuristic", name, "-W", "32", "--json", &trace]);
            let json: Value = serde_json::from_str(&json).unwrap();
            assert!(json["machine"].is_null(), "{name}");
            json["results"][0]["gpu_efficiency"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(nvidia["efficiency"].as_f64(), named.last().copied());
    assert_eq!(nvidia["least"].as_f64(), named.iter().copied().reduce(f64::min));
    assert_eq!(nvidia["most"].as_f64(), named.iter().copied().reduce(f64::max));
    let checked = succeed("lockstep", &["check", "--min-efficiency", "0", &trace]);
    assert!(checked.starts_with(model) && checked.contains("\nnvidia: "), "{checked}");
    let page = folder.path().join("page.html");
    succeed("lockstep", &["report", "--models", "minsp-pc", "-o", page.to_str().unwrap(), &trace]);
    let program = &data(&page)["programs"][0]["replayed"];
    assert_eq!((&program["machine"], &program["results"][0]["heuristic"]), (&nvidia, &nvidia["heuristic"]));
}

#[test]
fn dump_shows_where_the_lanes_of_each_branch_wait() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "short_circuit", ["clang-19", "-O1"]);
    let joins = |placement: &str| -> BTreeMap<String, Vec<String>> {
        let text = succeed("lockstep", &["dump", "--joins", placement, "--region", "kernel", &trace]);
        let lines = text.lines().map(|line| line.split_once(": ").unwrap());
        lines.map(|(branch, at)| (branch.to_owned(), at.split(", ").map(str::to_owned).collect())).collect()
    };
    let (binary, structured) = (joins("binary"), joins("structured"));
    assert!(binary.len() > 4 && binary.keys().eq(structured.keys()), "{binary:?}");
    assert!(binary.values().all(|at| at.len() == 1), "{binary:?}");
    // Of the conditions of `||` two lead to the arm: there they meet before all do.
    let arm = |(branch, at): (&String, &Vec<String>)| branch.contains("short_circuit.c:9)") && at[0].contains("c:10)");
    assert!(structured.iter().filter(|row| arm(*row)).count() > 1, "{structured:?}");
    assert_eq!(run("lockstep", &["dump", "--joins", "elsewhere", &trace]).status.code(), Some(2));
}

#[test]
fn a_programs_own_function_costs_what_it_is_whatever_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let gpu_fetches = |name: &str, flags: &str| {
        let source = folder.path().join("own.c");
        let text = format!(
            "#include <pthread.h>\n\
             __attribute__((noipa)) double {name}(double a, double b) {{ return a * b + a; }}\n\
             static double out[4];\n\
             static void *work(void *t) {{ double s = 1; for (int i = 0; i < 100; i++) s = {name}(s, (long)t);\n\
             out[(long)t] = s; return 0; }}\n\
             int main(void) {{ pthread_t h[4]; for (long i = 0; i < 4; i++) pthread_create(&h[i], 0, work, (void *)i);\n\
             for (int i = 0; i < 4; i++) pthread_join(h[i], 0); return out[3] < 0; }}\n"
        );
        std::fs::write(&source, text).unwrap();
        let trace = traced_source(folder.path(), &source, ["gcc", flags]);
        let json: Value = serde_json::from_str(&succeed("replay", &["--json", &trace])).unwrap();
        let sentence = json["verdict"]["coverage"]["sentence"].as_str().unwrap();
        assert!(!sentence.contains("mathematical"), "{name}: {sentence}");
        json["results"][0]["gpu_fetches"].as_u64().unwrap()
    };
    assert_eq!(gpu_fetches("hypot", "-fno-builtin"), gpu_fetches("another", "-fno-builtin"));
    // Without a loader the C library's functions are among the program's.
    assert_eq!(gpu_fetches("log_message", "-static"), gpu_fetches("another", "-static"));
}
