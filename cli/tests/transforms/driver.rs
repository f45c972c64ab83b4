//! What `lockstep cc` does where a compiler's driver does more than start compilers: long command lines, questions,
//! signals, link-time code.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use crate::folder::{Folder, TWO_CALLS, WORK, lockstep, printed};

fn two_files() -> Folder {
    Folder::with(&[("pick.c", TWO_CALLS), ("work.c", WORK)])
}

#[test]
fn code_that_the_linker_would_make_is_compiled_untransformed_with_a_warning() {
    let folder = Folder::with(&[("pick.cpp", TWO_CALLS)]);
    let needs: [&[&str]; 4] = [
        &["-flto", "-fsanitize=cfi-icall", "-fvisibility=hidden", "-fno-sanitize-ignorelist"],
        &["-flto=thin", "-fwhole-program-vtables"],
        &["-flto", "-fvirtual-function-elimination"],
        &["@arguments"],
    ];
    fs::write(folder.path("arguments"), "-flto -fwhole-program-vtables").unwrap();
    for options in needs {
        let output = folder.compile("c++", &[options, &["-O3", "-c", "pick.cpp", "-o", "pick.o"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && fs::remove_file(folder.path("pick.o")).is_ok(), "{options:?}: {said}");
        assert!(said.contains("lockstep: warning: compiling with clang++-19: not transformed"), "{options:?}: {said}");
        assert!(said.contains("only allowed with '-flto"), "{options:?}: {said}");
    }
    let wrong = folder.compile("c++", &["-fwhole-program-vtables", "-c", "pick.cpp"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(1) && !said.contains("lockstep"), "{said}");
}

#[test]
fn command_lines_longer_than_the_kernel_takes_compile_and_link() {
    let folder = two_files();
    let long_word = format!("-DLONG=\"{}\"", "x".repeat(200_000));
    let many_words: String = (0..30_000).map(|i| format!("-L{}{i}\n", "/no-such-folder".repeat(7))).collect();
    fs::write(folder.path("compile"), format!("-O3 -c pick.c '{long_word}'")).unwrap();
    fs::write(folder.path("link"), format!("pick.o work.c -O3 -o program\n{many_words}")).unwrap();
    folder.compiles(&["@compile"]);
    folder.compiles(&["@link"]);
    assert_eq!((folder.succeed("./program", &[]), folder.calls("program", "work")), (printed(), 1));
}

#[test]
fn a_compiler_that_cannot_be_started_is_not_called_missing() {
    let folder = two_files();
    let output = folder.run(lockstep(), &["cc", "--compiler", "./pick.c", "--", "-c", "pick.c"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert!(said.contains("./pick.c cannot be started: Permission denied"), "{said}");
    assert!(!said.contains("not installed"), "{said}");
}

#[test]
fn jobs_that_are_only_asked_for_are_not_done() {
    let folder = two_files();
    fs::write(folder.path("arguments"), "-### pick.c").unwrap();
    for words in [&["-###", "-O3", "-c", "pick.c"][..], &["-O3", "-c", "@arguments"]] {
        let output = folder.compile("cc", words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("\"-cc1\""), "{words:?}: {said}");
        assert!(!folder.path("pick.o").exists(), "{words:?}");
    }
    folder.compiles(&["-fdriver-only", "-O3", "-c", "pick.c"]);
    assert!(!folder.path("pick.o").exists());
}

/// A compilation that waits for something to be written to a pipe that its source includes, and has its temporary files
/// in `tmp`.
struct Waiting {
    folder: Folder,
    child: Child,
}

impl Waiting {
    /// With what comes before the command in a shell.
    fn start(before: &str) -> Waiting {
        let folder = Folder::with(&[("a.c", "#include \"pipe.h\"\nint a;\n"), ("tmp/keep", "")]);
        folder.succeed("mkfifo", &["pipe.h"]);
        let line = format!("{before} exec {} cc -- -O2 -c a.c", lockstep());
        // Who runs these tests in the background may have signals ignored, which the compiler would inherit.
        let words = ["--default-signal", "sh", "-c", &line];
        let child = folder.command("env", &words).env("TMPDIR", folder.path("tmp")).spawn().unwrap();
        let waiting = Waiting { folder, child };
        until(|| waiting.processes().iter().any(|words| words.contains("-emit-llvm")));
        assert_eq!(waiting.left().len(), 1);
        waiting
    }

    fn signal(&self, name: &str) {
        self.folder.succeed("kill", &["-s", name, &self.child.id().to_string()]);
    }

    /// Command lines of processes in the folder.
    fn processes(&self) -> Vec<String> {
        self.numbered_processes().into_iter().map(|(_, line)| line).collect()
    }

    /// The number of each with its command line.
    fn numbered_processes(&self) -> Vec<(String, String)> {
        let is_here = |process: &fs::DirEntry| {
            let place = fs::canonicalize(self.folder.path("")).unwrap();
            fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == place)
        };
        let all = fs::read_dir("/proc").unwrap().flatten().filter(is_here);
        all.filter_map(|process| {
            let line = fs::read(process.path().join("cmdline")).ok()?;
            let number = process.file_name().into_string().ok()?;
            Some((number, String::from_utf8_lossy(&line).replace('\0', " ")))
        })
        .collect()
    }

    /// Files of ours among the temporary ones.
    fn left(&self) -> Vec<String> {
        let all = fs::read_dir(self.folder.path("tmp")).unwrap().flatten();
        all.map(|file| file.file_name().into_string().unwrap())
            .filter(|name| name.starts_with("lockstep-cc-"))
            .collect()
    }

    fn end(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// Waits until something holds; a test that waits a minute has failed.
fn until(holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came to that");
}

#[test]
fn a_signal_ends_the_compiler_too_and_leaves_no_temporary_files() {
    for (name, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)] {
        let mut waiting = Waiting::start("");
        waiting.signal(name);
        assert_eq!(waiting.end().signal(), Some(number), "{name}");
        assert_eq!(waiting.left(), [""; 0], "{name}");
        assert_eq!(waiting.processes(), [""; 0], "{name}");
    }
}

/// One that is stopped hears no signal but the last.
#[test]
fn a_compiler_that_does_not_end_is_killed() {
    let mut waiting = Waiting::start("");
    let all = waiting.numbered_processes();
    let (compiler, _) = all.iter().find(|(_, line)| line.contains("-emit-llvm")).unwrap();
    waiting.folder.succeed("kill", &["-s", "STOP", compiler]);
    waiting.signal("TERM");
    assert_eq!(waiting.end().signal(), Some(15));
    assert_eq!((waiting.left(), waiting.processes()), (Vec::new(), Vec::new()));
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let mut waiting = Waiting::start("trap '' HUP;");
    waiting.signal("HUP");
    std::thread::sleep(Duration::from_millis(100));
    fs::write(waiting.folder.path("pipe.h"), "int from_the_pipe;\n").unwrap();
    assert!(waiting.end().success());
    assert!(waiting.folder.path("a.o").exists() && waiting.left().is_empty());
}
