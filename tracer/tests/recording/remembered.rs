//! What was translated is remembered from run to run: the next run stops for little, and records what it would have
//! recorded anyhow, whatever the memory holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::steps::steps;
use crate::support::{Recorded, compile, place, record, record_command, recorder};

/// Records the program with this memory, and asserts that it prints and returns what it does without.
fn recorded_with(memory: &Path, more: &str, program: &Path, arguments: &[&str]) -> Recorded {
    let native = Command::new(program).args(arguments).output().unwrap();
    let recorded = record(&format!("{more} remember={}", memory.display()), program, arguments);
    assert_eq!(recorded.stdout(), String::from_utf8_lossy(&native.stdout), "stderr: {}", recorded.stderr());
    assert_eq!(recorded.output.status.code(), native.status.code(), "{}", recorded.outcome);
    recorded.trace();
    recorded
}

/// The only file of a memory.
fn file_in(memory: &Path) -> PathBuf {
    let files: Vec<PathBuf> = fs::read_dir(memory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn the_second_run_stops_little_for_new_code() {
    let (program, memory) = (compile("hello.c", &[]), place("memory"));
    let first = recorded_with(&memory, "aslr", &program, &[]);
    assert_eq!(first.number("recalled"), 0, "{}", first.outcome);
    let second = recorded_with(&memory, "aslr", &program, &[]);
    assert!(second.number("recalled") > 100, "{}", second.outcome);
    assert!(second.number("new_code") * 5 < first.number("new_code"), "{}{}", first.outcome, second.outcome);
}

#[test]
fn what_decides_on_translations_keeps_memories_apart() {
    let (program, memory) = (compile("hello.c", &["-static"]), place("memory"));
    recorded_with(&memory, "", &program, &[]);
    for more in ["memory", "start=main", "markers"] {
        assert_eq!(record(&format!("{more} remember={}", memory.display()), &program, &[]).number("recalled"), 0);
    }
    assert_eq!(fs::read_dir(&memory).unwrap().count(), 4);
    assert!(recorded_with(&memory, "", &program, &[]).number("recalled") > 50);
}

#[test]
fn threads_forks_and_other_programs_recall_what_they_ran() {
    let (memory, more) = (place("memory"), "follow-forks aslr");
    for (source, flags) in [("fork_exec.c", &[][..]), ("exception.cpp", &[]), ("signals_raised.c", &[])] {
        let program = compile(source, flags);
        let first = recorded_with(&memory, more, &program, &[]);
        let second = recorded_with(&memory, more, &program, &[]);
        let (before, after) = (first.number("new_code"), second.number("new_code"));
        assert!(after * 2 < before && second.number("recalled") > 100, "{source}: {before} stops, then {after}");
    }
}

#[test]
fn it_is_remembered_while_translations_are_thrown_away() {
    let (program, memory) = (compile("hello.c", &[]), place("memory"));
    for seed in 1..=3 {
        let recorded = recorded_with(&memory, &format!("routes=soon throw={seed}"), &program, &[]);
        assert!(recorded.number("renewals") > 3, "{}", recorded.outcome);
    }
    // Little room: what is remembered is more than may be translated.
    let crowded = recorded_with(&memory, "cache=65536", &program, &[]);
    assert!(crowded.number("recalled") > 20 && crowded.number("most_code") < 130_000, "{}", crowded.outcome);
    assert!(recorded_with(&memory, "", &program, &[]).number("recalled") > 100);
}

#[test]
fn a_damaged_file_is_no_memory_and_is_replaced() {
    let (program, memory) = (compile("hello.c", &["-static"]), place("memory"));
    recorded_with(&memory, "", &program, &[]);
    let file = file_in(&memory);
    let whole = fs::read(&file).unwrap();
    let middle = whole.len() / 2;
    let mut wrong = whole.clone();
    wrong[middle] ^= 0x10;
    for damaged in [&wrong[..], &whole[..middle], &[], &[0xff; 100_000]] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(recorded_with(&memory, "", &program, &[]).number("recalled"), 0);
        assert!(recorded_with(&memory, "", &program, &[]).number("recalled") > 50, "it was replaced");
    }
}

#[test]
fn another_program_with_the_same_build_id_runs_as_it_is() {
    let memory = place("memory");
    let id = ["-static", "-Wl,--build-id=0x0123456789abcdef"];
    let [one, other] = ["hello.c", "coins.c"].map(|source| compile(source, &id));
    let first = recorded_with(&memory, "routes=soon", &one, &[]);
    let second = recorded_with(&memory, "", &other, &[]);
    assert!(second.number("recalled") < first.number("superblocks") / 2, "{}", second.outcome);
    let alone = record("", &other, &[]).trace();
    let together = second.trace();
    assert_eq!(together.instructions(), alone.instructions());
    assert_eq!(file_in(&memory).parent(), Some(&*memory));
}

#[test]
fn two_tracers_at_once_leave_a_whole_file() {
    let (program, memory) = (compile("hello.c", &["-static"]), place("memory"));
    let options = format!("remember={}", memory.display());
    let started: Vec<_> = (0..8)
        .map(|_| record_command(&options, &place("trace.bin"), &program, &[]).stdout(Stdio::null()).spawn().unwrap())
        .collect();
    let native = Command::new(&program).output().unwrap().status.code();
    for mut child in started {
        assert_eq!(child.wait().unwrap().code(), native);
    }
    file_in(&memory);
    assert!(recorded_with(&memory, "", &program, &[]).number("recalled") > 50);
}

#[test]
fn a_full_disk_leaves_no_part_of_a_file() {
    let namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];
    let mounts = |script: &str| Command::new(namespace[0]).args(&namespace[1..]).args([script]).output().unwrap();
    if !mounts("mount -t tmpfs none /mnt").status.success() {
        eprintln!("no file system can be mounted here: not tested");
        return;
    }
    let (program, trace, disk) = (compile("hello.c", &["-static"]), place("trace.bin"), place("disk"));
    fs::create_dir(&disk).unwrap();
    // Room for the folder, and for nothing in it.
    let script = format!(
        "mount -t tmpfs -o size=4k none {disk} && head -c 4096 /dev/zero > {disk}/full
         RECORD_OPTIONS=remember={disk}/memory {} {} {}; status=$?; ls -A {disk}/memory; exit $status",
        recorder().display(),
        trace.display(),
        program.display(),
        disk = disk.display()
    );
    let output = mounts(&script);
    let native = Command::new(&program).output().unwrap();
    assert_eq!(output.status.code(), native.status.code(), "{output:?}");
    assert_eq!(output.stdout, native.stdout, "the folder is there, and empty");
}

#[test]
fn the_same_stream_is_recorded_with_and_without() {
    let (program, memory) = (compile("tail_calls.c", &["-static"]), place("memory"));
    let stream = |recorded: &Recorded| {
        let trace = recorded.trace();
        let threads: Vec<_> = trace.threads().iter().map(|thread| thread.id).collect();
        threads.into_iter().map(|thread| steps(&trace, thread)).collect::<Vec<_>>()
    };
    let other = place("memory");
    let [without, first, second] = [&other, &memory, &memory].map(|memory| recorded_with(memory, "", &program, &[]));
    assert!(second.number("recalled") > 50, "{}", second.outcome);
    assert_eq!(stream(&first), stream(&without));
    assert_eq!(stream(&second), stream(&without));
}
