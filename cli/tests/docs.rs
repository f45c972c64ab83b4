//! The docs are current: what can be made from a registry is made from it (`BLESS=1` writes it again), and what the
//! prose names exists.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use heuristics::REGISTRY;
use replay::registry::{columns, measures};

const BEGIN: &str = "<!-- made from the registry: BLESS=1 cargo test -p cli --no-default-features --test docs -->\n";
const END: &str = "<!-- end -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Asserts that the part of the page between the marks is `made`, or makes it so when blessed.
fn check_page(page: &str, made: &str) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{page} has no opening mark"));
    let (old, tail) = rest.split_once(END).unwrap_or_else(|| panic!("{page} has no closing mark"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{made}{END}{tail}")).unwrap();
    } else {
        assert!(old == made, "{page} is not current: run BLESS=1 cargo test -p cli --no-default-features --test docs");
    }
}

/// The text at the head of a source file.
fn head_of(file: &str) -> String {
    let source = std::fs::read_to_string(root().join(file)).unwrap();
    let lines = source.lines().take_while(|l| l.starts_with("//!"));
    lines.map(|l| l.trim_start_matches("//!").trim_start()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_of_heuristics_is_made_from_the_registry() {
    let mut made = String::from("\n| heuristic | rule | source |\n|---|---|---|\n");
    for entry in REGISTRY {
        writeln!(made, "| [`{0}`](#{0}) | {1} | {2} |", entry.name, entry.rule, entry.source).unwrap();
    }
    for entry in REGISTRY {
        writeln!(made, "\n## {}\n", entry.name).unwrap();
        let head = head_of(entry.file);
        assert!(head.starts_with(&format!("`{}`: ", entry.name)), "the head of {} names its model", entry.file);
        for part in ["Rule: ", "econverge", "Worked example"] {
            assert!(head.contains(part), "the head of {} has no {part:?}", entry.file);
        }
        made.push_str(&head);
        made.push('\n');
        for p in entry.parameters {
            writeln!(made, "\nParameter `{}` ({}): {}. Default: {}.", p.name, p.values, p.help, p.default_text())
                .unwrap();
        }
    }
    made.push('\n');
    check_page("docs/heuristics.md", &made);
}

/// Of a crate's manifest: what it is, and which crates of this workspace it knows.
fn of_manifest(name: &str, members: &[String]) -> (String, Vec<String>) {
    let text = std::fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
    let description =
        text.lines().find_map(|line| line.strip_prefix("description = \"")).unwrap().trim_end_matches('"');
    let dependencies = text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = dependencies.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split(['.', ' ']).next());
    (description.to_owned(), names.filter(|name| members.iter().any(|m| m == name)).map(str::to_owned).collect())
}

#[test]
fn the_table_of_crates_is_made_from_their_manifests() {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = workspace.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    let mut left: Vec<String> =
        members.trim_end_matches(']').split(", ").map(|name| name.trim_matches('"').to_owned()).collect();
    let all = left.clone();
    let mut made = String::from("\n| crate | what it is | knows |\n|---|---|---|\n");
    while !left.is_empty() {
        let is_next = |name: &String| of_manifest(name, &left).1.is_empty();
        let next = left.iter().position(is_next).expect("no two crates know each other");
        let name = left.remove(next);
        let (description, knows) = of_manifest(&name, &all);
        writeln!(made, "| `{name}` | {description} | {} |", knows.join(", ")).unwrap();
    }
    made.push('\n');
    check_page("docs/ARCHITECTURE.md", &made);
}

#[test]
fn the_page_of_metrics_is_made_from_the_columns() {
    let mut made = String::from("\n| column | what it is |\n|---|---|\n");
    for column in columns() {
        writeln!(made, "| `{}` | {} |", column.name, column.definition).unwrap();
    }
    made += "\nMeasures, which are asked for; the head of each file has the formula and a worked number:\n\n| measure | asked for by | explained in |\n|---|---|---|\n";
    for measure in measures() {
        let asked = measure.switch.map_or("other options".to_owned(), |s| format!("`--{}`", s.name));
        writeln!(made, "| {} | {asked} | [{1}](../{1}) |", measure.name, measure.file).unwrap();
        let head = head_of(measure.file).to_lowercase();
        assert!(head.contains("worked number") || measure.columns.is_empty(), "{} has a worked number", measure.file);
    }
    made.push('\n');
    check_page("docs/metrics.md", &made);
}

#[test]
fn every_document_is_listed() {
    let list = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    let folder = std::fs::read_dir(root().join("docs")).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = folder.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != "README.md" && Path::new(name).extension().is_some_and(|ending| ending == "md"));
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let said = list.lines().find_map(|line| line.strip_prefix(&format!("| [{name}]({name}) | ")));
        assert!(said.is_some_and(|said| said.len() > 10), "docs/README.md has no line of {name}");
    }
}

#[test]
fn the_readme_is_short() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (lines, words) = (readme.lines().count(), readme.split_whitespace().count());
    assert!(lines < 120 && words < 1100, "README.md has {lines} lines and {words} words: details belong in docs/");
}

/// Whether a source file defines a function of that name.
fn defines(source: &str, function: &str) -> bool {
    let word = |rest: &str| rest.starts_with(function) && rest[function.len()..].starts_with(['(', '<']);
    ["fn ", "function "].iter().any(|keyword| source.split(keyword).skip(1).any(word))
}

#[test]
fn each_step_of_a_lock_through_the_code_is_where_the_architecture_says() {
    assert!(defines("pub fn go<T>(", "go") && !defines("fn going()", "go"));
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let (_, behind) = text.split_once("## A lock, from the program to the table\n").expect("the worked example");
    let (example, _) = behind.split_once("\n## ").expect("a section behind it");
    let steps: Vec<Vec<&str>> =
        example.lines().filter(|line| line.contains("` | `")).map(|line| line.split('`').collect()).collect();
    assert!(steps.len() > 12, "{} steps", steps.len());
    for step in steps {
        // A step may name other things before its file and its function, which come last.
        let [.., file, _, function, _] = step[..] else { panic!("{step:?} names a file and a function") };
        let source = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(defines(&source, function), "{file} has no function {function}");
    }
}

/// The blocks of code of a text, each with its language.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let inside = text.split("```").skip(1).step_by(2);
    inside.map(|block| block.split_once('\n').expect("a language and a line")).collect()
}

/// The text with single spaces, however its lines are broken and indented.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A shell that finds our programs.
fn shell(folder: &Path, commands: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_lockstep")).parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", commands]).current_dir(folder).env("PATH", &path).env("HOME", folder);
    shell.env("XDG_CACHE_HOME", "/proc/no-cache");
    shell
}

#[test]
fn each_command_of_the_page_of_exports_runs() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, program) = blocks(&readme).into_iter().find(|(language, _)| *language == "c").expect("the first program");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("triangle.c"), program).unwrap();
    let page = std::fs::read_to_string(root().join("docs/exports.md")).unwrap();
    let build = "gcc -O1 -g -pthread triangle.c -o triangle && trace --memory ./triangle";
    let commands =
        blocks(&page).into_iter().filter(|(language, _)| *language == "sh").flat_map(|(_, block)| block.lines());
    let mut ran = 0;
    for command in [build].into_iter().chain(commands) {
        // Of the tools of others only those are run that are here.
        let tool = command.split(' ').next().unwrap();
        if !["gcc", "lockstep"].contains(&tool)
            && !shell(folder.path(), &format!("type {tool}")).output().unwrap().status.success()
        {
            continue;
        }
        let output = shell(folder.path(), command).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        ran += 1;
    }
    assert!(ran > 5, "{ran} commands");
}

#[test]
fn each_command_of_the_page_of_imports_runs() {
    let own = root().join("cli/tests/drmemtrace");
    let folder = tempfile::tempdir().unwrap();
    let copy = format!("cp -r {0}/crew {0}/crew.dir . && mv crew.dir drmemtrace.crew.1.dir", own.display());
    let place = "sed -i \"s|PROGRAM|$PWD/crew|\" drmemtrace.crew.1.dir/raw/modules.log";
    let page = std::fs::read_to_string(root().join("docs/imports.md")).unwrap();
    let commands =
        blocks(&page).into_iter().filter(|(language, _)| *language == "sh").flat_map(|(_, block)| block.lines());
    let mut printed = String::new();
    let mut ran = 0;
    // The recording is here, and so need not be its tool.
    for command in [&copy[..], place].into_iter().chain(commands.filter(|line| !line.starts_with("drrun "))) {
        let output = shell(folder.path(), command).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        printed = String::from_utf8(output.stdout).unwrap();
        ran += 1;
    }
    assert_eq!(ran, 4);
    assert!(printed.contains("crew.c:") && printed.contains("SIMT efficiency on nvidia"), "{printed}");
}

#[test]
fn the_first_trace_of_the_readme_runs_and_says_what_is_promised() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("## A first trace\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("the end of the section");
    let folder = tempfile::tempdir().unwrap();
    let (mut printed, mut promises) = (String::new(), 0);
    for (language, block) in blocks(section) {
        match language {
            "c" => std::fs::write(folder.path().join("triangle.c"), block).unwrap(),
            "sh" => {
                let output = shell(folder.path(), block).output().unwrap();
                assert!(output.status.success(), "{block}{}", String::from_utf8_lossy(&output.stderr));
                printed = on_one_line(&String::from_utf8(output.stdout).unwrap());
            }
            "text" => {
                for line in block.lines() {
                    assert!(printed.contains(&on_one_line(line)), "{line:?} is not in {printed}");
                    promises += 1;
                }
            }
            _ => panic!("the section has a block of {language:?}"),
        }
    }
    assert!(promises >= 4, "the section says what is printed");
    // What its work computes is needed, whichever compiler builds it.
    for build in ["gcc -O3", "clang-19 -O3"] {
        let build = format!("{build} -g -pthread triangle.c -o other && trace -o other.bin ./other");
        let json = format!("{build} >/dev/null && replay --region all --json -H minpc other.bin");
        let output = shell(folder.path(), &json).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let kept = found["results"][0]["thread_instructions"].as_u64();
        assert!(kept > Some(30_000), "{build}: {kept:?}");
    }
}
