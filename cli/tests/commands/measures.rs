//! What `replay` measures beside fetches: memory transactions by place, locks, divergence, cycles; and locks counted in
//! several ways.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{SLEEP_SOON, build, has_openmp_of_clang, is_whole, root, run, succeed};
use serde_json::Value;

/// A program traced in a folder of its own.
struct Traced {
    folder: tempfile::TempDir,
    source: PathBuf,
}

impl Traced {
    fn new(source: &str, traced_with: &[&str], arguments: &[&str]) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        let traced = Traced { folder, source: root().join("workloads").join(source) };
        let program = traced.folder.path().join("program");
        build(&traced.source, &program, &[]);
        let command = ["--engine", "translate", "-o", &traced.path(), program.to_str().unwrap()];
        succeed("trace", &[traced_with, &command, arguments].concat());
        traced
    }

    fn path(&self) -> String {
        self.folder.path().join("trace.bin").to_str().unwrap().to_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let path = self.path();
        serde_json::from_str(&succeed("replay", &[&["--json", &path], arguments].concat())).unwrap()
    }

    /// The number of the first line of the source that holds this text.
    fn line_with(&self, text: &str) -> u64 {
        let source = std::fs::read_to_string(&self.source).unwrap();
        source.lines().position(|line| line.contains(text)).unwrap() as u64 + 1
    }
}

fn rows<'a>(result: &'a Value, name: &str) -> &'a [Value] {
    result[name]["rows"].as_array().unwrap()
}

fn sum(rows: &[Value], number: impl Fn(&Value) -> &Value) -> u64 {
    rows.iter().map(|row| number(row).as_u64().unwrap()).sum()
}

#[test]
fn memory_rows_add_up_to_the_columns_however_they_are_made() {
    let fft = Traced::new("fft/fft.c", &["--memory"], &["-p", "4", "-m", "6"]);
    for by in ["instruction", "line", "function"] {
        let all = fft.json(&["--memory-by", by]);
        let result = &all["results"][0];
        let rows = rows(result, "memory_by");
        assert!(rows.len() > 1, "{by}");
        for size in ["32", "64", "128"] {
            for space in ["heap", "stack"] {
                let column = result[format!("{space}_transactions_{size}")].as_u64().unwrap();
                assert_eq!(sum(rows, |row| &row[space]["transactions"][size]), column, "{by} {space} {size}");
            }
            let column = result[format!("interleaved_transactions_{size}")].as_u64().unwrap();
            assert_eq!(sum(rows, |row| &row["interleaved_stack_transactions"][size]), column);
        }
        for class in ["uniform", "affine", "scattered"] {
            let column = result[format!("memory_{class}")].as_array().unwrap();
            assert_eq!(sum(rows, |row| &row[class]), sum(column, |n| n), "{by} {class}");
        }
        let stack = |name: &str| result[name].as_u64().unwrap();
        assert!(stack("stack_accesses") > 0 && stack("heap_accesses") > 0, "{result}");
        // Threads' stacks lie apart: pushes of four lanes take four transactions, and one when the stacks are
        // interleaved.
        assert!(stack("interleaved_transactions_128") < stack("stack_transactions_128"), "{result}");
    }
}

#[test]
fn spaces_add_up_to_what_is_not_of_the_stack_and_a_buffer_is_told_apart() {
    let kernel = Traced::new("melding/sb1.c", &["--memory"], &["-p", "64"]);
    let of = |options: &[&str]| kernel.json(&[&["--memory"], options].concat())["results"][0].clone();
    let number = |result: &Value, name: &str| result[name].as_u64().unwrap();
    let accesses =
        |result: &Value| ["vector", "buffer", "flat"].map(|class| number(result, &format!("{class}_accesses")));
    let [apart, without] = [of(&["--buffer", "shared", "--alu"]), of(&["--spaces"])];
    let ([vector, buffer, flat], [all, none, never]) = (accesses(&apart), accesses(&without));
    assert_eq!(vector + buffer + flat, number(&apart, "heap_accesses"));
    assert_eq!([all, none, never], [number(&apart, "heap_accesses"), 0, 0]);
    assert!(buffer > 0 && vector > 0, "{apart}");
    assert!(number(&apart, "alu_fetches") + vector < number(&apart, "fetches"), "{apart}");
    let two = of(&["--buffer", "shared", "--buffer", "memory"]);
    assert!(accesses(&two)[1] > buffer, "{two}");
    let refused = run("replay", &["--buffer", "no_such_name", &kernel.path()]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no_such_name"));
}

#[test]
fn a_trace_without_addresses_is_refused_for_memory_rows() {
    let path = root().join("replay/benches/fft-p16-m12.trace.bin");
    let output = run("replay", &["--memory-by", "line", path.to_str().unwrap()]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("trace --memory"));
}

#[test]
fn a_lock_is_named_with_the_line_that_takes_it() {
    let traced = Traced::new("micro/lock_contention.c", &[], &["-p", "4"]);
    let result = traced.json(&["--by", "lock"])["results"][0].take();
    let [lock] = rows(&result, "by") else { panic!("one lock: {result}") };
    assert!(lock["lock"].as_str().unwrap().ends_with("(lock)"), "{lock}");
    // Four lanes take it eight times each.
    assert_eq!(lock["acquisitions"], 32);
    let of = |name: &str| lock[name].as_u64().unwrap();
    assert!((1..=32).contains(&of("waits")) && (1..=4).contains(&of("lanes_that_waited")), "{lock}");
    assert!(of("fetches_serialised") > 0 && of("fetches_serialised") <= of("fetches_held"), "{lock}");
    assert!(of("waiting_slots") >= of("fetches_serialised"), "{lock}");
    let line = traced.line_with("pthread_mutex_lock(&lock)");
    assert_eq!(lock["taken_at"][0]["place"], format!("kernel (lock_contention.c:{line})"));
    let table = succeed("replay", &["--by", "lock", &traced.path()]);
    assert!(table.contains("(lock)") && table.contains("waiting slots"), "{table}");
    let refused = run("replay", &["--by", "lock", "--locks", "drop", &traced.path()]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn locks_counted_in_all_ways_make_a_row_per_model_and_way() {
    let traced = Traced::new("micro/lock_contention.c", &[], &["-p", "4"]);
    let csv = succeed("replay", &["--locks", "all", "--heuristic", "minpc,minsp-pc", "--csv", "-", &traced.path()]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let at = |name: &str, headers: &csv::StringRecord| headers.iter().position(|h| h == name).unwrap();
    let headers = reader.headers().unwrap().clone();
    let (locks, model) = (at("locks", &headers), at("heuristic", &headers));
    let found: Vec<(String, String)> =
        reader.records().map(|r| r.unwrap()).map(|r| (r[locks].to_owned(), r[model].to_owned())).collect();
    let ways = ["serialize", "simt", "drop", "ignore"];
    let expected: Vec<(String, String)> =
        ways.iter().flat_map(|way| ["minpc", "minsp-pc"].map(|m| ((*way).to_owned(), m.to_owned()))).collect();
    assert_eq!(found, expected);
    // Each is what it is alone.
    let all = traced.json(&["--locks", "drop,ignore"]);
    assert_eq!(all["locks"], "drop,ignore");
    for (i, way) in ["drop", "ignore"].iter().enumerate() {
        let alone = traced.json(&["--locks", way])["results"][0].take();
        assert_eq!((&all["results"][i]["locks"], &all["results"][i]["fetches"]), (&alone["locks"], &alone["fetches"]));
    }
    let table = succeed("replay", &["--locks", "all", &traced.path()]);
    assert!(ways.iter().all(|way| table.contains(&format!("locks: {way}\n"))), "{table}");
}

#[test]
fn divergence_and_cycles_are_measured_where_they_are_asked_for() {
    let path = root().join("heuristics/conformance/case-03.trace.gz");
    let path = path.to_str().unwrap();
    let of = |arguments: &[&str]| -> Value {
        let json = succeed("replay", &[&["--json", "--heuristic", "minpc", path], arguments].concat());
        serde_json::from_str::<Value>(&json).unwrap()["results"][0].take()
    };
    let plain = of(&[]);
    assert!(plain["divergences"].is_null() && plain["cycles"].is_null());
    let measured = of(&["--divergence", "--fetch-units", "1"]);
    assert_eq!(measured["cycles"], plain["fetches"]);
    assert!(
        measured["divergence_depth"].as_f64() > Some(1.0) && measured["divergence_imbalance"].as_f64() >= Some(1.0)
    );
    let lengths = measured["divergence_lengths"].as_array().unwrap();
    assert_eq!(sum(lengths, |n| n), measured["divergences"].as_u64().unwrap());
    assert_eq!(measured["lone_fetches"], plain["active_histogram"][0]);
    let cycles = ["1", "2", "4"].map(|units| of(&["--fetch-units", units])["cycles"].as_u64().unwrap());
    assert!(cycles[0] > cycles[1] && cycles[1] >= cycles[2], "{cycles:?}");
    let table = succeed("replay", &["--divergence", "--fetch-units", "2", path]);
    assert!(table.contains("lone lanes") && table.contains("on 2 fetch units"), "{table}");
    assert_eq!(run("replay", &["--fetch-units", "0", path]).status.code(), Some(2));
}

/// Requests and sectors that an NVIDIA H200 has for a program of `workloads/twins`.
fn on_h200(name: &str) -> [u64; 2] {
    let file = root().join("results/2026-11-27-silicon/twins-memory.tsv");
    let text = std::fs::read_to_string(file).unwrap();
    let row = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t')).unwrap();
    let numbers: Vec<u64> = row.split('\t').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// The nanoseconds that an NVIDIA H200 takes for a program of `workloads/twins` of one kernel.
fn time_on_h200(name: &str) -> f64 {
    let text = std::fs::read_to_string(root().join("results/2026-11-27-silicon/twins.csv")).unwrap();
    let row = text.lines().find(|line| line.starts_with(&format!("{name},"))).unwrap();
    row.rsplit(',').next().unwrap().parse().unwrap()
}

#[test]
fn requests_sectors_and_times_are_those_that_a_gpu_counts() {
    // Constants and parameters, arrays of `malloc`, dynamic schedules, stacks, vectors, bytes that lie anywhere.
    let has_clang = has_openmp_of_clang();
    for (number, name) in ["fractions", "grains", "mandel", "queens", "boxes", "modexp"].into_iter().enumerate() {
        for (compiler, openmp) in [("g++", "-fopenmp"), ("clang++-19", "-fopenmp=libomp")] {
            // By each compiler in turn, and by both for `scripts/check --whole`.
            let is_by_gcc = compiler == "g++";
            if !is_by_gcc && !has_clang || has_clang && !is_whole() && is_by_gcc != number.is_multiple_of(2) {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
            let source = root().join(format!("workloads/twins/{name}.cu"));
            let words = ["-x", "c++", "-std=c++17", "-O2", "-g", "-w", openmp, "-o"];
            let built = Command::new(compiler).args(words).arg(&program).arg(source).status().unwrap();
            assert!(built.success(), "{compiler} {name}");
            let trace = trace.to_str().unwrap();
            let words = [env!("CARGO_BIN_EXE_trace"), "--memory", "-o", trace, program.to_str().unwrap()];
            let traced = Command::new("env").arg("OMP_NUM_THREADS=4").args(SLEEP_SOON).args(words).output().unwrap();
            assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
            let said =
                succeed("replay", &["--memory", "--json", "--machine", "nvidia", "--lanes", "iterations", trace]);
            let said: Value = serde_json::from_str(&said).unwrap();
            let row = &said["results"][0];
            for (column, counted) in ["gpu_requests", "gpu_sectors"].into_iter().zip(on_h200(name)) {
                let found = row[column].as_u64().unwrap();
                assert!(found.abs_diff(counted) * 50 <= counted, "{compiler} {name} {column}: {found} for {counted}");
            }
            let factor = row["gpu_time"].as_f64().unwrap() / time_on_h200(name);
            assert!((0.7..1.4).contains(&factor), "{compiler} {name}: {factor} of the time");
            let (time, first) = (&said["verdict"]["time"], &said["verdict"]["headline"]);
            assert!(time["sentence"].as_str().unwrap().starts_with("about "), "{first}");
        }
    }
}

/// What `replay` says of the memory of a program.
fn with_memory(source: &str, arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let file = folder.path().join("in.c");
    std::fs::write(&file, source).unwrap();
    let built = Command::new("gcc").args(["-O2", "-pthread", "-o"]).args([&program, &file]).status().unwrap();
    assert!(built.success());
    let trace = trace.to_str().unwrap();
    succeed("trace", &["--memory", "-o", trace, program.to_str().unwrap()]);
    let said = succeed("replay", &[&["--memory", "--json", trace], arguments].concat());
    serde_json::from_str(&said).unwrap()
}

#[test]
fn parameters_on_the_stack_of_a_thread_that_is_no_lane_are_no_accesses() {
    // 8 lanes of 100 rounds: a load of what the caller has on its stack, and a load and a store of an array.
    let source = "#include <pthread.h>
static int data[8 * 16];
struct in { int *volatile to; int n; };
static void *work(void *p) {
    struct in *in = p;
    int me = __atomic_fetch_add(&in->n, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 100; i++) ((volatile int *)in->to)[me] += i;
    return 0;
}
int main(void) {
    pthread_t threads[8];
    struct in in = { data, 0 };
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, &in);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    return 0;
}
";
    let said = with_memory(source, &["--machine", "nvidia"]);
    assert_eq!(said["results"][0]["gpu_requests"], 200, "{}", said["results"][0]);
}

#[test]
fn atomic_operations_of_a_fetch_on_one_word_conflict() {
    // In each of 10 rounds 8 lanes add to one word, each to a word of its own, and two and two to one.
    let source = "#include <pthread.h>
static int one, own[64];
static void *run(void *a) {
    long id = (long)a;
    for (int i = 0; i < 10; i++) {
        __atomic_fetch_add(&one, 1, 0);
        __atomic_fetch_add(&own[id * 4], 1, 0);
        __atomic_fetch_add(&own[id / 2 * 4 + 1], 1, 0);
    }
    return a;
}
int main(void) {
    pthread_t threads[8];
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
}
";
    let said = with_memory(source, &["-H", "minsp-pc"]);
    let row = &said["results"][0];
    assert_eq!([&row["gpu_atomics"], &row["gpu_atomic_conflicts"]], [10 * 24, 10 * (7 + 4)]);
}
