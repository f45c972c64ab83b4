//! Input and result of a call of the wrapper, and the options that it adds.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use crate::{Pipeline, Remark};

/// How code is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Layout {
    /// The pass `layout` comes last, and code generation does not move, merge or duplicate blocks.
    #[default]
    Ordered,
    /// As the compiler chooses.
    Default,
}

/// What the code is shaped for: which calls are inlined, which loops are unrolled, where there are branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shape {
    /// As the compiler chooses for the processor that runs it.
    #[default]
    Cpu,
    /// The optimiser decides with the costs of a GPU, and code generation keeps the control flow that it leaves.
    Gpu,
}

/// A call of the compiler.
pub struct Build {
    /// The compiler: `clang-19` or `clang++-19`, or its path.
    pub compiler: OsString,
    /// The passes.
    pub passes: Pipeline,
    /// How code is laid out. Default: [`Layout::Ordered`].
    pub layout: Layout,
    /// Its shape. Default: [`Shape::Cpu`].
    pub shape: Shape,
    /// Whether the iterations of OpenMP's loops are marked, for `replay --lanes marks`. Default: no.
    pub marks_iterations: bool,
    /// A folder for the IR from which code is generated, a file per compile job. Lines of the code are then numbers of
    /// instructions of that file. Default: none.
    pub keep_ir: Option<PathBuf>,
    /// The compiler's command line, without its name.
    pub arguments: Vec<OsString>,
}

impl Build {
    /// What code generation is to keep, as options of LLVM's, where a pass has made control flow structured or not:
    /// its changes of branches would be undone.
    pub(super) fn keeps(&self, structured: bool) -> Vec<&'static str> {
        let shape = self.shape == Shape::Gpu || structured;
        let order = self.layout == Layout::Ordered || shape;
        let lists = [(order, KEEP_ORDER), (shape, KEEP_SHAPE)];
        lists.into_iter().filter(|(keeps, _)| *keeps).flat_map(|(_, words)| words.iter().copied()).collect()
    }

    /// Whether the optimiser leaves what both sides of a branch end with in them, for a pass. One that runs here does
    /// not hear that.
    pub(super) fn leaves_arms_whole(&self) -> bool {
        self.shape == Shape::Cpu && self.passes.wants_whole_arms()
    }

    /// Of these, what it keeps only if a pass has made control flow structured.
    pub(super) fn keeps_if_structured(&self) -> Vec<&'static str> {
        if !self.passes.structures() {
            return Vec::new();
        }
        let anyway = self.keeps(false);
        let pairs = self.keeps(true);
        pairs.chunks(2).filter(|pair| !anyway.chunks(2).any(|other| other == *pair)).flatten().copied().collect()
    }
}

/// How a [`Build`] ended.
#[derive(Debug, Default)]
pub struct Built {
    /// The exit status that the compiler's driver would have.
    pub status: u8,
    /// What the passes looked at.
    pub remarks: Vec<Remark>,
    /// Whether a program was made of what was compiled.
    pub is_program: bool,
}

/// Stops the optimiser from making two loops of one with a branch on a loop invariant inside, such as a thread's
/// parity: each would have one of the calls that passes join.
pub(super) const NO_UNSWITCHING: &[&str] = &["-mllvm", "-unswitch-threshold=0"];

/// Leaves what both sides of a branch end with in them: `meld` takes it as it was written, and what it leaves is sunk
/// behind it. What they begin with is hoisted all the same: without that, loops come out otherwise.
pub(super) const WHOLE_ARMS: &[&str] = &["-mllvm", "-sink-common-insts=false"];

/// Code generation passes that move, merge or duplicate blocks, off.
pub(super) const KEEP_ORDER: &[&str] = &[
    "-mllvm",
    "-disable-block-placement",
    "-mllvm",
    "-enable-tail-merge=0",
    "-mllvm",
    "-disable-tail-duplicate",
    "-mllvm",
    "-disable-early-taildup",
];

/// Code generation for a GPU's shape: no branch becomes two, no choice a branch, and no branch a choice.
pub(super) const KEEP_SHAPE: &[&str] = &[
    "-mllvm",
    "-jump-is-expensive=1",
    "-mllvm",
    "-disable-cgp-select2branch",
    "-mllvm",
    "-x86-cmov-converter=0",
    "-mllvm",
    "-disable-cgp-branch-opts",
];

/// Whether an option of LLVM's is one of those above.
pub(super) fn is_our_llvm_option(word: &str) -> bool {
    [NO_UNSWITCHING, WHOLE_ARMS, KEEP_ORDER, KEEP_SHAPE].concat().contains(&word)
}

/// Values keep their names; what has no place does not get the place of what comes before it; and code generation does
/// not move extensions towards loads: what comes of those loads has no place.
pub(super) const KEEP_PLACES: &[&str] =
    &["-fno-discard-value-names", "-mllvm", "-use-unknown-locations=Enable", "-mllvm", "-disable-cgp-ext-ld-promotion"];

/// Says what is not as the user may think, on standard error. That may be closed; then nobody wants to read it.
pub(super) fn warn(what: &str) {
    let _ = writeln!(std::io::stderr(), "lockstep: warning: {what}");
}

/// Where a command line's options end and only files follow.
pub(super) fn end_of_options(words: &[OsString]) -> usize {
    words.iter().position(|word| word == "--").unwrap_or(words.len())
}
