//! Programs before and after `linearize` and the passes it is compared with: what they print, whether they are
//! structured in IR and in machine code, and how much they grew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flowgraph::Reduction;
use transform::llvm::Module;
use transform::{Flow, Kind, Reason, Remark};

use crate::{build, machine};

/// Fails where a function is not structured after the pass, unless it was left with a remark.
fn all_structured(module: &Module, remarks: &[Remark], what: &str) {
    for function in module.functions_to_optimise() {
        let left = remarks.iter().any(|r| r.function == function.name() && r.kind() == Kind::Left);
        let flow = Flow::of(function);
        let reduction = Reduction::of(flow.graph(), &[]);
        assert!(left || reduction.is_structured(), "{what}: {} has {} parts", function.name(), reduction.left().len());
    }
}

/// Claim 3 of the paper, of instructions, without phis: a comparison and a branch for each guard, a choice for each
/// part where a branch was; and a jump where a region or a part gets a block before it, or where ends become one.
/// Equality of floating-point numbers takes three instructions to become a value.
fn grows_linearly(before: &Module, after: &Module, remarks: &[Remark], what: &str) {
    let count = |module: &Module, name: &str| {
        let function = module.functions().into_iter().find(|f| f.name() == name).expect("no pass takes functions away");
        function.blocks().into_iter().flat_map(|block| block.instructions()).filter(|i| !i.is_phi()).count()
    };
    for remark in remarks {
        let Reason::Linearized(done) = remark.reason else { continue };
        let guards = 2 * (done.guards + done.backs);
        let bound = guards + 2 * done.parts + 2 * done.regions + 3 * done.equalities + 1;
        let (old, new) = (count(before, &remark.function), count(after, &remark.function));
        // What a switch becomes grows with its cases.
        assert!(done.switches > 0 || new <= old + bound, "{what}: {} has {old}, then {new}: {done}", remark.function);
    }
}

/// A program, optimised.
pub(crate) struct Case {
    folder: tempfile::TempDir,
    name: String,
    /// How it was optimised.
    flags: Vec<String>,
    /// What it prints.
    expected: String,
}

impl Case {
    /// Optimises a program; none if it does not end by itself within 5 seconds of processor time.
    pub(crate) fn of(name: String, source: &str, flags: &[&str]) -> Option<Case> {
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let mut case = Case { folder: tempfile::tempdir().unwrap(), name, flags, expected: String::new() };
        fs::write(case.path("a.c"), source).unwrap();
        build::to_bitcode(&case.path("a.c"), &case.path("a.bc"), &[&case.flags()[..], &["-Wno-everything"]].concat());
        build::link(&case.path("a.bc"), &case.path("a"), &[]);
        case.expected = printed(&case.path("a"), 5)?;
        Some(case)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn flags(&self) -> Vec<&str> {
        self.flags.iter().map(String::as_str).collect()
    }

    /// Runs passes. What they say not to have left is structured in IR, and the program prints the same, built from
    /// that IR and by the compiler wrapper, whose object is `c.o` then.
    pub(crate) fn judge(&self, passes: &str) -> Vec<Remark> {
        let what = self.with(passes);
        let (after, program, object) = (self.path("b.bc"), self.path("b"), self.path("c.o"));
        let remarks = build::transform(&self.path("a.bc"), passes, &after);
        assert!(remarks.iter().all(|remark| remark.kind() != Kind::Refused), "{what}: {remarks:?}");
        all_structured(&Module::read(&after).unwrap(), &remarks, &what);
        build::link(&after, &program, &[]);
        assert_eq!(printed(&program, 60).as_ref(), Some(&self.expected), "{what}");
        build::compile(&self.path("a.c"), &object, passes, &self.flags());
        build::link(&object, &program, &[]);
        assert_eq!(printed(&program, 60).as_ref(), Some(&self.expected), "{what}, by the compiler wrapper");
        remarks
    }

    /// The same of `linearize`, which leaves nothing of a program in C without `setjmp`: machine code is structured
    /// too, and what was added stays within its bound. How many functions were changed.
    pub(crate) fn judge_linearized(&self, passes: &str) -> usize {
        let (what, remarks) = (self.with(passes), self.judge(passes));
        assert!(remarks.iter().all(|remark| remark.kind() != Kind::Left), "{what}: {remarks:?}");
        let [before, after] = ["a.bc", "b.bc"].map(|file| Module::read(&self.path(file)).unwrap());
        grows_linearly(&before, &after, &remarks, &what);
        for (function, listing) in machine::functions(&self.path("c.o")) {
            assert_eq!(machine::left(&listing), Some(1), "{what}: machine code of {function}");
        }
        remarks.iter().filter(|remark| remark.is_taken()).count()
    }

    fn with(&self, passes: &str) -> String {
        format!("{} at {} after {passes}", self.name, self.flags.join(" "))
    }
}

/// What a program prints that must succeed; none if it takes more than so many seconds of processor time.
fn printed(program: &Path, seconds: u32) -> Option<String> {
    let limited = format!("ulimit -t {seconds}; exec \"$0\"");
    let done = Command::new("bash").args(["-c", &limited]).arg(program).output().unwrap();
    done.status.code()?;
    assert!(done.status.success(), "{}: {}", program.display(), done.status);
    Some(String::from_utf8(done.stdout).expect("text"))
}
