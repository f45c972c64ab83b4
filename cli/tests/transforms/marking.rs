//! `lockstep cc --mark-iterations` and `replay --lanes marks`: lane i is iteration i, whatever the optimiser does.
//!
//! The judge is the source: it is known how many turns of an inner loop each iteration makes, or which element of an
//! array it accesses. Every program must also print what clang's own build prints.

use std::collections::BTreeSet;

use replay::Batch;
use replay::view::{CodeFilter, Lanes, View, ViewOptions, WhichLoops};
use trace_format::Trace;

use self::program::{MARK, program};
use crate::folder::{Folder, lockstep, root};

#[path = "../commands/drawn_loops/program.rs"]
#[allow(dead_code, reason = "the compiler that is drawn is not asked for here")]
mod program;

/// How programs are built.
const BUILDS: [&[&str]; 4] = [
    &["--mark-iterations", "--", "-O0"],
    &["--mark-iterations=yes", "--", "-O2"],
    &["--mark-iterations", "--", "-O3", "-g"],
    &["--shape", "gpu", "--", "-O2", "-g"],
];

const ITERATIONS: Lanes = Lanes::Iterations(WhichLoops::Worksharing);

fn is_whole() -> bool {
    std::env::var_os("LOCKSTEP_WHOLE").is_some()
}

/// The source of a drawn program, and its threads.
pub(crate) fn drawn(number: u64) -> (String, u64) {
    let drawn = program(number);
    (drawn.source, drawn.threads)
}

/// Whether clang finds its OpenMP here.
pub(crate) fn has_openmp(folder: &Folder) -> bool {
    let words = ["-fopenmp", "-xc", "/dev/null", "-shared", "-o", "/dev/null"];
    folder.run("clang-19", &words).status.success()
}

/// Builds a program with marks and records it, on so many threads; what the compiler said. It must print what clang's
/// own build prints.
fn recorded(folder: &Folder, verb: &str, (how, words): (&[&str], &[&str]), threads: u64, options: &[&str]) -> String {
    let more = [&["-fopenmp", "-w"][..], words].concat();
    let built = folder.run(lockstep(), &[&[verb], how, &more, &["-o", "program"]].concat());
    let said = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success(), "{how:?} {words:?}: {said}");
    let compiler = if verb == "cc" { "clang-19" } else { "clang++-19" };
    folder.succeed(compiler, &[&["-O1"], &more[..], &["-o", "plain"]].concat());
    let threads = format!("OMP_NUM_THREADS={threads}");
    let environment = [&threads[..], "XDG_CACHE_HOME=/proc/no-cache", "OMP_SCHEDULE=dynamic,3"];
    let trace =
        [&["OMP_WAIT_POLICY=passive", "KMP_BLOCKTIME=1", env!("CARGO_BIN_EXE_trace"), "-o", "trace.bin"], options]
            .concat();
    let printed = folder.succeed("env", &[&environment[..], &trace, &["./program"]].concat());
    assert_eq!(printed, folder.succeed("./plain", &[]), "{how:?} {words:?}");
    said
}

fn view(folder: &Folder, lanes: Lanes) -> Result<View, String> {
    let trace = Trace::open(&folder.path("trace.bin")).unwrap();
    let options = ViewOptions { lanes, code: CodeFilter::Main, ..ViewOptions::default() };
    View::new(&trace, &options).map_err(|error| error.to_string())
}

/// By launch, by lane: what `of_lane` makes of what it ran.
fn launches<T>(view: &View, of_lane: impl Fn(&Batch) -> T) -> Vec<Vec<T>> {
    let of_lane = |lane: &usize| {
        let (mut stream, mut batch, mut all) = (view.stream(*lane), Batch::default(), Batch::default());
        while stream.next_batch(&mut batch).unwrap() {
            all.codes.extend(batch.codes.iter().filter(|code| code.as_segment().is_some()));
            all.addresses.extend(&batch.addresses);
        }
        of_lane(&all)
    };
    let numbers: Vec<usize> = (0..view.lanes().len()).collect();
    let of_launch = numbers.chunk_by(|a, b| view.lanes()[*a].generation == view.lanes()[*b].generation);
    of_launch.map(|lanes| lanes.iter().map(of_lane).collect()).collect()
}

/// By launch, by lane: how many turns of the inner loop it makes.
fn turns(folder: &Folder) -> Result<Vec<Vec<u32>>, String> {
    let view = view(folder, ITERATIONS)?;
    if let Some(doubt) = view.summary().cut.as_ref().unwrap().withheld() {
        return Err(doubt.to_owned());
    }
    let segments = view.segments();
    let is_mark = |one: &machine::Instruction| one.address().is_some_and(|address| address.displacement == MARK);
    let of_segment = |id| segments.listing(id).iter().flatten().filter(|one| is_mark(one)).count() as u32;
    let marks: Vec<u32> = segments.iter().map(|(id, _)| of_segment(id)).collect();
    let ran =
        |lane: &Batch| lane.codes.iter().filter_map(|code| code.as_segment()).map(|id| marks[id.0 as usize]).sum();
    Ok(launches(&view, ran))
}

/// Whether these launches are those that were wanted, in whatever order; no number stands for every number.
fn are(mut launches: Vec<Vec<u32>>, wanted: &[Vec<Option<u32>>]) -> bool {
    let is_it = |wanted: &[Option<u32>], lanes: &[u32]| {
        wanted.len() == lanes.len() && wanted.iter().zip(lanes).all(|(one, lane)| one.is_none_or(|one| one == *lane))
    };
    // Those that fit few launches choose first.
    let mut loops: Vec<&Vec<Option<u32>>> = wanted.iter().collect();
    loops.sort_by_key(|lanes| lanes.iter().filter(|lane| lane.is_none()).count());
    let all_there = loops.into_iter().all(|wanted| {
        let found = launches.iter().position(|lanes| is_it(wanted, lanes));
        found.map(|at| launches.swap_remove(at)).is_some()
    });
    all_there && launches.is_empty()
}

/// What is wrong with the lanes of a drawn program.
fn wrong(number: u64) -> Option<String> {
    let drawn = program(number);
    let folder = Folder::with(&[("drawn.c", &drawn.source)]);
    let how = BUILDS[number as usize % BUILDS.len()];
    let said = recorded(&folder, "cc", (how, &["drawn.c"]), drawn.threads, &[]);
    let about = format!("{number}: {how:?}, {} threads {said}", drawn.threads);
    let sizes: Vec<usize> = drawn.loops.iter().map(Vec::len).collect();
    match turns(&folder) {
        Err(why) => Some(format!("{about}: {why}")),
        Ok(found) if are(found.clone(), &drawn.loops) => None,
        Ok(found) => Some(format!("{about}: {sizes:?} iterations; lanes {found:?}")),
    }
}

/// COUNT programs (8 unless told, 200 of the whole suite) from number FIRST (0) on.
#[test]
fn lanes_of_drawn_programs_are_the_iterations_that_are_marked() {
    if !has_openmp(&Folder::with(&[])) {
        return;
    }
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (first, count) = (number("FIRST", 0), number("COUNT", if is_whole() { 200 } else { 8 }));
    let all: Vec<String> = (first..first + count).filter_map(wrong).collect();
    assert!(all.is_empty(), "{} of {count} wrong:\n{}", all.len(), all.join("\n"));
}

/// The hash of `shared.cpp`.
fn mix(i: u32) -> Option<u32> {
    Some(i.wrapping_mul(2_654_435_761) >> 28)
}

/// By definition in `shared.cpp`: the lanes of each launch.
fn shared() -> Vec<(&'static str, Vec<Vec<Option<u32>>>)> {
    let all = |n: u32| (0..n).map(mix).collect::<Vec<_>>();
    let once = [
        "CANCEL",
        "THROWS",
        "SIMD",
        "LOOP",
        "TEAMS_LOOP",
        "CYCLIC_TEAMS",
        "DOACROSS",
        "LAST",
        "RANGE",
        "SECTIONS",
        "TASKLOOP",
    ];
    let several = [("ORPHAN", 3), ("INLINED", 3), ("ALONE", 3), ("LAMBDA", 2), ("IN_TASKS", 2), ("STEPS", 3)];
    let mut loops: Vec<_> = once.map(|name| (name, vec![all(100)])).to_vec();
    loops.extend(several.map(|(name, times)| (name, vec![all(100); times])));
    let inside = all(100).into_iter().map(|turns| turns.map(|turns| turns + 3)).collect();
    // Iteration k of row i is i + k there, up to the edge.
    let triangle = (0..400).map(|at| if at / 20 + at % 20 < 20 { mix(at + at / 20) } else { Some(0) }).collect();
    loops.extend([
        ("NOWAIT", vec![all(100), all(2), all(3)]),
        ("INSIDE", vec![inside]),
        ("TRIANGLE", vec![triangle]),
        ("SCAN", vec![all(100), vec![Some(0); 100]]),
    ]);
    loops
}

#[test]
fn lanes_are_the_iterations_of_loops_of_every_kind() {
    let source = root().join("cli/tests/lanes/shared.cpp");
    let folder = Folder::with(&[("shared.cpp", &std::fs::read_to_string(source).unwrap())]);
    if !has_openmp(&folder) {
        return;
    }
    for (turn, (name, wanted)) in shared().into_iter().enumerate() {
        for how in if is_whole() { &BUILDS[..] } else { &BUILDS[turn % BUILDS.len()..][..1] } {
            let define = format!("-D{name}");
            let said = recorded(&folder, "c++", (how, &[&define, "shared.cpp"]), 4, &[]);
            let found = turns(&folder).unwrap_or_else(|why| panic!("{name} {how:?}: {why}"));
            assert!(said.is_empty() && are(found.clone(), &wanted), "{name} {how:?} {said}: {found:?}");
            let doubts = &view(&folder, Lanes::Marks).unwrap().summary().cut.clone().unwrap().doubts;
            assert!(doubts.is_empty(), "{name}: {doubts:?}");
        }
    }
}

#[test]
fn a_loop_without_marks_beside_others_is_said() {
    let other = "void other(int n, int *out) {
#pragma omp for
    for (int i = 0; i < n; i++) out[i] += i;
}
";
    let main = "#include <stdio.h>
void other(int n, int *out);
int main(void) {
    static int out[100];
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < 100; i++) out[i] = i;
        other(100, out);
    }
    printf(\"%d\\n\", out[99]);
}
";
    let folder = Folder::with(&[("main.c", main), ("other.c", other)]);
    if !has_openmp(&folder) {
        return;
    }
    folder.succeed("clang-19", &["-O1", "-fopenmp", "-c", "other.c"]);
    recorded(&folder, "cc", (BUILDS[1], &["main.c", "other.o"]), 4, &[]);
    let doubts = &view(&folder, Lanes::Marks).unwrap().summary().cut.clone().unwrap().doubts;
    assert!(doubts.len() == 1 && doubts[0].contains("in other) that have no marks"), "{doubts:?}");
}

/// Programs whose loops optimisers unroll, vectorise, peel and reduce; how many iterations each loop has.
const CHANGED: [(&str, &str, &[usize]); 4] = [
    (
        "unrolled",
        "for (int i = 0; i < 4096; i++) key[i] = (i * 7919) % 3;
#pragma omp parallel for
    for (int i = 0; i < 4096; i++)
        if (key[i]) out[i] = key[i] * 3;
    printf(\"%d\\n\", out[27]);",
        &[4096],
    ),
    (
        "vectorised",
        "for (int i = 0; i < 2048; i++) in[i] = (i * 7919) % 101;
#pragma omp parallel for
    for (int i = 0; i < 2048; i++) {
        float v = in[i];
        for (int j = 0; j < 20; j++) v = v * 0.5f + 1;
        in[i] = v;
    }
    printf(\"%f\\n\", in[7]);",
        &[2048],
    ),
    (
        "collapsed",
        "for (int i = 0; i < 4096; i++) in[i] = i;
#pragma omp parallel for collapse(2)
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++) in[y * 64 + x] = in[y * 64 + x] * 2 + 1;
    printf(\"%f\\n\", in[9]);",
        &[4096],
    ),
    (
        "reduced",
        "for (int i = 0; i < 1024; i++) in[i] = i;
    float s = 0, m = 0;
    for (int shift = 1; shift < 3; shift++)
#pragma omp parallel for reduction(max : m) reduction(+ : s) num_threads(1)
        for (int i = 0; i < 1024; i++) {
            float v = in[i] * shift;
            for (int j = 0; j < 20; j++) v = v * 0.5f + 1;
            m = v > m ? v : m;
            s += v;
        }
    printf(\"%f %f\\n\", s, m);",
        &[1024, 1024],
    ),
];

#[test]
fn lane_i_accesses_element_i_whatever_the_optimiser_would_make_of_the_loop() {
    for (name, body, sizes) in CHANGED {
        let source = format!(
            "#include <stdio.h>\nstatic int key[4096], out[4096];\nstatic float in[4096];\nint main(void) {{\n    {body}\n}}\n"
        );
        let folder = Folder::with(&[("changed.c", &source)]);
        if !has_openmp(&folder) {
            return;
        }
        for how in &BUILDS[1..] {
            recorded(&folder, "cc", (how, &["changed.c"]), 4, &["--memory"]);
            let view = view(&folder, Lanes::Marks).unwrap();
            let found = launches(&view, |lane| lane.addresses.iter().copied().collect::<BTreeSet<u64>>());
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), sizes, "{name} {how:?}");
            for lanes in &found {
                let is_array = |first: &u64| (0..).zip(lanes).all(|(i, lane)| lane.contains(&(first + 4 * i)));
                let elements = lanes[0].iter().filter(|first| is_array(first)).count();
                assert!(elements == 1, "{name} {how:?}: {:?}", &lanes[..2]);
                let lengths: BTreeSet<usize> = lanes.iter().map(BTreeSet::len).collect();
                assert!(lengths.len() <= 2, "{name} {how:?}: {lengths:?}");
            }
        }
    }
}

#[test]
fn what_is_marked_is_told_and_what_cannot_be_is_warned_of() {
    let source = "void g(int);\nvoid f(int n) {\n#pragma omp parallel for\n    for (int i = 0; i < n; i++) g(i);\n}\n";
    let folder = Folder::with(&[("f.c", source)]);
    let markers = |words: &[&str]| {
        let built = folder.run(lockstep(), &[&["cc"], words, &["-S", "f.c", "-o", "f.s"]].concat());
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(built.status.success(), "{words:?}: {said}");
        // Those of blocks' costs have other registers.
        (folder.read("f.s").matches("(%rax,%rax)").count(), said)
    };
    let (count, said) = markers(&["--mark-iterations", "--report", "-", "--", "-O2", "-fopenmp"]);
    let told = "mark-iterations taken: f.omp_outlined: worksharing loop at f.c:3: each iteration is marked; so the loop \
                stays scalar, and is not unrolled\n";
    assert_eq!((count, &said[..]), (2, told));
    assert_eq!(markers(&["--shape", "gpu", "--", "-O2", "-fopenmp"]), (2, String::new()));
    for none in [
        &["--", "-O2", "-fopenmp"][..],
        &["--shape", "gpu", "--mark-iterations=no", "--", "-O2", "-fopenmp"],
        &["--mark-iterations", "--", "-O2"],
    ] {
        assert_eq!(markers(none), (0, String::new()), "{none:?}");
    }
    // The optimiser's own messages and files are those of the second of three jobs.
    let words = ["--mark-iterations", "--", "-O2", "-g", "-fopenmp", "-Rpass=inline", "-fsave-optimization-record"];
    assert!(markers(&words).1.contains("remark: "), "{:?}", markers(&words));
    assert!(folder.read("f.opt.yaml").contains("inline"));
    // IR in between is marked once.
    let temporaries = ["--mark-iterations", "--", "-O2", "-fopenmp", "-save-temps"];
    assert_eq!(markers(&temporaries), (2, String::new()));
    folder.succeed(lockstep(), &["cc", "--mark-iterations", "--", "-O2", "-fopenmp", "-c", "-emit-llvm", "f.c"]);
    folder.succeed(lockstep(), &["cc", "--mark-iterations", "--", "-O2", "-fopenmp", "-S", "f.bc"]);
    assert_eq!(folder.read("f.s").matches("nopl").count(), 2);
    let target = ["--mark-iterations", "--", "-O2", "-fopenmp", "--target=aarch64-linux-gnu", "-ffreestanding"];
    assert_eq!(markers(&target), (0, String::new()));
}
