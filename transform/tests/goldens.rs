//! IR before and after each pass, compared with stored IR.
//!
//! `goldens/PASS/CASE.ll` is the IR before; its first line is a comment that says what the case shows. `CASE.after.ll`
//! is what the pass made of it, below what it reported. `BLESS=1 cargo test -p transform --test goldens` writes these
//! again; read them before they are committed.

use std::fs;
use std::path::{Path, PathBuf};

use transform::llvm::Module;
use transform::{Pipeline, REGISTRY, Remark};

fn folder(pass: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(pass)
}

/// The cases of a pass, in order of their names.
fn cases(pass: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder(pass)).unwrap_or_else(|e| panic!("{pass}: {e}: add a golden"));
    let paths = listed.map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = paths.filter(|p| !p.to_string_lossy().ends_with(".after.ll")).collect();
    cases.sort();
    cases
}

/// All of it: `prediction.rs` has tests of what gains.
fn as_tested(pass: &str) -> String {
    if pass == "linearize" { "linearize:threshold=-1000".to_owned() } else { pass.to_owned() }
}

/// What a pass makes of a case: its report as comments, then the IR without the lines that name the file.
fn made(pass: &str, case: &Path) -> String {
    let bytes = fs::read(case).unwrap();
    let mut module = Module::parse(&bytes, &case.display().to_string()).unwrap_or_else(|e| panic!("{e}"));
    let pipeline = Pipeline::parse(&as_tested(pass)).unwrap();
    let remarks = pipeline.run(&mut module).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
    let report: String = remarks.iter().map(|remark| format!("; {remark}\n")).collect();
    let text = module.to_text();
    let names_file = |line: &&str| line.starts_with("; ModuleID") || line.starts_with("source_filename");
    let ir: String = text.lines().filter(|line| !names_file(line)).map(|line| format!("{line}\n")).collect();
    format!("{report}{ir}")
}

#[test]
fn every_pass_makes_what_was_blessed() {
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    for pass in REGISTRY {
        let cases = cases(pass.name);
        assert!(!cases.is_empty(), "{} has no golden", pass.name);
        for case in cases {
            let after = case.with_extension("after.ll");
            let made = made(pass.name, &case);
            if bless {
                fs::write(&after, &made).unwrap();
            }
            let stored = fs::read_to_string(&after).unwrap_or_else(|e| panic!("{}: {e}", after.display()));
            assert!(stored == made, "{} is not what was blessed, but\n{made}", after.display());
        }
    }
}

/// Of a new reason `Reason::kind` says that the code was left. `speculative` also does what marks in the program ask
/// for, which is no decision of its own.
#[test]
fn a_pass_that_says_what_it_did_says_so_exactly_where_it_changed_the_code() {
    let deciding = REGISTRY.iter().filter(|pass| pass.name != "speculative");
    for (pass, case) in deciding.flat_map(|pass| cases(pass.name).into_iter().map(move |case| (pass, case))) {
        let mut module = Module::read(&case).unwrap();
        let before = module.to_text();
        let remarks = Pipeline::parse(&as_tested(pass.name)).unwrap().run(&mut module).unwrap();
        let (changed, said) = (module.to_text() != before, remarks.iter().any(Remark::is_taken));
        assert!(remarks.is_empty() || changed == said, "{}: changed: {changed}, said: {said}", case.display());
    }
}

#[test]
fn every_golden_says_what_it_shows() {
    for case in REGISTRY.iter().flat_map(|pass| cases(pass.name)) {
        let text = fs::read_to_string(&case).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("; ") && first.ends_with('.') && first.len() > 30, "{}: {first:?}", case.display());
    }
}

#[test]
fn a_pass_that_changes_nothing_leaves_every_byte() {
    for case in REGISTRY.iter().flat_map(|pass| cases(pass.name)) {
        let mut module = Module::read(&case).unwrap();
        let before = module.to_bitcode();
        Pipeline::parse("none").unwrap().run(&mut module).unwrap();
        assert!(module.to_bitcode() == before, "{}", case.display());
        let before = before.as_slice();
        let strict =
            Pipeline::parse("fcs,tail-merge,branch-fusion").unwrap().with_default("threshold", "1000000000").unwrap();
        strict.run(&mut module).unwrap();
        assert!(module.to_bitcode() == before, "{} with a threshold that nothing meets", case.display());
    }
}
