//! LLVM's own tools run the passes, and do with them what `lockstep` does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use transform::llvm::Module;
use transform::wrapper::{self, Build, Layout, Shape};
use transform::{Pipeline, REGISTRY};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The plug-in, which lies where this test's program does.
fn plugin() -> String {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    folder.join("liblockstep_passes.so").to_str().unwrap().to_owned()
}

fn run(program: &str, arguments: &[&str], passes: Option<&str>) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).envs(passes.map(|passes| ("LOCKSTEP_PASSES", passes)));
    command.output().unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn succeed(program: &str, arguments: &[&str], passes: Option<&str>) -> String {
    let output = run(program, arguments, passes);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Options of a workload's compilation.
fn options(source: &str) -> Vec<String> {
    let include = |folder: &str| format!("-I{}", root().join(folder).display());
    let words = ["-std=gnu11", "-O2", "-g", "-pthread", "-fopenmp=libomp"].map(str::to_owned);
    let source = root().join("workloads").join(source).to_str().unwrap().to_owned();
    [&words[..], &[include("workloads/include"), include("include"), source]].concat()
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

const SOURCES: [&str; 3] = ["fft/fft.c", "mandelbrot/mandelbrot.c", "micro/join_before_arm.c"];

/// The module as LLVM writes it once it has read this text, without its name: values are numbered in their order then.
fn read_again(module: &str) -> String {
    let module = Module::parse(module.as_bytes(), "module").unwrap();
    module.verify().unwrap();
    module.to_text().lines().filter(|line| !line.starts_with("; ModuleID")).collect::<Vec<_>>().join("\n")
}

#[test]
fn opt_makes_of_a_module_with_each_pass_what_lockstep_transform_makes() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["before.ll", "after.ll"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let load = format!("-load-pass-plugin={}", plugin());
    let mut changed = 0;
    for source in SOURCES {
        let words = [
            &["-S", "-emit-llvm", "-mllvm", "-sink-common-insts=false", "-o", &before].map(str::to_owned)[..],
            &options(source),
        ]
        .concat();
        succeed("clang-19", &strs(&words), None);
        // LLVM's pass of the same name comes first.
        for pass in REGISTRY.iter().filter(|pass| pass.name != "structurizecfg") {
            let forced = pass.parameters.iter().any(|parameter| parameter.name == "threshold");
            let (llvm, own) = match forced {
                true => (format!("{}<threshold=-1000>", pass.name), format!("{}:threshold=-1000", pass.name)),
                false => (pass.name.to_owned(), pass.name.to_owned()),
            };
            succeed("opt-19", &[&load, &format!("-passes={llvm}"), "-S", &before, "-o", &after], None);
            let (module, _) = Pipeline::parse(&own).unwrap().apply(|| Module::read(Path::new(&before))).unwrap();
            let by_opt = std::fs::read_to_string(&after).unwrap();
            let ours = read_again(&module.to_text());
            assert!(read_again(&by_opt) == ours, "{source}: {llvm}");
            changed += usize::from(ours != read_again(&std::fs::read_to_string(&before).unwrap()));
        }
    }
    assert!(changed > 6, "{changed} modules were changed");
}

#[test]
fn programs_that_clang_builds_with_the_plug_in_print_what_they_did() {
    let folder = tempfile::tempdir().unwrap();
    let [plain, passed] = ["plain", "passed"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let load = format!("-fpass-plugin={}", plugin());
    for source in SOURCES {
        let build = |to: &str, more: &[&str], passes: Option<&str>| {
            let words = options(source);
            succeed("clang-19", &[more, &strs(&words), &["-o", to, "-lm"]].concat(), passes);
            std::fs::read(to).unwrap()
        };
        let without = build(&plain, &[], None);
        assert!(build(&passed, &[&load], None) == without, "{source}: nothing was asked for");
        let expected = succeed(&plain, &["-p", "4"], None);
        for passes in ["meld:threshold=-1000", "fcs:threshold=-1000,layout", "linearize:threshold=-1000", "split-nodes"]
        {
            build(&passed, &[&load], Some(passes));
            assert_eq!(succeed(&passed, &["-p", "4"], None), expected, "{source}: {passes}");
        }
        assert!(build(&passed, &[&load], Some("linearize:threshold=-1000")) != without, "{source}");
    }
}

/// Code without comments: those have names of blocks, which need not be there.
fn without_comments(code: &str) -> String {
    let lines = code.lines().filter_map(|line| line.split('#').next()).map(str::trim_end);
    lines.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

/// The options that docs/passes.md names for passes of this kind: what its table has in that row.
fn options_of(kind: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/passes.md")).unwrap();
    let row = page.lines().find_map(|line| line.strip_prefix(&format!("| {kind} | `"))).expect(kind);
    let (options, _) = row.split_once('`').unwrap();
    assert!(options.contains("-mllvm -"), "{options}");
    options.split(' ').map(str::to_owned).collect()
}

#[test]
fn with_the_options_of_the_page_clang_makes_the_code_that_the_wrapper_makes() {
    let folder = tempfile::tempdir().unwrap();
    let [own, theirs] = ["own.s", "theirs.s"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let load = format!("-fpass-plugin={}", plugin());
    let [all, meld, structured] = ["all", "`meld`", "those that structure"].map(options_of);
    let none = Vec::new();
    let cases = [
        ("meld:threshold=-1000", &meld),
        ("fcs:threshold=-1000", &none),
        ("tail-merge", &none),
        ("split-nodes", &structured),
        ("linearize:threshold=-1000", &structured),
    ];
    for source in SOURCES {
        let mut codes = Vec::new();
        for (passes, more) in cases {
            let words = [&options(source)[..], &["-S", "-gline-tables-only"].map(str::to_owned)].concat();
            let with_options = [&words[..], &all, more, &[load.clone(), "-o".to_owned(), theirs.clone()]].concat();
            succeed("clang-19", &strs(&with_options), Some(&format!("{passes},layout")));
            let build = Build {
                compiler: "clang-19".into(),
                passes: Pipeline::parse(passes).unwrap(),
                layout: Layout::Ordered,
                shape: Shape::Cpu,
                marks_iterations: false,
                keep_ir: None,
                arguments: [&words[..], &["-o".to_owned(), own.clone()]].concat().into_iter().map(Into::into).collect(),
            };
            assert_eq!(wrapper::build(&build).unwrap().status, 0);
            let [own, theirs] = [&own, &theirs].map(|file| without_comments(&std::fs::read_to_string(file).unwrap()));
            assert!(own == theirs, "{source}: {passes}");
            codes.push(own);
        }
        codes.sort();
        codes.dedup();
        assert!(codes.len() > 2, "{source}: passes make {} codes", codes.len());
    }
}

#[test]
fn each_command_of_the_page_of_passes_that_uses_the_plug_in_runs() {
    let page = std::fs::read_to_string(root().join("docs/passes.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let own = plugin();
    let folders = ["workloads/include", "include"].map(|part| root().canonicalize().unwrap().join(part));
    let shell = |command: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-e", "-c", command]).current_dir(folder.path());
        let output = shell.env("CPATH", std::env::join_paths(&folders).unwrap()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    };
    std::fs::copy(root().join("workloads/fft/fft.c"), folder.path().join("fft.c")).unwrap();
    shell("clang-19 -O1 -S -emit-llvm fft.c -o fft.ll");
    let commands = page.lines().filter(|line| line.contains("pass-plugin=target/"));
    let ran = commands.map(|line| shell(&line.replace("target/release/liblockstep_passes.so", &own))).count();
    assert_eq!(ran, 2);
    assert!(folder.path().join("melded.ll").exists() && folder.path().join("fft.o").exists());
}

#[test]
fn names_and_parameters_that_are_wrong_end_the_tool_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let [module, source] = ["f.ll", "f.c"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    std::fs::write(&module, "define i32 @f() { ret i32 1 }\n").unwrap();
    std::fs::write(&source, "int f(int a, int b) { return (a + b) * 7 / b; }\n").unwrap();
    let load = format!("-load-pass-plugin={}", plugin());
    let refused = |output: Output, why: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{said}");
    };
    let opt = |passes: &str| run("opt-19", &[&load, &format!("-passes={passes}"), "-S", &module, "-o", "-"], None);
    refused(opt("meld<treshold=1>"), "(did you mean threshold?)");
    refused(opt("instcombine,melt"), "unknown function pass 'melt'");
    let load = format!("-fpass-plugin={}", plugin());
    let clang = |passes| run("clang-19", &["-O1", "-S", &load, &source, "-o", "-"], Some(passes));
    refused(clang("melt"), "(did you mean meld?)");
    // A pass that finds its own work wrong leaves the code.
    let plain = run("clang-19", &["-O1", "-S", &source, "-o", "-"], None).stdout;
    for pass in ["refused", "spoilt"] {
        let left = clang(pass);
        let said = String::from_utf8_lossy(&left.stderr);
        assert!(left.status.success() && said.contains("the code is left as it is"), "{pass}: {said}");
        assert!(left.stdout == plain, "{pass}");
    }
}
