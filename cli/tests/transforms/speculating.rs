//! `speculative`: what it says of marks in IR is what `lockstep dump --barriers` says about them in the machine code.
//!
//! `--keep-ir` gives each instruction of IR a line of its own, so a row of the machine code's table says in which piece
//! of which block it lies.

use serde_json::Value;

use crate::folder::{Folder, lockstep, root};

/// A program with marks: its name, its source and options, and the words to run it with.
type Program = (&'static str, String, Vec<&'static str>, Vec<&'static str>);

/// The patterns of figure 2 and others of `programs/marks.c`, and the benchmarks of `workloads/speculation`.
fn programs() -> Vec<Program> {
    let micro = root().join("cli/tests/programs/marks.c").display().to_string();
    let patterns =
        ["-DPATTERN=1", "-DPATTERN=2", "-DPATTERN=3", "-DPATTERN=4", "-DPATTERN=5", "-DPATTERN=6", "-DPATTERN=7"];
    let mut all: Vec<Program> =
        patterns.into_iter().map(|pattern| (pattern, micro.clone(), vec![pattern], Vec::new())).collect();
    for (name, tasks) in [
        ("rsbench", "128"),
        ("xsbench", "128"),
        ("mcb", "512"),
        ("pathtracer", "128"),
        ("mc-gpu", "512"),
        ("mummer", "256"),
        ("meiyamd5", "128"),
        ("gpu-mcml", "64"),
    ] {
        let source = root().join(format!("workloads/speculation/{name}/{name}.c")).display().to_string();
        all.push((name, source, vec!["-std=gnu11", "-fno-math-errno"], vec!["-p", "32", "-n", tasks]));
    }
    all
}

/// Builds a program; what the pass said.
fn built(folder: &Folder, pass: &str, level: &str, (_, source, options, _): &Program, more: &[&str]) -> Vec<Value> {
    let include = format!("-I{}", root().join("include").display());
    let report = folder.path("report");
    let _ = std::fs::remove_file(&report);
    let cc = ["cc", "--transform", pass, "--report", "report", "--report-format", "json"];
    let (keep, linker) = more.split_at(more.iter().position(|word| *word == "--").unwrap_or(more.len()));
    let to = [level, "-g", "-pthread", &include, source, "-o", "program", "-lm"];
    let linker = linker.get(1..).unwrap_or_default();
    folder.succeed(lockstep(), &[&cc[..], keep, &["--"], &to, options, linker].concat());
    let said = std::fs::read_to_string(report).unwrap_or_default();
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A row of the machine code's table: barrier, operation, number of an instruction of IR.
type Row = (String, String, Option<i64>);

/// The number behind the colon, where what is before it is a file of IR.
fn number(line: &str) -> Option<i64> {
    let (file, number) = line.rsplit_once(':')?;
    file.ends_with(".bc").then(|| number.parse().ok()).flatten()
}

fn rows(table: &str) -> Vec<Row> {
    let mut lines = table.lines();
    let header = lines.next().unwrap();
    let at = ["barrier", "operation", "address", "line", "in"].map(|name| header.rfind(name).unwrap());
    let cell = |line: &str, i: usize| line[at[i]..at[i + 1]].trim().to_owned();
    let of_table = lines.filter(|line| line.starts_with('b'));
    let action = |text: String| text.split(" (").next().unwrap().to_owned();
    of_table.map(|line| (cell(line, 0), action(cell(line, 1)), number(&cell(line, 3)))).collect()
}

/// An operation that the pass said: barrier, operation, the first and last instruction of the piece.
type Operation = (String, String, [i64; 2]);

fn operations(remarks: &[Value]) -> Vec<Operation> {
    let of = |remark: &Value| {
        let number = |name: &str| remark["numbers"][name].as_i64().unwrap();
        let action = remark["words"]["action"].as_str().unwrap().to_owned();
        (format!("b{}", number("barrier")), action, [number("first"), number("last")])
    };
    remarks.iter().filter(|remark| remark["reason"] == "Barrier").map(of).collect()
}

#[test]
fn operations_on_barriers_are_those_of_the_machine_code() {
    let folder = Folder::with(&[]);
    let (mut compared, mut without_line, mut builds) = (0, 0, 0);
    // `scripts/check --whole` has each at all levels, else each has one in turn.
    let is_whole = std::env::var_os("LOCKSTEP_WHOLE").is_some();
    for (turn, program) in programs().into_iter().enumerate() {
        let levels = ["-O1", "-O2", "-O3"];
        for level in if is_whole { &levels[..] } else { &levels[turn % 3..][..1] } {
            let what = format!("{} {level}", program.0);
            // The order of blocks is that of the code, so numbers of instructions stay.
            let said = built(&folder, "layout,speculative", level, &program, &["--keep-ir", "ir"]);
            let trace = ["trace", "-o", "trace.bin", "--", "./program"];
            folder.succeed(lockstep(), &[&trace[..], &program.3].concat());
            let rows = rows(&folder.succeed(lockstep(), &["dump", "--barriers", "marks", "trace.bin"]));
            let operations = operations(&said);
            // What was said on marks and no operation: copies alone, and that of what was unrolled alone.
            let copied = |remark: &&Value| remark["reason"] == "MarkCopied";
            assert!(said.iter().filter(|remark| remark["reason"] != "Barrier").all(|r| copied(&r)), "{what}: {said:?}");
            let is_of = |row: &Row, operation: &Operation| {
                let [first, last] = operation.2;
                // Behind a call code generation may copy what it returned first, which has the line of the call.
                let first = if operation.1 == "cancel" { first - 1 } else { first };
                row.2.is_some_and(|line| (first..=last).contains(&line)) && row.0 == operation.0 && row.1 == operation.1
            };
            let (lined, bare): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.2.is_some());
            for row in &lined {
                assert!(operations.iter().any(|o| is_of(row, o)), "{what}: {row:?} of {operations:?}");
            }
            let joins = folder.succeed(lockstep(), &["dump", "--joins", "binary", "trace.bin"]);
            let parts: Vec<i64> =
                joins.lines().filter_map(|line| number(line.split_once(')')?.0.split_once('(')?.1)).collect();
            // A branch that lanes left one way only has no barrier in the machine code's graph, which is of code that
            // ran.
            let is_run = |(_, action, [first, last]): &Operation| {
                let is_branch = action == "gives way" || action == "removed";
                !is_branch || parts.iter().any(|at| (first..=last).contains(&at))
            };
            // Code of the function's frame has no line of IR.
            for (barrier, action) in rows.iter().map(|row| (&row.0, &row.1)) {
                let own = |o: &&Operation| &o.0 == barrier && &o.1 == action;
                let missed = operations.iter().filter(own).filter(|o| !lined.iter().any(|row| is_of(row, o)));
                let missed = missed.filter(|o| is_run(o)).count();
                let spare = bare.iter().filter(|row| &row.0 == barrier && &row.1 == action).count();
                assert!(missed <= spare, "{what}: {barrier} {action}: {rows:?}, {operations:?}");
            }
            for (barrier, action, _) in operations.iter().filter(|o| is_run(o)) {
                let has = rows.iter().any(|row| &row.0 == barrier && &row.1 == action);
                assert!(has, "{what}: nothing is {barrier} {action}: {rows:?}");
            }
            builds += 1;
            compared += lined.len();
            without_line += bare.len();
        }
    }
    assert!(compared > 3 * builds && 2 * without_line < compared, "{compared} with lines, {without_line} without");
}

#[test]
fn the_code_is_that_without_the_pass_and_with_or_without_a_report() {
    let folder = Folder::with(&[]);
    for program in programs().iter().step_by(3) {
        let code = |pass: &str| {
            let _ = built(&folder, pass, "-O2", program, &["--", "-c"]);
            std::fs::read(folder.path("program")).unwrap()
        };
        assert!(code("speculative") == code("none"), "{}", program.0);
    }
}

/// A function with marks that an optimiser takes apart, each in its own way.
const LOST: &str = r#"
#include <lockstep.h>
void outside(int);
static inline void shade(int at) { outside(at); outside(at + 1); }
void without_point(int n) {
    LOCKSTEP_PREDICT(gone);
    for (int i = 0; i < n; i++) {
        if (sizeof(int) == 8) { LOCKSTEP_RECONVERGE(gone); outside(i); }
        outside(i);
    }
}
void without_begin(int n) {
    for (int i = 0; i < n; i++) { LOCKSTEP_RECONVERGE(alone); outside(i); }
}
void behind(int n) {
    for (int i = 0; i < n; i++) { LOCKSTEP_RECONVERGE(late); outside(i); }
    LOCKSTEP_PREDICT(late);
    outside(n);
}
void inlined(int n) {
    LOCKSTEP_PREDICT_FUNCTION(shade);
    if (n & 1) shade(n); else shade(n + 7);
}
void unrolled(int n) {
    LOCKSTEP_PREDICT(turn);
    for (int i = 0; i < n; i++) {
        outside(-1);
        #pragma clang loop unroll_count(4)
        for (int j = 0; j < 2 * i + n; j++) { LOCKSTEP_RECONVERGE(turn); outside(j); }
    }
}
void threaded(int n, const int *of) {
    LOCKSTEP_PREDICT(both);
    #pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) {
        if (of[i] > n) { LOCKSTEP_RECONVERGE(both); outside(i); }
    }
}
"#;

#[test]
fn marks_that_an_optimiser_took_apart_are_named_with_what_is_left_of_them() {
    let folder = Folder::with(&[("lost.c", LOST)]);
    let source = folder.path("lost.c").display().to_string();
    let said = built(&folder, "speculative", "-O2", &("lost", source, Vec::new(), Vec::new()), &["--", "-c"]);
    let of = |function: &str| -> Vec<String> {
        let own = said.iter().filter(|remark| remark["function"] == function && remark["reason"] != "Barrier");
        own.map(|remark| match remark["reason"].as_str().unwrap() {
            "MarkLost" => remark["words"]["why"].as_str().unwrap().to_owned(),
            _ => format!("{}, {}", remark["numbers"]["behind"], remark["numbers"]["past"]),
        })
        .collect()
    };
    assert_eq!(of("without_point"), ["no-reconverge"], "{said:?}");
    assert_eq!(of("without_begin"), ["no-predict"]);
    assert_eq!(of("behind"), ["unreachable"]);
    assert_eq!(of("inlined"), ["no-call"]);
    // Four turns became one, in which lanes meet once; what is left over are turns of their own.
    let copies = of("unrolled");
    assert!(copies.len() == 1 && copies[0].starts_with("3, "), "{copies:?}");
    assert_eq!(of("threaded"), ["0, 3"]);
    let waits = said.iter().filter(|remark| remark["words"]["action"] == "wait, rejoin");
    assert_eq!(waits.map(|remark| remark["function"].as_str().unwrap()).collect::<Vec<_>>(), ["unrolled", "threaded"]);
}

/// A kernel for a GPU: its lanes take different numbers of turns of an inner loop.
const KERNEL: &str = r#"
extern int trips[], out[];
__attribute__((nvptx_kernel)) void kernel(int first, int n) {
    for (int i = first; i < n; i += 32) {
        int sum = i;
        for (int j = trips[i] + 1; j > 0; j--) {
            sum = sum * 31 + j;
            sum ^= sum >> 3;
            sum += sum / 7;
        }
        out[i] = sum;
    }
}
"#;

#[test]
fn lanes_of_a_gpu_wait_at_a_line_that_is_typed_and_at_one_that_is_found() {
    let folder = Folder::with(&[("kernel.c", KERNEL)]);
    let clang = ["--target=nvptx64-nvidia-cuda", "-march=sm_80", "--cuda-feature=+ptx75", "-O2", "-g1", "-nogpulib"];
    folder.succeed("clang-19", &[&clang[..], &["-emit-llvm", "-c", "kernel.c", "-o", "kernel.bc"]].concat());
    let made = |words: &[&str]| {
        let all = ["transform", "--report", "kernel.bc", "-o", "made.ll"];
        let said = folder.succeed(lockstep(), &[&all[..], words].concat());
        (said, std::fs::read_to_string(folder.path("made.ll")).unwrap())
    };
    let (said, code) = made(&["--pass", "speculative", "--predict", "kernel.c:7,threshold=8"]);
    assert!(said.contains("taken: kernel: kernel.c:7 at kernel.c:7: here 8 lanes"), "{said}");
    assert!(code.contains("call i32 @llvm.nvvm.vote.ballot.sync"), "{code}");
    let (said, code) = made(&["--pass", "speculative:detect=yes,gain=100,risk=10000"]);
    assert!(said.contains("loop merge at kernel.c:7: by estimate") && said.contains("taken: kernel: "), "{said}");
    assert!(code.contains("@llvm.nvvm.vote"), "{code}");
    let (said, code) = made(&["--pass", "speculative", "--predict", "kernel.c:70"]);
    assert!(said.contains("kernel.c:70: no function has code of this line"), "{said}");
    assert!(!code.contains("vote"), "{code}");
}

#[test]
fn no_lane_of_a_gpu_waits_where_lanes_yield_or_where_ptx_has_no_questions() {
    // By ptxas's listings (scripts/yields-by-ptxas): an atomic operation has YIELD before sm_90, and there with a call.
    let atomic = KERNEL.replace("sum += sum / 7;", "__atomic_fetch_add(&out[j], sum, 0); sum += 7;");
    let calls = atomic.replace("sum += 7;", "sum += (int)__builtin_sqrt((double)sum);");
    let folder = Folder::with(&[("kernel.c", KERNEL), ("atomic.c", &atomic), ("calls.c", &calls)]);
    let said = |source: &str, processor: &str, ptx: &str, words: &[&str]| {
        let (processor, ptx) = (format!("-march={processor}"), format!("--cuda-feature=+{ptx}"));
        let clang = ["--target=nvptx64-nvidia-cuda", &processor, &ptx, "-O2", "-g1", "-nogpulib"];
        let clang = [&clang[..], &["-fno-math-errno", "-fno-unroll-loops"]].concat();
        folder.succeed("clang-19", &[&clang[..], &["-emit-llvm", "-c", source, "-o", "made.bc"]].concat());
        let all = ["transform", "--report", "made.bc", "-o", "made.ll"];
        let said = folder.succeed(lockstep(), &[&all[..], words].concat());
        let asks = std::fs::read_to_string(folder.path("made.ll")).unwrap().contains("call i32 @llvm.nvvm.vote");
        assert_eq!(said.contains("taken: kernel: "), asks, "{said}");
        said
    };
    let found = ["--pass", "speculative:detect=yes,gain=50,risk=10000"];
    let meet = "lanes meet there already";
    for (source, processor, meets) in [
        ("kernel.c", "sm_80", false),
        ("atomic.c", "sm_80", true),
        ("atomic.c", "sm_90", false),
        ("calls.c", "sm_80", true),
        ("calls.c", "sm_90", true),
    ] {
        let typed = format!("{source}:7");
        for words in [&found, &["--pass", "speculative", "--predict", &typed][..]] {
            let said = said(source, processor, "ptx80", words);
            assert_eq!(said.contains(meet), meets, "{source} {processor} {words:?}: {said}");
            assert_eq!(said.contains("taken: kernel: "), !meets, "{source} {processor} {words:?}: {said}");
        }
    }
    let old = said("kernel.c", "sm_70", "ptx61", &found);
    assert!(old.contains("lanes cannot ask each other in a version of PTX before 6.2"), "{old}");
}

#[test]
fn benchmarks_gain_in_a_warp_that_follows_their_ptx() {
    let folder = Folder::with(&[]);
    let script = root().join("scripts/speculation-on-gpu").display().to_string();
    let run = std::process::Command::new(&script)
        .args(["pathtracer", "xsbench", "mummer", "--orders", "1", "--warps", "1", "-o"])
        .arg(folder.path("gpu.csv"))
        .env("LOCKSTEP", lockstep())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let rows = std::fs::read_to_string(folder.path("gpu.csv")).unwrap();
    let mut lines = rows.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|of| *of == name).unwrap();
    let (marks, profile) = (column("marks_gain"), column("profile_gain"));
    let mut programs = 0;
    for line in lines {
        let gain = |column: usize| line[column].parse::<f64>().unwrap();
        let least = if line[0] == "pathtracer" { 1.8 } else { 1.0 };
        // By the turns of a trace the same places are found.
        assert!(gain(marks) >= least && gain(profile) >= least, "{line:?}");
        assert_eq!(gain(column("detected_gain")), 1.0, "{line:?}");
        programs += 1;
    }
    assert_eq!(programs, 3);
}

/// The same as a program for both: 32 threads whose lanes differ in their turns, or do not.
const PROGRAM: &str = r#"
#define STEP(by) sum ^= sum >> 3; sum += sum / by; sum ^= sum << 5;
#ifdef __NVPTX__
extern int trips[], out[];
__attribute__((nvptx_kernel))
#else
#include <pthread.h>
static int trips[1024], out[1024];
__attribute__((noinline))
#endif
void kernel(int first, int n) {
    for (int i = first; i < n; i += 32) {
        int sum = i;
        int j = trips[i];
        do {
            sum = sum * 31 + j;
            STEP(7) STEP(11) STEP(13) STEP(17) STEP(19) STEP(23) STEP(29) STEP(31)
        } while (--j > 0);
        out[i] = sum;
    }
}
#ifndef __NVPTX__
static void *start(void *lane) { kernel((int)(long)lane, 1024); return 0; }
int main(void) {
    pthread_t threads[32];
    for (int i = 0; i < 1024; i++) trips[i] = TRIPS(i);
    for (long i = 0; i < 32; i++) pthread_create(&threads[i], 0, start, (void *)i);
    for (int i = 0; i < 32; i++) pthread_join(threads[i], 0);
    int sum = 0;
    for (int i = 0; i < 1024; i++) sum ^= out[i];
    return sum == 42;
}
#endif
"#;

#[test]
fn what_is_found_is_taken_where_a_trace_says_that_lanes_differ() {
    let folder = Folder::with(&[("kernel.c", PROGRAM)]);
    let gpu = ["--target=nvptx64-nvidia-cuda", "-march=sm_80", "--cuda-feature=+ptx75", "-O2", "-g1", "-nogpulib"];
    folder.succeed("clang-19", &[&gpu[..], &["-emit-llvm", "-c", "kernel.c", "-o", "kernel.bc"]].concat());
    let made = |words: &[&str]| {
        let all = ["transform", "--report", "kernel.bc", "-o", "made.ll", "--pass"];
        let said = folder.succeed(lockstep(), &[&all[..], words].concat());
        let code = std::fs::read_to_string(folder.path("made.ll")).unwrap();
        let waits = code.lines().any(|line| line.contains("call ") && line.contains("@llvm.nvvm.vote"));
        (said, waits)
    };
    let detect = "speculative:detect=yes";
    let (said, waits) = made(&[detect]);
    assert!(!waits && said.contains("whether lanes differ there is unknown"), "{said}");
    assert!(made(&["speculative:detect=yes,risk=10000"]).1);
    // Between 1 and 40 turns without an order, and 20 for all.
    for (trips, differs) in [("-DTRIPS(i)=(1+(int)((unsigned)(i)*2654435761u>>16)%40)", true), ("-DTRIPS(i)=20", false)]
    {
        folder.succeed(
            lockstep(),
            &["cc", "--shape", "gpu", "--", "-O2", "-g1", trips, "kernel.c", "-o", "program", "-pthread"],
        );
        folder.succeed(lockstep(), &["trace", "-o", "trace.bin", "--", "./program"]);
        let loops = folder.succeed(lockstep(), &["replay", "--loops", "--json", "trace.bin"]);
        std::fs::write(folder.path("loops.json"), &loops).unwrap();
        let trips = ["--trips", "loops.json"];
        let (said, waits) = made(&[&[detect], &trips[..]].concat());
        assert_eq!(waits, differs, "{said}");
        // The replay judges: it gains what was promised, and nothing where lanes take equal turns.
        let json = made(&[&[detect, "--report-format", "json"], &trips[..]].concat()).0;
        let remarks = json.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut remarks = remarks.filter(|remark| remark["reason"] == "PlaceRan");
        let remark = remarks.next().unwrap();
        let (at, numbers) = (remark["words"]["at"].as_str().unwrap(), &remark["numbers"]);
        let place = match numbers["enough"].as_u64().unwrap() {
            0 => at.to_owned(),
            enough => format!("{at},threshold={enough}"),
        };
        let json = folder.succeed(lockstep(), &["replay", "--predict", &place, "--json", "trace.bin"]);
        let replayed: Value = serde_json::from_str(&json).unwrap();
        let issued = |row: usize| replayed["results"][row]["gpu_issued"].as_f64().unwrap();
        let (promised, gain) = (numbers["percent"].as_f64().unwrap() / 100.0, issued(0) / issued(1));
        assert!((promised / gain - 1.0).abs() < 0.15 && (gain > 1.2) == differs, "{promised} {gain} {said}");
        if !differs {
            assert!(
                said.contains("the turns of its lanes differ too little") && numbers["apart"] == numbers["together"]
            );
            continue;
        }
        // What an older version printed, and what is broken.
        let mut rows: Vec<Value> = serde_json::from_str(&loops).unwrap();
        let inner = rows.iter().position(|row| !row["spread"].is_null()).unwrap();
        rows[inner]["spread"]["apart"]["rest"] = Value::Null;
        std::fs::write(folder.path("loops.json"), serde_json::to_string(&rows).unwrap()).unwrap();
        let words = ["transform", "kernel.bc", "-o", "made.ll", "--pass", detect, "--trips", "loops.json"];
        let output = folder.run(lockstep(), &words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(said.contains("loops.json: its spread is broken") && said.contains("print it again"), "{said}");
        for row in &mut rows {
            row.as_object_mut().unwrap().retain(|word, _| word != "spread" && word != "arms");
        }
        std::fs::write(folder.path("loops.json"), serde_json::to_string(&rows).unwrap()).unwrap();
        let (said, waits) = made(&[&[detect], &trips[..]].concat());
        assert!(!waits && said.contains("print them again by `replay --loops --json`"), "{said}");
    }
}
