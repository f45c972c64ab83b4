//! Where `lockstep cc` adds options of its own, or does a job in two halves, its user sees what clang alone would show.

use crate::folder::{Folder, TWO_CALLS, WORK, lockstep};

/// What the wrapper has the optimiser leave out.
const OURS: [&str; 2] = ["-mllvm", "-unswitch-threshold=0"];

/// Without passes, and laid out as clang does.
const PLAIN: [&str; 6] = ["cc", "--transform", "none", "--layout", "default", "--"];

const MAIN: &str = "int pick(int);\nint main(int n, char **a) { (void)a; return pick(n) & 1; }\n";

fn files() -> Folder {
    Folder::with(&[("pick.c", TWO_CALLS), ("work.c", WORK), ("main.c", MAIN)])
}

#[test]
fn assembly_has_the_lines_that_were_asked_for() {
    let folder = files();
    for asked in [&[][..], &["-g0"], &["-g1"], &["-gline-tables-only"], &["-g"]] {
        let words = [&["-O2", "-S", "pick.c", "-o", "a.s"], asked].concat();
        folder.succeed("clang-19", &[&OURS[..], &words].concat());
        let clangs = folder.read("a.s");
        folder.succeed(lockstep(), &[&PLAIN[..], &words].concat());
        assert!(folder.read("a.s") == clangs, "{asked:?}: {}", folder.read("a.s"));
        assert_eq!(clangs.contains(".debug_line"), !["[]", "[\"-g0\"]"].contains(&&*format!("{asked:?}")), "{asked:?}");
    }
}

#[test]
fn remarks_have_lines_though_the_code_has_none() {
    let folder = files();
    folder.succeed(lockstep(), &["cc", "--transform", "fcs", "--report", "report", "--", "-O3", "-c", "pick.c"]);
    assert!(
        folder.read("report").contains("fcs taken: pick: work at pick.c:4 and pick.c:4"),
        "{}",
        folder.read("report")
    );
    assert!(!folder.succeed("readelf", &["-S", "-W", "pick.o"]).contains(".debug_line"));
}

#[test]
fn intermediate_files_are_kept_without_a_warning() {
    let folder = files();
    for debug in ["-g0", "-g1", "-g"] {
        for passes in ["none", "fcs"] {
            let words = ["cc", "--transform", passes, "--", "-O2", "-save-temps", "-o", "a"];
            let output = folder.run(lockstep(), &[&words[..], &[debug, "pick.c", "work.c"]].concat());
            let clangs = folder.run("clang-19", &["-O2", "-save-temps", "-o", "b", debug, "pick.c", "work.c"]);
            let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(
                (output.status.code(), said(&output)),
                (clangs.status.code(), said(&clangs)),
                "{passes} {debug}"
            );
            assert!(folder.path("pick.s").is_file() && folder.path("pick.bc").is_file());
        }
    }
}

#[test]
fn programs_for_the_kernels_machine_compile() {
    let source = "struct s { int a; } __attribute__((preserve_access_index));\nint f(struct s *p) { return p->a; }\n";
    let folder = Folder::with(&[("a.c", source)]);
    for target in [&["--target=bpf"][..], &["-target", "bpf"], &["--target=bpfeb"]] {
        for debug in [&[][..], &["-g"]] {
            let words = [&["-O2", "-c", "a.c", "-o", "a.o"], target, debug].concat();
            folder.succeed("clang-19", &words);
            folder.succeed(lockstep(), &[&["cc", "--transform", "fcs", "--"], &words[..]].concat());
        }
    }
}

#[test]
fn an_output_that_cannot_be_written_is_a_failed_compilation() {
    let folder = files();
    std::fs::create_dir(folder.path("folder")).unwrap();
    for kind in
        [&["-c"][..], &["-S"], &["-c", "-emit-llvm"], &["-S", "-emit-llvm"], &["-c", "-Xclang", "-fno-validate-pch"]]
    {
        for output in ["missing/a.o", "folder"] {
            let words = [&["-O2", "pick.c", "-o", output], kind].concat();
            assert_eq!(folder.run("clang-19", &words).status.code(), Some(1), "{words:?}");
            let ours = folder.run(lockstep(), &[&["cc", "--"], &words[..]].concat());
            let said = String::from_utf8_lossy(&ours.stderr).into_owned();
            assert!(ours.status.code() == Some(1) && said.contains(output), "{words:?}: {:?} {said}", ours.status);
        }
    }
    // Of several sources, others are compiled.
    std::fs::create_dir(folder.path("pick.o")).unwrap();
    let ours = folder.run(lockstep(), &["cc", "--", "-O2", "-c", "pick.c", "work.c"]);
    assert!(ours.status.code() == Some(1) && folder.path("work.o").is_file());
}

#[test]
fn what_is_said_of_an_index_for_the_linker_is_said_once() {
    let folder = files();
    folder.succeed("clang-19", &["-O2", "-flto=thin", "-c", "pick.c", "-o", "pick.bc"]);
    let words = ["-O2", "-x", "ir", "pick.bc", "-fthinlto-index=missing.idx", "-c", "-o", "pick.o"];
    let times = |output: std::process::Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said.matches("missing.idx").count())
    };
    let clangs = times(folder.run("clang-19", &words));
    assert_eq!(times(folder.run(lockstep(), &[&["cc", "--"], &words[..]].concat())), clangs);
    assert_eq!(clangs.1, 1);
    folder.succeed("clang-19", &["-O2", "-flto=thin", "-c", "main.c", "-o", "main.bc"]);
    std::fs::write(folder.path("empty.idx"), "").unwrap();
    let words = ["-O2", "-x", "ir", "pick.bc", "-fthinlto-index=empty.idx", "-c", "-o", "pick.o"];
    let ours = folder.run(lockstep(), &[&["cc", "--"], &words[..]].concat());
    assert_eq!((ours.status.code(), &*String::from_utf8_lossy(&ours.stderr)), (Some(0), ""));
}
