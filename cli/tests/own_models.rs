//! Programs that are lockstep with a model or a measure of their own.

#[path = "commands/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{NO_CACHE, build, command, is_whole, root, succeed};

/// The program of that example.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(program.exists(), "first run `cargo build -p cli --no-default-features --examples`");
    program
}

/// What a program prints, which must succeed.
fn printed(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("XDG_CACHE_HOME", NO_CACHE).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A trace in this folder.
fn traced(folder: &Path) -> String {
    let (program, trace) = (folder.join("program"), folder.join("trace.bin").to_str().unwrap().to_owned());
    build(&root().join("workloads/micro/join_before_arm.c"), &program, &[]);
    succeed("trace", &["-o", &trace, program.to_str().unwrap(), "-p", "8"]);
    trace
}

fn rows(program: &Path, arguments: &[&str]) -> Vec<Value> {
    let json: Value = serde_json::from_str(&printed(program, &[&["replay", "--json"], arguments].concat())).unwrap();
    json["results"].as_array().unwrap().clone()
}

/// Checks a program whose model has this name: the largest pc first, where lanes of the trace meet late.
fn knows_its_model(program: &Path, name: &str, trace: &str, folder: &Path) {
    let models = format!("{name},minpc");
    let fetches: BTreeMap<String, u64> = rows(program, &["--heuristic", &models, trace])
        .iter()
        .map(|row| (row["heuristic"].as_str().unwrap().to_owned(), row["fetches"].as_u64().unwrap()))
        .collect();
    assert_ne!(fetches[name], fetches["minpc"], "{fetches:?}");
    assert!(rows(program, &["--heuristic", "all", trace]).iter().any(|row| row["heuristic"] == name));
    // The checker judges the schedule instruction by instruction.
    printed(program, &["replay", "--check", "--heuristic", name, trace]);

    assert!(printed(program, &["heuristics"]).contains(&format!("{name:<16} The largest pc runs. (an example)")));
    let listed: Value = serde_json::from_str(&printed(program, &["heuristics", "--json"])).unwrap();
    assert_eq!(listed["heuristics"].as_array().unwrap().last().unwrap()["name"], name);
    let page = folder.join("report.html");
    printed(program, &["report", "--heuristic", name, "-o", page.to_str().unwrap(), trace]);
    assert!(std::fs::read_to_string(page).unwrap().contains(&format!("\"heuristic\":\"{name}\"")));
    let lost: u64 = printed(program, &["export", "--format", "folded", "--heuristic", name, trace])
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    let row = &rows(program, &["--heuristic", name, trace])[0];
    assert_eq!(row["lost_slots"], lost);
    let wrong = Command::new(program).args(["replay", "--heuristic", &name[1..], trace]).output().unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains(&format!("did you mean {name}?")), "{said}");
}

#[test]
fn all_verbs_of_a_program_know_the_model_that_it_brings() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    knows_its_model(&example("own_model"), "own-model", &trace, folder.path());
    assert!(!succeed("lockstep", &["heuristics"]).contains("own-model"));
}

#[test]
fn a_measure_of_a_program_s_own_counts_what_the_schedule_shows() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    let program = example("own_measure");
    let [schedule, csv] =
        ["schedule.txt", "rows.csv"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let arguments = ["--heuristic", "minpc", "--changes", "--schedule", &schedule, "--csv", &csv, &trace];
    let row = &rows(&program, &arguments)[0];
    // Behind the model's name a line is a pc and the mask of the active lanes.
    let lines = std::fs::read_to_string(schedule).unwrap();
    let masks: Vec<&str> = lines.lines().skip(1).map(|line| line.split(' ').next_back().unwrap()).collect();
    let changes = 1 + masks.windows(2).filter(|two| two[0] != two[1]).count();
    assert!(changes > 2);
    assert_eq!(row["changes"], changes);
    let rows = std::fs::read_to_string(csv).unwrap();
    let mut lines = rows.lines().map(|line| line.rsplit(',').next().unwrap().to_owned());
    assert_eq!([lines.next(), lines.next()], [Some("changes".to_owned()), Some(changes.to_string())]);
    assert!(printed(&program, &["replay", "--help"]).contains("Count how often the active lanes change"));
    // It is the one of the page.
    let source = std::fs::read_to_string(root().join("cli/examples/own_measure.rs")).unwrap();
    let (_, source) = source.split_once("extern crate cli as lockstep;\n\n").unwrap();
    let page = std::fs::read_to_string(root().join("docs/own-models.md")).unwrap();
    assert!(page.contains(&format!("```rust\n{source}```")), "docs/own-models.md has the measure as it is tested");
}

/// The folder that `new-model` writes into this one.
fn new_model(folder: &Path, arguments: &[&str]) -> Result<PathBuf, String> {
    let output = command("lockstep", &[&["new-model"], arguments].concat()).current_dir(folder).output().unwrap();
    match output.status.success() {
        true => Ok(folder.join(arguments[0])),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn a_new_crate_has_its_name_everywhere_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let crate_folder = new_model(folder.path(), &["largest-pc-2"]).unwrap();
    let [manifest, program] =
        ["Cargo.toml", "src/main.rs"].map(|file| std::fs::read_to_string(crate_folder.join(file)).unwrap());
    let source = root().canonicalize().unwrap().join("cli");
    assert!(
        manifest.contains("name = \"largest-pc-2\"") && manifest.contains(&format!("path = {source:?}")),
        "{manifest}"
    );
    assert!(program.contains("name: \"largest-pc-2\"") && program.contains("struct LargestPc2;"), "{program}");
    assert!(program.lines().count() <= 32);
    assert!(![manifest, program].concat().to_lowercase().replace('-', "").contains("ownmodel"));
    let refused = |arguments: &[&str], why: &str| {
        let said = new_model(folder.path(), arguments).unwrap_err();
        assert!(said.contains(why), "{arguments:?}: {said}");
    };
    refused(&["largest-pc-2"], "largest-pc-2: cannot write");
    refused(&["minpc"], "there is a model of this name");
    for name in ["Largest", "2nd", "a_b", "a--b", "a-", ""] {
        refused(&[name], "give small letters, digits and hyphens");
    }
    refused(&["other", "--source", "/nowhere"], "name their folder with --source");
}

#[test]
fn a_new_crate_builds_and_its_program_knows_its_model() {
    // It builds all that lockstep consists of once more, which takes minutes.
    if !is_whole() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    // The page's first commands: what makes the crate, and at last what replays with it.
    let page = std::fs::read_to_string(root().join("docs/own-models.md")).unwrap();
    let (_, block) = page.split_once("```sh\n").unwrap();
    let mut commands =
        block.lines().map(|line| line.split(" #").next().unwrap().split_whitespace().collect::<Vec<_>>());
    let make = commands.next().unwrap();
    assert_eq!(make[..2], ["lockstep", "new-model"]);
    let crate_folder = new_model(folder.path(), &make[2..]).unwrap();
    // The versions that are here already.
    std::fs::copy(root().join("Cargo.lock"), crate_folder.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-models");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--config", "profile.dev.debug=false", "--target-dir"]).arg(&target);
    let output = cargo.current_dir(&crate_folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let program = target.join("debug/largest-pc");
    let replay = commands.nth(2).unwrap();
    assert_eq!(replay[0], "target/release/largest-pc");
    let output = Command::new(&program).args(&replay[1..]).current_dir(&crate_folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    knows_its_model(&program, "largest-pc", &trace, folder.path());
}
