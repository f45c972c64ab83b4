//! Memory that code keeps values in: volatile accesses, room in the frame, addresses as numbers; and code that is added
//! to a module.

use std::ffi::c_char;
use std::ptr;

use llvm_sys::core::*;
use llvm_sys::ir_reader::LLVMParseIRInContext;
use llvm_sys::linker::LLVMLinkModules2;
use llvm_sys::target::{LLVMABIAlignmentOfType, LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMStoreSizeOfType};
use llvm_sys::{LLVMInlineAsmDialect, LLVMVisibility};

use crate::llvm::ir::module::taken_message;
use crate::llvm::{Builder, Module, Shape, Type, Value};
use crate::{Error, Result};

const UNNAMED: *const c_char = c"".as_ptr();

impl<'m> Builder<'m> {
    /// A load that later passes keep as it is.
    #[track_caller]
    pub(crate) fn volatile_load(self, of_type: Type<'m>, address: Value<'m>) -> Value<'m> {
        let load = self.load(of_type, address);
        // SAFETY: it is a load, just made.
        unsafe { LLVMSetVolatile(load.raw(), 1) };
        load
    }

    /// A store that later passes keep as it is.
    #[track_caller]
    pub(crate) fn volatile_store(self, value: Value<'m>, address: Value<'m>) -> crate::llvm::Instruction<'m> {
        let store = self.store(value, address);
        // SAFETY: it is a store, just made.
        unsafe { LLVMSetVolatile(store.raw(), 1) };
        store
    }

    /// Room for so many bytes in the stack frame, aligned to `alignment`, a power of two; its address.
    #[track_caller]
    pub fn room(self, bytes: u64, alignment: u32) -> Value<'m> {
        assert!(alignment.is_power_of_two(), "an alignment that is no power of two");
        let module = self.module();
        let builder = self.raw(&[]);
        // SAFETY: the builder stands in a live block; the context is alive; what was made is an alloca.
        unsafe {
            let bytes = LLVMArrayType2(LLVMInt8TypeInContext(module.context()), bytes);
            let room = LLVMBuildAlloca(builder, bytes, UNNAMED);
            LLVMSetAlignment(room, alignment);
            Value::of_raw(room, module)
        }
    }

    /// An address so many bytes behind another.
    #[track_caller]
    pub fn behind(self, address: Value<'m>, bytes: u64) -> Value<'m> {
        assert!(address.type_of().is_pointer(), "bytes behind what is no address");
        let module = self.module();
        let builder = self.raw(&[address]);
        // SAFETY: the builder stands in a live block; the base is an address, the index an integer.
        unsafe {
            let mut index = [LLVMConstInt(LLVMInt64TypeInContext(module.context()), bytes, 0)];
            let byte = LLVMInt8TypeInContext(module.context());
            Value::of_raw(LLVMBuildGEP2(builder, byte, address.raw(), index.as_mut_ptr(), 1, UNNAMED), module)
        }
    }

    /// An address as many bytes behind another as an integer of 64 bits says.
    #[track_caller]
    pub(crate) fn behind_by(self, address: Value<'m>, bytes: Value<'m>) -> Value<'m> {
        assert!(address.type_of().is_pointer(), "bytes behind what is no address");
        assert!(bytes.type_of().shape() == Shape::Integer(64), "bytes that are no integer of 64 bits");
        let module = self.module();
        let builder = self.raw(&[address, bytes]);
        // SAFETY: the builder stands in a live block; the base is an address, the index an integer.
        unsafe {
            let byte = LLVMInt8TypeInContext(module.context());
            Value::of_raw(LLVMBuildGEP2(builder, byte, address.raw(), &mut bytes.raw(), 1, UNNAMED), module)
        }
    }

    /// The integer or address as an integer or address of another type: cut off, or made longer with its sign.
    #[track_caller]
    pub(crate) fn as_type(self, value: Value<'m>, of_type: Type<'m>) -> Value<'m> {
        self.module().assert_is(of_type.module());
        if value.type_of() == of_type {
            return value;
        }
        let builder = self.raw(&[value]);
        // SAFETY: the builder stands in a live block; each cast is between the kinds of types that it is defined for.
        let raw = unsafe {
            match (value.type_of().shape(), of_type.shape()) {
                (Shape::Pointer, Shape::Integer(_)) => LLVMBuildPtrToInt(builder, value.raw(), of_type.raw(), UNNAMED),
                (Shape::Integer(_), Shape::Pointer) => LLVMBuildIntToPtr(builder, value.raw(), of_type.raw(), UNNAMED),
                (Shape::Integer(from), Shape::Integer(to)) if from > to => {
                    LLVMBuildTrunc(builder, value.raw(), of_type.raw(), UNNAMED)
                }
                (Shape::Integer(_), Shape::Integer(_)) => LLVMBuildSExt(builder, value.raw(), of_type.raw(), UNNAMED),
                _ => panic!("a cast of what is no integer and no address"),
            }
        };
        Value::of_raw(raw, self.module())
    }

    /// The integer made longer without sign.
    #[track_caller]
    pub(crate) fn as_unsigned(self, value: Value<'m>, of_type: Type<'m>) -> Value<'m> {
        match (value.type_of().shape(), of_type.shape()) {
            (Shape::Integer(from), Shape::Integer(to)) if from < to => {
                let builder = self.raw(&[value]);
                // SAFETY: the builder stands in a live block; both are integers, the second longer.
                let raw = unsafe { LLVMBuildZExt(builder, value.raw(), of_type.raw(), UNNAMED) };
                Value::of_raw(raw, self.module())
            }
            _ => self.as_type(value, of_type),
        }
    }

    /// A copy of an integer of 64 bits that no later pass sees through: it stays in a register, and what is computed
    /// from two such copies is computed twice.
    #[track_caller]
    pub fn opaque(self, value: Value<'m>) -> Value<'m> {
        let of_type = value.type_of();
        assert!(of_type.shape() == Shape::Integer(64), "an opaque copy of what is no integer of 64 bits");
        let builder = self.raw(&[value]);
        // SAFETY: the constraints are those of one result in the register of the one operand, both of this type.
        let raw = unsafe {
            let mut operand = [of_type.raw()];
            let takes = LLVMFunctionType(of_type.raw(), operand.as_mut_ptr(), 1, 0);
            let constraints = "=r,0";
            let assembly = LLVMGetInlineAsm(
                takes,
                UNNAMED,
                0,
                constraints.as_ptr().cast(),
                constraints.len(),
                1,
                0,
                LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
                0,
            );
            let mut argument = [value.raw()];
            LLVMBuildCall2(builder, takes, assembly, argument.as_mut_ptr(), 1, UNNAMED)
        };
        Value::of_raw(raw, self.module())
    }
}

impl<'m> crate::llvm::Function<'m> {
    /// The address of a variable of so many bytes that is defined elsewhere in what is linked together with the module,
    /// and is not seen from outside of that.
    ///
    /// # Panics
    /// When the module defines something else of this name.
    #[must_use]
    pub(crate) fn outside_variable(self, name: &str, bytes: u64) -> Value<'m> {
        let module = self.as_value().module();
        let name = std::ffi::CString::new(name).expect("a name without zeros");
        // SAFETY: the module is alive, the name is copied, and the type is an array's; a variable of this name is one
        // of ours.
        unsafe {
            let mut variable = LLVMGetNamedGlobal(module.raw(), name.as_ptr());
            if variable.is_null() {
                let taken = !LLVMGetNamedFunction(module.raw(), name.as_ptr()).is_null();
                assert!(!taken, "a function has the name of a variable of ours");
                let holds = LLVMArrayType2(LLVMInt8TypeInContext(module.context()), bytes);
                variable = LLVMAddGlobal(module.raw(), holds, name.as_ptr());
                LLVMSetVisibility(variable, LLVMVisibility::LLVMHiddenVisibility);
            }
            Value::of_raw(variable, module)
        }
    }
}

impl Type<'_> {
    /// How many bytes a value of it takes in an array, how many a store of it writes, and its alignment in bytes, for a
    /// type that has a size.
    #[must_use]
    pub fn layout(self) -> Option<(u64, u64, u32)> {
        // SAFETY: the type has a size; the layout is the module's.
        (self.is_first_class() && self.is_sized() && !self.is_scalable()).then(|| unsafe {
            let layout = LLVMGetModuleDataLayout(self.module().raw());
            let raw = self.raw();
            (LLVMABISizeOfType(layout, raw), LLVMStoreSizeOfType(layout, raw), LLVMABIAlignmentOfType(layout, raw))
        })
    }
}

impl Module {
    /// Adds what a text of IR defines, as a linker would.
    ///
    /// # Errors
    /// [`Error::Bug`] when LLVM makes no sense of it, or it does not go together with the module.
    pub fn link(&mut self, text: &str) -> Result<()> {
        self.sweep();
        let (mut other, mut message) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the buffer is a copy, ended by a zero, which goes over to the parser; the parsed module is of this
        // module's context and goes over to the linker. No handle is alive, since this module is borrowed mutably.
        unsafe {
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text.as_ptr().cast(), text.len(), c"added".as_ptr());
            if LLVMParseIRInContext(self.context(), buffer, &raw mut other, &raw mut message) != 0 {
                return Err(Error::Bug(format!("code to add cannot be read: {}", taken_message(message))));
            }
            // What has neither target nor layout takes on those of the other without complaint.
            LLVMSetTarget(other, LLVMGetTarget(self.raw()));
            LLVMSetDataLayout(other, LLVMGetDataLayoutStr(self.raw()));
            if LLVMLinkModules2(self.raw(), other) != 0 {
                return Err(Error::Bug(format!("code cannot be added: {}", self.complaints().join("; "))));
            }
        }
        Ok(())
    }
}
