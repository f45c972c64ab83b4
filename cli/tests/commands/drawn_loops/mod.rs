//! Lanes of OpenMP programs that are drawn by chance: lane i is iteration i, or it is said that they are not known.
//!
//! The judge is the source: of each program it is known how many turns of a marked loop each iteration makes. A trace
//! is asked as the front door asks, and its lanes must make just these turns, in this order.

mod program;
mod written;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use replay::Batch;
use replay::view::{CodeFilter, CutInto, Lanes, View, ViewOptions, WhichLoops};
use trace_format::Trace;

use self::program::{MARK, Program, is_straight, is_unrolled, program};
use crate::support::{SLEEP_SOON, has_openmp_of_clang, is_whole};

/// What became of a program's lanes.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Right,
    /// They are not, and that is said.
    Said(String),
    /// They are not, without a word.
    Wrong(String),
}

fn built_and_traced(program: &Program, folder: &Path) -> String {
    let [source, binary, trace] = ["p.c", "p", "p.bin"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    std::fs::write(&source, &program.source).unwrap();
    let openmp = if program.compiler == "gcc" { "-fopenmp" } else { "-fopenmp=libomp" };
    let mut command = Command::new(program.compiler);
    let built = command.args(&program.flags).args([openmp, "-w", &source, "-o", &binary]).output().unwrap();
    assert!(built.status.success(), "{}\n{}", String::from_utf8_lossy(&built.stderr), program.source);
    let threads = format!("OMP_NUM_THREADS={}", program.threads);
    let words = [&threads, "XDG_CACHE_HOME=/proc/no-cache", "OMP_SCHEDULE=dynamic,3"];
    let trace_it = [env!("CARGO_BIN_EXE_trace"), "-o", &trace, &binary];
    let traced = Command::new("env").args(words).args(SLEEP_SOON).args(trace_it).output().unwrap();
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
    trace
}

/// By lane: how often it runs the mark.
pub(crate) fn turns(view: &View) -> Vec<u32> {
    let segments = view.segments();
    let is_mark =
        |instruction: machine::Instruction| instruction.address().is_some_and(|address| address.displacement == MARK);
    let marks: Vec<u32> = segments
        .iter()
        .map(|(id, _)| segments.listing(id).iter().flatten().filter(|instruction| is_mark(*instruction)).count() as u32)
        .collect();
    let of_lane = |lane: usize| {
        let (mut stream, mut batch, mut count) = (view.stream(lane), Batch::default(), 0);
        while stream.next_batch(&mut batch).unwrap() {
            let ran = batch.codes.iter().filter_map(|code| code.as_segment());
            count += ran.map(|id| marks[id.0 as usize]).sum::<u32>();
        }
        count
    };
    (0..view.lanes().len()).map(of_lane).collect()
}

/// What lanes ran, and what is said of them.
struct Marks {
    /// By launch, by lane: how often it runs the mark.
    launches: Vec<Vec<u32>>,
    /// Why there is no verdict.
    withheld: Option<String>,
    /// What else is not sure: loops that are no lanes.
    left_out: Option<String>,
}

/// What lanes ran; or what is said in place of lanes.
fn marks(trace: &str, lanes: Lanes) -> Result<Marks, String> {
    let trace = Trace::open(Path::new(trace)).unwrap();
    let options = ViewOptions { lanes, code: CodeFilter::Main, ..ViewOptions::default() };
    let (view, _) = verdict::lanes::view(&trace, &options).map_err(|error| error.to_string())?;
    let turns = turns(&view);
    let numbers: Vec<usize> = (0..view.lanes().len()).collect();
    let launches = numbers.chunk_by(|a, b| view.lanes()[*a].generation == view.lanes()[*b].generation);
    let cut = view.summary().cut.as_ref();
    let withheld = cut.and_then(CutInto::withheld).map(str::to_owned);
    let left_out = cut.and_then(|cut| cut.doubts.first()).cloned();
    let launches = launches.map(|lanes| lanes.iter().map(|lane| turns[*lane]).collect()).collect();
    Ok(Marks { launches, withheld, left_out })
}

fn found(program: &Program, folder: &Path) -> Found {
    let trace = built_and_traced(program, folder);
    judged(marks(&trace, Lanes::Iterations(WhichLoops::Worksharing)), &program.loops)
}

/// Whether lanes are these, by loop, by lane: its marks; none where nothing is known of it.
fn judged(marks: Result<Marks, String>, loops: &[Vec<Option<u32>>]) -> Found {
    let Marks { launches, withheld, left_out } = match marks {
        Ok(found) => found,
        Err(why) => return Found::Said(why),
    };
    // Each loop is a launch; which of them comes first changes nothing.
    let mut left = launches.clone();
    let is_it = |wanted: &[Option<u32>], lanes: &[u32]| {
        wanted.len() == lanes.len() && wanted.iter().zip(lanes).all(|(one, lane)| one.is_none_or(|one| one == *lane))
    };
    let mut is_there = |wanted: &Vec<Option<u32>>| {
        let found = left.iter().position(|lanes| is_it(wanted, lanes));
        found.map(|at| left.swap_remove(at)).is_some()
    };
    // One of which nothing is known has what the others leave.
    let mut in_order: Vec<&Vec<Option<u32>>> = loops.iter().collect();
    in_order.sort_by_key(|lanes| lanes.iter().filter(|marks| marks.is_none()).count());
    let there = in_order.into_iter().filter(|lanes| is_there(lanes)).count();
    let fits = there == loops.len() && launches.len() == there;
    let sizes = |loops: &mut dyn Iterator<Item = (usize, u32)>| {
        loops.map(|(lanes, marks)| format!("{lanes} ({marks})")).collect::<Vec<_>>().join(", ")
    };
    if let Some(doubt) = withheld {
        return Found::Said(if fits { format!("right, but: {doubt}") } else { doubt });
    }
    if fits {
        return Found::Right;
    }
    if let Some(left_out) = left_out.filter(|_| there == launches.len()) {
        return Found::Said(left_out);
    }
    Found::Wrong(format!(
        "lanes (marks): {} for {}; {:?}",
        sizes(&mut launches.iter().map(|lanes| (lanes.len(), lanes.iter().sum()))),
        sizes(&mut loops.iter().map(|lanes| (lanes.len(), lanes.iter().flatten().sum()))),
        left.first().map(|lanes| &lanes[..lanes.len().min(20)])
    ))
}

/// A line for each program that is not right.
fn said(number: u64, program: &Program, found: &Found) -> String {
    format!("{number}: {} {} threads {}: {found:?}", program.compiler, program.flags.join(" "), program.threads)
}

/// Where sources and the table stay.
fn kept() -> PathBuf {
    let kept = crate::support::root().join("target/drawn-loops");
    std::fs::create_dir_all(&kept).unwrap();
    kept
}

/// What became of a program with this number. The source of one that is not right stays in target/drawn-loops.
fn tried(number: u64) -> (Found, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = program(number);
    let found = found(&program, folder.path());
    let said = said(number, &program, &found);
    if found != Found::Right {
        std::fs::write(kept().join(format!("{number}.c")), format!("// {said}\n{}", program.source)).unwrap();
    }
    (found, said)
}

/// Programs whose lanes were wrong without a word: first iterations apart, of a thread and of its first chunk; an
/// iteration that ends its thread's share by itself, as its number is 0; a copy of the loop's test that none failed;
/// and a loop that threads enter in the middle.
const WERE_WRONG: [u64; 5] = [340_097, 340_341, 340_593, 340_597, 340_732];

#[test]
fn lanes_of_drawn_programs_are_their_iterations() {
    if !has_openmp_of_clang() {
        return;
    }
    for number in (0..if is_whole() { 40 } else { 24 }).chain(WERE_WRONG) {
        let (found, said) = tried(number);
        assert_eq!(found, Found::Right, "{said}");
    }
}

/// COUNT programs (1000 unless told) from number FIRST (0) on, each STEP-th (1) number, and a table of what became of
/// them.
#[test]
#[ignore = "it takes minutes: scripts/check-lanes"]
fn lanes_of_many_drawn_programs() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (count, first, step) = (number("COUNT", 1000), number("FIRST", 0), number("STEP", 1));
    let numbers = (0..count).map(|index| first + index * step);
    let kind = |number| match () {
        () if is_unrolled(number) => "asked to unroll",
        () if is_straight(number) => "straight",
        () if program(number).has_own => "first iteration apart",
        () => "all others",
    };
    let all: Vec<(&str, Found, String)> = numbers
        .map(|number| {
            let (found, said) = tried(number);
            (kind(number), found, said)
        })
        .collect();
    // By compiler and level: programs, right, not sure, wrong.
    let mut rows: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for (kind, found, said) in &all {
        let build = said.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" ");
        let of = match found {
            Found::Right => 1,
            Found::Said(_) => 2,
            Found::Wrong(_) => 3,
        };
        for build in [build, (*kind).to_owned()] {
            let row = rows.entry(build).or_default();
            (row[0], row[of]) = (row[0] + 1, row[of] + 1);
        }
    }
    let mut table = String::from("build\tprograms\tright\tnot_sure\twrong\n");
    for (build, [programs, right, not_sure, wrong]) in &rows {
        writeln!(table, "{build}\t{programs}\t{right}\t{not_sure}\t{wrong}").unwrap();
    }
    std::fs::write(kept().join("table.tsv"), table).unwrap();
    let others: Vec<&str> = all.iter().filter(|(_, of, _)| *of != Found::Right).map(|(.., said)| &said[..]).collect();
    let wrong = all.iter().filter(|(_, of, _)| matches!(of, Found::Wrong(_))).count();
    // At most so many in a hundred of each kind are not right.
    let is_enough = |(kind, most): (&str, usize)| {
        let those = || all.iter().filter(|(of, ..)| *of == kind);
        those().filter(|(_, of, _)| *of != Found::Right).count() * 100 <= those().count() * most
    };
    let enough = [("asked to unroll", 25), ("straight", 40), ("first iteration apart", 12), ("all others", 3)];
    let enough = enough.into_iter().all(is_enough);
    assert!(wrong == 0 && enough, "{wrong} of {count} wrong, {} not right:\n{}", others.len(), others.join("\n"));
}
