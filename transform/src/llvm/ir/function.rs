//! Functions with a body.

use std::hash::{Hash, Hasher};

use llvm_sys::LLVMAttributeFunctionIndex;
use llvm_sys::core::*;
use llvm_sys::debuginfo::LLVMGetSubprogram;
use llvm_sys::prelude::*;

use crate::llvm::{Block, Module, Type, Value};

/// A function.
#[derive(Clone, Copy)]
pub struct Function<'m> {
    raw: LLVMValueRef,
    module: &'m Module,
}

impl<'m> Function<'m> {
    pub(in crate::llvm) fn of_raw(raw: LLVMValueRef, module: &'m Module) -> Function<'m> {
        assert!(!raw.is_null(), "LLVM returned no function where it always has one");
        Function { raw, module }
    }

    pub(in crate::llvm) fn raw(self) -> LLVMValueRef {
        self.raw
    }

    /// The module that it is a part of.
    #[must_use]
    pub fn module(self) -> &'m Module {
        self.module
    }

    /// It as a value: what a call of it calls.
    #[must_use]
    pub fn as_value(self) -> Value<'m> {
        Value::of_raw(self.raw, self.module)
    }

    /// Its symbol.
    #[must_use]
    pub fn name(self) -> String {
        self.as_value().name()
    }

    /// Its parameters, in order.
    #[must_use]
    pub fn parameters(self) -> Vec<Value<'m>> {
        // SAFETY: the function is alive; the index is below the count.
        unsafe {
            (0..LLVMCountParams(self.raw)).map(|i| Value::of_raw(LLVMGetParam(self.raw, i), self.module)).collect()
        }
    }

    /// Its blocks in order, the entry first.
    #[must_use]
    pub fn blocks(self) -> Vec<Block<'m>> {
        let mut blocks = Vec::new();
        // SAFETY: the function is alive; each block is one of its list while the next is asked for.
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(self.raw);
            while !block.is_null() {
                blocks.push(Block::of_raw(block, self.module));
                block = LLVMGetNextBasicBlock(block);
            }
        }
        blocks
    }

    /// The block in which it begins.
    #[must_use]
    pub fn entry(self) -> Block<'m> {
        // SAFETY: the function is alive; one whose blocks were all erased has no entry, which `of_raw` refuses.
        Block::of_raw(unsafe { LLVMGetFirstBasicBlock(self.raw) }, self.module)
    }

    /// Adds an empty block at the end.
    #[must_use]
    pub fn add_block(self, name: &str) -> Block<'m> {
        self.module.note_flow_change();
        let name = std::ffi::CString::new(name).unwrap_or_default();
        // SAFETY: function and context are alive; the name is copied.
        let raw = unsafe { LLVMAppendBasicBlockInContext(self.module.context(), self.raw, name.as_ptr()) };
        Block::of_raw(raw, self.module)
    }

    /// Gives it an attribute without a value, or takes it away; whether that was a change. A name that LLVM does not
    /// know changes nothing.
    pub(crate) fn set_attribute(self, name: &str, wanted: bool) -> bool {
        let kind = crate::llvm::ir::attributes::kind_named(name);
        if kind == 0 || self.has_attribute(name) == wanted {
            return false;
        }
        // SAFETY: the function is alive, and the kind is one of LLVM's, for which 0 stands where it has no value.
        unsafe {
            if wanted {
                let attribute = LLVMCreateEnumAttribute(self.module.context(), kind, 0);
                LLVMAddAttributeAtIndex(self.raw, LLVMAttributeFunctionIndex, attribute);
            } else {
                LLVMRemoveEnumAttributeAtIndex(self.raw, LLVMAttributeFunctionIndex, kind);
            }
        }
        true
    }

    /// Whether it has a function attribute of this name, such as `optnone`.
    #[must_use]
    pub(crate) fn has_attribute(self, name: &str) -> bool {
        crate::llvm::ir::attributes::function_has(self.raw, name)
    }

    /// What a function attribute of this name says, such as `target-features`; none where it has none.
    #[must_use]
    pub(crate) fn text_attribute(self, name: &str) -> Option<String> {
        // SAFETY: the function is alive; the text is copied, and as long as LLVM says.
        unsafe {
            let (text, length) = (name.as_ptr().cast(), name.len() as u32);
            let attribute = LLVMGetStringAttributeAtIndex(self.raw, LLVMAttributeFunctionIndex, text, length);
            (!attribute.is_null()).then(|| {
                let mut length = 0;
                let text = LLVMGetStringAttributeValue(attribute, &raw mut length);
                String::from_utf8_lossy(std::slice::from_raw_parts(text.cast(), length as usize)).into_owned()
            })
        }
    }

    /// Whether a parameter, counted from 0, has an attribute of this name, such as `byval`.
    #[must_use]
    pub(crate) fn parameter_has(self, parameter: usize, name: &str) -> bool {
        crate::llvm::ir::attributes::parameter_has(self.raw, parameter, name)
    }

    /// Whether the function has lines for a debugger.
    #[must_use]
    pub fn has_lines(self) -> bool {
        // SAFETY: the function is alive.
        unsafe { !LLVMGetSubprogram(self.raw).is_null() }
    }

    /// The type of a truth value.
    #[must_use]
    pub(crate) fn truth_type(self) -> Type<'m> {
        // SAFETY: the context is alive.
        Type::of_raw(unsafe { LLVMInt1TypeInContext(self.module.context()) }, self.module)
    }

    /// The constant true or false.
    #[must_use]
    pub fn truth(self, value: bool) -> Value<'m> {
        // SAFETY: the type is an integer's.
        let raw = unsafe { LLVMConstInt(self.truth_type().raw(), u64::from(value), 0) };
        Value::of_raw(raw, self.module)
    }
}

impl PartialEq for Function<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Function<'_> {}

impl Hash for Function<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}
