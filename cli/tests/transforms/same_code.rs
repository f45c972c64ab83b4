//! Plain compilations start clang once, and their object files are those of the long way and of clang alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::folder::{Folder, lockstep, root};

/// Sources and options: code for loops, tables, floating point, constructors and destructors, assembly in a function.
const COMMANDS: [(&str, &str); 7] = [
    ("workloads/fft/fft.c", "-O3 -std=gnu11"),
    ("workloads/fft/fft.c", "-O2 -g1 -std=gnu11"),
    ("workloads/fft/fft.c", "-O2 -g -fPIC -std=gnu11 -ffunction-sections -fdata-sections"),
    ("workloads/radix/radix.c", "-O1 -std=gnu11 -march=haswell"),
    ("workloads/swaptions/swaptions.c", "-O0 -std=gnu11"),
    ("constructors.cc", "-O2 -g"),
    ("assembly.c", "-Os -fno-pic"),
];

const CONSTRUCTORS: &str = "#include <cstdio>
struct Noted { Noted() { std::puts(\"in\"); } ~Noted() { std::puts(\"out\"); } };
static Noted noted;
static int called(int n) { if (n > 3) throw n; return n; }
int caught(int n) { try { return called(n); } catch (int thrown) { return -thrown; } }
";

const ASSEMBLY: &str = "int next(int n) { __asm__(\"incl %0\" : \"+r\"(n)); return n; }
const char *name(int n) { switch (n) { case 0: return \"a\"; case 1: return \"b\"; case 2: return \"c\"; case 3: return \"d\"; } return 0; }
";

/// What the wrapper has clang do beside the user's options.
const OURS: [&str; 2] = ["-mllvm", "-unswitch-threshold=0"];

/// A word that means nothing, and that no list of plain ones holds.
const LONG_WAY: [&str; 2] = ["-Xclang", "-fno-validate-pch"];

#[test]
fn code_generated_here_is_that_of_clang_byte_by_byte() {
    let folder = Folder::with(&[("constructors.cc", CONSTRUCTORS), ("assembly.c", ASSEMBLY)]);
    let include = root().join("workloads/include");
    let include = ["-I", include.to_str().unwrap()];
    for (source, options) in COMMANDS {
        let path = if source.contains('/') { root().join(source) } else { folder.path(source) };
        let options: Vec<&str> = options.split(' ').chain(include).chain(["-c", path.to_str().unwrap()]).collect();
        let (verb, clang) = if source.ends_with(".cc") { ("c++", "clang++-19") } else { ("cc", "clang-19") };
        let object = |program: &str, first: &[&str], last: &[&str]| {
            folder.succeed(program, &[first, &options, last, &["-o", "a.o"]].concat());
            fs::read(folder.path("a.o")).unwrap()
        };
        let plain = object(clang, &OURS, &[]);
        let ours = object(lockstep(), &[verb, "--layout", "default", "--"], &[]);
        assert!(plain == ours, "{source} {options:?}: not the object file of clang alone");
        let passes = [verb, "--transform", "fcs,branch-fusion,tail-merge", "--"];
        let short = object(lockstep(), &passes, &[]);
        assert!(short == object(lockstep(), &passes, &LONG_WAY), "{source} {options:?}: two ways, two object files");
    }
}

#[test]
fn a_plain_compilation_starts_the_compiler_once() {
    let folder = Folder::with(&[
        ("assembly.c", ASSEMBLY),
        ("clang", "#!/bin/sh\necho started >>starts\nexec clang-19 \"$@\"\n"),
    ]);
    let compiler = folder.path("clang");
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let starts = |options: &[&str]| {
        fs::write(folder.path("starts"), "").unwrap();
        let words = ["cc", "--compiler", compiler.to_str().unwrap(), "--", "-O2", "-c", "assembly.c"];
        folder.succeed(lockstep(), &[&words, options].concat());
        assert!(folder.path("assembly.o").is_file());
        folder.read("starts").lines().count()
    };
    assert_eq!(starts(&[]), 1);
    assert_eq!(starts(&["-MD", "-MF", "assembly.d", "-MT", "assembly.o"]), 1);
    // The question; clang then does its jobs by the name that it gave itself.
    assert_eq!(starts(&LONG_WAY), 1);
    assert!(folder.read("assembly.d").starts_with("assembly.o:"));
}

#[test]
fn what_code_generation_has_to_say_is_said_as_clang_says_it() {
    let wrong = "int f(int n) { __asm__(\"nonsense %0\" : \"+r\"(n)); return n; }\n";
    let folder = Folder::with(&[("wrong.c", wrong)]);
    let plain = folder.run("clang-19", &["-O2", "-c", "wrong.c"]);
    let ours = folder.run(lockstep(), &["cc", "--", "-O2", "-c", "wrong.c"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!((text(&ours.stderr), ours.status), (text(&plain.stderr), plain.status));
    assert!(text(&ours.stderr).contains("invalid instruction mnemonic 'nonsense'") && !folder.path("wrong.o").exists());
}
