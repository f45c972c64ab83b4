//! Locks and barriers of every kind: lanes wait for each other as the program's threads do.
//!
//! The judge is the source: of each program of `cli/tests/programs/waits` it is known how much of its work lanes can do
//! beside each other under each rule for locks, and so how near to one lane's work the fetches are.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{has_openmp_of_clang, root, succeed};

/// As in `kinds.c` and `kinds.rs`.
const LANES: f64 = 8.0;
const SHORT: f64 = 200.0;
const WORK: f64 = 4000.0;

/// What locks and what instructions in the library cost beside the work, at most.
const NEAR: f64 = 0.025;

/// What a program's threads do with its locks, as the source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    ShortFirst,
    Long,
    Nested,
    ByHalf,
    Barrier,
    Ordered,
    Chain,
}

impl Form {
    const OF_LOCKS: [Form; 4] = [Form::ShortFirst, Form::Long, Form::Nested, Form::ByHalf];

    /// The efficiency where so many lanes at a time have a lock: all work over lanes times fetches.
    fn right(self, holders: f64) -> f64 {
        let turns = LANES / holders;
        match self {
            Form::ShortFirst => (SHORT + WORK) / (turns * SHORT + WORK),
            Form::Long | Form::Nested => 1.0 / turns,
            // Lanes beside the lock work together, before or after the others.
            Form::ByHalf => 1.0 / (1.0 + (turns / 2.0).max(1.0)),
            Form::Barrier => 1.0 / LANES,
            Form::Chain => holders / LANES,
            Form::Ordered => 2.0 / (1.0 + LANES),
        }
    }

    /// The same where locks have no effect.
    fn without_locks(self, holders: f64) -> f64 {
        match self {
            Form::Ordered => 1.0,
            Form::Chain => self.right(holders),
            _ => self.right(LANES),
        }
    }
}

/// A kind of lock: its number in `kinds.c`, and how many lanes may have one at a time.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    number: u32,
    holders: f64,
    is_openmp: bool,
}

const fn kind(name: &'static str, number: u32) -> Kind {
    Kind { name, number, holders: 1.0, is_openmp: matches!(number, 10..=14 | 19 | 20 | 22 | 23) }
}

/// The kinds of locks of `kinds.c`.
const LOCKS: [Kind; 18] = [
    kind("mutex", 0),
    kind("mutex tried", 1),
    kind("mutex with a time limit", 2),
    kind("spin lock", 3),
    kind("read-write lock, written", 4),
    Kind { holders: LANES, ..kind("read-write lock, read", 5) },
    kind("semaphore of 1", 6),
    Kind { holders: 2.0, ..kind("semaphore of 2", 7) },
    kind("C11 mutex", 8),
    kind("C11 mutex tried", 9),
    kind("critical", 10),
    kind("OpenMP lock", 11),
    kind("OpenMP lock tried", 12),
    kind("OpenMP nested lock", 13),
    kind("OpenMP nested lock tried", 14),
    kind("exchange of its own", 15),
    kind("futex of its own", 16),
    kind("futex counted down", 24),
];

/// Its barriers, sections in order, and what threads hand on.
const MEETINGS: [(Kind, Form); 8] = [
    (kind("barrier", 17), Form::Barrier),
    (kind("barrier of a condition", 18), Form::Barrier),
    (kind("barrier of flags", 25), Form::Barrier),
    (kind("OpenMP barrier", 19), Form::Barrier),
    (kind("ordered", 20), Form::Ordered),
    (kind("semaphores handed on", 21), Form::Chain),
    (kind("doacross", 22), Form::Chain),
    (Kind { holders: 2.0, ..kind("doacross, by two", 23) }, Form::Chain),
];

pub(super) fn traced(program: &str, arguments: &[&str], folder: &Path) -> String {
    let trace = folder.join("t.bin").to_str().unwrap().to_owned();
    succeed("trace", &[&["-o", &trace, "--", program], arguments].concat());
    trace
}

pub(super) fn built(source: &str, compiler: &[&str], flags: &[&str], folder: &Path) -> String {
    let source = root().join("cli/tests/programs/waits").join(source);
    let program = folder.join("program").to_str().unwrap().to_owned();
    let mut command = Command::new(compiler[0]);
    let built = command.args(&compiler[1..]).args(flags).args(["-g", "-o", &program]).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

/// By rule for locks: the efficiency.
fn efficiencies(trace: &str) -> [f64; 2] {
    let json = succeed("replay", &["--json", "-H", "minsp-pc", "--locks", "simt,ignore", trace]);
    let json: Value = serde_json::from_str(&json).unwrap();
    [0, 1].map(|i| json["results"][i]["simt_efficiency"].as_f64().unwrap_or_else(|| panic!("{json}")))
}

/// What is not right about a program of this kind and form; none where all is.
fn wrong(kind: Kind, form: Form, compiler: &str, optimisation: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let number = Form::OF_LOCKS.iter().position(|of| *of == form).unwrap_or(0);
    let defines = [format!("-DKIND={}", kind.number), format!("-DFORM={number}")];
    let mut flags = vec![optimisation, "-w", "-pthread", &defines[0], &defines[1]];
    if kind.is_openmp {
        flags.push(if compiler == "gcc" { "-fopenmp" } else { "-fopenmp=libomp" });
    }
    let program = built("kinds.c", &[compiler], &flags, folder.path());
    let right = [form.right(kind.holders), form.without_locks(kind.holders)];
    // What threads do that wait for a lock of their own, or how often musl's ask for the time, differs from run to run.
    let differs = kind.number == 15 || compiler == MUSL;
    judged(&traced(&program, &[], folder.path()), &right[..if differs { 1 } else { 2 }])
        .map(|found| format!("{} {form:?} {compiler} {optimisation}: {found}", kind.name))
}

/// gcc with another C library.
const MUSL: &str = "musl-gcc";

/// With locks; and without them, where that is asked for.
fn judged(trace: &str, right: &[f64]) -> Option<String> {
    let found = &efficiencies(trace)[..right.len()];
    let is_near = right.iter().zip(found).all(|(right, found)| (right - found).abs() <= NEAR);
    (!is_near).then(|| format!("{found:.3?}, not {right:.3?}"))
}

/// Whether the verdict on the lanes of a trace says that they wait in a way that is not ordered.
fn is_at_most(trace: &str) -> bool {
    let json: Value = serde_json::from_str(&succeed("replay", &["--json", trace])).unwrap();
    json["verdict"]["is_at_most"].as_bool().unwrap_or_else(|| panic!("{json}"))
}

/// The locks of `atomics.cpp`, and its barriers.
const ATOMICS: [&str; 9] = [
    "atomic_flag",
    "atomic exchanged",
    "atomic compared",
    "atomic looked at and exchanged",
    "tickets",
    "tickets of a lock found by its address",
    "tickets kept",
    "Mellor-Crummey and Scott's",
    "Craig, Landin and Hagersten's",
];
/// From here on threads queue. Where their nodes are is not always followed: the figure is right, or at most.
const QUEUES: usize = 7;
const BARRIERS: [(usize, &str); 5] = [
    (9, "barrier with a generation"),
    (10, "barrier with a sense"),
    (11, "barrier by plain stores"),
    (12, "barrier of a futex"),
    (13, "barrier of a count alone"),
];

fn name_of(kind: usize) -> &'static str {
    ATOMICS.get(kind).copied().unwrap_or_else(|| BARRIERS.iter().find(|(number, _)| *number == kind).unwrap().1)
}

/// What is not right about a lock, or a barrier, made of std::atomic.
fn wrong_of_atomics(kind: usize, form: Form, compiler: &str, optimisation: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let number = Form::OF_LOCKS.iter().position(|of| *of == form).unwrap_or(0);
    let defines = [format!("-DKIND={kind}"), format!("-DFORM={number}")];
    let flags = [optimisation, "-w", "-std=c++17", "-pthread", &defines[0], &defines[1]];
    let program = built("atomics.cpp", &[compiler], &flags, folder.path());
    let trace = traced(&program, &[], folder.path());
    let is_unknown = kind >= 4 && is_at_most(&trace);
    let wrong = match kind {
        // Without optimisation the place of the count is not told.
        7 | 8 | 13 if is_unknown => None,
        _ if is_unknown => Some("at most".to_owned()),
        _ => judged(&trace, &[form.right(1.0)]),
    };
    wrong.map(|found| format!("{} {form:?} {compiler} {optimisation}: {found}", name_of(kind)))
}

/// `kinds.rs`, built once for all of its kinds.
struct InRust {
    folder: tempfile::TempDir,
    path: String,
    optimisation: &'static str,
}

impl InRust {
    fn built(optimisation: &'static str) -> InRust {
        let folder = tempfile::tempdir().unwrap();
        let path = built("kinds.rs", &["rustc", "--edition", "2021"], &[optimisation], folder.path());
        InRust { folder, path, optimisation }
    }
}

/// What threads do that wait for a lock is a part of these programs, and differs from run to run.
fn wrong_in_rust(program: &InRust, kind: &str, form: Form) -> Option<String> {
    let number = Form::OF_LOCKS.iter().position(|of| *of == form).unwrap_or(0).to_string();
    let holders = if kind == "read" { LANES } else { 1.0 };
    judged(&traced(&program.path, &[kind, &number], program.folder.path()), &[form.right(holders)])
        .map(|found| format!("Rust's {kind} {form:?} {}: {found}", program.optimisation))
}

/// Threads that wait for each other in ways that order no lanes: that must be said, unless nobody works meanwhile.
fn wrong_wait_in_rust(program: &InRust, kind: &str) -> Option<String> {
    let trace = traced(&program.path, &[kind, "0"], program.folder.path());
    let wrong = match kind {
        // Who comes while the first one works goes another way than those who come later.
        "once" => {
            let (most, found) = ((LANES + 1.0) / (LANES * 2.0), efficiencies(&trace)[0]);
            (found > most + NEAR).then(|| format!("{found:.3}, more than {most:.3}"))
        }
        _ => (!is_at_most(&trace)).then(|| "not said to be at most that".to_owned()),
    };
    wrong.map(|found| format!("Rust's {kind} {}: {found}", program.optimisation))
}

/// The waits of `library.cpp`, and what lanes do there, if they wait for each other.
const OF_LIBRARY: [(&str, Option<Form>); 8] = [
    ("barrier", Some(Form::Barrier)),
    ("latches", Some(Form::Barrier)),
    ("semaphore", None),
    ("wait", None),
    ("shared mutex", Some(Form::Long)),
    ("mutex with a time limit", Some(Form::Long)),
    ("flag and condition", None),
    ("queues and conditions", None),
];

/// clang++ with its own library of C++, and with gcc's.
const CLANG: &[&str] = &["clang++-19"];
const LIBCPP: &[&str] = &["clang++-19", "-stdlib=libc++"];

fn has_libcpp() -> bool {
    let arguments = ["-stdlib=libc++", "-xc++", "/dev/null", "-shared", "-o", "/dev/null"];
    Command::new("clang++-19").args(arguments).output().is_ok_and(|output| output.status.success())
}

/// Where lanes do not wait, the figure must be said to be at most what it is. So it may be of a barrier where a
/// compiler has left nothing of the function that waits.
fn wrong_of_library(kind: usize, compiler: &[&str], optimisation: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let define = format!("-DKIND={kind}");
    let flags = [optimisation, "-w", "-std=c++20", "-pthread", &define];
    let trace = traced(&built("library.cpp", compiler, &flags, folder.path()), &[], folder.path());
    let ((name, form), is_unknown) = (OF_LIBRARY[kind], is_at_most(&trace));
    let wrong = match (form, is_unknown) {
        (Some(Form::Barrier), true) if optimisation != "-O0" || compiler == LIBCPP => None,
        (Some(Form::Barrier), true) => Some("at most".to_owned()),
        // The C library's own locks, as of malloc, may be waited for, too.
        (Some(form), _) => judged(&trace, &[form.right(1.0)]),
        (None, _) => (!is_unknown).then(|| "not said to be at most that".to_owned()),
    };
    wrong.map(|found| format!("{name} of the library {compiler:?} {optimisation}: {found}"))
}

fn all_right(found: impl Iterator<Item = Option<String>>) {
    let wrong: Vec<String> = found.flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn locks_of_every_kind_cost_what_the_source_says() {
    // Each kind in one form and one build, so that all forms and builds occur.
    let one = |(i, kind): (usize, &Kind)| {
        let form = Form::OF_LOCKS[i % 4];
        let clang = i % 2 == 1 && (!kind.is_openmp || has_openmp_of_clang());
        let optimisation = if kind.number < 15 && i % 3 == 0 { "-O0" } else { "-O2" };
        wrong(*kind, form, if clang { "clang-19" } else { "gcc" }, optimisation)
    };
    all_right(LOCKS.iter().enumerate().map(one));
}

/// By lane: how many instructions it runs, where nothing is known of locks.
fn instructions(trace: &str) -> Vec<u64> {
    let json: Value =
        serde_json::from_str(&succeed("replay", &["--json", "-H", "minsp-pc", "--locks", "ignore", trace])).unwrap();
    serde_json::from_value(json["results"][0]["lane_instructions"].clone()).unwrap()
}

#[test]
fn who_waits_in_the_kernel_or_wakes_another_runs_what_one_runs_that_does_neither() {
    for (compiler, optimisation, kind, form) in [
        ("gcc", "-Os", 16, 1),
        ("gcc", "-O2", 16, 0),
        ("clang-19", "-O2", 16, 1),
        ("clang-19", "-O1", 16, 2),
        ("clang-19", "-O2", 24, 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let defines = [format!("-DKIND={kind}"), format!("-DFORM={form}")];
        let flags = [optimisation, "-w", "-pthread", "-DHELD=1000", &defines[0], &defines[1]];
        let program = built("kinds.c", &[compiler], &flags, folder.path());
        let contended = instructions(&traced(&program, &[], folder.path()));
        let one_by_one = instructions(&traced(&program, &["apart"], folder.path()));
        assert_eq!(contended, one_by_one, "{compiler} {optimisation} kind {kind} form {form}");
    }
}

#[test]
fn lanes_meet_at_barriers_of_every_kind_and_run_ordered_sections_in_order() {
    all_right(MEETINGS.iter().map(|(kind, form)| wrong(*kind, *form, "gcc", "-O2")));
}

#[test]
fn rusts_locks_are_known_by_their_form() {
    let all = [
        ("mutex", Form::Long),
        ("mutex", Form::Nested),
        ("write", Form::ByHalf),
        ("read", Form::Long),
        ("swap", Form::ShortFirst),
        ("compare", Form::Nested),
    ];
    let program = InRust::built("-O");
    all_right(all.iter().map(|(kind, form)| wrong_in_rust(&program, kind, *form)));
}

#[test]
fn lanes_meet_at_barriers_of_the_libraries_of_cpp_and_rust_and_other_waits_are_said() {
    let in_rust = InRust::built("-O");
    all_right(["barrier", "condition"].iter().map(|kind| wrong_in_rust(&in_rust, kind, Form::Barrier)));
    let gcc: &[&str] = &["g++"];
    let all = [
        (0, gcc, "-O0"),
        (0, gcc, "-O2"),
        (1, gcc, "-O0"),
        (2, gcc, "-O2"),
        (2, CLANG, "-O2"),
        (3, gcc, "-O0"),
        (6, CLANG, "-O2"),
        (7, gcc, "-O2"),
        (0, LIBCPP, "-O2"),
        (2, LIBCPP, "-O2"),
        (4, LIBCPP, "-O2"),
        (5, LIBCPP, "-O0"),
    ];
    let all = all.iter().filter(|(_, compiler, _)| *compiler != LIBCPP || has_libcpp());
    all_right(all.map(|(kind, compiler, optimisation)| wrong_of_library(*kind, compiler, optimisation)));
    all_right(["channel", "park", "once"].iter().map(|kind| wrong_wait_in_rust(&in_rust, kind)));
}

#[test]
fn locks_made_of_atomics_are_known_without_optimisation() {
    let all = [(0, "g++", "-O0"), (1, "clang++-19", "-O0"), (2, "g++", "-O0"), (3, "clang++-19", "-O2")];
    all_right(
        all.iter()
            .map(|(kind, compiler, optimisation)| wrong_of_atomics(*kind, Form::ShortFirst, compiler, optimisation)),
    );
    let program = InRust::built("-Copt-level=0");
    all_right(["swap", "compare"].iter().map(|kind| wrong_in_rust(&program, kind, Form::Long)));
}

#[test]
fn locks_at_which_threads_queue_and_barriers_made_of_atomics_are_known() {
    let all = [
        (4, Form::Long, "g++", "-O0"),
        (4, Form::ShortFirst, "clang++-19", "-O2"),
        (5, Form::Nested, "clang++-19", "-O0"),
        (5, Form::ByHalf, "g++", "-O2"),
        (6, Form::Long, "g++", "-O2"),
        (QUEUES, Form::Long, "clang++-19", "-O2"),
        (QUEUES + 1, Form::Long, "g++", "-O2"),
        (9, Form::Barrier, "g++", "-O2"),
        (10, Form::Barrier, "clang++-19", "-O0"),
        (11, Form::Barrier, "clang++-19", "-O2"),
        (12, Form::Barrier, "g++", "-O0"),
        (13, Form::Barrier, "g++", "-O2"),
    ];
    all_right(
        all.into_iter()
            .map(|(kind, form, compiler, optimisation)| wrong_of_atomics(kind, form, compiler, optimisation)),
    );
}

/// Every kind in every form, by both compilers, with and without optimisation: `scripts/check-waits`.
#[test]
#[ignore = "takes minutes"]
fn every_program_of_the_judge_is_right() {
    let mut all = Vec::new();
    let kinds = LOCKS.iter().flat_map(|kind| Form::OF_LOCKS.map(|form| (*kind, form))).chain(MEETINGS);
    for (kind, form) in kinds {
        let glibc = [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O0"), ("clang-19", "-O2")];
        for (compiler, optimisation) in glibc.into_iter().chain((!kind.is_openmp).then_some((MUSL, "-O2"))) {
            let is_a_section = matches!(form, Form::Nested | Form::ByHalf) && kind.number == 10;
            if !is_a_section {
                all.push((
                    format!("{}\t{form:?}\t{compiler} {optimisation}", kind.name),
                    wrong(kind, form, compiler, optimisation),
                ));
            }
        }
    }
    let programs = ["-O", "-Copt-level=0"].map(InRust::built);
    let kinds = ["mutex", "write", "read", "swap", "compare"].into_iter();
    let kinds = kinds.flat_map(|kind| Form::OF_LOCKS.map(|form| (kind, form)));
    let kinds = kinds.chain(["barrier", "condition"].map(|kind| (kind, Form::Barrier)));
    for (kind, form) in kinds.chain(["channel", "park", "once"].map(|kind| (kind, Form::Chain))) {
        for program in &programs[..if ["mutex", "write", "read"].contains(&kind) { 1 } else { 2 }] {
            let what = format!("Rust's {kind}\t{form:?}\trustc {}", program.optimisation);
            let waits = form == Form::Chain;
            let wrong = if waits { wrong_wait_in_rust(program, kind) } else { wrong_in_rust(program, kind, form) };
            all.push((what, wrong));
        }
    }
    for (kind, (name, _)) in OF_LIBRARY.iter().enumerate() {
        let libcpp = [(LIBCPP, "-O0"), (LIBCPP, "-O2")].into_iter().filter(|_| has_libcpp());
        let gcc: &[&str] = &["g++"];
        for (compiler, optimisation) in
            [(gcc, "-O0"), (gcc, "-O2"), (gcc, "-O3"), (CLANG, "-O2")].into_iter().chain(libcpp)
        {
            let what = format!("{name} of the library\tBarrier\t{} {optimisation}", compiler.join(" "));
            all.push((what, wrong_of_library(kind, compiler, optimisation)));
        }
    }
    let locks = (0..ATOMICS.len()).flat_map(|kind| Form::OF_LOCKS.map(|form| (kind, form)));
    // Who finds nobody before it in such a queue goes another way than the others, and on alone.
    let locks = locks.filter(|one| *one != (QUEUES, Form::ShortFirst));
    for (kind, form) in locks.chain(BARRIERS.map(|(kind, _)| (kind, Form::Barrier))) {
        for (compiler, optimisation) in [("g++", "-O0"), ("g++", "-O2"), ("clang++-19", "-O0"), ("clang++-19", "-O2")] {
            let what = format!("{}\t{form:?}\t{compiler} {optimisation}", name_of(kind));
            all.push((what, wrong_of_atomics(kind, form, compiler, optimisation)));
        }
    }
    let lines =
        all.iter().map(|(what, wrong)| format!("{what}\t{}\n", if wrong.is_some() { "wrong" } else { "right" }));
    let folder = root().join("target/waits");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("table.tsv"), lines.collect::<String>()).unwrap();
    all_right(all.into_iter().map(|(_, wrong)| wrong));
}
