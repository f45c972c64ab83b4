//! Compile commands for which the driver need not be asked: one source, compiled to an object file, with options that
//! do not depend on the name of the output and ask for no more files.
//!
//! The driver itself then does the first step, with `-emit-llvm` and a place of ours for the bitcode, and writes down
//! the job that it did (`CC_PRINT_OPTIONS`). That is the job that `-###` would have shown, except for the action and
//! the output. A command line with any word that is not known here takes the long way.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::build::{Build, Shape};
use super::jobs::{self, Job, OPENMP, Product};

/// Has the driver write its jobs to a file.
const PRINT: [&str; 2] = ["CC_PRINT_OPTIONS", "CC_PRINT_OPTIONS_FILE"];

/// What else in the environment changes what the driver does or prints.
const ENVIRONMENT: &[&str] = &[
    "CCC_OVERRIDE_OPTIONS",
    "CC_PRINT_HEADERS",
    "CC_PRINT_PROC_STAT",
    "CC_LOG_DIAGNOSTICS",
    "QA_OVERRIDE_GCC3_OPTIONS",
    "DEPENDENCIES_OUTPUT",
    "SUNPRO_DEPENDENCIES",
];

const FLAGS: &[&str] = &[
    "-c",
    "-w",
    "-ansi",
    "-pedantic",
    "-pedantic-errors",
    "-pipe",
    "-pthread",
    "-MP",
    "-m64",
    "-g",
    "-g0",
    "-g1",
    "-g2",
    "-g3",
    "-ggdb",
    "-ggdb1",
    "-ggdb2",
    "-ggdb3",
    "-gdwarf-4",
    "-gdwarf-5",
    "-gline-tables-only",
    "-fPIC",
    "-fpic",
    "-fPIE",
    "-fpie",
    "-fno-PIC",
    "-fno-pic",
    "-fno-pie",
    "-fno-PIE",
    "-fomit-frame-pointer",
    "-fno-omit-frame-pointer",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-common",
    "-fcommon",
    "-fstrict-aliasing",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-builtin",
    "-ffreestanding",
    "-fopenmp",
    "-fexceptions",
    "-fno-exceptions",
    "-frtti",
    "-fno-rtti",
    "-fno-math-errno",
    "-ffast-math",
    "-fstack-protector",
    "-fstack-protector-strong",
    "-fstack-protector-all",
    "-fno-stack-protector",
    "-fvisibility-inlines-hidden",
    "-funroll-loops",
    "-fno-unroll-loops",
    "-fvectorize",
    "-fno-vectorize",
    "-ftree-vectorize",
    "-fno-tree-vectorize",
    "-fslp-vectorize",
    "-fno-slp-vectorize",
    "-fsigned-char",
    "-funsigned-char",
    "-fasynchronous-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-fno-plt",
    "-fno-semantic-interposition",
    "-fdiagnostics-color",
    "-fdiagnostics-color=always",
    "-fdiagnostics-color=never",
    "-fcolor-diagnostics",
    "-fno-color-diagnostics",
    "-stdlib=libstdc++",
    "-fno-lto",
    "-Qunused-arguments",
    "--start-no-unused-arguments",
    "--end-no-unused-arguments",
];

const PREFIXES: &[&str] = &[
    "-D",
    "-U",
    "-I",
    "-O",
    "-W",
    "-std=",
    "-march=",
    "-mtune=",
    "-mavx",
    "-mno-avx",
    "-msse",
    "-mno-sse",
    "-mfma",
    "-mno-fma",
    "-mbmi",
    "-mpopcnt",
    "-mprefer-vector-width=",
    "-fvisibility=",
    "-ffp-contract=",
    "-fdebug-prefix-map=",
    "-ffile-prefix-map=",
    "-fmacro-prefix-map=",
    "-ferror-limit=",
    "-fmessage-length=",
];

/// `-W` hands words on to the assembler, the linker or the preprocessor with these.
const NOT_WARNINGS: &[&str] = &["-Wa,", "-Wl,", "-Wp,"];

/// With the value in the next word.
const WITH_VALUE: &[&str] =
    &["-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-include", "-MF", "-MT", "-MQ", "-mllvm"];

/// A command that the driver may do up to bitcode.
pub(super) struct Command {
    /// Its words up to the output's, which are left out, and after it.
    words: Vec<OsString>,
    /// The object file.
    output: OsString,
}

/// The command of a build, with this command line; none where the driver must be asked.
pub(super) fn command(build: &Build, line: &[OsString]) -> Option<Command> {
    let compiler = Path::new(&build.compiler).file_name().is_some_and(|name| name.as_bytes().starts_with(b"clang"));
    let surprising = PRINT.iter().chain(ENVIRONMENT).any(|name| std::env::var_os(name).is_some());
    // With the shape of a GPU the first step depends on what the job says, and with marks it ends before the optimiser.
    let marks = build.marks_iterations && line.iter().any(|word| word.as_bytes().starts_with(OPENMP.as_bytes()));
    let plain = compiler && !surprising && build.shape == Shape::Cpu && !marks;
    plain.then(|| plain_command(line)).flatten()
}

fn plain_command(line: &[OsString]) -> Option<Command> {
    let mut rest = line.iter();
    let mut words = Vec::with_capacity(line.len());
    let (mut source, mut output, mut compiles) = (None, None, false);
    let (mut dependencies, mut named, mut aimed) = (false, false, false);
    while let Some(word) = rest.next() {
        let text = word.to_str()?;
        if text == "-o" {
            if output.replace(rest.next()?.clone()).is_some() {
                return None;
            }
            continue;
        }
        words.push(word.clone());
        match text {
            "-c" => compiles = true,
            "-MD" | "-MMD" => dependencies = true,
            _ if WITH_VALUE.contains(&text) => {
                named |= text == "-MF";
                aimed |= text == "-MT" || text == "-MQ";
                words.push(rest.next()?.clone());
            }
            _ if FLAGS.contains(&text) => {}
            _ if !text.starts_with('-') && !text.starts_with('@') => {
                if source.replace(word.clone()).is_some() {
                    return None;
                }
            }
            _ => {
                let known = PREFIXES.iter().any(|prefix| text.starts_with(prefix))
                    && !NOT_WARNINGS.iter().any(|other| text.starts_with(other));
                if !known {
                    return None;
                }
            }
        }
    }
    let source = source.filter(|source| is_source(source))?;
    // The driver derives both from the output.
    if !compiles || dependencies && !(named && aimed) {
        return None;
    }
    // Without -o the object stands in the working folder.
    let output =
        output.unwrap_or_else(|| Path::new(&source).with_extension("o").file_name().unwrap_or_default().into());
    // Some outputs, such as `-` and devices, are not files to be replaced.
    let plain = std::fs::symlink_metadata(&output).map_or(output != "-", |metadata| metadata.is_file());
    plain.then_some(Command { words, output })
}

/// Whether the driver takes a file for C or C++.
fn is_source(file: &OsStr) -> bool {
    let extension = Path::new(file).extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| ["c", "cc", "cpp", "cxx", "C"].contains(&extension))
}

impl Command {
    /// The words that have the driver make bitcode, and the environment in which it writes down its job.
    pub(super) fn until_bitcode(&self, to: &OsStr, log: &OsStr) -> (Vec<OsString>, [(&'static str, OsString); 2]) {
        let end = [OsString::from("-emit-llvm"), "-o".into(), to.to_owned()];
        let words = self.words.iter().cloned().chain(end).collect();
        (words, [(PRINT[0], "1".into()), (PRINT[1], log.to_owned())])
    }

    /// The job that `-###` would have shown, from what the driver wrote down; none where it did more than this or
    /// nothing (as a program that keeps results of compilers may).
    pub(super) fn job(&self, log: &Path) -> Option<Job> {
        let mut jobs = jobs::parse(&std::fs::read(log).ok()?).ok()?;
        let job = jobs.pop().filter(|job| jobs.is_empty() && job.product() == Some(Product::Bitcode));
        job.map(|job| job.with_object(&self.output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn plain_compilations_need_no_question() {
        for line in ["-O2 -c a.c", "-c -o b.o a.cpp -MD -MF b.d -MT b.o -Iinclude -D N=1 -march=native -g -fPIC -Wall"]
        {
            assert!(plain_command(&words(line)).is_some(), "{line}");
        }
        assert_eq!(plain_command(&words("-c ../lib/a.c")).map(|command| command.output), Some("a.o".into()));
    }

    #[test]
    fn what_looks_at_the_output_or_makes_more_files_takes_the_long_way() {
        let lines = [
            "a.c",
            "-c a.c b.c",
            "-c a.s",
            "-c -",
            "-c a.c -MD",
            "-c a.c -MD -MF a.d",
            "-S a.c",
            "-c -E a.c",
            "-c a.c -save-temps",
            "-c a.c -gsplit-dwarf",
            "-c a.c -ftime-trace",
            "-c a.c -Wa,-adhln",
            "-c a.c -o -",
            "-c a.c -o /dev/null",
            "-c a.c -emit-llvm",
            "-c a.c -x c++",
            "-c a.c -Xclang -ast-dump",
            "-c a.c -flto",
            "-c a.c -fsanitize=address",
            "-c a.c -v",
            "-c a.c -MJ a.json",
            "-c a.c --coverage",
            "-c @a",
            "-c a.c -o",
        ];
        for line in lines {
            assert!(plain_command(&words(line)).is_none(), "{line}");
        }
    }
}
