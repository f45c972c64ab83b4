//! The verdict of `replay`: of which lanes it is one, what it blames, and when there is none.

use serde_json::Value;

use crate::support::{build, root, run, succeed};

struct Traced {
    folder: tempfile::TempDir,
    source: String,
}

impl Traced {
    fn new(source: &str, flags: &[&str], arguments: &[&str]) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        let path = root().join(source);
        let program = folder.path().join("program");
        build(&path, &program, flags);
        let traced = Traced { source: std::fs::read_to_string(path).unwrap(), folder };
        succeed("trace", &[&["-o", &traced.path(), program.to_str().unwrap()], arguments].concat());
        traced
    }

    fn path(&self) -> String {
        self.folder.path().join("trace.bin").to_str().unwrap().to_owned()
    }

    /// The verdict of `replay`. Where nothing else is asked for, the library's is the same.
    fn verdict(&self, arguments: &[&str]) -> Value {
        let json = succeed("replay", &[&["--json", &self.path()], arguments].concat());
        let verdict = serde_json::from_str::<Value>(&json).unwrap()["verdict"].take();
        if arguments.is_empty() {
            let trace = trace_format::Trace::open(self.path().as_ref()).unwrap();
            let answer = verdict::Question::default().ask(&trace).unwrap();
            let json = answer.verdict.as_ref().unwrap().json().to_string();
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), verdict);
            let printed = succeed("replay", &[&self.path()]);
            assert!(printed.starts_with(&format!("{answer}\n\n")), "{answer}\n{printed}");
        }
        verdict
    }

    /// The number of the source's only line that holds this text.
    fn line(&self, text: &str) -> usize {
        1 + self.source.lines().position(|line| line.contains(text)).unwrap()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_loop_that_lanes_turn_differently_often_is_blamed_before_the_branch_in_it() {
    let traced = Traced::new("cli/tests/programs/uneven_trips.c", &[], &[]);
    let verdict = traced.verdict(&[]);
    let (efficiency, first) = (verdict["efficiency"].as_f64().unwrap(), &verdict["places"][0]);
    assert_eq!(first["at"], format!("uneven_trips.c:{}", traced.line("// the loop")), "{verdict}");
    assert_eq!((&first["causes"], &first["in"]), (&"loop trip count".into(), &"work".into()));
    assert_eq!(first["remedy"]["kind"], "equal work");
    assert!(first["remedy"]["efficiency"].as_f64().unwrap() > efficiency + 0.2, "{verdict}");
    assert_eq!((&verdict["machine"], &verdict["holds"]), (&"nvidia".into(), &true.into()));
    // The same trips for all lanes are what was advised: the promise was not too high by half.
    let even = traced.source.replace("(int)(id % 8) * 150", "525");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("even.c"), even).unwrap();
    let followed = Traced::new(folder.path().join("even.c").to_str().unwrap(), &[], &[]);
    let after = followed.verdict(&[])["efficiency"].as_f64().unwrap();
    let promised = first["remedy"]["efficiency"].as_f64().unwrap() - efficiency;
    assert!(after - efficiency >= promised / 2.0, "{efficiency} {promised} {after}");
    // What is said in the terminal is the same, the headline first.
    let table = succeed("replay", &[&traced.path()]);
    assert!(table.starts_with(&format!("verdict: {}", text(&verdict["headline"]))), "{table}");
    assert!(table.contains(&format!("1. {}", text(&first["sentence"]))), "{table}");
}

#[test]
fn the_page_has_the_verdict_of_replay() {
    let traced = Traced::new("cli/tests/programs/uneven_trips.c", &[], &[]);
    let page = traced.folder.path().join("page.html");
    succeed("lockstep", &["report", "--models", "ipdom", "-o", page.to_str().unwrap(), &traced.path()]);
    let mut on_page = crate::page::data(&page)["programs"][0]["replayed"].take();
    assert_eq!(on_page["results"][0]["heuristic"], on_page["verdict"]["heuristic"]);
    let mut verdict = traced.verdict(&[]);
    // The page has tried where collecting lanes pays, too.
    let [of_replay, of_page] = [&mut verdict, &mut on_page["verdict"]].map(|verdict| verdict["sentences"].take());
    assert!(of_replay.as_array().unwrap().iter().all(|said| of_page.as_array().unwrap().contains(said)), "{of_page}");
    assert_eq!(verdict, on_page["verdict"]);
}

#[test]
fn lanes_that_are_next_to_nothing_of_the_program_are_said_to_be_so() {
    let verdict = Traced::new("cli/tests/programs/light_threads.c", &[], &[]).verdict(&[]);
    let coverage = &verdict["coverage"];
    assert!(coverage["share"].as_f64().unwrap() < 0.01 && coverage["is_low"] == true, "{verdict}");
    assert!(text(&verdict["headline"]).contains("but they are only 0.0"), "{verdict}");
    assert!(text(&coverage["sentence"]).contains("outside the region"), "{verdict}");
}

#[test]
fn what_a_dynamic_schedule_decided_is_no_verdict_and_the_iterations_are_given_beside_it() {
    let verdict = Traced::new("cli/tests/programs/dynamic_schedule.c", &["-fopenmp"], &[]).verdict(&[]);
    assert_eq!((&verdict["holds"], &verdict["balance"]["is_chance"]), (&false.into(), &true.into()), "{verdict}");
    assert!(text(&verdict["headline"]).contains("is chance"), "{verdict}");
    assert_eq!((&verdict["items"]["typed"], &verdict["items"]["lanes"]), (&"--lanes iterations".into(), &64.into()));
    assert!(text(&verdict["warnings"][0]).contains("lanes are uneven"), "{verdict}");
}

#[test]
fn pieces_that_threads_took_in_steps_that_all_of_them_make_are_the_lanes_to_take() {
    let ways = [&["-pthread"][..], &["-DLOCK"], &["-DEXCHANGE"], &["-fopenmp"], &["-fopenmp", "-DLOCK"]];
    for flags in ways {
        let traced = Traced::new("cli/tests/programs/steps_of_pieces.c", flags, &[]);
        let verdict = traced.verdict(&[]);
        assert_eq!((&verdict["holds"], &verdict["balance"]["is_chance"]), (&false.into(), &true.into()), "{verdict}");
        let typed = text(&verdict["items"]["typed"]);
        let place: usize = typed.rsplit(':').next().unwrap().parse().unwrap();
        assert!(place.abs_diff(traced.line("a piece */")) <= 1, "{verdict}");
    }
}

/// The holder of the lock waits until another thread waits for it, so that one does.
#[test]
fn locks_of_a_programs_own_are_said_to_look_like_locks() {
    const OWN_LOCK: &str = r"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static int word, waiting;
static long total;
static void lock(void) {
    while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&waiting, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
    }
}
static void unlock(void) {
    __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
static void *work(void *first) {
    for (int i = 0; i < 100; i++) {
        lock();
        if (i == 0) {
            while (!__atomic_load_n(&waiting, __ATOMIC_ACQUIRE)) usleep(1000);
            usleep(50000); /* until it sleeps, too */
        }
        total += i;
        unlock();
    }
    return 0;
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
}";
    let folder = tempfile::tempdir().unwrap();
    let (source, program, trace) = (folder.path().join("own.c"), folder.path().join("own"), folder.path().join("t"));
    std::fs::write(&source, OWN_LOCK).unwrap();
    build(&source, &program, &["-pthread"]);
    succeed("trace", &["-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
    let told = succeed("replay", &[trace.to_str().unwrap()]);
    assert!(told.contains(" looks like a lock: ") && told.contains(" (word)"), "{told}");
    assert!(!told.contains("lockstep does not know"), "{told}");
}

#[test]
fn what_is_gained_without_several_locks_is_not_said_of_one() {
    const LOCKS: &str = r"
#include <pthread.h>
static pthread_mutex_t often = PTHREAD_MUTEX_INITIALIZER, seldom = PTHREAD_MUTEX_INITIALIZER;
static long all[2];
static void add(pthread_mutex_t *lock, long *to, int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(lock);
        ++*to;
        pthread_mutex_unlock(lock);
    }
}
static void *work(void *unused) {
    (void)unused;
    add(&often, &all[0], 300);
    add(&seldom, &all[1], 100);
    return 0;
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
}";
    let folder = tempfile::tempdir().unwrap();
    let (source, program, trace) = (folder.path().join("two.c"), folder.path().join("two"), folder.path().join("t"));
    std::fs::write(&source, LOCKS).unwrap();
    build(&source, &program, &["-pthread"]);
    succeed("trace", &["-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
    let told = succeed("replay", &[trace.to_str().unwrap()]);
    let (_, share) = told.split_once("which leaves out all 2 locks for which lanes wait; ").expect("both locks");
    let share: f64 = share.split_once("% of the waiting is for this one").unwrap().0.parse().unwrap();
    assert!((60.0..90.0).contains(&share), "{told}");
}

#[test]
fn warps_are_said_to_be_not_full_only_where_more_lanes_would_fill_them() {
    let traced = Traced::new("cli/tests/programs/generations.c", &[], &[]);
    // Three launches of four lanes: their warps have as many seats as there are lanes in all, unless told.
    for (width, fills) in
        [(None, false), (Some("12"), false), (Some("4"), false), (Some("3"), false), (Some("8"), true)]
    {
        let arguments: Vec<&str> = width.map_or_else(Vec::new, |width| vec!["-W", width]);
        let verdict = traced.verdict(&arguments);
        let said = verdict.to_string();
        assert_eq!(said.contains("do not fill warps"), fills, "{width:?}: {said}");
        assert!(!fills || said.contains("3 launches of 4 lanes"), "{said}");
        assert!(said.contains("at most 4 lanes run together, and the machine's warps have 32"), "{said}");
    }
    // Nor are the bits of a mask that is wider than there are lanes blamed: 4 of 16, the rest were never there.
    let page = succeed("replay", &["--verdict", &traced.path()]);
    assert!(page.contains("16 lanes  ") && !page.contains("mask bits are not set"), "{page}");
}

#[test]
fn one_lane_alone_is_no_verdict() {
    let traced = Traced::new("cli/tests/programs/light_threads.c", &[], &[]);
    let verdict = traced.verdict(&["--region", "main"]);
    assert_eq!((&verdict["holds"], verdict["places"].as_array().unwrap().len()), (&false.into(), 0), "{verdict}");
    assert!(text(&verdict["headline"]).starts_with("none: a single lane"), "{verdict}");
}

#[test]
fn lanes_that_take_one_lock_are_blamed_at_the_line_that_takes_it() {
    let traced = Traced::new("workloads/micro/lock_contention.c", &[], &["-p", "8"]);
    let verdict = traced.verdict(&["--region", "kernel"]);
    let first = &verdict["places"][0];
    assert_eq!(first["at"], format!("lock_contention.c:{}", traced.line("pthread_mutex_lock(")), "{verdict}");
    assert_eq!(first["remedy"]["kind"], "meet behind the lock", "{verdict}");
    let more: Vec<&Value> = first["more_remedies"].as_array().unwrap().iter().map(|remedy| &remedy["kind"]).collect();
    assert_eq!(more, [&Value::from("atomic in place of the lock")], "{verdict}");
}

#[test]
fn what_one_lane_does_while_the_others_wait_is_to_be_shared_out() {
    let traced = Traced::new("cli/tests/programs/lone_lane.c", &[], &[]);
    let verdict = traced.verdict(&[]);
    let (efficiency, first) = (verdict["efficiency"].as_f64().unwrap(), &verdict["places"][0]);
    assert_eq!(first["at"], format!("lone_lane.c:{}", traced.line("// the branch")), "{verdict}");
    assert_eq!(first["remedy"]["kind"], "share out", "{verdict}");
    // Shared out, the table gains half of what was promised at least.
    let alone = "if (id == 0) // the branch\n      for (int i = 0; i < ENTRIES; i++)";
    assert!(traced.source.contains(alone));
    let shared = traced.source.replace(alone, "for (int i = (int)id; i < ENTRIES; i += LANES)");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shared.c"), shared).unwrap();
    let followed = Traced::new(folder.path().join("shared.c").to_str().unwrap(), &[], &[]);
    let after = followed.verdict(&[])["efficiency"].as_f64().unwrap();
    let promised = first["remedy"]["efficiency"].as_f64().unwrap() - efficiency;
    assert!(promised > 0.1 && after - efficiency >= promised / 2.0, "{efficiency} {promised} {after}");
}

#[test]
fn a_program_without_line_information_is_named_once() {
    let hint = "has no line information: functions are shown instead of lines; build it with -g";
    for (flags, times) in [(&["-g0"], 1), (&["-g"], 0)] {
        let traced = Traced::new("cli/tests/programs/uneven_trips.c", flags, &[]);
        let output = crate::support::run("replay", &[&traced.path(), "--by", "line"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.matches(hint).count(), times, "{said}");
        let page = traced.folder.path().join("page.html");
        succeed("lockstep", &["report", "--models", "ipdom", "-o", page.to_str().unwrap(), &traced.path()]);
        let notes = crate::page::data(&page)["programs"][0]["notes"].to_string();
        assert_eq!(notes.matches(hint).count(), times, "{notes}");
    }
}

#[test]
fn only_threads_that_take_locks_are_said_to() {
    for (source, takes) in [("cli/tests/programs/uneven_trips.c", false), ("workloads/micro/lock_contention.c", true)] {
        let verdict = Traced::new(source, &[], if takes { &["-p", "16"] } else { &[] }).verdict(&[]);
        let schedule = &verdict["balance"]["schedule"];
        assert_eq!(schedule == "threads that take locks, as for a common queue", takes, "{verdict}");
    }
}

#[test]
fn a_region_is_named_as_the_source_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("pool.cpp"), folder.path().join("program"));
    let text = "struct Pool { int n; __attribute__((noinline)) int run(int k) { return n += k; } };
                int main() { Pool p{0}; for (int i = 0; i < 8; i++) p.run(i); return p.n == 28 ? 0 : 1; }";
    std::fs::write(&source, text).unwrap();
    let built = std::process::Command::new("g++").args(["-O1", "-g", "-o"]).args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let trace = folder.path().join("trace.bin").to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program.to_str().unwrap()]);
    for name in ["Pool::run", "Pool::run(int)", "_ZN4Pool3runEi"] {
        let json = succeed("replay", &["--json", "--lanes", "calls", "--region", name, &trace]);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["results"][0]["lanes"], 8, "{name}");
    }
    let refused = crate::support::run("replay", &["--region", "Pool::rnu", &trace]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("(Pool::run(int))"), "{refused:?}");
}

#[test]
fn the_tasks_of_a_pool_are_found_by_themselves_and_blamed_in_the_programs_own_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (root().join("tests/first-hour/pool.cpp"), folder.path().join("program"));
    let mut build = std::process::Command::new("g++");
    let built = build.args(["-O2", "-g", "-pthread", "-o"]).args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let trace = folder.path().join("trace.bin").to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program.to_str().unwrap()]);
    let json = succeed("replay", &["--json", "--lanes", "threads", &trace]);
    let verdict = serde_json::from_str::<Value>(&json).unwrap()["verdict"].take();
    for place in verdict["places"].as_array().unwrap() {
        assert!(text(&place["at"]).starts_with("pool.cpp:"), "{verdict}");
    }
    // On a machine that happened to run all threads alike the threads themselves have a verdict.
    if verdict["balance"]["is_uneven"] == true {
        let items = &verdict["items"];
        assert_eq!(items["lanes"], 256, "{verdict}");
        assert!(text(&items["typed"]).starts_with("--lanes calls --region "), "{verdict}");
        assert!(items["efficiency"].as_f64().unwrap() > 0.2, "{verdict}");
    }
}

/// A recurrence: no two iterations may run side by side.
const RECURRENCE: &str = "#include <stdio.h>\nint main(void) {\n    static double a[4096];\n    double s = 1;\n    \
    for (int i = 0; i < 4096; i++) {\n        s = 0.7 * s + i % 3;\n        a[i] = s;\n    }\n    printf(\"%g\\n\", \
    a[99]);\n}\n";

#[test]
fn iterations_that_one_thread_ran_in_order_run_well_only_if_they_may_run_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program, trace) = (folder.path().join("r.c"), folder.path().join("r"), folder.path().join("t"));
    std::fs::write(&source, RECURRENCE).unwrap();
    build(&source, &program, &[]);
    succeed("trace", &["-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
    let trace = trace.to_str().unwrap();
    let told = succeed("replay", &["--loop", "r.c:5", trace]);
    assert!(told.contains("if they may run side by side") && told.contains("--dependences"), "{told}");
    assert!(succeed("replay", &["--loops", trace]).contains("--dependences"));
    let nothing = run("replay", &[trace]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("--loops"), "{nothing:?}");
}
