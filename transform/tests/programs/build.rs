//! Building and running programs in tests.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use transform::llvm::Module;
use transform::wrapper::{self, Build, Layout, Shape};
use transform::{Pipeline, Remark};

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a program that must succeed; returns what it printed.
pub(crate) fn output<A: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: impl IntoIterator<Item = A>) -> String {
    let mut command = Command::new(program);
    command.args(arguments);
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(done.status.success(), "{command:?}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

/// The optimised bitcode of a C source.
pub(crate) fn to_bitcode(source: &Path, to: &Path, flags: &[&str]) {
    let [shared, own] = ["workloads/include", "include"].map(|folder| format!("-I{}", root().join(folder).display()));
    let common =
        ["-std=gnu11", "-gline-tables-only", "-emit-llvm", "-c", "-mllvm", "-unswitch-threshold=0", &shared, &own];
    let files = [source.as_os_str(), OsStr::new("-o"), to.as_os_str()];
    let words = common.iter().chain(flags).map(OsStr::new).chain(files);
    output("clang-19", words);
}

/// An object file from bitcode, without optimising it again.
fn to_object(bitcode: &Path, to: &Path) {
    let files = [bitcode.as_os_str(), OsStr::new("-o"), to.as_os_str()];
    let words = ["-O1", "-Xclang", "-disable-llvm-passes", "-c"];
    output("clang-19", files.into_iter().chain(words.map(OsStr::new)));
}

/// A program from bitcode, without optimising it again, or from an object file. gcc links it, which does so in a fifth
/// of clang's time, unless it needs clang's OpenMP.
pub(crate) fn link(code: &Path, to: &Path, flags: &[&str]) {
    let is_bitcode = fs::read(code).expect("code").starts_with(b"BC");
    let object = if is_bitcode { to.with_extension("linked.o") } else { code.to_owned() };
    if is_bitcode {
        to_object(code, &object);
    }
    let files = [object.as_os_str(), OsStr::new("-o"), to.as_os_str()];
    let linker = if flags.contains(&"-fopenmp") { "clang-19" } else { "gcc" };
    output(linker, files.into_iter().chain(["-pthread", "-lm"].iter().chain(flags).map(OsStr::new)));
}

/// What programs print, each run once: a pass that leaves a program, or its code, as it was gives nothing to run.
#[derive(Default)]
pub(crate) struct Printed {
    /// By bitcode, and by object code.
    known: HashMap<Vec<u8>, String>,
    /// How many were run.
    pub(crate) ran: usize,
}

impl Printed {
    /// What the program of optimised bitcode prints, built with these flags and run with these arguments, which must
    /// be the same at each call.
    pub(crate) fn by(&mut self, bitcode: &Path, flags: &[&str], arguments: &[&str]) -> String {
        let bytes = fs::read(bitcode).expect("bitcode");
        if let Some(printed) = self.known.get(&bytes) {
            return printed.clone();
        }
        let object = bitcode.with_extension("o");
        to_object(bitcode, &object);
        let code = fs::read(&object).expect("an object file");
        let printed = self.known.get(&code).cloned().unwrap_or_else(|| {
            let program = bitcode.with_extension("program");
            link(&object, &program, flags);
            self.ran += 1;
            output(&program, arguments)
        });
        self.known.extend([(bytes, printed.clone()), (code, printed.clone())]);
        printed
    }
}

/// The object file of a C source, as the compiler wrapper makes it with passes; their remarks.
pub(crate) fn compile(source: &Path, object: &Path, passes: &str, flags: &[&str]) -> Vec<Remark> {
    let [shared, own] = ["workloads/include", "include"].map(|folder| format!("-I{}", root().join(folder).display()));
    let words = [&["-std=gnu11", "-w", &shared, &own], flags, &["-c", "-o"]].concat().into_iter().map(OsString::from);
    let build = Build {
        compiler: "clang-19".into(),
        passes: Pipeline::parse(passes).expect("passes that exist"),
        layout: Layout::Ordered,
        shape: Shape::Cpu,
        marks_iterations: false,
        keep_ir: None,
        arguments: words.chain([object.into(), source.into()]).collect(),
    };
    let built = wrapper::build(&build).expect("a compiler");
    assert_eq!(built.status, 0, "{}", source.display());
    built.remarks
}

/// Runs passes over bitcode.
pub(crate) fn transform(bitcode: &Path, passes: &str, to: &Path) -> Vec<Remark> {
    let mut module = Module::read(bitcode).expect("bitcode");
    let pipeline = Pipeline::parse(passes).expect("passes that exist");
    let remarks = pipeline.run(&mut module);
    let remarks = remarks.unwrap_or_else(|e| panic!("{}: {e}", bitcode.display()));
    std::fs::write(to, module.to_bitcode()).expect("a file");
    remarks
}

/// Every pass alone, then all in a row; `linearize` whether it gains or not.
pub(crate) fn pipelines() -> Vec<String> {
    let name = |name: &str| if name == "linearize" { "linearize:threshold=-1000" } else { name }.to_owned();
    let names: Vec<String> = transform::REGISTRY.iter().map(|pass| name(pass.name)).collect();
    let all = names.join(",");
    names.into_iter().filter(|name| name != "none").chain([all]).collect()
}
