//! Results that cannot be written: every verb says so, with the status of an unwritable file; a reader that has had
//! enough is no error.

use std::fs::File;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::support::{command, root, run, succeed};

/// A command line: program and arguments.
type Line = Vec<String>;

fn line(words: &str) -> Line {
    words.split_whitespace().map(str::to_owned).collect()
}

/// Command lines of every verb that print a result to standard output, which the files of this folder are for.
fn printing(folder: &Path) -> Vec<Line> {
    let vector = root().join("heuristics/conformance/case-12.trace.gz");
    let (trace, folder) = (vector.display(), folder.display());
    let mut lines: Vec<Line> = [
        format!("replay {trace}"),
        format!("lockstep replay --json {trace}"),
        format!("lockstep replay --csv - {trace}"),
        format!("lockstep replay --schedule - {trace}"),
        format!("lockstep replay --by branch {trace}"),
        format!("lockstep diff {folder}/rows.csv {folder}/rows.csv"),
        format!("lockstep diff --json {folder}/rows.csv {folder}/rows.csv"),
        format!("lockstep check --model minpc --min-efficiency 0 {trace}"),
        format!("lockstep report -o - {trace}"),
        "lockstep diff --region all true true --".to_owned(),
        "lockstep diff --region all --json true true --".to_owned(),
        "lockstep diff --region all --csv - true true --".to_owned(),
        format!("lockstep export -f folded {trace}"),
        format!("lockstep export -f pprof {trace}"),
        format!("lockstep export -f callgrind {trace}"),
        format!("lockstep export -f perfetto {trace}"),
        format!("lockstep convert -o - {trace}"),
        format!("lockstep dump {trace}"),
        format!("lockstep dump --text {trace}"),
        format!("lockstep suggest {trace}"),
        format!("lockstep suggest --json {trace}"),
        "lockstep heuristics".to_owned(),
        "lockstep new-model --help".to_owned(),
        "lockstep setup --help".to_owned(),
        "lockstep help all".to_owned(),
        "lockstep trace --help".to_owned(),
        "lockstep plot --help".to_owned(),
        "trace --version".to_owned(),
    ]
    .iter()
    .map(|words| line(words))
    .collect();
    if cfg!(feature = "transform") {
        lines.push(line("lockstep cc --help"));
        lines.push(line("lockstep c++ --help"));
        lines.push(line("lockstep transform --list"));
        lines.push(line(&format!("lockstep analyze {folder}/program.ll")));
        lines.push(line(&format!("lockstep analyze --json {folder}/program.ll")));
        lines.push(line("lockstep verify --help"));
        lines.push(line(&format!("lockstep transform --pass none {folder}/program.ll -o -")));
        lines.push(line(&format!("lockstep transform --pass fcs --report {folder}/program.ll")));
    }
    for words in &mut lines {
        // A bare name is a file of the current folder for `compare`.
        words.iter_mut().filter(|word| *word == "true").for_each(|word| *word = "/bin/true".to_owned());
    }
    lines
}

/// Command lines of every verb that writes a file, which is `/dev/full` here.
fn writing(folder: &Path) -> Vec<Line> {
    let vector = root().join("heuristics/conformance/case-12.trace.gz");
    let recording = root().join("cli/tests/drmemtrace/crew.dir");
    let (trace, folder) = (vector.display(), folder.display());
    let mut lines: Vec<Line> = [
        format!("replay --csv /dev/full {trace}"),
        format!("replay --schedule /dev/full {trace}"),
        format!("lockstep report -o /dev/full {trace}"),
        "lockstep diff --region all --csv /dev/full /bin/true /bin/true --".to_owned(),
        "lockstep diff --region all --keep /dev/full /bin/true /bin/true --".to_owned(),
        format!("lockstep export -f folded -o /dev/full {trace}"),
        format!("lockstep export -f speedscope -o /dev/full {trace}"),
        format!("lockstep export -f perfetto -o /dev/full {trace}"),
        format!("trace --stats /dev/full -o {folder}/stats.bin /bin/true"),
        format!("lockstep plot {folder}/rows.csv -o {folder}/full.svg"),
        format!("lockstep plot {folder}/rows.csv -o {folder}/full.png"),
        format!("lockstep convert -o /dev/full {trace}"),
        format!("lockstep convert --from drmemtrace -o /dev/full {}", recording.display()),
        format!("lockstep dump -o /dev/full {trace}"),
        format!("lockstep dump --text -o /dev/full {trace}"),
        "lockstep setup --prefix /dev/full".to_owned(),
    ]
    .iter()
    .map(|words| line(words))
    .collect();
    if cfg!(feature = "transform") {
        // Small enough for a buffer, and larger than any.
        lines.push(line(&format!("lockstep transform --pass none {folder}/program.ll -o /dev/full")));
        lines.push(line(&format!("lockstep transform --pass none {folder}/large.ll -o /dev/full")));
        lines.push(line(&format!("lockstep transform --pass none {folder}/large.ll -o {folder}/full.ll")));
        lines.push(line(&format!(
            "lockstep cc --transform fcs --report /dev/full -- -O2 -c {folder}/program.c -o {folder}/program.o"
        )));
    }
    lines
}

/// A branch with a call of one function on both sides: `--report` has something to say about it.
const TWO_CALLS: &str = "
define i32 @f(i32 %x) {
entry:
  %c = icmp eq i32 %x, 0
  br i1 %c, label %a, label %b
a:
  %p = call i32 @g(i32 1)
  br label %join
b:
  %q = call i32 @g(i32 %x)
  %r = mul i32 %q, 3
  br label %join
join:
  %s = phi i32 [ %p, %a ], [ %r, %b ]
  ret i32 %s
}
declare i32 @g(i32)
";

/// The files that the command lines read.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let vector = root().join("heuristics/conformance/case-12.trace.gz");
    succeed("replay", &["--csv", at("rows.csv").to_str().unwrap(), vector.to_str().unwrap()]);
    std::fs::write(at("program.ll"), TWO_CALLS).unwrap();
    let functions = (0..10_000).map(|n| format!("define i32 @f{n}(i32 %x) {{\n  ret i32 %x\n}}\n"));
    std::fs::write(at("large.ll"), functions.collect::<String>()).unwrap();
    let calls = "int g(int); int h(int); int f(int x) { int s; if (x) s = g(h(x)); else s = g(7) * h(5); return s; }\n";
    std::fs::write(at("program.c"), calls).unwrap();
    for name in ["full.svg", "full.png", "full.ll"] {
        std::os::unix::fs::symlink("/dev/full", at(name)).unwrap();
    }
    folder
}

fn words(line: &Line) -> (&str, Vec<&str>) {
    (&line[0], line[1..].iter().map(String::as_str).collect())
}

fn run_to(line: &Line, stdout: Stdio) -> Output {
    let (program, arguments) = words(line);
    command(program, &arguments).stdout(stdout).output().expect("our program runs")
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader is gone.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn every_verb_says_that_standard_output_is_full() {
    let folder = files();
    for line in printing(folder.path()) {
        let output = run_to(&line, full());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{line:?}: {said}");
        assert!(said.contains("standard output: cannot write: No space left on device"), "{line:?}: {said}");
    }
}

#[test]
fn every_verb_ends_quietly_when_its_reader_is_gone() {
    let folder = files();
    for line in printing(folder.path()) {
        let (program, arguments) = words(&line);
        let remarks = run(program, &arguments);
        assert!(remarks.status.success(), "{line:?}");
        let output = run_to(&line, closed_pipe());
        let said = String::from_utf8_lossy(&output.stderr);
        // As a shell shows it for a program that SIGPIPE ends.
        assert_eq!(output.status.code(), Some(141), "{line:?}: {said}");
        assert_eq!(said, String::from_utf8_lossy(&remarks.stderr), "{line:?}");
    }
}

#[test]
fn every_verb_says_that_a_file_cannot_be_written() {
    let folder = files();
    for line in writing(folder.path()) {
        let output = run_to(&line, Stdio::null());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{line:?}: {said}");
        assert!(said.contains("full"), "{line:?}: {said}");
    }
}

#[test]
fn remarks_that_cannot_be_written_change_nothing() {
    let folder = files();
    for line in printing(folder.path()) {
        let (program, arguments) = words(&line);
        let whole = run(program, &arguments);
        for stderr in [full(), closed_pipe()] {
            let output = command(program, &arguments).stderr(stderr).output().expect("our program runs");
            assert_eq!(output.status.code(), Some(0), "{line:?}");
            assert_eq!(output.stdout.len(), whole.stdout.len(), "{line:?}");
        }
    }
    let wrong = command("replay", &["--no-such-option"]).stderr(full()).output().expect("our program runs");
    assert_eq!(wrong.status.code(), Some(2));
    let missing = command("replay", &["no-such-file"]).stderr(full()).output().expect("our program runs");
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn each_verb_is_among_them() {
    let help = succeed("lockstep", &["help", "all"]);
    let verbs = help.split_once("Commands:").expect("a list of verbs").1.split_once("Options:").expect("options").0;
    let verbs = verbs.lines().filter(|line| line.starts_with("  ") && !line.starts_with("    "));
    let verbs: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).filter(|v| *v != "help").collect();
    assert!(verbs.len() >= 10, "{help}");
    let lines = printing(Path::new("folder"));
    for verb in verbs {
        assert!(lines.iter().any(|line| line[0] == "lockstep" && line[1] == verb), "{verb} is not tested");
    }
}
