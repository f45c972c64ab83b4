//! `lockstep convert`: a trace in another version of the format says the same.

use std::path::{Path, PathBuf};

use crate::support::{root, run, succeed};

#[test]
fn a_trace_of_another_version_is_replayed_alike() {
    let stored = root().join("replay/benches/fft-p16-m12.trace.bin");
    let folder = tempfile::tempdir().unwrap();
    let expected = succeed("replay", &["--csv", "-", stored.to_str().unwrap()]);
    for version in ["3", "4"] {
        let converted = folder.path().join("fft-p16-m12.trace.bin");
        let converted = converted.to_str().unwrap();
        succeed("lockstep", &["convert", "--to", version, "-o", converted, stored.to_str().unwrap()]);
        let header = std::fs::read(converted).unwrap();
        assert_eq!(header[8..12], version.parse::<u32>().unwrap().to_le_bytes());
        assert_eq!(succeed("replay", &["--csv", "-", converted]), expected, "{version}");
    }
    let refused = run("lockstep", &["convert", "--to", "2", "-o", "-", stored.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give a number from 3 to 4"));
}

/// A recording by DynamoRIO's drmemtrace of the program beside it, `cli/tests/drmemtrace/crew.c`, made as
/// docs/imports.md says. Its list of modules names the program where that lies now.
fn recording(folder: &Path) -> PathBuf {
    let own = root().join("cli/tests/drmemtrace");
    let to = folder.join("drmemtrace.crew.20054.dir");
    for part in ["raw", "trace"] {
        std::fs::create_dir_all(to.join(part)).unwrap();
        for file in std::fs::read_dir(own.join("crew.dir").join(part)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(part).join(file.file_name())).unwrap();
        }
    }
    let modules = to.join("raw/modules.log");
    let list = std::fs::read_to_string(&modules).unwrap();
    std::fs::write(&modules, list.replace("PROGRAM", own.join("crew").to_str().unwrap())).unwrap();
    to
}

fn converted(folder: &Path, from: &Path) -> String {
    let trace = folder.join("drmemtrace.bin").to_str().unwrap().to_owned();
    succeed("lockstep", &["convert", "--from", "drmemtrace", from.to_str().unwrap(), "-o", &trace]);
    trace
}

#[test]
fn a_recording_of_drmemtrace_has_the_instructions_that_its_own_tool_counts() {
    let folder = tempfile::tempdir().unwrap();
    let trace = converted(folder.path(), &recording(folder.path()));
    let dumped = succeed("lockstep", &["dump", &trace]);
    // What its basic_counts says of the threads 20054 to 20057.
    for (thread, count) in [(0, 588), (1, 349), (2, 446), (3, 540)] {
        assert!(dumped.contains(&format!("thread {thread} {count} thread instructions")), "{dumped}");
    }
    assert!(dumped.contains("engine drmemtrace") && dumped.contains("addresses    recorded"), "{dumped}");
}

#[test]
fn a_recording_of_drmemtrace_is_replayed_as_a_trace_of_the_program_is() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = converted(folder.path(), &recording(folder.path()));
    let ours = folder.path().join("ours.bin").to_str().unwrap().to_owned();
    let program = root().join("cli/tests/drmemtrace/crew");
    succeed("trace", &["--memory", "-o", &ours, program.to_str().unwrap()]);
    let rows = |trace: &str| {
        let table = succeed("replay", &["--heuristic", "all", "--csv", "-", trace]);
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        let columns = reader.headers().unwrap().clone();
        let named = |row: csv::StringRecord| {
            let cells = columns.iter().zip(&row).filter(|(name, _)| !["trace", "command"].contains(name));
            cells.map(|(name, cell)| format!("{name}: {cell}")).collect::<Vec<_>>()
        };
        reader.records().map(|row| named(row.unwrap())).collect::<Vec<_>>()
    };
    let expected = rows(&ours);
    assert!(expected.len() > 20, "{} models", expected.len());
    assert_eq!(rows(&theirs), expected);
    let verdict = succeed("replay", &["--check", &theirs]);
    assert!(verdict.contains("crew.c:") && verdict.contains("in work"), "{verdict}");
}

#[test]
fn locks_and_barriers_of_a_recording_of_drmemtrace_are_known_without_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let from = recording(folder.path());
    let with_program = converted(folder.path(), &from);
    let waits = |trace: &str| succeed("lockstep", &["dump", "--events=BarrierWait,MutexLock,ThreadBody", trace]);
    let without_names = |events: String| events.replace(" (work)", "");
    let expected = waits(&with_program);
    assert_eq!(expected.matches("Enter function=BarrierWait").count(), 12, "{expected}");
    assert_eq!(expected.matches("Leave function=MutexLock result=0x0").count(), 12, "{expected}");
    assert_eq!(expected.matches("Enter function=ThreadBody").count(), 4, "{expected}");
    std::fs::remove_file(from.join("raw/modules.log")).unwrap();
    let trace = folder.path().join("without.bin").to_str().unwrap().to_owned();
    let output = run("lockstep", &["convert", "--from", "drmemtrace", from.to_str().unwrap(), "-o", &trace]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("modules.log is not there"));
    assert_eq!(without_names(waits(&trace)), without_names(expected));
}

#[test]
fn a_program_that_is_another_one_by_now_names_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let from = recording(folder.path());
    let program = folder.path().join("crew");
    let mut bytes = std::fs::read(root().join("cli/tests/drmemtrace/crew")).unwrap();
    bytes[0x1000..0x1400].fill(0x90);
    std::fs::write(&program, bytes).unwrap();
    let modules = from.join("raw/modules.log");
    let own = root().join("cli/tests/drmemtrace/crew");
    let list = std::fs::read_to_string(&modules).unwrap().replace(own.to_str().unwrap(), program.to_str().unwrap());
    std::fs::write(&modules, list).unwrap();
    let trace = folder.path().join("other.bin");
    let arguments = ["convert", "--from", "drmemtrace", from.to_str().unwrap(), "-o", trace.to_str().unwrap()];
    let output = run("lockstep", &arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("no longer those that ran"), "{said}");
    assert!(!succeed("lockstep", &["dump", "--code", trace.to_str().unwrap()]).contains("work"));
}

#[test]
fn a_recording_that_was_not_post_processed_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let from = recording(folder.path());
    std::fs::remove_dir_all(from.join("trace")).unwrap();
    std::fs::write(from.join("raw/drmemtrace.crew.1.2.raw.lz4"), "").unwrap();
    for place in [from.clone(), from.join("raw")] {
        let trace = folder.path().join("none.bin");
        let arguments = ["convert", "--from", "drmemtrace", place.to_str().unwrap(), "-o", trace.to_str().unwrap()];
        let refused = run("lockstep", &arguments);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let way_out = format!("drrun -t drmemtrace -indir {} -tool", from.display());
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(refused.status.code() == Some(3) && said.contains(&way_out), "{said}");
        assert!(!trace.exists());
    }
}

#[test]
fn what_a_tool_should_record_is_printed() {
    let functions = succeed("lockstep", &["convert", "--from", "drmemtrace", "--functions"]);
    assert!(functions.trim_end().split('&').all(|one| one.split_once('|').is_some()), "{functions}");
    assert!(functions.contains("pthread_mutex_lock|1&"), "{functions}");
}
