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
    assert!(output.status.success() && error.contains("no thread's number was found"), "{error}");
}
