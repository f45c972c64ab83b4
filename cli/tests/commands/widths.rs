//! Tables and notes fit 80 columns, and `--wide` has all of them.

use std::process::Output;

use crate::support::{build_long_names, command, succeed};

const COLUMNS: usize = 80;

/// A folder with the program with long names and its trace.
fn traced(language: &str) -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (program, trace) = (at("a_program_whose_name_is_not_short"), at("trace.bin"));
    build_long_names(language, &program);
    succeed("trace", &["--memory", "-o", &trace, &program]);
    (folder, program, trace)
}

/// A verb with as many columns as a narrow terminal has.
fn narrow(arguments: &[&str]) -> Output {
    command("lockstep", arguments).env("COLUMNS", COLUMNS.to_string()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Fails where a line of either stream is too wide, or nothing is printed.
fn assert_fits(arguments: &[&str]) -> String {
    let output = narrow(arguments);
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert!(!printed.is_empty() || arguments[0] == "trace", "{arguments:?}: {said}");
    for line in printed.lines().chain(said.lines()) {
        assert!(line.chars().count() <= COLUMNS, "{arguments:?}: {line}");
    }
    printed
}

/// What every verb that prints tables is asked for of a trace of this source.
fn assert_all_fit(language: &str) {
    let (folder, program, trace) = traced(language);
    let rows = folder.path().join("rows.csv");
    let (trace, rows) = (trace.as_str(), rows.to_str().unwrap());
    let source = format!("long_names.{language}");
    let mut replays = vec![vec![], vec!["-H", "all", "--memory", "--spaces", "--csv", rows], vec!["--loops"]];
    replays.extend(["branch", "line", "function", "cause", "path", "lock", "region"].map(|by| vec!["--by", by]));
    replays.extend(["line", "function"].map(|by| vec!["--memory-by", by]));
    replays.push(vec!["--annotate", &source, "--syntax", "intel"]);
    for replay in replays {
        assert_fits(&[&["replay", trace], &replay[..]].concat());
    }
    assert_fits(&["check", "--min-efficiency", "0.99", trace]);
    assert_fits(&["suggest", trace]);
    assert_fits(&["diff", "-H", "minpc", trace, &other(&folder, &program)]);
    assert_fits(&["diff", rows, rows]);
    assert_fits(&["diff", "-H", "minpc,barrier:placement=structured", &program, &program]);
    let kept = folder.path().join("again.bin");
    assert_fits(&["trace", "-v", "-o", kept.to_str().unwrap(), &program]);
}

/// A trace of another input.
fn other(folder: &tempfile::TempDir, program: &str) -> String {
    let trace = folder.path().join("other.bin").to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program, "20"]);
    trace
}

#[test]
fn what_is_printed_of_long_names_in_cpp_fits_80_columns() {
    assert_all_fit("cpp");
}

#[test]
fn what_is_printed_of_long_names_in_rust_fits_80_columns() {
    assert_all_fit("rs");
}

#[test]
fn help_and_the_list_of_heuristics_fit_80_columns() {
    assert_fits(&["heuristics"]);
    assert_fits(&["--help"]);
    assert_fits(&["help", "all"]);
    let verbs = "trace replay suggest diff check report compare export plot dump convert heuristics setup";
    for verb in verbs.split(' ') {
        assert_fits(&[verb, "--help"]);
        assert_fits(&[verb, "-h"]);
    }
}

#[test]
fn names_are_whole_where_the_width_has_no_limit() {
    let (_folder, _, trace) = traced("cpp");
    let asked = ["replay", "--by", "function", &trace];
    let name = "AdaptiveQuadratureEvaluator<unsigned int, long, std::allocator<std::pair<";
    let cut = text(&narrow(&asked).stdout);
    assert!(cut.contains('…') && !cut.contains(name), "{cut}");
    let plain = succeed("lockstep", &asked);
    assert!(plain.contains(name) && !plain.contains('…'), "{plain}");
    assert_eq!(text(&narrow(&[&asked[..], &["--wide"]].concat()).stdout), plain);
}

#[test]
fn numbers_and_json_are_never_cut() {
    let (_folder, _, trace) = traced("rs");
    let asked = ["replay", "--by", "line", &trace];
    let numbers = |printed: &str| {
        let is_number = |word: &&str| word.ends_with('%') || word.contains(',') && word.starts_with(char::is_numeric);
        let mut all: Vec<String> = printed.split_whitespace().filter(is_number).map(str::to_owned).collect();
        all.sort_unstable();
        all
    };
    let (cut, plain) = (text(&narrow(&asked).stdout), succeed("lockstep", &asked));
    assert_ne!(cut, plain);
    assert_eq!(numbers(&cut), numbers(&plain), "{cut}");
    let json = [&asked[..], &["--json"]].concat();
    assert_eq!(text(&narrow(&json).stdout), succeed("lockstep", &json));
}
