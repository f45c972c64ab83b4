//! What clang writes beside the code is all there: `lockstep cc` has it done in two halves, of which each knows a part.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::folder::{Folder, TWO_CALLS, WORK, lockstep, printed};

fn two_files() -> Folder {
    Folder::with(&[("pick.c", TWO_CALLS), ("work.c", WORK)])
}

#[test]
fn entries_of_a_compilation_database_are_those_of_clang() {
    let folder = two_files();
    let words = ["-O3", "-DA=\"b c\"", "-c", "pick.c", "work.c"];
    folder.compiles(&[&["-MJ", "ours.json"], &words[..]].concat());
    folder.succeed("clang-19", &[&["-MJ", "theirs.json"], &words[..]].concat());
    assert_eq!(folder.read("ours.json"), folder.read("theirs.json"));
    assert_eq!(folder.read("ours.json").lines().count(), 2);
    fs::write(folder.path("ours"), "-MJours.json").unwrap();
    fs::write(folder.path("theirs"), "-MJtheirs.json").unwrap();
    folder.compiles(&["@ours", "-O3", "-c", "pick.c"]);
    folder.succeed("clang-19", &["@theirs", "-O3", "-c", "pick.c"]);
    assert_eq!(folder.read("ours.json"), folder.read("theirs.json"));
    folder.compiles(&["-gen-cdb-fragment-path", "entries", "-O3", "-c", "pick.c"]);
    let made: Vec<_> = fs::read_dir(folder.path("entries")).unwrap().flatten().collect();
    let text = fs::read_to_string(made[0].path()).unwrap();
    assert!(made.len() == 1 && text.contains("\"file\": \"pick.c\"") && !text.contains("driver-only"), "{text}");
}

#[test]
fn a_time_trace_has_both_halves_and_the_passes() {
    let folder = two_files();
    folder.compiles(&["-O3", "-ftime-trace", "-c", "pick.c", "-o", "pick.o"]);
    let trace: Value = serde_json::from_str(&folder.read("pick.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |name: &str| events.iter().filter(|e| e["name"] == name).collect::<Vec<_>>();
    let (frontend, passes, code) = (of("Frontend"), of("lockstep passes"), of("CodeGenPasses"));
    assert!(!frontend.is_empty() && passes.len() == 1 && !code.is_empty(), "{trace}");
    let end = |event: &Value| event["ts"].as_i64().unwrap() + event["dur"].as_i64().unwrap();
    assert!(end(frontend[0]) <= passes[0]["ts"].as_i64().unwrap(), "the passes come after the front end");
    assert!(end(passes[0]) <= code.last().unwrap()["ts"].as_i64().unwrap(), "code generation comes after the passes");
    folder.compiles(&["-O3", "-ftime-trace=elsewhere.json", "-c", "pick.c", "-o", "pick.o"]);
    assert!(folder.read("elsewhere.json").contains("lockstep passes"));
}

/// The passes that left remarks in an optimisation record.
fn passes_in(record: &str) -> BTreeSet<String> {
    record.lines().filter_map(|line| line.strip_prefix("Pass:")).map(|pass| pass.trim().to_owned()).collect()
}

#[test]
fn an_optimisation_record_has_the_remarks_of_the_optimiser_and_of_code_generation() {
    let folder = two_files();
    folder.compiles(&["-O3", "-g", "-fsave-optimization-record", "-c", "work.c", "-o", "ours.o"]);
    folder.succeed("clang-19", &["-O3", "-g", "-fsave-optimization-record", "-c", "work.c", "-o", "theirs.o"]);
    let (ours, theirs) = (passes_in(&folder.read("ours.opt.yaml")), passes_in(&folder.read("theirs.opt.yaml")));
    assert!(theirs.contains("asm-printer") && theirs.len() > 3, "{theirs:?}");
    assert_eq!(theirs.difference(&ours).count(), 0, "{ours:?} {theirs:?}");
    // Clang 19 cannot write these for ELF, and would stop in code generation.
    let output = folder.compile("cc", &["-O3", "-fsave-optimization-record=bitstream", "-c", "work.c"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("remarks of code generation are left out"), "{said}");
}

#[test]
fn statistics_of_code_generation_do_not_replace_those_of_the_optimiser() {
    let folder = two_files();
    folder.compiles(&["-O3", "-save-stats", "-c", "pick.c"]);
    let ours: Value = serde_json::from_str(&folder.read("pick.stats")).unwrap();
    folder.succeed("clang-19", &["-O3", "-save-stats", "-c", "pick.c"]);
    let theirs: Value = serde_json::from_str(&folder.read("pick.stats")).unwrap();
    for name in theirs.as_object().unwrap().keys() {
        assert!(ours.get(name).is_some(), "{name} in {ours}");
    }
}

/// Compiles with us and with clang, which must say the same, tag, column and caret included.
fn says_what_clang_says(source: &str, options: &[&str]) -> String {
    let folder = Folder::with(&[("a.c", source)]);
    let words = [options, &["-O2", "-c", "a.c", "-o", "a.o"]].concat();
    let ours = folder.run(lockstep(), &[&["cc", "--"], &words[..]].concat());
    let theirs = folder.run("clang-19", &words);
    let [ours_said, said] = [&ours, &theirs].map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(ours_said, said, "{options:?}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{said}");
    said
}

#[test]
fn warnings_of_code_generation_have_column_caret_and_tag() {
    let source = "void use(char *);\n__attribute__((warning(\"poor idea\"))) void seldom(void);\n\
        int f(int n) { char a[300]; use(a); return n; }\nint g(int n) { seldom(); return n; }\n";
    let said = says_what_clang_says(source, &["-Wframe-larger-than=10", "-fno-unroll-loops"]);
    assert!(said.contains("a.c:3:5: warning: stack frame size (") && said.contains("[-Wframe-larger-than]"), "{said}");
    assert!(said.contains("a.c:4:16: warning: call to 'seldom'"), "{said}");
    let error = says_what_clang_says(source, &["-Wframe-larger-than=10", "-Werror"]);
    assert!(error.contains("error: stack frame size"), "{error}");
    says_what_clang_says(source, &["-Wframe-larger-than=10", "-fcolor-diagnostics"]);
}

#[test]
fn errors_of_code_generation_have_column_and_caret() {
    let assembly = "int f(int n) {\n  __asm__ volatile(\"nosuchinsn %0\" : : \"r\"(n));\n  return n;\n}\n";
    let said = says_what_clang_says(assembly, &[]);
    assert!(said.contains("a.c:2:20: error: invalid instruction mnemonic 'nosuchinsn'"), "{said}");
    let forbidden = "__attribute__((error(\"bad idea\"))) void never(void);\nint f(int n) { never(); return n; }\n";
    let said = says_what_clang_says(forbidden, &[]);
    assert!(said.contains("a.c:2:16: error: call to 'never' declared with 'error' attribute: bad idea"), "{said}");
}

/// Compiles through ccache as docs/passes.md says, twice.
#[test]
fn ccache_answers_the_second_time_and_when_lockstep_changes_it_does_not() {
    let folder = two_files();
    let script = format!("#!/bin/sh\nexec {} cc --transform fcs -- \"$@\"\n", lockstep());
    fs::write(folder.path("clang-fcs"), script).unwrap();
    fs::write(folder.path("lockstep"), "one version").unwrap();
    folder.succeed("chmod", &["+x", "clang-fcs"]);
    let run = |words: &[&str]| {
        let (cache, of_hash) = (folder.path("cache"), folder.path("lockstep"));
        let mut command = folder.command("ccache", words);
        let done = command.env("CCACHE_DIR", cache).env("CCACHE_EXTRAFILES", of_hash).output().expect("ccache");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let compile = || {
        run(&["./clang-fcs", "-O3", "-MMD", "-c", "pick.c", "-o", "pick.o"]);
        let counts = run(&["--print-stats"]);
        let of = |name: &str| -> u32 {
            let line = counts.lines().find_map(|line| line.strip_prefix(name));
            line.map_or(0, |count| count.trim().parse().unwrap())
        };
        (of("cache_miss\t"), of("direct_cache_hit\t") + of("preprocessed_cache_hit\t"))
    };
    assert_eq!(compile(), (1, 0));
    fs::remove_file(folder.path("pick.o")).unwrap();
    assert_eq!(compile(), (1, 1));
    folder.compiles(&["-O3", "pick.o", "work.c", "-o", "program"]);
    assert_eq!((folder.succeed("./program", &[]), folder.calls("program", "work")), (printed(), 1));
    fs::write(folder.path("lockstep"), "another version").unwrap();
    assert_eq!(compile(), (2, 1));
}
