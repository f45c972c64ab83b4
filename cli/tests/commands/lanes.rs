//! `replay --lanes`: lanes that are calls, tasks or turns of a loop, of one picture that is drawn in many ways.
//! It has more than 500 lines since all tests share the programs that draw that picture.

use std::path::Path;
use std::process::Command;

use replay::Batch;
use replay::view::{CodeFilter, Lanes, Region, View, ViewOptions, WhichLoops};
use serde_json::Value;

use crate::support::{build, is_whole, root, run, succeed};

/// As many as `pixels.c` draws.
const PIXELS: u64 = 2048;

/// Warps of 32.
const WARPS: u64 = PIXELS / 32;

fn source() -> String {
    root().join("cli/tests/lanes/pixels.c").to_str().unwrap().to_owned()
}

/// A trace of the picture, drawn in this way, by four threads where it is OpenMP.
fn traced(folder: &Path, name: &str, compiler: &[&str], define: &str, options: &[&str]) -> String {
    traced_of(&source(), folder, name, compiler, define, options)
}

/// The same of another source.
fn traced_of(source: &str, folder: &Path, name: &str, compiler: &[&str], define: &str, options: &[&str]) -> String {
    let (program, trace) = (folder.join(name), folder.join(format!("{name}.bin")));
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-O2", "-g", "-pthread"]);
    if !compiler[1..].iter().any(|word| word.starts_with("-fopenmp")) {
        command.arg("-fopenmp");
    }
    command.args([define, source, "-o"]).arg(&program);
    let built = command.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let trace = trace.to_str().unwrap().to_owned();
    let words = ["OMP_NUM_THREADS=4", "XDG_CACHE_HOME=/proc/no-cache", env!("CARGO_BIN_EXE_trace"), "-o", &trace];
    let traced = Command::new("env").args(words).args(options).arg(&program).output().unwrap();
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
    trace
}

fn gcc(folder: &Path, name: &str, define: &str) -> String {
    traced(folder, name, &["gcc"], define, &[])
}

const MODELS: &str = "ipdom,minpc,tf-stack,barrier";

/// Lanes and, by model, fetches.
fn replayed(trace: &str, arguments: &[&str]) -> (u64, Vec<u64>) {
    let arguments = [arguments, &["-H", MODELS, "--check", "--json", trace]].concat();
    let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
    let results = json["results"].as_array().unwrap();
    let fetches = results.iter().map(|result| result["fetches"].as_u64().unwrap()).collect();
    (results[0]["lanes"].as_u64().unwrap(), fetches)
}

/// What a loop has beside its body: the increment, the comparison, the branch, the call with its argument, the store.
const MOST_AT_THE_EDGE: u64 = 8;

/// The fetches of turns are those of the body, and a few more in each warp for the loop, as many under every model.
fn assert_edge(body: &[u64], (lanes, turns): (u64, Vec<u64>), what: &str) {
    assert_eq!(lanes, PIXELS, "{what}");
    let more: Vec<u64> = turns.iter().zip(body).map(|(turn, body)| turn - body).collect();
    assert!(more.iter().all(|one| *one == more[0]), "{what}: {turns:?}, {body:?}");
    assert!(
        more[0].is_multiple_of(WARPS) && (1..=MOST_AT_THE_EDGE).contains(&(more[0] / WARPS)),
        "{what}: {turns:?}, {body:?}"
    );
}

/// By model: the fetches of the body alone, one lane a thread, 32 a warp.
fn of_threads(folder: &Path) -> Vec<u64> {
    let trace = gcc(folder, "threads", "-DTHREADS");
    let (lanes, fetches) = replayed(&trace, &["--region", "pixel", "-W", "32"]);
    assert_eq!(lanes, PIXELS);
    fetches
}

#[test]
fn a_pixel_a_turn_is_a_pixel_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let body = of_threads(folder.path());
    // A sequential program: the loop is named by its line.
    let trace = gcc(folder.path(), "sequential", "-DSEQUENTIAL");
    let text = std::fs::read_to_string(source()).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("while (i < PIXELS)")).unwrap();
    assert_edge(&body, replayed(&trace, &["--loop", &format!("pixels.c:{line}")]), "sequential");
    // A part of the same, called once a turn.
    assert_eq!(replayed(&trace, &["--lanes", "calls", "--region", "pixel"]), (PIXELS, body.clone()));
    // OpenMP's static schedules number iterations as the loop does, whichever thread runs them; and a region that
    // would run on a GPU, but falls back to this machine, is a static schedule.
    let defines = ["-DSCHEDULE=static", "-DSCHEDULE=static,8", "-DSCHEDULE=static,3", "-DTARGET", "-DCOLLAPSE"];
    for define in defines {
        let trace = gcc(folder.path(), "static", define);
        let turns = replayed(&trace, &["--lanes", "iterations"]);
        if define == "-DCOLLAPSE" {
            // Two indices cost more at the edge, and the rows' ends more than the rest.
            assert!(turns.0 == PIXELS && turns.1.iter().zip(&body).all(|(turn, body)| turn - body < 20 * WARPS));
        } else {
            assert_edge(&body, turns, define);
        }
    }
}

/// By lane, in order of number: how many instructions it runs.
fn lengths(trace: &str, lanes: Lanes) -> Vec<usize> {
    lengths_of(trace, lanes, Region::Auto)
}

/// The same of a part of the run.
pub(crate) fn lengths_of(trace: &str, lanes: Lanes, region: Region) -> Vec<usize> {
    let options = ViewOptions {
        lanes,
        region,
        // Of libomp more is kept otherwise than a walk through the body's code gets over.
        code: CodeFilter::Main,
        ..ViewOptions::default()
    };
    let view = View::new(&trace_format::Trace::open(Path::new(trace)).unwrap(), &options);
    let view = view.unwrap_or_else(|error| panic!("{trace}: {error}"));
    let length = |lane: usize| {
        let (mut stream, mut batch, mut length) = (view.stream(lane), Batch::default(), 0);
        while stream.next_batch(&mut batch).unwrap() {
            let segments = batch.codes.iter().filter_map(|code| code.as_segment());
            length += segments.map(|id| view.segments()[id].instructions.len()).sum::<usize>();
        }
        length
    };
    (0..view.lanes().len()).map(length).collect()
}

fn iterations() -> Lanes {
    Lanes::Iterations(WhichLoops::Worksharing)
}

/// Hands over a trace of `turns.c` by each compiler whose OpenMP is there, with each of these definitions.
fn turns(defines: &[&str], see: impl Fn(&str, &str, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("cli/tests/lanes/turns.c").to_str().unwrap().to_owned();
    let has_clang = crate::support::has_openmp_of_clang();
    let compilers = [("gcc", "-fopenmp"), ("clang-19", "-fopenmp=libomp")];
    for (compiler, openmp) in compilers.into_iter().filter(|(compiler, _)| *compiler == "gcc" || has_clang) {
        for define in defines {
            let name = format!("{compiler}-{define}");
            let trace = traced_of(&source, folder.path(), &name, &[compiler, openmp], &format!("-D{define}"), &[]);
            see(compiler, define, &trace);
        }
    }
}

/// What `replay` says about the lanes.
fn said(trace: &str, lanes: &str) -> String {
    let said = run("replay", &["--lanes", lanes, "--code", "main", "-H", "minpc", trace]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stderr).into_owned()
}

/// Lane i makes 4 * i turns of the inner loop, as many instructions each.
fn assert_rising(lengths: &[usize], about: &str) {
    assert_eq!(lengths.len(), 200, "{about}");
    assert!(lengths.windows(2).all(|pair| pair[0] < pair[1]), "{about}: {lengths:?}");
    assert_linear(&(0..200).collect::<Vec<_>>(), lengths, about);
}

/// Instructions that a lane has beside the turns of its inner loop: the call of the function, the store, the outer
/// loop's edge, which is longer at the ends of chunks and of rows.
const MOST_BESIDE: usize = 60;

/// Lanes with these numbers make 4 times as many turns of the inner loop each, and run little beside.
fn assert_linear(numbers: &[usize], lengths: &[usize], about: &str) {
    assert_eq!(lengths.len(), numbers.len(), "{about}");
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    let step = (lengths[lengths.len() - 1] - lengths[0]) as f64 / (last - first) as f64;
    // 4 turns of at least three instructions: count, compare, go back.
    let per_number = step.round();
    assert!((12.0..80.0).contains(&per_number), "{about}: {step}: {lengths:?}");
    for (number, length) in numbers.iter().zip(lengths) {
        let beside = *length as f64 - per_number * *number as f64;
        assert!((1.0..=MOST_BESIDE as f64).contains(&beside), "{about}: lane {number} has {length}: {lengths:?}");
    }
}

/// What runs the work items of `turns.c`, and with which compiler: also where C++ starts and ends them.
fn work_items(define: &str, see: impl Fn(&str)) {
    let folder = tempfile::tempdir().unwrap();
    let source = root().join("cli/tests/lanes/turns.c").to_str().unwrap().to_owned();
    let is_cpp = matches!(define, "ASYNC" | "THROWS");
    let compiler: &[&str] = if is_cpp { &["g++", "-x", "c++"] } else { &["gcc"] };
    see(&traced_of(&source, folder.path(), "items", compiler, &format!("-D{define}"), &[]));
}

/// Whether `std::for_each(std::execution::par, …)` can be built here: it needs TBB.
fn has_tbb(folder: &Path) -> bool {
    let (source, program) = (folder.join("tbb.cc"), folder.join("tbb"));
    std::fs::write(
        &source,
        "#include <tbb/tbb.h>\nint main() { return tbb::this_task_arena::max_concurrency() < 1; }\n",
    )
    .unwrap();
    let built = Command::new("g++").arg(&source).args(["-ltbb", "-o"]).arg(program).output();
    built.is_ok_and(|output| output.status.success())
}

/// The lengths of the turns of the loop that has most of the run, in order of number.
fn turns_of_greatest(trace: &str) -> Vec<usize> {
    let rows = succeed("replay", &["--loops", "--json", "-H", "ipdom", "--region", "all", trace]);
    let rows: Value = serde_json::from_str(&rows).unwrap();
    let header = rows[0]["header"].as_str().unwrap().trim_start_matches("0x").to_owned();
    let header = trace_format::Pc(u64::from_str_radix(&header, 16).unwrap());
    lengths(trace, Lanes::Iterations(WhichLoops::At(vec![header])))
}

#[test]
fn each_work_item_is_a_lane_with_its_own_instructions() {
    for define in ["POOL", "ASYNC", "RECURSES", "THROWS", "SEQUENTIAL"] {
        work_items(define, |trace| {
            let mut lengths = lengths_of(trace, Lanes::Calls, "turns".parse().unwrap());
            // Which thread took which item is the program's affair.
            lengths.sort_unstable();
            assert_rising(&lengths, define);
        });
    }
}

#[test]
fn each_call_of_a_parallel_for_each_is_a_lane() {
    let folder = tempfile::tempdir().unwrap();
    if !has_tbb(folder.path()) {
        return;
    }
    let source = root().join("cli/tests/lanes/turns.c").to_str().unwrap().to_owned();
    let compiler = ["g++", "-x", "c++", "-Wl,--no-as-needed", "-ltbb"];
    let trace = traced_of(&source, folder.path(), "items", &compiler, "-DPAR_FOR_EACH", &[]);
    let mut lengths = lengths_of(&trace, Lanes::Calls, "turns".parse().unwrap());
    lengths.sort_unstable();
    assert_rising(&lengths, "std::for_each");
}

#[test]
fn iteration_i_of_a_target_region_without_teams_is_lane_i() {
    turns(&["TARGET_ALONE"], |compiler, define, trace| {
        let all: Vec<usize> = (0..200).collect();
        assert_linear(&all, &turns_of_greatest(trace), &format!("{compiler} {define}"));
    });
    turns(&["TARGET_PARALLEL"], |compiler, define, trace| {
        assert_rising(&lengths(trace, iterations()), &format!("{compiler} {define}"));
    });
}

#[test]
fn a_turn_that_ends_early_is_a_short_lane() {
    let all: Vec<usize> = (0..200).collect();
    work_items("SEQUENTIAL", |trace| assert_linear(&all, &turns_of_greatest(trace), "sequential"));
    work_items("BREAKS", |trace| assert_linear(&all[..50], &turns_of_greatest(trace), "break"));
    work_items("SKIPS", |trace| {
        let lengths = turns_of_greatest(trace);
        assert_eq!(lengths.len(), 200);
        let of = |is_skipped: bool| all.iter().copied().filter(move |i| (i % 3 == 0) == is_skipped);
        assert!(of(true).all(|i| lengths[i] < MOST_BESIDE), "{lengths:?}");
        let whole: Vec<usize> = of(false).collect();
        assert_linear(&whole, &whole.iter().map(|i| lengths[*i]).collect::<Vec<_>>(), "continue");
    });
    work_items("THROWS", |trace| {
        let lengths = turns_of_greatest(trace);
        assert_eq!(lengths.len(), 200);
        // Every fifth lane has the way of its exception, too: in the library, far more than the turns are.
        let whole: Vec<usize> = all.iter().copied().filter(|i| i % 5 != 0).collect();
        assert_linear(&whole, &whole.iter().map(|i| lengths[*i]).collect::<Vec<_>>(), "throw");
    });
}

#[test]
fn turns_of_nested_regions_are_lanes_whichever_team_runs_them() {
    turns(&["NESTED=static", "NESTED=dynamic"], |compiler, define, trace| {
        let mut lengths = lengths(trace, iterations());
        lengths.sort_unstable();
        assert_rising(&lengths, &format!("{compiler} {define}"));
    });
}

#[test]
fn iteration_i_has_number_i_whichever_thread_ran_it() {
    let defines = [
        "SCHEDULE=dynamic,3",
        "SCHEDULE=guided",
        "SCHEDULE=static",
        "SCHEDULE=runtime",
        "COLLAPSE=static",
        "COLLAPSE=dynamic,7",
        "DOWN=dynamic,2",
        "UNSIGNED=guided",
    ];
    turns(&defines, |compiler, define, trace| {
        let about = format!("{compiler} {define}");
        assert_rising(&lengths(trace, iterations()), &about);
        let said = said(trace, "iterations");
        // gcc works static parts out without a call.
        let is_given = !(compiler == "gcc" && define.ends_with("=static"));
        let how = if is_given { "by the chunks that the trace says" } else { "in the order in which each ran them" };
        assert!(said.contains(how), "{about}: {said}");
    });
}

/// Pieces of one execution of a taskloop are one launch, whichever threads run them, and behind the region, too.
#[test]
fn iteration_i_of_a_taskloop_has_number_i() {
    turns(&["TASKLOOP=7", "TASKLOOP_DOWN=5", "TASKLOOP_BEHIND=6"], |compiler, define, trace| {
        let about = format!("{compiler} {define}");
        assert_rising(&lengths(trace, iterations()), &about);
        let said = said(trace, "iterations");
        assert!(said.contains("by the chunks that the trace says") && !said.contains("launches"), "{about}: {said}");
    });
    turns(&["TASKLOOP_STEPS=7"], |compiler, define, trace| {
        let about = format!("{compiler} {define}");
        let lengths = lengths(trace, iterations());
        assert_eq!(lengths.len(), 600, "{about}");
        lengths.chunks(200).for_each(|step| assert_rising(step, &about));
        assert!(said(trace, "iterations").contains("in 3 launches"), "{about}");
    });
    // gcc makes the first turn of each piece of a nest ahead of its loop.
    turns(&["TASKLOOP_NEST"], |compiler, _, trace| {
        let (number, said) = (lengths(trace, iterations()).len(), said(trace, "iterations"));
        assert!(
            number == 200 || said.contains(&format!("{number} lanes were made of 200 iterations")),
            "{compiler}: {said}"
        );
    });
}

/// All teams of a construct are one launch, as on a GPU, however the machine runs them in its place.
#[test]
fn iteration_i_of_teams_is_thread_i_of_a_gpu() {
    let defines =
        ["TEAMS=1", "TEAMS=2", "TEAMS=3", "TEAMS_BY_CHUNKS=2", "TEAMS_ALONE=1", "TEAMS_ALONE=3", "TEAMS_OF_HOST=2"];
    turns(&defines, |compiler, define, trace| {
        let about = format!("{compiler} {define}");
        assert_rising(&lengths(trace, iterations()), &about);
        let said = said(trace, "iterations");
        assert!(!said.contains("launches"), "{about}: {said}");
        let how = match (compiler, define.ends_with("=1")) {
            ("gcc", false) => "team by team",
            ("gcc", true) => "thread by thread",
            _ => "by the chunks that the trace says",
        };
        assert!(said.contains(how), "{about}: {said}");
    });
}

#[test]
fn tasks_have_the_numbers_in_which_they_were_made() {
    turns(&["TASKS", "AT_BARRIER"], |compiler, define, trace| {
        let about = format!("{compiler} {define}");
        assert_rising(&lengths(trace, Lanes::Tasks), &about);
        let said = said(trace, "tasks");
        assert!(said.contains("numbered in the order in which they were made;"), "{about}: {said}");
        assert!(said.contains("tasks of one kind"), "{about}: {said}");
    });
    turns(&["TASKLOOP=7"], |compiler, define, trace| {
        let about = format!("{compiler} {define}");
        let lengths = lengths(trace, Lanes::Tasks);
        // Each piece has at least so many of the 200 iterations, and a later piece longer ones, if not one less.
        assert!((15..=28).contains(&lengths.len()), "{about}: {lengths:?}");
        assert!(lengths.windows(2).all(|pair| pair[0] < pair[1] + pair[1] / 7), "{about}: {lengths:?}");
        assert!(lengths.windows(5).all(|five| five[0] < five[4]), "{about}: {lengths:?}");
        assert!(said(trace, "tasks").contains("in the order in which they were made"), "{about}");
    });
}

/// As they are in version 3 of the format, which does not say who was given which iterations.
fn without_chunks(trace: &str) -> String {
    let older = format!("{trace}.3");
    let said = run("lockstep", &["convert", "--to", "3", "-o", &older, trace]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("events were left out: they say which iterations"), "{said}");
    older
}

#[test]
fn iterations_that_were_dealt_out_have_their_numbers_from_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let body = of_threads(folder.path());
    for schedule in ["dynamic", "dynamic,16", "guided"] {
        let define = format!("-DSCHEDULE={schedule}");
        let trace = without_chunks(&traced(folder.path(), "dealt", &["gcc"], &define, &["--memory"]));
        assert_edge(&body, replayed(&trace, &["--lanes", "iterations"]), schedule);
        let trace = without_chunks(&gcc(folder.path(), "dealt", &define));
        let said = run("replay", &["--lanes", "iterations", &trace]);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("2048 lanes of 4 threads") && said.contains("handed out are not known"), "{said}");
    }
}

#[test]
fn a_loop_inside_of_steps_is_launched_once_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let body = of_threads(folder.path());
    for schedule in ["static", "dynamic,8"] {
        let define = format!("-DSTEPS -DSCHEDULE_OF_STEPS={schedule}");
        let words: Vec<&str> = ["gcc"].into_iter().chain(define.split(' ').take(1)).collect();
        let define = define.split(' ').nth(1).unwrap();
        let trace = traced(folder.path(), "steps", &words, define, &["--memory"]);
        let (lanes, turns) = replayed(&trace, &["--lanes", "iterations"]);
        assert_eq!((lanes, turns[0] % 3), (3 * PIXELS, 0), "{schedule}");
        assert_edge(&body, (lanes / 3, turns.iter().map(|fetches| fetches / 3).collect()), schedule);
        let said = run("replay", &["--lanes", "iterations", &trace]);
        assert!(String::from_utf8_lossy(&said.stderr).contains("in 3 launches"));
    }
}

#[test]
fn each_call_is_a_lane_whoever_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let of = |trace: &str, arguments: &[&str]| {
        let (lanes, fetches) = replayed(trace, arguments);
        assert_eq!(lanes, PIXELS);
        fetches
    };
    let all =
        of(&gcc(folder.path(), "sequential", "-DSEQUENTIAL"), &["--lanes", "calls", "--region", "pixel", "-W", "1"]);
    for define in ["-DPOOL", "-DTASKS", "-DTASKLOOP", "-DTHREADS", "-DRECURSES"] {
        let trace = gcc(folder.path(), "calls", define);
        // One lane a warp: nothing depends on who ran which.
        assert_eq!(of(&trace, &["--lanes", "calls", "--region", "pixel", "-W", "1"]), all, "{define}");
    }
    for define in ["-DASYNC", "-DTHROWS"] {
        let trace = traced(folder.path(), "calls", &["g++", "-x", "c++"], define, &[]);
        let region = ["--lanes", "calls", "--region", "_Z5pixeli", "-W", "1"];
        assert_eq!(of(&trace, &region), all, "{define}");
    }
}

/// Two threads take turns, so that calls 2k and 2k + 1, which turn their loop as often, are made by different ones.
#[test]
fn calls_are_numbered_as_they_began_where_locks_tell() {
    const IN_TURNS: &str = r"
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
static int next;
static volatile long out[16];
__attribute__((noinline)) static void item(int i) {
    for (int k = 0; k < 50 * (1 + i / 2 * 5 % 8); k++) out[i] += k;
}
static void *worker(void *me) {
    for (int i = (int)(long)me; i < 16; i += 2) {
        pthread_mutex_lock(&lock);
        while (next != i) pthread_cond_wait(&come, &lock);
        pthread_mutex_unlock(&lock);
        item(i);
        pthread_mutex_lock(&lock);
        next++;
        pthread_cond_broadcast(&come);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, worker, (void *)1);
    worker(0);
    pthread_join(other, 0);
}";
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("in_turns.c");
    std::fs::write(&source, IN_TURNS).unwrap();
    let program = folder.path().join("in_turns");
    build(&source, &program, &["-pthread"]);
    for engine in ["step", "translate"] {
        let trace = folder.path().join(engine);
        let trace = trace.to_str().unwrap();
        succeed("trace", &["--engine", engine, "-o", trace, program.to_str().unwrap()]);
        let options = ["-H", "minsp-pc", "--lanes", "calls", "--region", "item", "-W", "2", trace];
        let told = run("replay", &options);
        assert!(String::from_utf8_lossy(&told.stderr).contains("in the order in which they began"), "{told:?}");
        let told: Value = serde_json::from_str(&succeed("replay", &[&["--json"][..], &options].concat())).unwrap();
        let result = &told["results"][0];
        assert_eq!((&result["lanes"], &result["simt_efficiency"]), (&16.into(), &1.0.into()), "{told}");
    }
}

#[test]
fn tasks_are_lanes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    for define in ["-DTASKS", "-DTASKLOOP"] {
        let trace = gcc(folder.path(), "tasks", define);
        assert_eq!(replayed(&trace, &["--lanes", "tasks"]).0, PIXELS, "{define}");
    }
    let none = run("replay", &["--lanes", "tasks", &gcc(folder.path(), "none", "-DSCHEDULE=static")]);
    assert_eq!(none.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no OpenMP task with a name"));
}

#[test]
fn turns_end_where_the_loop_is_left_and_where_exceptions_go() {
    let folder = tempfile::tempdir().unwrap();
    let lanes = |compiler: &[&str], define: &str, text: &str| {
        let trace = traced(folder.path(), "loop", compiler, define, &[]);
        let source = std::fs::read_to_string(source()).unwrap();
        let begin = source.find(&format!("#elif defined({})", define.trim_start_matches("-D"))).unwrap();
        let at = begin + source[begin..].find(text).unwrap();
        let line = 1 + source[..at].matches('\n').count();
        replayed(&trace, &["--loop", &format!("pixels.c:{line}")]).0
    };
    assert_eq!(lanes(&["gcc"], "-DLEAVES", "for (int i"), 1000);
    assert_eq!(lanes(&["g++", "-x", "c++"], "-DTHROWS", "for (int i"), PIXELS);
    // Each call of a recursive function is a lane with all that it calls.
    let trace = gcc(folder.path(), "recurses", "-DRECURSES");
    assert_eq!(replayed(&trace, &["--lanes", "calls", "--region", "halves"]).0, WARPS / 2);
}

#[test]
fn loops_are_listed_with_what_their_turns_would_be_as_lanes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = gcc(folder.path(), "sequential", "-DSEQUENTIAL");
    let rows: Value = serde_json::from_str(&succeed("replay", &["--loops", "--json", "-H", "ipdom", &trace])).unwrap();
    let rows = rows.as_array().unwrap();
    let (outer, inner) = (&rows[0], &rows[1]);
    assert_eq!(
        (&outer["function"], &outer["entries"], &outer["iterations"]),
        (&"draw".into(), &1.into(), &PIXELS.into()),
        "inlined into main"
    );
    assert_eq!((&inner["function"], &inner["entries"]), (&"pixel".into(), &PIXELS.into()));
    assert!(outer["share"].as_f64().unwrap() > inner["share"].as_f64().unwrap());
    // The efficiency is that of --loop, by line or by address.
    for place in [&outer["loop"], &outer["header"]] {
        let arguments = ["--loop", place.as_str().unwrap(), "-H", "ipdom", "--json", &trace];
        let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
        assert_eq!(json["results"][0]["simt_efficiency"], outer["simt_efficiency"], "{place}");
    }
    let table = succeed("replay", &["--loops", "--top", "3", &trace]);
    assert_eq!(table.lines().count(), 7, "{table}");
    // Without a replay all are listed, in both forms.
    let named = |row: &Value| row["header"].clone();
    let plain: Value = serde_json::from_str(&succeed("replay", &["--loops", "--json", "--top", "0", &trace])).unwrap();
    let plain = plain.as_array().unwrap();
    assert!(plain.iter().map(named).eq(rows.iter().map(named)), "{plain:?}");
    assert!(plain.iter().all(|row| row["efficiency"].is_null() && !row["share"].is_null()), "{plain:?}");
    let listed = succeed("replay", &["--loops", "--top", "0", &trace]);
    assert!(listed.contains("no loop was replayed: --loop PLACE") && listed.lines().count() >= rows.len(), "{listed}");
    // The page about lanes shows this table, and what sorting the lanes buys.
    let page = std::fs::read_to_string(root().join("docs/lanes.md")).unwrap();
    for row in table.lines().skip(2).take(3) {
        assert!(page.contains(row), "docs/lanes.md has no row {row:?}");
    }
    let loop_of = |how: &str| {
        let place = outer["loop"].as_str().unwrap();
        let json = succeed("replay", &["--loop", place, "--group", how, "-H", "ipdom", "--json", &trace]);
        let json: Value = serde_json::from_str(&json).unwrap();
        format!("{:.1}%", 100.0 * json["results"][0]["simt_efficiency"].as_f64().unwrap())
    };
    let said = format!("It would: {} becomes {} ", loop_of("consecutive"), loop_of("similarity"));
    assert!(page.contains(&said), "docs/lanes.md does not say {said:?}");
}

#[test]
fn loops_of_millions_of_iterations_are_listed_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("millions.c");
    // The inner loop runs five million times in all, the outer one as often as there are arguments.
    let code = "int main(int argc, char **argv) {\n    unsigned sum = argc;\n    for (int i = 0; i < 5 * argc; i++)\n\
                for (unsigned k = 0; k < 1000000; k++) __asm__ volatile(\"add %1, %0\" : \"+r\"(sum) : \"r\"(k));\n    \
                return argv[0][0] + (int)sum == 0;\n}\n";
    std::fs::write(&source, code).unwrap();
    let trace =
        traced_of(source.to_str().unwrap(), folder.path(), "millions", &["gcc", "-fno-unroll-loops"], "-DX", &[]);
    let loops = format!("ulimit -v 1500000 && {} --loops --region all", env!("CARGO_BIN_EXE_replay"));
    let said = |words: &str| {
        let output = Command::new("bash").args(["-c", &format!("{loops} {words} {trace}")]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let rows: Value = serde_json::from_str(&said("--json")).unwrap();
    let inner = rows.as_array().unwrap().iter().find(|row| row["iterations"].as_u64() > Some(4_900_000)).unwrap();
    assert!(inner["simt_efficiency"].is_null() && rows[0]["loop"].is_string(), "{rows}");
    let outer = rows.as_array().unwrap().iter().find(|row| row["iterations"] == 5).unwrap();
    assert!(outer["simt_efficiency"].is_number(), "{rows}");
    assert!(said("").contains("or have more than 4,194,304 iterations: --loop PLACE replays one"));
}

#[test]
fn lanes_by_the_ten_thousand_have_a_verdict_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let trace = gcc(folder.path(), "sequential", "-DSEQUENTIAL");
    let text = std::fs::read_to_string(source()).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("zr * zr + zi * zi < 4.0")).unwrap();
    // The inner loop: 54,000 turns, as many lanes.
    let replay = format!("ulimit -v 2000000 && {} --loop pixels.c:{}", env!("CARGO_BIN_EXE_replay"), line + 3);
    let command = format!("{replay} --json {trace}");
    let output = Command::new("bash").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["results"][0]["lanes"].as_u64() > Some(50_000) && json["verdict"].is_object());
}

#[test]
fn the_commands_of_the_page_about_lanes_give_what_it_shows() {
    let page = std::fs::read_to_string(root().join("docs/lanes.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("From a sequential program")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(source(), folder.path().join("pixels.c")).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_replay")).parent().unwrap().display().to_string();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap());
    // Figures follow from the compiler; words and rows do not.
    let words = |line: &str| {
        let letters = line.chars().map(|c| if c.is_ascii_digit() || ",.".contains(c) { '#' } else { c });
        let text: String = letters.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
        text.replace("##", "#").replace("##", "#").replace("##", "#")
    };
    let (mut commands, mut said) = (0, String::new());
    for block in section.split("```").skip(1).step_by(2) {
        if let Some(typed) = block.strip_prefix("sh\n") {
            let mut command = Command::new("bash");
            command.args(["-ec", typed]).current_dir(folder.path()).env("PATH", &path);
            let output = command.env("XDG_CACHE_HOME", "/proc/no-cache").output().unwrap();
            assert!(output.status.success(), "{typed}: {}", String::from_utf8_lossy(&output.stderr));
            said = String::from_utf8(output.stdout).unwrap();
            commands += typed.lines().count();
        } else {
            let shown = block.strip_prefix("text\n").unwrap();
            for line in shown.lines().filter(|line| !line.is_empty()) {
                let line = words(line);
                assert!(said.lines().any(|own| words(own).contains(&line)), "{line} is not in {said}");
            }
        }
    }
    assert!(commands >= 7, "{commands}");
}

#[test]
fn what_is_no_loop_is_said_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let trace = gcc(folder.path(), "pool", "-DPOOL");
    for (arguments, status, says) in [
        (&["--lanes", "iterations"][..], 4, "--loop FILE:LINE"),
        (&["--loop", "pixels.c:1"], 4, "no code at that line"),
        (&["--loop", "pixels.c:167"], 4, "replay --loops"),
        (&["--lanes", "calls", "--loop", "pixels.c:18"], 2, "leave out one of the two"),
    ] {
        let refused = run("replay", &[arguments, &[&trace]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(status) && said.contains(says), "{arguments:?}: {said}");
    }
}

/// The rows of a sweep.
fn swept(trace: &str, arguments: &[&str]) -> Vec<Value> {
    let arguments = [arguments, &["-H", "ipdom", "--json", trace]].concat();
    let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
    json.as_array().unwrap().clone()
}

#[test]
fn a_sweep_has_a_row_for_each_width_and_grouping_and_each_is_that_of_a_replay_alone() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "sequential", &["gcc"], "-DSEQUENTIAL", &["--memory"]);
    let text = std::fs::read_to_string(source()).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("while (i < PIXELS)")).unwrap();
    let at = format!("pixels.c:{line}");
    let groups = ["consecutive", "sorted:key=trips", "random:seed=3"];
    let rows = swept(&trace, &["--loop", &at, "-W", "4..16", "--group", &groups.join(",")]);
    assert_eq!(rows.len(), 9);
    let settings = [4, 8, 16].iter().flat_map(|w| groups.map(|group| (w, group)));
    for (number, (row, (width, group))) in rows.iter().zip(settings).enumerate() {
        assert_eq!((row["warp_size"].as_u64(), row["group"].as_str()), (Some(*width), Some(group)));
        // Every other row has each width and each grouping.
        if !is_whole() && number % 2 == 1 {
            continue;
        }
        let alone = ["--loop", &at, "-W", &width.to_string(), "--group", group, "-H", "ipdom", "--memory", "--json"];
        let alone: Value = serde_json::from_str(&succeed("replay", &[&alone[..], &[&trace]].concat())).unwrap();
        let result = &alone["results"][0];
        assert_eq!(row["fetches"], result["fetches"]);
        let transactions = ["heap_transactions_32", "interleaved_transactions_32"].map(|n| result[n].as_u64().unwrap());
        assert_eq!(row["transactions_32"].as_u64(), Some(transactions.iter().sum()), "{width} {group}");
    }
    // Lanes next to each other write next to each other: sorting gains efficiency, and costs transactions.
    assert!(rows[7]["gain"].as_f64() > Some(10.0), "{}", rows[7]);
    assert!(rows[7]["transactions_32"].as_u64() > rows[6]["transactions_32"].as_u64());
    // The same under one worker, and as CSV.
    let words = ["--loop", &at, "-W", "16,4", "--group", "all", "-H", "minpc"];
    let csv = |workers| succeed("replay", &[&words[..], &["--csv", "-", "--workers", workers, &trace]].concat());
    let one = csv("1");
    assert_eq!(one, csv("3"));
    assert_eq!(one.lines().count(), 1 + 2 * 9);
    // What one grouping gains and costs stands below its table, and what the oracle cannot beat.
    let shown = succeed("replay", &["--loop", &at, "--group", "oracle", "-H", "ipdom", &trace]);
    assert!(shown.contains("no grouping into warps of 32 needs fewer than"), "{shown}");
    assert!(shown.contains("cost: times as many as under the first grouping"), "{shown}");
}

#[test]
fn each_kind_of_lane_can_be_grouped_and_what_cannot_be_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let kinds: [(&str, &[&str], u64); 4] = [
        ("-DSCHEDULE=dynamic,4", &["--lanes", "iterations"], PIXELS),
        ("-DTASKS", &["--lanes", "tasks"], PIXELS),
        ("-DPOOL", &["--lanes", "calls", "--region", "item"], PIXELS),
        ("-DTHREADS", &["-W", "32"], PIXELS),
    ];
    for (define, arguments, lanes) in kinds {
        let trace = gcc(folder.path(), "kind", define);
        let groups = ["--group", "consecutive,strided,sorted:key=path,similarity,oracle"];
        let rows = swept(&trace, &[arguments, &groups].concat());
        let fetches: Vec<u64> = rows.iter().map(|row| row["fetches"].as_u64().unwrap()).collect();
        assert_eq!((rows.len(), rows[0]["warps"].as_u64()), (5, Some(lanes / 32)), "{define}");
        assert!(fetches[4] <= *fetches.iter().min().unwrap(), "{define}: {fetches:?}");
        assert!(fetches[2] < fetches[0], "{define}: {fetches:?}");
        assert!(rows[4]["least_of_any_grouping"].as_u64().unwrap() <= fetches[4]);
        assert!(rows[0]["transactions_32"].is_null());
    }
    let trace = folder.path().join("kind.bin").to_str().unwrap().to_owned();
    let refused: [(&str, &[&str], &str); 4] = [
        ("replay", &["-W", "4..64", "--by", "line", &trace], "'--by <WHAT>' cannot be used with '--warp-size 4..64'"),
        ("replay", &["-W", "4,8", "--loops", &trace], "'--warp-size 4,8' cannot be used with '--loops'"),
        ("lockstep", &["diff", "--group", "all", &trace, &trace], "--group: only `replay` compares several"),
        ("replay", &["--group", "sorted:key=size", &trace], "there is no grouping"),
    ];
    for (program, arguments, why) in refused {
        let output = run(program, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
}
