//! Attributes of calls and functions, flags and metadata of instructions, and which of them two instructions have in
//! common.

use std::cell::RefCell;
use std::ptr;
use std::sync::OnceLock;

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex};
use rustc_hash::FxHashMap;

use crate::llvm::{Instruction, Opcode, Value};

/// Intrinsics, by how their names begin, whose argument names a variable, a type or a slot of the stack. The verifier
/// or code generation wants the constant itself there, though no attribute says so.
const NAMING: &[&str] =
    &["llvm.threadlocal.address", "llvm.eh.typeid.for", "llvm.instrprof.", "llvm.gcroot", "llvm.stackprotector"];

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
pub(in crate::llvm) fn function_has(function: LLVMValueRef, name: &str) -> bool {
    let kind = kind_named(name);
    // SAFETY: the callers pass a live function; an unknown name is kind 0, which is asked for never.
    kind != 0 && unsafe { !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind).is_null() }
}

/// Whether a parameter of the function has this attribute.
pub(in crate::llvm) fn parameter_has(function: LLVMValueRef, parameter: usize, name: &str) -> bool {
    let kind = kind_named(name);
    let place = u32::try_from(parameter + 1).unwrap_or(0);
    // SAFETY: the callers pass a live function; LLVM has no attribute at places beyond the last parameter.
    kind != 0 && place != 0 && unsafe { !LLVMGetEnumAttributeAtIndex(function, place, kind).is_null() }
}

/// LLVM's number for an attribute; 0 for a name it does not know. LLVM compares the name with all that there are, so
/// the answer is remembered.
pub(in crate::llvm) fn kind_named(name: &str) -> u32 {
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

    /// Whether a call, one that may throw or one of inline assembly with several ways on included, has an attribute of
    /// this name for itself as a whole, on the call or on the function that it calls.
    #[must_use]
    pub fn call_has(self, name: &str) -> bool {
        let kind = kind_named(name);
        if kind == 0 || !matches!(self.opcode(), Opcode::LLVMCall | Opcode::LLVMInvoke | Opcode::LLVMCallBr) {
            return false;
        }
        // SAFETY: it is a call.
        let callee = Value::of_raw(unsafe { LLVMGetCalledValue(self.raw()) }, self.module());
        // SAFETY: it is a call, whose attributes at this index are asked for.
        let here = unsafe { !LLVMGetCallSiteEnumAttribute(self.raw(), LLVMAttributeFunctionIndex, kind).is_null() };
        here || (callee.is_function() && function_has(callee.raw(), name))
    }

    /// Whether an argument of a call must stay the constant or the variable that it is, by what the called function
    /// says, or what LLVM wants of it.
    #[must_use]
    pub(crate) fn must_stay_constant(self, argument: usize) -> bool {
        if self.arguments().get(argument).is_some_and(|value| value.is_swift_error()) {
            return true;
        }
        let kind = kind_named("immarg");
        let Some(callee) = self.callee().filter(|callee| callee.is_function()) else { return false };
        if callee.is_intrinsic() && NAMING.iter().any(|name| callee.name().starts_with(name)) {
            return true;
        }
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
    pub(crate) fn call_differs_from(self, other: Instruction<'m>) -> Option<&'static str> {
        let both_call = self.opcode() == Opcode::LLVMCall && other.opcode() == Opcode::LLVMCall;
        assert!(both_call, "only calls have attributes");
        for index in self.attribute_places() {
            if self.attributes_at(index) == other.attributes_at(index) {
                continue;
            }
            for &(name, kind) in decisive() {
                // SAFETY: both are calls with arguments up to this index; attributes are unique, so that equal ones
                // have one address.
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
    pub(crate) fn intersect_attributes(self, other: Instruction<'m>) {
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
    pub(crate) fn forbid_duplication(self) {
        assert!(self.opcode() == Opcode::LLVMCall, "an attribute of calls for what is no call");
        // SAFETY: it is a call; the attribute is one of the module's own context, of a kind that takes no number.
        unsafe {
            let attribute = LLVMCreateEnumAttribute(self.module().context(), kind_named("noduplicate"), 0);
            LLVMAddCallSiteAttribute(self.raw(), LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// Leaves to this instruction, which stands for the other too, the metadata that hold for both, debug locations
    /// aside: those of aliases and ranges are widened to both, others stay where they are the same.
    ///
    /// # Panics
    /// When they are of two modules.
    #[track_caller]
    pub(crate) fn combine_metadata(self, other: Instruction<'m>) {
        self.module().assert_is(other.module());
        // SAFETY: both are instructions of one context, and alive.
        unsafe { lockstep_combine_metadata(self.raw(), other.raw()) };
    }

    /// Leaves to this instruction only the promises (no overflow, exact, about floating point) that the other, of the
    /// same opcode, makes too.
    ///
    /// # Panics
    /// When the opcodes differ, or they are of two modules.
    #[track_caller]
    pub(crate) fn intersect_flags(self, other: Instruction<'m>) {
        self.module().assert_is(other.module());
        assert!(self.opcode() == other.opcode(), "flags of two kinds of instruction");
        // SAFETY: both are instructions, and alive.
        unsafe { lockstep_intersect_flags(self.raw(), other.raw()) };
    }
}

unsafe extern "C" {
    fn lockstep_intersect_flags(kept: LLVMValueRef, other: LLVMValueRef);
    fn lockstep_combine_metadata(kept: LLVMValueRef, other: LLVMValueRef);
}
