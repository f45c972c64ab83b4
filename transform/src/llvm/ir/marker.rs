//! Markers in code: assembly that does nothing and stays where it is, and loops that stay one copy of their body.

use std::ptr;

use llvm_sys::LLVMAttributeFunctionIndex;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

use super::attributes::kind_named;
use crate::llvm::{Builder, Instruction};

/// `memory(read, inaccessiblemem: readwrite)`, as LLVM numbers it: two bits for each of the arguments' memory, memory
/// that no code sees, and all other; of these, 1 is reading and 2 is writing.
const READS: u64 = 0b01_11_01;

impl<'m> Builder<'m> {
    /// Assembly without operands that changes nothing. It runs as often as control comes there, and no store passes it:
    /// LLVM is told that it may read memory. Loads and arithmetic may pass it.
    #[track_caller]
    pub fn marker(self, text: &str) -> Instruction<'m> {
        let module = self.module();
        let of_type = self.function().function_type(None, &[]);
        let marker = self.call(of_type, self.inline_assembly(of_type, text, ""), &[]);
        for (name, value) in [("nounwind", 0), ("willreturn", 0), ("memory", READS)] {
            // SAFETY: it is a call, just made; the attribute is one of the module's own context, and `memory` takes a
            // number of this form.
            unsafe {
                let attribute = LLVMCreateEnumAttribute(module.context(), kind_named(name), value);
                LLVMAddCallSiteAttribute(marker.raw(), LLVMAttributeFunctionIndex, attribute);
            }
        }
        marker
    }
}

impl Instruction<'_> {
    /// Has later passes neither unroll nor vectorise the loop of which it is the branch back, whatever was asked of
    /// them before.
    ///
    /// # Panics
    /// When it is no branch.
    #[track_caller]
    pub(crate) fn keep_loop_whole(self) {
        assert!(self.is_terminator(), "no branch, and so no loop's");
        let context = self.module().context();
        // SAFETY: the context is alive, texts are given with their lengths, and arrays are as long as the counts say.
        // The first operand of a loop's node is the node itself, which makes it a node of its own.
        unsafe {
            let text = |text: &str| LLVMMDStringInContext2(context, text.as_ptr().cast(), text.len());
            let node = |mut operands: Vec<LLVMMetadataRef>| {
                LLVMMDNodeInContext2(context, operands.as_mut_ptr(), operands.len())
            };
            let no = LLVMValueAsMetadata(LLVMConstInt(LLVMInt1TypeInContext(context), 0, 0));
            let no_unrolling = node(vec![text("llvm.loop.unroll.disable")]);
            let no_vectors = node(vec![text("llvm.loop.vectorize.enable"), no]);
            let of_loop = node(vec![ptr::null_mut(), no_unrolling, no_vectors]);
            let as_value = LLVMMetadataAsValue(context, of_loop);
            LLVMReplaceMDNodeOperandWith(as_value, 0, of_loop);
            let kind = "llvm.loop";
            let kind = LLVMGetMDKindIDInContext(context, kind.as_ptr().cast(), kind.len() as u32);
            LLVMSetMetadata(self.raw(), kind, LLVMMetadataAsValue(context, of_loop));
        }
    }
}
