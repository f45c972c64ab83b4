//! Code generation without a process of its own: which compile jobs this process can finish as clang would.
//!
//! A job is a list of words. Each must be known here, either as one that no longer matters once there is bitcode, or as
//! one that [`CodeOptions`] holds; a job with any other word is left to clang. So is one with options of LLVM's that
//! are not the wrapper's own: they may print, or write files.

use std::os::unix::ffi::OsStrExt;

use super::jobs::Job;
use crate::llvm::{CodeOptions, TARGET};

/// Words that mean nothing to code generation, or stand in the bitcode (as attributes and flags).
const DONE: &[&str] = &[
    "-cc1",
    "-emit-obj",
    "-disable-free",
    "-clear-ast-before-backend",
    "-disable-llvm-verifier",
    "-discard-value-names",
    "-fhalf-no-semantic-interposition",
    "-fmath-errno",
    "-fno-math-errno",
    "-fno-rounding-math",
    "-ffp-contract=on",
    "-ffp-contract=off",
    "-mconstructor-aliases",
    "-debugger-tuning=gdb",
    "-sys-header-deps",
    "-fskip-odr-check-in-gmf",
    "-vectorize-loops",
    "-vectorize-slp",
    "-pic-is-pie",
    "-pthread",
    "-MP",
    "-w",
    "-pedantic",
    "-pedantic-errors",
    "-fcolor-diagnostics",
    "-fdiagnostics-hotness-threshold=0",
    "-fdeprecated-macro",
    "-fexceptions",
    "-fcxx-exceptions",
    "-fno-rtti",
    "-fwrapv",
    "-ftrapv",
    "-fno-builtin",
    "-ffreestanding",
    "-fopenmp",
    "-relaxed-aliasing",
    "-fno-common",
    "-fcommon",
    "-fvisibility-inlines-hidden",
    "-fno-signed-char",
    "-fgnu89-inline",
    "-fconst-strings",
    "-fno-inline",
    "-fno-inline-functions",
    "-inline-hint-functions",
    "-fno-delete-null-pointer-checks",
    "-ffine-grained-bitfield-accesses",
    "-fno-threadsafe-statics",
    "-fno-assume-sane-operator-new",
    "-fsized-deallocation",
];

/// Beginnings of such words.
const DONE_PREFIXES: &[&str] = &[
    "-W",
    "-D",
    "-std=",
    "-mframe-pointer=",
    "-funwind-tables=",
    "-dwarf-version=",
    "-debug-info-kind=",
    "-fdebug-compilation-dir=",
    "-fcoverage-compilation-dir=",
    "-fdebug-prefix-map=",
    "-fmacro-prefix-map=",
    "-fcoverage-prefix-map=",
    "-fgnuc-version=",
    "-fvisibility=",
    "-fmessage-length=",
    "-mprefer-vector-width=",
];

/// Such words with a value in the next word.
const DONE_WITH_VALUE: &[&str] = &[
    "-main-file-name",
    "-pic-level",
    "-tune-cpu",
    "-resource-dir",
    "-dependency-file",
    "-MT",
    "-MQ",
    "-D",
    "-U",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-internal-isystem",
    "-internal-externc-isystem",
    "-ferror-limit",
    "-stack-protector",
    "-stack-protector-buffer-size",
    "-o",
];

/// What code generation is to know for a job; none where clang must do it.
pub(super) fn options(job: &Job) -> Option<CodeOptions> {
    let mut found = CodeOptions { init_array: true, unique_section_names: true, ..CodeOptions::default() };
    let (mut target, mut relocation, mut verifier, mut full_debug) = (None, None, true, false);
    let mut features: Vec<&str> = Vec::new();
    let mut words = job.0.iter().skip(1).map(|word| word.to_str());
    while let Some(word) = words.next() {
        let word = word?;
        let mut value = || words.next().flatten();
        match word {
            "-triple" => target = Some(value()?),
            "-mrelocation-model" => relocation = Some(value()?),
            "-target-cpu" => value()?.clone_into(&mut found.processor),
            "-target-feature" => features.push(value()?),
            "-I" => found.includes.push(value()?.to_owned()),
            "-mllvm" => found.llvm.push(value()?.to_owned()),
            "-O0" => found.level = 0,
            "-O1" => found.level = 1,
            "-O2" | "-Os" | "-Oz" => found.level = 2,
            "-O3" => found.level = 3,
            "-ffunction-sections" => found.function_sections = true,
            "-fdata-sections" => found.data_sections = true,
            "-fno-unique-section-names" => found.unique_section_names = false,
            "-fno-use-init-array" => found.init_array = false,
            "-faddrsig" => found.address_significance = true,
            "-mrelax-all" => found.relax_all = true,
            "-x" => {
                value()?;
                value()?;
            }
            _ if DONE_WITH_VALUE.contains(&word) => {
                value()?;
            }
            _ if DONE.contains(&word) || DONE_PREFIXES.iter().any(|prefix| word.starts_with(prefix)) => {
                verifier &= word != "-disable-llvm-verifier";
                full_debug |= word.starts_with("-debug-info-kind=")
                    && !["line-tables-only", "line-directives-only"].iter().any(|kind| word.ends_with(kind));
            }
            _ => return None,
        }
    }
    found.position_independent = match relocation? {
        "pic" => true,
        "static" => false,
        _ => return None,
    };
    found.features = features.join(",");
    found.call_sites = full_debug && found.level > 0;
    let ours = found.llvm.iter().all(|word| super::build::is_our_llvm_option(word));
    (target? == TARGET && !verifier && ours && job.0.iter().all(|word| word.as_bytes() != b"-")).then_some(found)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn job(more: &[&str]) -> Job {
        let words = "clang -cc1 -triple x86_64-pc-linux-gnu -emit-obj -disable-llvm-verifier -mrelocation-model pic \
                     -target-cpu x86-64 -target-feature +avx -debug-info-kind=constructor -O2 -faddrsig";
        let end = ["-o", "a.o", "-x", "c", "a.c"];
        Job(words.split(' ').chain(more.iter().copied()).chain(end).map(OsString::from).collect())
    }

    #[test]
    fn what_code_generation_is_to_know_is_found() {
        let expected = CodeOptions {
            processor: "x86-64".to_owned(),
            features: "+avx".to_owned(),
            includes: vec!["include".to_owned()],
            level: 2,
            position_independent: true,
            function_sections: true,
            unique_section_names: true,
            address_significance: true,
            init_array: true,
            call_sites: true,
            llvm: vec!["-disable-tail-duplicate".to_owned()],
            ..CodeOptions::default()
        };
        let more = ["-ffunction-sections", "-fconst-strings", "-I", "include", "-mllvm", "-disable-tail-duplicate"];
        assert_eq!(options(&job(&more)), Some(expected));
    }

    #[test]
    fn jobs_with_a_word_that_is_not_known_are_left_to_clang() {
        let left = [&["-stack-usage-file=a.su"][..], &["-mllvm", "-stats"], &["-mcmodel=large"], &["-ffast-math"]];
        for more in left {
            assert_eq!(options(&job(more)), None, "{more:?}");
        }
        let mut checked = job(&[]);
        checked.0.retain(|word| word != "-disable-llvm-verifier");
        assert_eq!(options(&checked), None);
        let mut foreign = job(&[]);
        foreign.0[3] = "i386-pc-linux-gnu".into();
        assert_eq!(options(&foreign), None);
    }
}
