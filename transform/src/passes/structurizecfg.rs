//! `structurizecfg`: LLVM's own way to structured control flow, a baseline for `linearize`.
//!
//! ```text
//! before: if (a || b) x; y            after
//!   branch a, X, B                      branch a, F, B
//! B:                                  B:
//!   branch b, X, Y                      goto F
//! X:                                  F:
//!   x                                   c = phi [b, from B], [true, from before]
//!   goto Y                              branch c, X, Y
//! Y:                                  X:
//!   y                                   x
//!                                       goto Y
//!                                     Y:
//!                                       y
//! ```
//!
//! # Steps
//! 1. As for `linearize`: switches become branches, and control leaves at one place; functions with exceptions and the
//!    like stay as they are.
//! 2. LLVM's passes `fix-irreducible`, `unify-loop-exits` and `structurizecfg`, which AMD's code generation runs in
//!    this order. They are run over the module, in which other functions carry `optnone` meanwhile, and no attribute
//!    that must not stand beside it.
//!
//! # Limitation
//! Functions with calls that must not depend on more branches than before (`convergent`) are left, as `split-nodes`
//! leaves them, and those in which lanes wait for what others do in them. So are functions that `linearize` would make
//! more than `growth` times their size by its estimate: LLVM's guards and phis are as many. LLVM's pass works on
//! regions with one entry and one exit, and leaves everything else unchanged. A remark names each function that is not
//! structured afterwards.
//!
//! Source: LLVM 19, `llvm/lib/Transforms/Scalar/StructurizeCFG.cpp`.

use std::rc::Rc;

use parameters::Settings;

use super::linearize::{GROWTH, estimate, is_structured, prepare};
use super::split_nodes::{outcome, remark, size};
use crate::flow::Flow;
use crate::llvm::Module;
use crate::pass::{Pass, Run};
use crate::remark::{Remark, Split};

const NAME: &str = "structurizecfg";

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "structurizecfg",
    summary: "makes unstructured control flow structured by LLVM's own pass of this name; it has to run last",
    source: "LLVM 19",
    parameters: &[GROWTH],
    structures: true,
    run: Run::Module(run),
};

/// Runs LLVM's passes where a function is not structured.
fn run(module: &mut Module, settings: &Settings) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut changed: Vec<(String, Split)> = Vec::new();
    let functions = module.functions_to_optimise();
    let waits = Rc::default();
    for function in functions {
        let switches = prepare::switches(function);
        if switches.is_empty() && is_structured(&Flow::of(function)) {
            continue;
        }
        let together = || prepare::convergent_in(function).or_else(|| prepare::held_up(function, &waits));
        if let Some((at, reason)) = prepare::obstacle(function).or_else(together) {
            remarks.push(remark(NAME, function.name(), vec![at.place()], reason));
            continue;
        }
        if let Some(reason) = estimate::obstacle(&Flow::of(function), settings.number(GROWTH.name)) {
            remarks.push(remark(NAME, function.name(), Vec::new(), reason));
            continue;
        }
        let before = size(function);
        switches.into_iter().for_each(|block| prepare::lower_switch(block.terminator()));
        if !is_structured(&Flow::of(function)) {
            prepare::one_end(function);
        }
        changed.push((function.name(), Split { before, ..Split::default() }));
    }
    if changed.is_empty() {
        return remarks;
    }
    module.sweep();
    // LLVM's passes go over all functions but those that must not be optimised.
    // Those have none of the attributes that LLVM's verifier refuses beside that.
    const MEANWHILE: [(&str, bool); 6] = [
        ("optsize", false),
        ("minsize", false),
        ("optdebug", false),
        ("alwaysinline", false),
        ("noinline", true),
        ("optnone", true),
    ];
    let mut marked: Vec<(String, &str, bool)> = Vec::new();
    for function in module.functions().into_iter().filter(|f| !changed.iter().any(|(name, _)| *name == f.name())) {
        for (attribute, wanted) in MEANWHILE {
            if function.set_attribute(attribute, wanted) {
                marked.push((function.name(), attribute, !wanted));
            }
        }
    }
    module
        .run_passes("function(fix-irreducible,unify-loop-exits,structurizecfg)")
        .expect("LLVM knows its own passes, and the module is well formed");
    for function in module.functions() {
        for (_, attribute, had) in marked.iter().filter(|(name, ..)| *name == function.name()) {
            function.set_attribute(attribute, *had);
        }
        if let Some((_, done)) = changed.iter().find(|(name, _)| *name == function.name()) {
            remarks.extend(outcome(NAME, function, *done));
        }
    }
    remarks
}
