//! A module, the context that it lives in, and what was taken out of it.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr;

use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyModule};
use llvm_sys::core::*;
use llvm_sys::ir_reader::LLVMParseIRInContext;
use llvm_sys::prelude::*;

use crate::llvm::{Block, Function};
use crate::{Error, Result};

/// An LLVM module, alone in a context of its own; or one that is lent ([`Lent`](crate::llvm::Lent)).
pub struct Module {
    is_lent: bool,
    raw: LLVMModuleRef,
    context: LLVMContextRef,
    builder: LLVMBuilderRef,
    /// What LLVM complained about. On the heap: LLVM holds its address.
    complaints: Box<RefCell<Vec<String>>>,
    /// Unlinked instructions; they use nothing but poison and the block below.
    erased: RefCell<Vec<LLVMValueRef>>,
    /// Unlinked blocks, empty.
    erased_blocks: RefCell<Vec<LLVMBasicBlockRef>>,
    /// How often the control flow of a function, or the order of its blocks, was changed through a handle.
    flow_changes: Cell<u64>,
    /// In no function: what erased terminators lead to.
    nowhere: LLVMBasicBlockRef,
}

impl Module {
    /// Reads bitcode or IR text.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read, [`Error::BadIr`] when LLVM makes no sense of it.
    pub fn read(path: &Path) -> Result<Module> {
        let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Module::parse(&bytes, &path.display().to_string())
    }

    /// The module that these bytes hold, bitcode or IR text; `name` stands in messages.
    ///
    /// # Errors
    /// [`Error::BadIr`] when LLVM makes no sense of them.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Module> {
        let buffer_name = CString::new(name.replace('\0', "?")).unwrap_or_default();
        let complaints = Box::new(RefCell::new(Vec::new()));
        let mut raw = ptr::null_mut();
        let mut message = ptr::null_mut();
        // SAFETY: the buffer is a copy of `bytes`, ended by a zero as the parser wants it, and goes over to the parser,
        // which frees it. The handler's address is that of the boxed list, which the module keeps for as long as the
        // context.
        let (context, failed) = unsafe {
            let context = LLVMContextCreate();
            LLVMContextSetDiagnosticHandler(
                context,
                Some(note_complaint),
                ptr::from_ref::<RefCell<Vec<String>>>(&complaints).cast_mut().cast(),
            );
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.as_ptr().cast(), bytes.len(), buffer_name.as_ptr());
            (context, LLVMParseIRInContext(context, buffer, &raw mut raw, &raw mut message))
        };
        if failed != 0 {
            // SAFETY: a failed parse leaves a message to free and no module; nothing else uses the context.
            let text = unsafe {
                let text = taken_message(message);
                LLVMContextDispose(context);
                text
            };
            return Err(Error::BadIr { name: name.to_owned(), text: printable(&first_of(text, &complaints)) });
        }
        // SAFETY: both are alive, and nobody else's.
        Ok(unsafe { Module::of_raw(raw, context, complaints, false) })
    }

    /// A module that somebody else owns.
    ///
    /// # Safety
    /// It is alive, and nobody uses it or its context otherwise while this lives.
    pub(in crate::llvm) unsafe fn lent(raw: LLVMModuleRef) -> Module {
        // SAFETY: the caller says so.
        unsafe { Module::of_raw(raw, LLVMGetModuleContext(raw), Box::default(), true) }
    }

    /// # Safety
    /// The module is alive, and of this context, and nobody uses either otherwise while this lives.
    unsafe fn of_raw(
        raw: LLVMModuleRef,
        context: LLVMContextRef,
        complaints: Box<RefCell<Vec<String>>>,
        is_lent: bool,
    ) -> Module {
        // SAFETY: `context` is alive; both belong to it and are disposed of before it in `drop`.
        let (builder, nowhere) = unsafe {
            (LLVMCreateBuilderInContext(context), LLVMCreateBasicBlockInContext(context, c"nowhere".as_ptr()))
        };
        Module {
            is_lent,
            raw,
            context,
            builder,
            complaints,
            erased: RefCell::default(),
            erased_blocks: RefCell::default(),
            flow_changes: Cell::new(0),
            nowhere,
        }
    }

    /// The name of the source that it was compiled from.
    #[must_use]
    pub(crate) fn source_name(&self) -> String {
        let mut length = 0;
        // SAFETY: the module is alive; the text belongs to it.
        unsafe { crate::llvm::owned_text(LLVMGetSourceFileName(self.raw, &raw mut length), length) }
    }

    /// Checks that the module is well formed.
    ///
    /// # Errors
    /// What LLVM's verifier says, line by line.
    pub fn verify(&self) -> std::result::Result<(), String> {
        let mut message = ptr::null_mut();
        // SAFETY: the module is alive; the message is freed by `taken_message`.
        let (broken, text) = unsafe {
            let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
            let broken = LLVMVerifyModule(self.raw, action, &raw mut message);
            (broken != 0, taken_message(message))
        };
        if broken { Err(text) } else { Ok(()) }
    }

    /// The module as IR text.
    #[must_use]
    pub fn to_text(&self) -> String {
        // SAFETY: LLVM returns a text of its own making, which `taken_message` frees.
        unsafe { taken_message(LLVMPrintModuleToString(self.raw)) }
    }

    /// The functions that have a body, in order.
    #[must_use]
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut functions = Vec::new();
        // SAFETY: the module is alive; each function is one of its list, and the next is asked for while it is.
        unsafe {
            let mut function = LLVMGetFirstFunction(self.raw);
            while !function.is_null() {
                if !LLVMGetFirstBasicBlock(function).is_null() {
                    functions.push(Function::of_raw(function, self));
                }
                function = LLVMGetNextFunction(function);
            }
        }
        functions
    }

    /// The functions that have a body and may be optimised: not those marked `optnone`, as all are by a compiler that
    /// was told not to optimise.
    #[must_use]
    pub fn functions_to_optimise(&self) -> Vec<Function<'_>> {
        self.functions().into_iter().filter(|function| !function.has_attribute("optnone")).collect()
    }

    /// Deletes what was erased.
    pub fn sweep(&mut self) {
        for instruction in self.erased.take() {
            // SAFETY: it is in no block, nothing uses it (`bury` saw to that), and no handle is left, since they borrow
            // the module.
            unsafe { LLVMDeleteInstruction(instruction) };
        }
    }

    /// Refuses what belongs to another module: LLVM would make one of both, and they have two contexts.
    #[track_caller]
    pub(in crate::llvm) fn assert_is(&self, other: &Module) {
        assert!(ptr::eq(self, other), "parts of two modules are mixed");
    }

    /// Changes whenever the control flow of a function or the order of its blocks does: what was found out about them
    /// at another number may be wrong now.
    #[must_use]
    pub(crate) fn flow_changes(&self) -> u64 {
        self.flow_changes.get()
    }

    pub(in crate::llvm) fn note_flow_change(&self) {
        self.flow_changes.set(self.flow_changes.get() + 1);
    }

    pub(in crate::llvm) fn raw(&self) -> LLVMModuleRef {
        self.raw
    }

    pub(in crate::llvm) fn context(&self) -> LLVMContextRef {
        self.context
    }

    /// The block that is in no function.
    pub(in crate::llvm) fn nowhere(&self) -> Block<'_> {
        Block::of_raw(self.nowhere, self)
    }

    /// The one builder, placed and without a debug location of its own: what is built or inserted keeps the location it
    /// has.
    pub(in crate::llvm) fn builder_at(&self, block: LLVMBasicBlockRef, before: LLVMValueRef) -> LLVMBuilderRef {
        // SAFETY: the builder is ours; the callers pass a live block, and an instruction of it or null for its end.
        unsafe {
            LLVMPositionBuilder(self.builder, block, before);
            LLVMSetCurrentDebugLocation2(self.builder, ptr::null_mut());
        }
        self.builder
    }

    /// The one builder, placed for a phi: before the debug records of the instruction too, which a phi must not have.
    pub(in crate::llvm) fn phi_builder_at(&self, block: LLVMBasicBlockRef, before: LLVMValueRef) -> LLVMBuilderRef {
        // SAFETY: as above.
        unsafe {
            LLVMPositionBuilderBeforeDbgRecords(self.builder, block, before);
            LLVMSetCurrentDebugLocation2(self.builder, ptr::null_mut());
        }
        self.builder
    }

    /// Takes over an empty block that is in no function and to which nothing leads.
    pub(in crate::llvm) fn bury_block(&self, block: LLVMBasicBlockRef) {
        self.erased_blocks.borrow_mut().push(block);
    }

    /// Takes over an instruction that is in no block and that nothing uses any more.
    pub(in crate::llvm) fn bury(&self, instruction: LLVMValueRef) {
        self.erased.borrow_mut().push(instruction);
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.sweep();
        // SAFETY: each is disposed of once, the context last. A block can be deleted with its function only: `nowhere`,
        // to which nothing leads any more since what was erased is gone, and the erased ones get one, which goes with
        // the module, or alone where the module is lent.
        unsafe {
            LLVMDisposeBuilder(self.builder);
            let of_type = LLVMFunctionType(LLVMVoidTypeInContext(self.context), ptr::null_mut(), 0, 0);
            let grave = LLVMAddFunction(self.raw, c"".as_ptr(), of_type);
            LLVMAppendExistingBasicBlock(grave, self.nowhere);
            for block in self.erased_blocks.take() {
                LLVMAppendExistingBasicBlock(grave, block);
            }
            if self.is_lent {
                LLVMDeleteFunction(grave);
                return;
            }
            LLVMDisposeModule(self.raw);
            LLVMContextDispose(self.context);
        }
    }
}

/// The first complaint, where LLVM left no message.
fn first_of(text: String, complaints: &RefCell<Vec<String>>) -> String {
    if text.is_empty() { complaints.borrow().join("; ") } else { text }
}

impl Module {
    /// What LLVM complained about since the module was read.
    #[must_use]
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.complaints.borrow().clone()
    }
}

/// A message up to where it quotes what no terminal should be given, as of a file that is no text.
fn printable(text: &str) -> String {
    let is_text = |line: &&str| !line.chars().any(|c| c.is_control() && c != '\t' || c == char::REPLACEMENT_CHARACTER);
    text.lines().take_while(is_text).collect::<Vec<_>>().join("\n")
}

/// Takes a message of LLVM's and frees it; no message is an empty text.
///
/// # Safety
/// `message` is null or a text that LLVM handed over.
pub(in crate::llvm) unsafe fn taken_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: the caller says so.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

/// Without a handler LLVM would print the message, and end the process when it is an error.
extern "C" fn note_complaint(info: LLVMDiagnosticInfoRef, list: *mut c_void) {
    // SAFETY: `list` is the box that was given with this handler, alive as long as the context; `info` lives during the
    // call.
    unsafe {
        // Passes tell what they did, whether anybody asked or not.
        if LLVMGetDiagInfoSeverity(info) == LLVMDiagnosticSeverity::LLVMDSRemark {
            return;
        }
        let text = taken_message(LLVMGetDiagInfoDescription(info));
        let list = &*list.cast::<RefCell<Vec<String>>>();
        if let Ok(mut list) = list.try_borrow_mut() {
            list.push(text);
        }
    }
}
