//! Options of `replay` that decide what it does: any two either work together or are refused by the parser, which names
//! both. And the option that every verb shares.

use std::path::Path;

use crate::support::{build, is_whole, root, run, succeed};

/// An option, as messages name it, and how it is typed. `@` stands for the folder, `%` for the source.
type Typed = (&'static str, &'static [&'static str]);

/// Options that decide what is done.
const MODES: &[Typed] = &[
    ("[TRACE]", &["@/again.bin"]),
    ("--loops", &["--loops"]),
    ("--dependences", &["--dependences"]),
    ("--verdict", &["--verdict"]),
    ("--reorder", &["--reorder", "uneven_trips.c:12"]),
    ("--warp-size", &["-W", "4,8"]),
    ("--group", &["--group", "consecutive,round-robin"]),
];

/// Options that only some of these have a use for.
const OTHERS: &[Typed] = &[
    ("--heuristic", &["-H", "ipdom"]),
    ("--machine", &["--machine", "amd"]),
    ("--predict", &["--predict", "uneven_trips.c:15"]),
    ("--lanes", &["--lanes", "threads"]),
    ("--loop", &["--loop", "uneven_trips.c:12"]),
    ("--locks", &["--locks", "all"]),
    ("--locks", &["--locks", "drop"]),
    ("--warp-size", &["-W", "8"]),
    ("--group", &["--group", "similarity"]),
    ("--by", &["--by", "line"]),
    ("--by", &["--by", "lock"]),
    ("--by", &["--by", "region"]),
    ("--memory-by", &["--memory-by", "line"]),
    ("--annotate", &["--annotate", "%"]),
    ("--json", &["--json"]),
    ("--csv", &["--csv", "@/rows.csv"]),
    ("--schedule", &["--schedule", "@/schedule"]),
    ("--lanes-out", &["--lanes-out", "@/lanes.csv"]),
    ("--memory", &["--memory"]),
    ("--buffer", &["--buffer", "out"]),
    ("--check", &["--check"]),
];

fn typed(words: &[&str], folder: &Path, source: &str) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    words.iter().map(|word| word.replace('@', folder).replace('%', source)).collect()
}

#[test]
fn two_options_work_together_or_are_refused_with_both_their_names() {
    let folder = tempfile::tempdir().unwrap();
    // The same program with fewer iterations.
    let source = folder.path().join("uneven_trips.c");
    let text = std::fs::read_to_string(root().join("cli/tests/programs/uneven_trips.c")).unwrap();
    std::fs::write(&source, text.replace("200 + (int)(id % 8) * 150", "4 + (int)(id % 8)")).unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    build(&source, &program, &[]);
    succeed("trace", &["--memory", "-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
    std::fs::copy(&trace, folder.path().join("again.bin")).unwrap();
    let (mut work, mut refused) = (0, 0);
    let options = [MODES, OTHERS].concat();
    let first = if is_whole() { options.len() } else { MODES.len() };
    for (i, (one, words)) in options[..first].iter().enumerate() {
        for (other, more) in options[i + 1..].iter().filter(|(other, _)| other != one) {
            let mut words = typed(&[*words, *more].concat(), folder.path(), source.to_str().unwrap());
            // Threads have no dependences that are looked at.
            if words.iter().any(|word| word == "--dependences")
                && !["--lanes", "--loop"].iter().any(|o| [one, other].contains(&o))
            {
                words.extend(["--loop", "uneven_trips.c:12"].map(str::to_owned));
            }
            let arguments: Vec<&str> =
                std::iter::once(trace.to_str().unwrap()).chain(words.iter().map(String::as_str)).collect();
            let output = run("replay", &arguments);
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => work += 1,
                Some(2) => {
                    assert!(said.contains(one) && said.contains(other), "{one} {other}: {said}");
                    refused += 1;
                }
                status => panic!("{words:?}: {status:?} {said}"),
            }
        }
    }
    assert!(work > 60 && refused > 90, "{work} {refused}");
}

#[test]
fn the_model_has_one_name_and_one_alias_in_every_verb_that_takes_one() {
    let with_llvm: &[&str] = if cfg!(feature = "transform") { &["verify"] } else { &[] };
    for verb in ["replay", "suggest", "compare", "diff", "check", "report", "export"].iter().chain(with_llvm) {
        let help = succeed("lockstep", &[verb, "--help"]);
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, option) = help.split_once("-H, --heuristic <").unwrap_or_else(|| panic!("{verb}: {help}"));
        assert!(option.contains("[alias: --model]"), "{verb}: {option}");
    }
}

#[test]
fn the_short_help_of_each_verb_fits_a_screen() {
    let all = succeed("lockstep", &["help", "all"]);
    let of_verbs = all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> =
        of_verbs.filter_map(|line| line.strip_prefix("  ")?.split_once(' ')).map(|(v, _)| v).collect();
    let with_llvm = ["cc", "c++", "transform", "analyze", "verify"];
    let (mut looked_at, mut has_long) = (0, 0);
    for verb in verbs.into_iter().filter(|verb| !verb.is_empty() && *verb != "help") {
        if cfg!(feature = "transform") || !with_llvm.contains(&verb) {
            let [short, long] = ["-h", "--help"].map(|option| succeed("lockstep", &[verb, option]).lines().count());
            assert!(short <= 50, "{verb} -h has {short} lines");
            looked_at += 1;
            has_long += usize::from(long > short);
        }
    }
    assert!(looked_at >= 12 && has_long >= 6, "{looked_at} {has_long}: {all}");
    let few = succeed("lockstep", &["-h"]);
    for verb in ["trace", "replay", "report", "diff", "check", "suggest"] {
        assert!(few.contains(&format!("\n  {verb} ")), "{verb}: {few}");
    }
    assert!(!few.contains("\n  convert ") && all.contains("\n  convert "), "{few}{all}");
}

#[test]
fn an_old_verb_works_and_says_the_new_one() {
    let old = run("lockstep", &["compare", "--region", "all", "/bin/true", "/bin/true"]);
    let new = run("lockstep", &["diff", "--region", "all", "/bin/true", "/bin/true"]);
    assert_eq!((old.status.code(), &old.stdout), (new.status.code(), &new.stdout));
    assert!(String::from_utf8_lossy(&old.stderr).contains("lockstep diff"), "{old:?}");
}

#[test]
fn diff_takes_programs_traces_or_rows_and_no_two_of_these() {
    let source = root().join("cli/tests/programs/uneven_trips.c");
    let mixed = run("lockstep", &["diff", "/bin/true", source.to_str().unwrap()]);
    assert_eq!(mixed.status.code(), Some(4), "{mixed:?}");
    assert!(String::from_utf8_lossy(&mixed.stderr).contains("two programs, two traces"), "{mixed:?}");
}

#[test]
fn check_without_a_minimum_tests_the_trace_and_its_replay() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("t.bin"));
    build(&root().join("cli/tests/programs/uneven_trips.c"), &program, &[]);
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, "--", program.to_str().unwrap()]);
    let said = succeed("lockstep", &["check", "-H", "minsp-pc", trace]);
    assert!(said.contains("decoded twice: 0 differences"), "{said}");
    let fetches = succeed("replay", &["-H", "minsp-pc", "--csv", "-", trace]);
    let fetches: Vec<&str> =
        fetches.lines().map(|line| line.split(',').nth(column(&fetches, "fetches")).unwrap()).collect();
    let checked: String = said.split("each of ").nth(1).unwrap().chars().take_while(|c| *c != ' ').collect();
    assert_eq!(checked.replace(',', ""), fetches[1], "{said}");
}

fn column(rows: &str, name: &str) -> usize {
    rows.lines().next().unwrap().split(',').position(|column| column == name).unwrap()
}
