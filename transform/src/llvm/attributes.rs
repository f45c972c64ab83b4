//! Attributes of calls and functions, flags and metadata of instructions, and what of them two instructions have in common.

use std::cell::RefCell;
use std::ptr;
use std::sync::OnceLock;

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex};
use rustc_hash::FxHashMap;

use super::{Instruction, Opcode};

/// Attributes that say how values are passed, or otherwise what a call does: both calls must have them alike.
const DECISIVE: &[&str] = &[
    "alignstack",
    "byref",
    "byval",
    "convergent",
    "elementtype",
    "immarg",
    "inalloca",
    "inreg",
    "nest",
    "nomerge",
    "preallocated",
    "returns_twice",
    "signext",
    "sret",
    "strictfp",
    "swiftasync",
    "swifterror",
    "swiftself",
    "zeroext",
    "nobuiltin",
    "builtin",
    "noinline",
    "alwaysinline",
];

/// Whether the function has this function attribute.
pub(super) fn function_has(function: LLVMValueRef, name: &str) -> bool {
    let kind = kind_named(name);
    // SAFETY: the callers pass a live function; an unknown name is kind 0, which is asked for never.
    kind != 0 && unsafe { !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind).is_null() }
}

/// LLVM's number for an attribute; 0 for a name it does not know. LLVM compares the name with all that there are, so
/// the answer is remembered.
pub(super) fn kind_named(name: &str) -> u32 {
    thread_local! {
        static KNOWN: RefCell<FxHashMap<String, u32>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        known.get(name).copied().unwrap_or_else(|| {
            // SAFETY: pointer and length are those of a live text.
            let kind = unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) };
            known.insert(name.to_owned(), kind);
            kind
        })
    })
}

/// The decisive attributes that LLVM knows, with its numbers.
fn decisive() -> &'static [(&'static str, u32)] {
    static KINDS: OnceLock<Vec<(&'static str, u32)>> = OnceLock::new();
    let known = || DECISIVE.iter().map(|&name| (name, kind_named(name))).filter(|(_, kind)| *kind != 0).collect();
    KINDS.get_or_init(known)
}

impl<'m> Instruction<'m> {
    fn attributes_at(self, index: LLVMAttributeIndex) -> Vec<LLVMAttributeRef> {
        assert!(self.opcode() == Opcode::LLVMCall, "only calls have attributes");
        // SAFETY: it is a call; the array is as long as LLVM says.
        unsafe {
            let count = LLVMGetCallSiteAttributeCount(self.raw(), index) as usize;
            let mut attributes = vec![ptr::null_mut(); count];
            if count > 0 {
                LLVMGetCallSiteAttributes(self.raw(), index, attributes.as_mut_ptr());
            }
            attributes
        }
    }

    /// All places at which a call can have attributes: the function, the result, each argument.
    fn attribute_places(self) -> impl Iterator<Item = LLVMAttributeIndex> {
        let arguments = self.arguments().len() as u32;
        std::iter::once(LLVMAttributeFunctionIndex).chain(0..=arguments)
    }

    /// Whether a call has an attribute of this name for itself as a whole, on the call or on the function that it calls.
    #[must_use]
    pub fn call_has(self, name: &str) -> bool {
        let kind = kind_named(name);
        let Some(callee) = self.callee() else { return false };
        if kind == 0 {
            return false;
        }
        // SAFETY: it is a call, whose attributes at this index are asked for.
        let here = unsafe { !LLVMGetCallSiteEnumAttribute(self.raw(), LLVMAttributeFunctionIndex, kind).is_null() };
        here || (callee.is_function() && function_has(callee.raw(), name))
    }

    /// Whether an argument of a call must stay the constant that it is, by what the called function says.
    #[must_use]
    pub fn must_stay_constant(self, argument: usize) -> bool {
        let kind = kind_named("immarg");
        let Some(callee) = self.callee().filter(|callee| callee.is_function()) else { return false };
        // SAFETY: attributes of a function are asked for; the index of the first argument is 1, and one past the last
        // has none.
        unsafe { !LLVMGetEnumAttributeAtIndex(callee.raw(), argument as u32 + 1, kind).is_null() }
    }

    /// The attribute by which this call and another with as many arguments cannot become one, if there is one.
    ///
    /// # Panics
    /// When one is no call.
    #[must_use]
    #[track_caller]
    pub fn call_differs_from(self, other: Instruction<'m>) -> Option<&'static str> {
        let both_call = self.opcode() == Opcode::LLVMCall && other.opcode() == Opcode::LLVMCall;
        assert!(both_call, "only calls have attributes");
        for index in self.attribute_places() {
            if self.attributes_at(index) == other.attributes_at(index) {
                continue;
            }
            for &(name, kind) in decisive() {
                // SAFETY: both are calls with arguments up to this index; attributes are unique, so that equal ones have one address.
                let (mine, others) = unsafe {
                    (
                        LLVMGetCallSiteEnumAttribute(self.raw(), index, kind),
                        LLVMGetCallSiteEnumAttribute(other.raw(), index, kind),
                    )
                };
                if mine != others {
                    return Some(name);
                }
            }
        }
        None
    }

    /// Leaves to this call only the attributes that the other has too.
    ///
    /// # Panics
    /// When one is no call, or they are of two modules.
    #[track_caller]
    pub fn intersect_attributes(self, other: Instruction<'m>) {
        self.module().assert_is(other.module());
        for index in self.attribute_places() {
            let others = other.attributes_at(index);
            for attribute in self.attributes_at(index) {
                if others.contains(&attribute) {
                    continue;
                }
                // SAFETY: it is a call that has this attribute at this index; the text belongs to the context.
                unsafe {
                    if LLVMIsStringAttribute(attribute) != 0 {
                        let mut length = 0;
                        let name = LLVMGetStringAttributeKind(attribute, &raw mut length);
                        LLVMRemoveCallSiteStringAttribute(self.raw(), index, name, length);
                    } else {
                        LLVMRemoveCallSiteEnumAttribute(self.raw(), index, LLVMGetEnumAttributeKind(attribute));
                    }
                }
            }
        }
    }

    /// Forbids later passes to make two calls of this one.
    ///
    /// # Panics
    /// When it is no call.
    #[track_caller]
    pub fn forbid_duplication(self) {
        assert!(self.opcode() == Opcode::LLVMCall, "an attribute of calls for what is no call");
        // SAFETY: it is a call; the attribute is one of the module's own context, of a kind that takes no number.
        unsafe {
            let attribute = LLVMCreateEnumAttribute(self.module().context(), kind_named("noduplicate"), 0);
            LLVMAddCallSiteAttribute(self.raw(), LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// Its metadata but for the debug location: kind and node.
    fn metadata(self) -> Vec<(u32, LLVMMetadataRef)> {
        let mut count = 0;
        // SAFETY: the list is LLVM's own until it is disposed of; the index is below the count.
        unsafe {
            let entries = LLVMInstructionGetAllMetadataOtherThanDebugLoc(self.raw(), &raw mut count);
            let list = (0..count as u32)
                .map(|i| (LLVMValueMetadataEntriesGetKind(entries, i), LLVMValueMetadataEntriesGetMetadata(entries, i)))
                .collect();
            LLVMDisposeValueMetadataEntries(entries);
            list
        }
    }

    /// Leaves to this instruction only the metadata that the other has too, debug locations aside.
    ///
    /// # Panics
    /// When they are of two modules.
    #[track_caller]
    pub fn intersect_metadata(self, other: Instruction<'m>) {
        self.module().assert_is(other.module());
        let others = other.metadata();
        for entry in self.metadata() {
            if !others.contains(&entry) {
                // SAFETY: it is an instruction, and alive; no node takes the metadata of this kind away.
                unsafe { LLVMSetMetadata(self.raw(), entry.0, ptr::null_mut()) };
            }
        }
    }

    /// Whether both have the same floating point promises. LLVM's C interface can add such promises but not take them away, so that instructions
    /// that differ in them cannot become one.
    #[must_use]
    pub fn is_as_fast_as(self, other: Instruction<'m>) -> bool {
        let flags = |i: Instruction<'m>| {
            // SAFETY: the flags are asked for where LLVM says that the instruction has them.
            unsafe {
                let has = LLVMCanValueUseFastMathFlags(i.raw()) != 0;
                has.then(|| LLVMGetFastMathFlags(i.raw()))
            }
        };
        flags(self) == flags(other)
    }

    /// Leaves to this instruction only the promises (no overflow, exact) that the other, of the same opcode, makes too.
    ///
    /// # Panics
    /// When the opcodes differ, or they are of two modules.
    #[track_caller]
    pub fn intersect_flags(self, other: Instruction<'m>) {
        use llvm_sys::LLVMOpcode::*;
        self.module().assert_is(other.module());
        assert!(self.opcode() == other.opcode(), "flags of two kinds of instruction");
        let (a, b) = (self.raw(), other.raw());
        // SAFETY: each flag is read and written for the kinds that have it, and both are of that kind.
        unsafe {
            match self.opcode() {
                LLVMAdd | LLVMSub | LLVMMul | LLVMShl | LLVMTrunc => {
                    LLVMSetNUW(a, LLVMGetNUW(a) & LLVMGetNUW(b));
                    LLVMSetNSW(a, LLVMGetNSW(a) & LLVMGetNSW(b));
                }
                LLVMUDiv | LLVMSDiv | LLVMLShr | LLVMAShr => LLVMSetExact(a, LLVMGetExact(a) & LLVMGetExact(b)),
                LLVMOr => LLVMSetIsDisjoint(a, LLVMGetIsDisjoint(a) & LLVMGetIsDisjoint(b)),
                LLVMZExt | LLVMUIToFP => LLVMSetNNeg(a, LLVMGetNNeg(a) & LLVMGetNNeg(b)),
                LLVMGetElementPtr => LLVMGEPSetNoWrapFlags(a, LLVMGEPGetNoWrapFlags(a) & LLVMGEPGetNoWrapFlags(b)),
                _ => {}
            }
        }
    }
}
