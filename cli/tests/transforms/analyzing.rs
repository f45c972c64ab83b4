//! `lockstep analyze` as a user types it.

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = "#include <pthread.h>
float in[64], out[64];
void *work(void *argument) {
    long id = (long)argument;
    float *p = &out[id];
    *p = 2 * in[id]; if (in[0] > 1) *p += 1;
    return 0;
}
int main(void) {
    pthread_t threads[64];
    for (long i = 0; i < 64; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (long i = 0; i < 64; i++) pthread_join(threads[i], 0);
    return 0;
}
";

fn analyze(folder: &Path, arguments: &[&str]) -> Output {
    let lockstep = env!("CARGO_BIN_EXE_lockstep");
    Command::new(lockstep).arg("analyze").args(arguments).current_dir(folder).output().unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("program.c"), PROGRAM).unwrap();
    folder
}

#[test]
fn each_value_branch_and_access_of_the_threads_has_a_row() {
    let folder = folder();
    let output = analyze(folder.path(), &["program.c", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["function"] == "work" && row["run_by_threads"] == true));
    let of = |what: &str| -> Vec<(i64, String, i64, i64)> {
        let these = rows.iter().filter(|row| row["what"] == what);
        these
            .map(|row| {
                let number = |key: &str| row[key].as_i64().unwrap_or(-1);
                (number("line"), row["class"].as_str().unwrap().to_owned(), number("stride"), number("bytes"))
            })
            .collect()
    };
    // Line 6 has two loads: their columns and addresses tell them apart.
    assert_eq!(of("load"), [(6, "affine".to_owned(), 4, 4), (6, "uniform".to_owned(), 0, 4)]);
    assert!(of("store").iter().all(|(_, class, stride, _)| class == "affine" && *stride == 4));
    let loads: Vec<_> = rows.iter().filter(|row| row["what"] == "load").collect();
    assert!(loads[0]["column"] != loads[1]["column"] && loads[0]["name"] != loads[1]["name"]);
}

#[test]
fn the_table_sums_up_and_why_names_rules() {
    let folder = folder();
    let table = analyze(folder.path(), &["program.c", "--loads", "simt"]);
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(text.starts_with("work\n") && text.contains("accesses: "), "{text}");
    let why = analyze(folder.path(), &["program.c", "--function", "work", "--why", "%argument"]);
    assert_eq!(String::from_utf8_lossy(&why.stdout), "%argument = given tid: tid (affine by TIDA)\n");
    let gated = analyze(folder.path(), &["program.c", "--function", "work", "--gated"]);
    assert!(String::from_utf8_lossy(&gated.stdout).contains("[%argument] = tid (TIDA)"));
}

#[test]
fn what_is_not_there_is_said() {
    let folder = folder();
    for (arguments, says) in [
        (vec!["program.c", "--function", "none"], "no function none"),
        (vec!["program.c", "--function", "work", "--why", "%none"], "no value %none"),
        (vec!["program.c", "--tid", "work:7"], "counted from 0"),
        (vec!["program.c", "--tid", "work"], "work:0"),
        (vec!["missing.ll"], "missing.ll"),
    ] {
        let output = analyze(folder.path(), &arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says), "{arguments:?}: {error}");
    }
    std::fs::write(folder.path().join("plain.c"), "int f(int a) { return a + 1; }\n").unwrap();
    let output = analyze(folder.path(), &["plain.c"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && error.contains("no thread number was found"), "{error}");
}

#[test]
fn the_source_is_shown_with_the_classes_of_its_lines() {
    let folder = folder();
    let output = analyze(folder.path(), &["program.c", "--annotate"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = |number: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(number));
        line.unwrap_or_else(|| panic!("{text}")).split_whitespace().map(str::to_owned).collect()
    };
    let sixth = words("6");
    assert!(sixth.contains(&"a4".to_owned()) && sixth.contains(&"u".to_owned()), "{text}");
    assert!(text.lines().any(|line| line.ends_with("if (in[0] > 1) *p += 1;")), "{text}");
    assert!(text.starts_with("program.c") || text.lines().next().unwrap().ends_with("/program.c"), "{text}");
}

#[test]
fn the_page_of_a_trace_says_what_is_proved_of_its_lines() {
    let folder = folder();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let lockstep = env!("CARGO_BIN_EXE_lockstep");
    run("clang-19", &["-g", "-O2", "-pthread", "-o", "a", "program.c"]);
    run(lockstep, &["trace", "--memory", "-o", "a.bin", "--", "./a"]);
    let json = analyze(folder.path(), &["program.c", "--json"]).stdout;
    std::fs::write(folder.path().join("proved.json"), json).unwrap();
    run(lockstep, &["report", "a.bin", "--models", "ipdom", "--proved", "proved.json", "-o", "page.html"]);
    let html = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let page: serde_json::Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let lines = page["programs"][0]["lines"].as_array().unwrap();
    let sixth = lines.iter().find(|line| line["label"] == "program.c:6").unwrap();
    let loads: Vec<(&str, Option<i64>)> = sixth["proved"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["what"] == "load")
        .map(|row| (row["class"].as_str().unwrap(), row["stride"].as_i64()))
        .collect();
    assert_eq!(loads, [("affine", Some(4)), ("uniform", Some(0))]);
    for (file, why) in [("program.c", "lockstep analyze --json"), ("nowhere.json", "No such file")] {
        let words = ["report", "a.bin", "--proved", file, "-o", "other.html"];
        let refused = Command::new(lockstep).args(words).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(3) && said.contains(why) && said.contains(file), "{said}");
    }
}
