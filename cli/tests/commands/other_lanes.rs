//! What else is a lane than the turn of a loop: which threads share warps, which region holds the program, what of it
//! are pieces of work. Each program's first lines say what is right.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{SLEEP_SOON, has_openmp_of_clang, root, succeed};

/// A program of cli/tests/programs, built and traced.
struct Traced {
    _folder: tempfile::TempDir,
    trace: String,
}

impl Traced {
    fn new(compiler: &[&str], source: &str) -> Traced {
        Traced::of(compiler, &root().join("cli/tests/programs").join(source))
    }

    fn of(compiler: &[&str], source: &Path) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let mut build = Command::new(compiler[0]);
        let level = if compiler[0] == "rustc" { "-O" } else { "-O2" };
        build.args(&compiler[1..]).args([level, "-g", "-o"]).args([&program, source]);
        let built = build.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let trace = folder.path().join("trace.bin").to_str().unwrap().to_owned();
        // libomp's threads would spin for as long as the machine is busy.
        let words = [&SLEEP_SOON[..], &[env!("CARGO_BIN_EXE_trace"), "-o", &trace, program.to_str().unwrap()]].concat();
        let traced = Command::new("env").args(words).output().unwrap();
        assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
        Traced { _folder: folder, trace }
    }

    fn text(source: &str, name: &str, compiler: &[&str]) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, source).unwrap();
        Traced::of(compiler, &path)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&succeed("replay", &[arguments, &["--json", &self.trace]].concat())).unwrap()
    }

    fn verdict(&self) -> Value {
        self.json(&[])["verdict"].take()
    }
}

const GCC: &[&str] = &["gcc", "-pthread"];
const GCC_OPENMP: &[&str] = &["gcc", "-fopenmp"];
const CLANG_OPENMP: &[&str] = &["clang-19", "-fopenmp=libomp"];
const CPP: &[&str] = &["g++", "-std=c++17", "-pthread"];

/// The compilers whose OpenMP is there.
fn with_openmp() -> Vec<&'static [&'static str]> {
    let clang = has_openmp_of_clang().then_some(CLANG_OPENMP);
    std::iter::once(GCC_OPENMP).chain(clang).collect()
}

fn efficiency(of: &Value) -> f64 {
    of["efficiency"].as_f64().unwrap_or_else(|| panic!("{of}"))
}

fn near(found: f64, wanted: f64, about: &Value) {
    assert!((found - wanted).abs() < 0.005, "{found} for {wanted}: {about}");
}

#[test]
fn a_warp_has_no_more_seats_than_the_largest_generation_has_threads() {
    let rounds = Traced::new(GCC, "rounds_of_threads.c");
    let verdict = rounds.verdict();
    near(efficiency(&verdict), 14.0 / 16.0, &verdict);
    // It is the figure of the same model without the machine.
    let named = rounds.json(&["-H", "hanoi:placement=structured,predicate=4"]);
    near(named["results"][0]["simt_efficiency"].as_f64().unwrap(), 14.0 / 16.0, &named);
    let batches = "
#include <future>
#include <vector>
__attribute__((noinline)) static long inside(long n) { long s = 0; for (long i = 0; i < n; i++) s += s ^ i; return s; }
int main() {
    long sum = 0;
    for (int batch = 0; batch < 5; batch++) {
        std::vector<std::future<long>> all;
        for (int i = 0; i < 4; i++) all.push_back(std::async(std::launch::async, inside, 5000L));
        for (auto &one : all) sum += one.get();
    }
    return sum == 1;
}";
    let verdict = Traced::text(batches, "batches.cpp", CPP).verdict();
    near(efficiency(&verdict), 1.0, &verdict);
}

#[test]
fn the_region_is_what_holds_most_and_not_what_most_threads_ran() {
    let verdict = Traced::new(GCC, "helpers_first.c").verdict();
    near(efficiency(&verdict), 10.0 / 16.0, &verdict);
    assert!(verdict["coverage"]["share"].as_f64().unwrap() > 0.5, "{verdict}");
}

#[test]
fn the_thread_that_starts_the_others_is_a_lane_where_it_takes_part() {
    // Lanes have 1, 2, 3, 4, 1, 2, 3, 4 pieces of work; the first is that of the main thread.
    let program = |attribute: &str, call: &str| {
        format!(
            "
#include <pthread.h>
static volatile long out[8];
{attribute} void work(long id) {{ for (long i = 0; i < 1000 * (id % 4 + 1); i++) out[id] += i; }}
static void *start(void *a) {{ work((long)a); return 0; }}
int main(void) {{
    pthread_t threads[8];
    for (long i = 1; i < 8; i++) pthread_create(&threads[i], 0, start, (void *)i);
    {call}
    for (int i = 1; i < 8; i++) pthread_join(threads[i], 0);
}}"
        )
    };
    let verdict = |attribute, call| Traced::text(&program(attribute, call), "takes_part.c", GCC).verdict();
    let warns = |verdict: &Value| verdict["warnings"].to_string().contains("thread 0 ran");
    let apart = "__attribute__((noinline))";
    for call in ["work(0);", "start(0);"] {
        let verdict = verdict(apart, call);
        near(efficiency(&verdict), 20.0 / 32.0, &verdict);
        assert!(!warns(&verdict), "{verdict}");
    }
    let without = verdict(apart, "");
    near(efficiency(&without), 19.0 / 28.0, &without);
    assert!(!warns(&without), "{without}");
    let inlined = verdict("static inline __attribute__((always_inline))", "work(0);");
    assert!(warns(&inlined), "{inlined}");
}

#[test]
fn where_the_lanes_are_next_to_nothing_the_first_line_names_what_holds_most() {
    // One thread alone holds nearly all. What others run together is more than a tenth of what all ran.
    let program = "
#include <pthread.h>
static volatile long out[9];
static void *lone(void *a) { for (long i = 0; i < 40000; i++) out[8] += i; return a; }
static void *work(void *a) { for (long i = 0; i < 2000; i++) out[(long)a] += i; return 0; }
int main(void) {
    for (long i = 0; i < 400000; i++) out[0] += i;
    pthread_t threads[9];
    pthread_create(&threads[8], 0, lone, 0);
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 9; i++) pthread_join(threads[i], 0);
}";
    let traced = Traced::text(program, "mostly_alone.c", GCC);
    let verdict = traced.verdict();
    let headline = verdict["headline"].as_str().unwrap();
    assert!(
        headline.contains("but they are only") && headline.contains("of the program: what ran outside"),
        "{verdict}"
    );
    let less = program.replace("i < 400000", "i < 10").replace("i < 40000;", "i < 140000;");
    let verdict = Traced::text(&less, "mostly_alone.c", GCC).verdict();
    let headline = verdict["headline"].as_str().unwrap();
    assert!(
        headline.contains(": start routine lone holds ") && headline.contains("replay --region lone)"),
        "{verdict}"
    );
}

#[test]
fn long_pools_get_the_answer_of_short_ones() {
    // The second has more than 20 million instructions.
    for work in ["-DWORK=500", "-DWORK=20000"] {
        let verdict = Traced::new(&[CPP, &[work]].concat(), "pool.cpp").verdict();
        let items = &verdict["items"];
        assert_eq!((&items["lanes"], &items["warp_size"]), (&200.into(), &32.into()), "{work}: {verdict}");
        near(efficiency(items), 0.558, &verdict);
        assert!(items["typed"].as_str().unwrap().contains("--lanes calls --region 'inside(long)'"), "{verdict}");
    }
}

#[test]
fn a_thread_that_took_all_pieces_is_chance() {
    let verdict = Traced::new(GCC, "one_takes_all.c").verdict();
    assert_eq!((&verdict["holds"], &verdict["items"]["lanes"]), (&false.into(), &400.into()), "{verdict}");
    near(efficiency(&verdict["items"]), 400.0 / 416.0, &verdict);
    // However short they are.
    let verdict = Traced::new(&[GCC, &["-DSHORT"]].concat(), "one_takes_all.c").verdict();
    let items = &verdict["items"];
    assert_eq!((&verdict["holds"], &verdict["balance"]["is_chance"]), (&false.into(), &true.into()), "{verdict}");
    assert!(items["typed"].as_str().unwrap().starts_with("--loop one_takes_all.c:"), "{verdict}");
    assert!(items["lanes"].as_u64().unwrap().abs_diff(404) <= 4 && efficiency(items) > 0.9, "{verdict}");
}

#[test]
fn tasks_are_pieces_of_work_wherever_a_runtime_runs_them() {
    for compiler in with_openmp() {
        let verdict = Traced::new(compiler, "omp_tasks.c").verdict();
        // What libomp does to wait differs from run to run.
        assert!(verdict["coverage"]["share"].as_f64().unwrap() > 0.05, "{verdict}");
        let items = &verdict["items"];
        assert_eq!((&items["typed"], &items["lanes"]), (&"--lanes tasks".into(), &200.into()), "{verdict}");
        near(efficiency(items), 0.558, &verdict);
    }
}

#[test]
fn tasks_that_wait_for_tasks_are_lanes() {
    let program = "
#include <stdio.h>
static long fib(int n) {
    long a, b;
    if (n < 2) return n;
    #pragma omp task shared(a)
    a = fib(n - 1);
    #pragma omp task shared(b)
    b = fib(n - 2);
    #pragma omp taskwait
    return a + b;
}
int main(void) {
    long all;
    #pragma omp parallel num_threads(4)
    #pragma omp single
    all = fib(12);
    printf(\"%ld\\n\", all);
}";
    for compiler in with_openmp() {
        let traced = Traced::text(program, "fib.c", compiler);
        // fib(12) is called 465 times, each but the first in a task of its own.
        let json = traced.json(&["--lanes", "tasks"]);
        assert_eq!((&json["results"][0]["lanes"], &json["verdict"]["holds"]), (&464.into(), &true.into()), "{json}");
    }
}

#[test]
fn what_the_runtime_calls_for_itself_is_no_lanes() {
    for compiler in with_openmp() {
        let verdict = Traced::new(compiler, "omp_first_use.c").verdict();
        near(efficiency(&verdict), 1.0, &verdict);
        assert!(!verdict["warnings"].to_string().contains("lockstep does not know"), "{verdict}");
    }
}

#[test]
fn a_switch_to_a_stack_above_the_threads_does_not_end_its_region() {
    let fibres = Traced::new(CPP, "fiber_cxx.cpp");
    let verdict = fibres.verdict();
    near(efficiency(&verdict), 1.0, &verdict);
    // 4 threads with 8 green threads, each of 5 steps of 300 turns of 3 instructions and more.
    let json = fibres.json(&["-H", "minpc"]);
    let ran = json["results"][0]["thread_instructions"].as_u64().unwrap();
    assert!(ran > 4 * 8 * 5 * 300 * 3, "{json}");
    // While one green thread's call waits its thread runs others: each is a lane of its own.
    let calls = fibres.json(&["--lanes", "calls", "--region", "body"]);
    assert_eq!(calls["results"][0]["lanes"], 4 * 8, "{calls}");
    assert_eq!(calls["verdict"]["holds"], true, "{calls}");
    near(efficiency(&calls["verdict"]), 1.0, &calls);
}

#[test]
fn the_body_of_a_static_programs_thread_is_found() {
    const RUST: &str = "
fn main() {
    let work = |thread: u64| (0..2000).map(|i| collatz(i * 4 + thread)).sum::<u64>();
    let threads: Vec<_> = (0..4).map(|thread| std::thread::spawn(move || work(thread))).collect();
    println!(\"{}\", threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>());
}
#[inline(never)]
fn collatz(mut n: u64) -> u64 {
    let mut steps = 0;
    while n > 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}";
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("work.rs");
    std::fs::write(&source, RUST).unwrap();
    let figures = [&[][..], &["-C", "target-feature=+crt-static"]].map(|flags| {
        let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
        let mut build = Command::new("rustc");
        build.args(["-O", "-g", "--edition", "2021", "-o"]).arg(&program).args(flags).arg(&source);
        let built = build.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let trace = trace.to_str().unwrap().to_owned();
        succeed("trace", &["-o", &trace, program.to_str().unwrap()]);
        let json = Traced { _folder: tempfile::tempdir().unwrap(), trace }.json(&["-H", "minpc"]);
        (json["results"][0]["lanes"].clone(), json["results"][0]["thread_instructions"].clone())
    });
    assert_eq!(figures[0], figures[1]);
}

#[test]
fn loops_into_which_a_library_was_inlined_have_the_programs_own_lines() {
    let queue = Traced::new(&["rustc", "--edition", "2021"], "full_queue.rs");
    let loops = queue.json(&["--loops"]);
    let loops = loops.as_array().unwrap();
    let places: Vec<&str> = loops.iter().map(|row| row["loop"].as_str().unwrap()).collect();
    let functions: Vec<&str> = loops.iter().map(|row| row["function"].as_str().unwrap()).collect();
    assert!(functions.contains(&"full_queue::primes"), "{functions:?}");
    // A lock that is not free at once is waited for in a function of the library that stands by itself.
    let is_own = |(place, function): (&&str, &&str)| place.starts_with("full_queue.rs:") || function.contains("std::");
    assert!(places.iter().zip(&functions).all(is_own), "{places:?} {functions:?}");
    // The 128 items, and each of 8 threads finds the queue empty once.
    let typed = places[0];
    let lanes = queue.json(&["--loop", typed, "-H", "minpc"])["results"][0]["lanes"].clone();
    assert_eq!((loops[0]["iterations"].as_u64(), lanes.as_u64()), (Some(136), Some(136)), "{typed}");
    let verdict = queue.verdict();
    if verdict["holds"] == false {
        assert_eq!(verdict["items"]["typed"], format!("--loop {typed}"), "{verdict}");
    }
}

/// The queue's lock is nearly never free: behind the way on which it is waited for rustc puts a copy of what a turn
/// begins with, and goes on behind the loop's own.
#[test]
fn turns_that_begin_in_a_copy_of_a_loops_head_are_turns() {
    let source = std::fs::read_to_string(root().join("cli/tests/programs/full_queue.rs")).unwrap();
    let taken = "let mut q = queue.lock().unwrap();";
    assert!(source.contains(taken), "{source}");
    let held = source.replace(taken, &format!("{taken} thread::sleep(std::time::Duration::from_micros(200));"));
    let queue = Traced::text(&held, "held_queue.rs", &["rustc", "--edition", "2021"]);
    let loops = queue.json(&["--loops"]);
    let own = loops.as_array().unwrap().iter().filter(|row| row["loop"] == "held_queue.rs:28");
    let turns: Vec<(u64, u64)> =
        own.map(|row| (row["depth"].as_u64().unwrap(), row["iterations"].as_u64().unwrap())).collect();
    assert_eq!(turns, [(1, 136)], "{loops}");
    let taken = queue.json(&["--loop", "held_queue.rs:28", "-H", "minpc"]);
    assert_eq!(taken["results"][0]["lanes"], 136, "{taken}");
}

#[test]
fn turns_are_the_items_where_the_loop_that_waits_has_one_head_with_the_loop_around() {
    let source = std::fs::read_to_string(root().join("cli/tests/programs/tried_queue.c")).unwrap();
    let loops = [("", "while (pthread_mutex_trylock", 132), ("#define FLAG\n", "for (int none = 0", 132)];
    let tested = ("#define TESTED\n", "IF_DONE(none); // the end", 0);
    for (form, line, items) in loops.into_iter().chain([tested]) {
        for compiler in [GCC, &["clang-19", "-pthread"]] {
            let queue = Traced::text(&format!("{form}{source}"), "tried_queue.c", compiler);
            let loops = queue.json(&["--loops"]);
            let own = loops.as_array().unwrap().iter().filter(|row| row["function"] == "take_all" && row["depth"] == 1);
            let turns: Vec<u64> = own.map(|row| row["lanes"].as_u64().unwrap()).collect();
            let [turns] = turns[..] else { panic!("{form}{compiler:?}: {loops}") };
            // Who finds at the end that there are none may have been there before that is said.
            let is_right = if items == 0 { (129..=132).contains(&turns) } else { turns == items };
            assert!(is_right, "{form}{compiler:?}: {turns} {loops}");
            let at =
                format!("{form}{source}").lines().position(|text| text.trim_start().starts_with(line)).unwrap() + 1;
            let lanes = queue.json(&["--loop", &format!("tried_queue.c:{at}"), "-H", "minpc"]);
            assert_eq!(lanes["results"][0]["lanes"], turns, "{form}{compiler:?}: {loops}");
        }
    }
}

#[test]
fn those_who_share_something_are_no_counter_of_work() {
    let verdict = Traced::new(CPP, "async_parts.cpp").verdict();
    near(efficiency(&verdict), 0.75, &verdict);
    assert_eq!(verdict["balance"]["schedule"], Value::Null, "{verdict}");
    assert_eq!(verdict["warnings"], Value::Array(Vec::new()), "{verdict}");
}

#[test]
fn lanes_of_openmp_are_numbers_in_the_team() {
    for compiler in with_openmp() {
        let teams = Traced::new(compiler, "omp_team_sizes.c");
        let verdict = teams.verdict();
        // Half of the lanes have nothing to do in half of the regions.
        near(efficiency(&verdict), 0.75, &verdict);
        assert!(verdict["warnings"].to_string().contains("32 threads if it can (OMP_NUM_THREADS=32)"), "{verdict}");
        let json = teams.json(&["-H", "ipdom,hanoi,minpc,wave,dwf", "--check"]);
        for result in json["results"].as_array().unwrap() {
            assert_eq!(result["lanes"], 8, "{result}");
            near(result["simt_efficiency"].as_f64().unwrap(), 0.75, result);
        }
    }
    // Threads of nested teams are made anew for each.
    let nested = "
#include <omp.h>
__attribute__((noinline)) static long inside(long n) { long s = 0; for (long i = 0; i < n; i++) s += s ^ i; return s; }
static long out[8];
int main(int argc, char **argv) {
    (void)argv;
    omp_set_max_active_levels(2);
    #pragma omp parallel num_threads(2)
    for (int round = 0; round < 3; round++) {
        int outer = omp_get_thread_num();
        #pragma omp parallel num_threads(4)
        out[outer * 4 + omp_get_thread_num()] += inside(1000 * argc);
    }
}";
    let json = Traced::text(nested, "nested.c", GCC_OPENMP).json(&["-H", "minpc", "--check"]);
    assert_eq!(json["results"][0]["lanes"], 8, "{json}");
}

/// Two teams inside of another, one after the other, for which clang's runtime takes one thread of its pool.
#[test]
fn threads_of_a_pool_that_work_for_several_teams_are_no_lanes() {
    const TURNS: &str = "
#include <omp.h>
__attribute__((noinline)) static long inside(long n) { long s = 0; for (long i = 0; i < n; i++) s += s ^ i; return s; }
static long out[4];
static void team(int outer, int argc) {
    #pragma omp parallel num_threads(2)
    out[outer * 2 + omp_get_thread_num()] += inside(1000 * argc);
}
int main(int argc, char **argv) {
    (void)argv;
    omp_set_max_active_levels(2);
    #pragma omp parallel num_threads(2)
    {
        int outer = omp_get_thread_num();
        if (outer == 0) team(outer, argc);
        #pragma omp barrier
        if (outer == 1) team(outer, argc);
    }
}";
    for compiler in with_openmp() {
        let is_of_pool = compiler[0] != GCC_OPENMP[0];
        let verdict = Traced::text(TURNS, "turns.c", compiler).verdict();
        assert_eq!(verdict["holds"], !is_of_pool, "{compiler:?}: {verdict}");
        assert_eq!(verdict["warnings"].to_string().contains("KMP_HOT_TEAMS_MODE=1"), is_of_pool, "{verdict}");
    }
}

/// What `--by region` lists.
fn regions(traced: &Traced) -> Vec<String> {
    let json = traced.json(&["-H", "minpc", "--by", "region"]);
    let rows = json["regions"].as_array().unwrap_or_else(|| panic!("{json}"));
    rows.iter().map(|row| row["region"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_by_region_shows_is_what_region_takes() {
    const COPIES: &str = "
#include <pthread.h>
template <class T> __attribute__((noinline)) T sum(T n) { T s = 0; for (T i = 0; i < n; i++) s += s ^ i; return s; }
template <class T> struct Table {
    T from;
    __attribute__((noinline)) T run(T n, int scale) { T s = from; for (T i = 0; i < n * scale; i++) s += s ^ i; return s; }
};
static __attribute__((noinline)) long copied(long n, int k) { long s = 0; for (long i = 0; i < n; i++) s += (s ^ i) * k; return s; }
static volatile long out[4];
template <class T> static void *work(void *argument) {
    long thread = (long)argument;
    Table<T> table{thread};
    out[thread] = sum<T>(900) + sum<int>(400) + table.run(100, 3) + copied(thread * 100 + 100, 7);
    return 0;
}
int main() {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work<long>, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
}";
    let copies = Traced::text(COPIES, "copies.cpp", CPP);
    let lanes = |region: &str| {
        let json = copies.json(&["-H", "minpc", "--lanes", "calls", "--region", region]);
        json["results"][0]["lanes"].as_u64().unwrap()
    };
    for region in regions(&copies) {
        assert_eq!(lanes(&region), 4, "{region}");
    }
    let all = [("sum", 8), ("sum<long>", 4), ("Table::run", 4), ("Table<long>::run", 4), ("copied", 4), ("work", 4)];
    for (region, calls) in all {
        assert_eq!(lanes(region), calls, "{region}");
    }
}

#[test]
fn a_target_region_is_named_by_its_place() {
    const TARGET: &str = "
static int out[64];
int main(void) {
#pragma omp target teams distribute parallel for
    for (int i = 0; i < 64; i++)
        for (int n = i; n > 0; n--)
            out[i] += n;
}";
    if !has_openmp_of_clang() {
        return;
    }
    let target = Traced::text(TARGET, "target.c", CLANG_OPENMP);
    let all = regions(&target);
    assert!(all.iter().any(|region| region.contains("target region at target.c:4")), "{all:?}");
    for region in all {
        target.json(&["-H", "minpc", "--region", &region]);
    }
    let by_function = succeed("replay", &["-H", "minpc", "--by", "function", "-W", "4", &target.trace]);
    assert!(
        by_function.contains("target region at target.c:4") && !by_function.contains("offloading"),
        "{by_function}"
    );
}
