//! Traces of a part of a program's run: `--start`, `--stop` and `--markers`, and what replays make of them.

use std::path::Path;

use crate::support::{build, root, run, succeed};

/// A build of a workload, and traces of it.
struct Traced {
    folder: tempfile::TempDir,
}

impl Traced {
    fn new(source: &str, flags: &[&str]) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        build(&root().join(source), &folder.path().join("program"), flags);
        Traced { folder }
    }

    fn place(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// The command line that records the program to this trace.
    fn command<'a>(options: &[&'a str], trace: &'a str, program: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
        [options, &["-o", trace, program], arguments].concat()
    }

    /// Records the program, which must succeed, and returns the trace.
    fn record(&self, options: &[&str], arguments: &[&str]) -> String {
        let (trace, program) = (self.place("trace.bin"), self.place("program"));
        succeed("trace", &Traced::command(options, &trace, &program, arguments));
        trace
    }
}

/// The number behind this word in the summary of a trace.
fn told(trace: &str, word: &str) -> u64 {
    let summary = succeed("lockstep", &["dump", trace]);
    let line = summary.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("{word}: {summary}"));
    line.split_whitespace().last().unwrap().replace(',', "").parse().unwrap()
}

/// What `replay` says: the line about what it took, and its table.
fn replayed(arguments: &[&str]) -> String {
    let output = run("replay", arguments);
    let [said, table] = [output.stderr, output.stdout].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{arguments:?}: {said}");
    said + &table
}

fn fft() -> Traced {
    Traced::new("workloads/fft/fft.c", &["-lm"])
}

#[test]
fn a_function_in_the_middle_is_replayed_by_default() {
    let fft = fft();
    let arguments = ["-p", "4", "-m", "8"];
    let whole = told(&fft.record(&[], &arguments), "instructions");
    for engine in ["step", "translate"] {
        let options = ["--engine", engine, "--start", "transform_row", "--stop", "transform_row"];
        let trace = fft.record(&options, &arguments);
        let part = told(&trace, "instructions");
        assert!(part > 10_000 && part < whole, "{engine}: {part} of {whole}");
        assert!(succeed("lockstep", &["dump", &trace]).contains("calls of transform_row"));
        let told = replayed(&["--check", &trace]);
        assert!(told.contains("4 lanes") && told.contains("start routine worker"), "{engine}: {told}");
        // The window named once more, as a region.
        let told = replayed(&["--check", "--region", "transform_row", &trace]);
        assert!(told.contains("function transform_row"), "{engine}: {told}");
    }
}

#[test]
fn threads_that_are_in_a_loop_when_the_recording_begins_are_replayed() {
    let traced = Traced::new("cli/tests/windows/in_loops.c", &["-O1", "-pthread"]);
    // In one of twelve a thread begins at the head of the inner loop, as chance has it.
    for _ in 0..30 {
        let trace = traced.record(&["--start", "begin"], &[]);
        let told = replayed(&["--loops", "--top", "1", "--heuristic", "minpc", &trace]);
        assert!(told.contains("8 lanes"), "{told}");
    }
}

#[test]
fn a_window_around_the_threads_changes_nothing_of_the_replay() {
    let fft = fft();
    let arguments = ["-p", "4", "-m", "8"];
    let rows =
        |options: &[&str]| succeed("replay", &["--heuristic", "minsp-pc", "--json", &fft.record(options, &arguments)]);
    let fetches = |rows: &str| rows.split("\"fetches\":").nth(1).map(|rest| rest.split(',').next().unwrap().to_owned());
    let whole = fetches(&rows(&[])).unwrap();
    assert_eq!(fetches(&rows(&["--start", "main"])).unwrap(), whole);
}

#[test]
fn markers_choose_the_part() {
    let divided = Traced::new("workloads/micro/marked_phase.c", &[]);
    let arguments = ["-p", "3"];
    let whole = told(&divided.record(&[], &arguments), "instructions");
    for engine in ["step", "translate"] {
        let trace = divided.record(&["--engine", engine, "--markers"], &arguments);
        let part = told(&trace, "instructions");
        // Each lane goes through its rows once in the part, which takes three instructions an element or more.
        assert!(part > 3 * 3 * 512 && part < whole, "{engine}: {part} of {whole}");
        let told = replayed(&["--check", "--heuristic", "minsp-pc", &trace]);
        assert!(told.contains("3 lanes"), "{engine}: {told}");
        // Of each lane its own part alone: they part and meet at each element.
        let told = replayed(&["--check", "--heuristic", "ipdom", "--region", "markers", &trace]);
        assert!(told.contains("3 lanes") && told.contains("between markers"), "{engine}: {told}");
    }
    let text = succeed("lockstep", &["dump", "--text", &divided.place("trace.bin")]);
    std::fs::write(divided.place("text.trace"), text).unwrap();
    succeed("replay", &["--check", &divided.place("text.trace")]);
    let page = divided.place("page.html");
    succeed("lockstep", &["report", &divided.place("trace.bin"), "-o", &page]);
    assert!(Path::new(&page).exists());
}

#[test]
fn a_function_that_is_not_there_is_told_with_similar_names() {
    let fft = fft();
    let (trace, program) = (fft.place("trace.bin"), fft.place("program"));
    let record = |options: &[&str]| run("trace", &Traced::command(options, &trace, &program, &["-m", "4"]));
    let output = record(&["--start", "transfrom_row"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("no function transfrom_row") && said.contains("transform_row"), "{said}");
    assert!(said.contains("its trace is empty"), "{said}");
    assert!(!output.stdout.is_empty(), "the program ran");
    let output = run("replay", &[&trace]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("holds no instructions") && said.contains("transfrom_row"), "{said}");

    let output = record(&["--stop", "transfrom_row"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("went on to the end") && said.contains("transform_row"), "{said}");

    let output = record(&["--markers"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("LOCKSTEP_BEGIN"), "{said}");
}

#[test]
fn markers_and_functions_are_two_ways_of_which_one_is_taken() {
    let output = run("trace", &["--markers", "--start", "main", "true"]);
    assert_eq!(output.status.code(), Some(2));
}
