//! The instructions of one thread with the stack pointer before each.
//!
//! The records have no registers. The stack pointer follows from where instructions touch the stack: a push, a call, a
//! return and every operand relative to it tell it, and most other instructions add a constant. Behind one that does
//! not (`mov rsp, rbp`), instructions wait here until the next that tells.

use std::collections::VecDeque;
use std::io::Read;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use trace_format::{Kind, SpEffect};

use crate::decode::MAX_LENGTH;
use crate::drmemtrace::code::{Access, Bytes, Code, Codes, Moves};
use crate::drmemtrace::fault::Fault;
use crate::drmemtrace::record::{Record, Records, marker};

/// So many instructions wait for one that tells the stack pointer; then it is taken to be unchanged.
const MOST_WAITING: usize = 1 << 16;
/// So many arguments of a call are looked at: those in registers.
pub const MOST_ARGUMENTS: usize = 6;
/// So much stands between two instructions at most, and so many accesses belong to one.
const MOST_NOTES: usize = 1 << 12;
const MOST_ACCESSES: usize = 1 << 12;
/// Where stacks of threads begin in a trace without addresses: any place does.
const NO_ADDRESSES: u64 = 0x7000_0000_0000;

/// What stands between two instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The time, in microseconds.
    Time(u64),
    /// A recorded function is entered.
    Called {
        /// Its number.
        function: u64,
        /// Where it returns to.
        from: u64,
        /// Its arguments.
        arguments: Vec<u64>,
    },
    /// A recorded function has returned.
    Returned {
        /// Its number.
        function: u64,
        /// What.
        result: u64,
    },
    /// A handler of a signal comes next; 0 where its number is unknown.
    Signal(i32),
    /// A handler has returned.
    HandlerReturned,
    /// The thread goes on elsewhere, by the kernel.
    Moved,
    /// Something may be missing.
    Gap,
    /// A system call of this number was made.
    SystemCall(u64),
}

impl Note {
    /// Whether the stack pointer does not follow from what ran before it.
    pub fn moves(&self) -> bool {
        matches!(self, Note::Signal(_) | Note::HandlerReturned | Note::Moved | Note::Gap)
    }
}

/// An instruction that ran.
#[derive(Clone, Debug)]
pub struct Step {
    /// The instruction.
    pub code: Rc<Code>,
    /// The stack pointer before it.
    pub sp: u64,
    /// How many memory addresses it has.
    pub addresses: u8,
    /// What stands before it.
    pub notes: Vec<Note>,
}

impl Step {
    /// Its address.
    pub fn pc(&self) -> u64 {
        self.code.decoded.instruction.pc.0
    }
}

/// Reads the instructions of a thread.
pub struct Steps<R> {
    records: Records<R>,
    code: FxHashMap<u64, Rc<Code>>,
    stack: Stack,
    notes: Vec<Note>,
    /// The instruction whose accesses are being read.
    open: Option<Rc<Code>>,
    open_notes: Vec<Note>,
    accesses: Vec<Access>,
    /// Whether what is read now belongs to a later round of a `rep` instruction, or to the kernel.
    skips_accesses: bool,
    in_kernel: bool,
    /// The addresses of the steps that wait.
    addresses: VecDeque<u64>,
    scratch: Vec<u64>,
    encoding: Bytes,
    encoded: usize,
    /// The thread that the file is of, once it is known, and its process.
    pub thread: Option<u64>,
    /// See [`Steps::thread`].
    pub process: Option<u64>,
    /// Instructions of the program, and those of the kernel, which are left out.
    pub instructions: u64,
    /// See [`Steps::instructions`].
    pub of_kernel: u64,
    ended: bool,
    /// Whether the trace says that the thread has ended.
    pub exited: bool,
}

impl<R: Read> Steps<R> {
    /// Of a file.
    pub fn new(input: R) -> Result<Steps<R>, Fault> {
        Ok(Steps {
            records: Records::new(input)?,
            code: FxHashMap::default(),
            stack: Stack::default(),
            notes: Vec::new(),
            open: None,
            open_notes: Vec::new(),
            accesses: Vec::new(),
            skips_accesses: false,
            in_kernel: false,
            addresses: VecDeque::new(),
            scratch: Vec::new(),
            encoding: [0; MAX_LENGTH],
            encoded: 0,
            thread: None,
            process: None,
            instructions: 0,
            of_kernel: 0,
            ended: false,
            exited: false,
        })
    }

    /// Reads on until it is known what kind of trace it is: whether it has memory addresses.
    pub fn begin(&mut self) -> Result<bool, Fault> {
        // No instruction stands before the file's type.
        while !self.ended && (!self.records.has_type() || self.thread.is_none() || self.process.is_none()) {
            self.read(&mut Codes::new(false))?;
        }
        // Without addresses, each thread has a stack somewhere.
        self.stack.last = NO_ADDRESSES - (self.thread.unwrap_or(0) << 24 & 0xffff_ffff_ffff >> 2);
        Ok(self.records.has_addresses())
    }

    /// The next instruction; none at the end. Its addresses are taken by [`Steps::take_addresses`], before the next.
    pub fn next(&mut self, codes: &mut Codes) -> Result<Option<Step>, Fault> {
        loop {
            if let Some(step) = self.stack.pop(self.ended) {
                return Ok(Some(step));
            }
            if self.ended {
                return Ok(None);
            }
            self.read(codes)?;
        }
    }

    /// Takes the addresses of the step that was given last.
    pub fn take_addresses(&mut self, step: &Step, into: &mut Vec<u64>) {
        into.extend(self.addresses.drain(..usize::from(step.addresses)));
    }

    /// What stands behind the last instruction.
    pub fn last_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn read(&mut self, codes: &mut Codes) -> Result<(), Fault> {
        match self.records.next()? {
            None => {
                self.close();
                self.ended = true;
            }
            Some(Record::Instruction { again: true, .. }) => self.skips_accesses = true,
            Some(Record::Instruction { .. }) if self.in_kernel => {
                self.of_kernel += 1;
                self.encoded = 0;
            }
            Some(Record::Instruction { pc, len, .. }) => self.instruction(codes, pc, len)?,
            Some(Record::Access { address, writes }) => {
                let is_wanted = !self.skips_accesses && !self.in_kernel && self.open.is_some();
                if is_wanted && self.accesses.len() < MOST_ACCESSES {
                    self.accesses.push(Access { address, writes });
                }
            }
            Some(Record::Encoding { count, bytes }) => {
                let (start, count) = (self.encoded, usize::from(count));
                let room = self.encoding.get_mut(start..start + count);
                let room = room.ok_or_else(|| self.records.fault("an encoding of more than 15 bytes"))?;
                room.copy_from_slice(&bytes[..count]);
                self.encoded += count;
            }
            Some(Record::Thread(thread)) => {
                if self.thread.is_some_and(|known| known != thread) {
                    return Err(Fault::of(
                        "it holds records of several threads, which is an older form of trace. Record it again: newer \
                         versions of DynamoRIO write a file for each thread",
                    ));
                }
                self.thread = Some(thread);
            }
            Some(Record::Process(process)) => self.process = Some(process),
            Some(Record::Exit) => self.exited = true,
            Some(Record::Marker(kind, value)) => self.marker(kind, value)?,
            Some(Record::Other) => {}
        }
        Ok(())
    }

    fn instruction(&mut self, codes: &mut Codes, pc: u64, len: u8) -> Result<(), Fault> {
        self.close();
        if self.encoded > 0 {
            if self.encoded != usize::from(len) {
                let what = format!("an instruction of {len} bytes has an encoding of {}", self.encoded);
                return Err(self.records.fault(what));
            }
            let code = codes.get(pc, &self.encoding, len);
            self.code.insert(pc, code);
            (self.encoding, self.encoded) = ([0; MAX_LENGTH], 0);
        }
        let code = self.code.get(&pc).filter(|code| code.decoded.instruction.len == len);
        let Some(code) = code else {
            return Err(self.records.fault(format!("the instruction at {pc:#x} has no encoding")));
        };
        self.open = Some(code.clone());
        self.open_notes = std::mem::take(&mut self.notes);
        self.skips_accesses = false;
        self.instructions += 1;
        Ok(())
    }

    /// All accesses of the open instruction have been read.
    fn close(&mut self) {
        let Some(mut code) = self.open.take() else { return };
        self.scratch.clear();
        if !code.addresses(&self.accesses, &mut self.scratch) {
            code = code.without_memory();
        }
        self.accesses.clear();
        self.addresses.extend(&self.scratch);
        let addresses = self.scratch.len() as u8;
        let step = Step { code, sp: 0, addresses, notes: std::mem::take(&mut self.open_notes) };
        self.stack.push(step, &self.scratch, self.records.has_addresses());
    }

    fn marker(&mut self, kind: u16, value: u64) -> Result<(), Fault> {
        if marker::KERNEL_BEGINS.contains(&kind) || marker::KERNEL_ENDS.contains(&kind) {
            self.in_kernel = marker::KERNEL_BEGINS.contains(&kind);
            return Ok(());
        }
        if self.in_kernel {
            return Ok(());
        }
        let note = match (kind, self.notes.last_mut()) {
            (marker::TIME, Some(Note::Time(time))) => {
                *time = value;
                return Ok(());
            }
            (marker::TIME, _) => Note::Time(value),
            (marker::FUNCTION, _) => Note::Returned { function: value, result: 0 },
            (marker::RETURN_ADDRESS, Some(Note::Returned { function, .. })) => {
                let called = Note::Called { function: *function, from: value, arguments: Vec::new() };
                self.notes.pop();
                called
            }
            (marker::ARGUMENT, Some(Note::Called { arguments, .. })) => {
                if arguments.len() < MOST_ARGUMENTS {
                    arguments.push(value);
                }
                return Ok(());
            }
            // System calls have no return address.
            (marker::ARGUMENT, Some(Note::Returned { function, .. })) => {
                let called = Note::Called { function: *function, from: 0, arguments: vec![value] };
                self.notes.pop();
                called
            }
            (marker::RESULT, Some(Note::Returned { result, .. })) => {
                *result = value;
                return Ok(());
            }
            (marker::SEQUENCE_ABORT, _) => Note::Moved,
            (marker::KERNEL_EVENT, Some(Note::Moved)) => return Ok(()),
            (marker::KERNEL_EVENT, _) => Note::Signal(0),
            (marker::SIGNAL, Some(Note::Signal(number))) => {
                *number = i32::try_from(value).unwrap_or(0);
                return Ok(());
            }
            (marker::KERNEL_TRANSFER, _) => Note::HandlerReturned,
            (marker::WINDOW, _) if self.instructions > 0 => Note::Gap,
            (marker::SYSTEM_CALL, _) => Note::SystemCall(value),
            _ => return Ok(()),
        };
        if self.notes.len() >= MOST_NOTES {
            return Err(self.records.fault(format!("more than {MOST_NOTES} markers without an instruction")));
        }
        self.notes.push(note);
        Ok(())
    }
}

/// Where the stack pointer is, as far as it is known.
enum Pointer {
    /// There.
    Known(u64),
    /// So far from where it was at the first step that waits for it.
    From(u64),
}

/// Finds the stack pointer before each step.
struct Stack {
    pointer: Pointer,
    /// The steps, of which those from `known` on wait.
    steps: VecDeque<Step>,
    known: usize,
    /// The last that was known.
    last: u64,
    /// Without addresses: the stack pointers at which the functions began that the thread is in.
    calls: Vec<u64>,
}

impl Default for Stack {
    fn default() -> Stack {
        let (steps, calls) = (VecDeque::new(), Vec::new());
        Stack { pointer: Pointer::From(0), steps, known: 0, last: NO_ADDRESSES, calls }
    }
}

impl Stack {
    fn push(&mut self, mut step: Step, addresses: &[u64], has_addresses: bool) {
        if step.notes.iter().any(Note::moves) {
            self.guess();
            self.pointer = Pointer::From(0);
        }
        let told = step.code.stack.and_then(|(at, added)| Some(addresses.get(at)?.wrapping_sub(added)));
        let told = told.or_else(|| if has_addresses { None } else { self.by_calls(&step) });
        match self.pointer {
            Pointer::Known(sp) => step.sp = told.unwrap_or(sp),
            Pointer::From(distance) => {
                step.sp = told.unwrap_or(distance);
                if let Some(sp) = told {
                    self.know(sp.wrapping_sub(distance));
                }
            }
        }
        let (sp, effect, moves) = (step.sp, step.code.decoded.instruction.sp, step.code.moves);
        let is_known = told.is_some() || matches!(self.pointer, Pointer::Known(_));
        self.steps.push_back(step);
        if is_known {
            (self.known, self.last) = (self.steps.len(), sp);
        }
        self.pointer = match (effect, moves) {
            (SpEffect::Add(change), _) if is_known => Pointer::Known(sp.wrapping_add_signed(change.into())),
            (SpEffect::Add(change), _) => Pointer::From(sp.wrapping_add_signed(change.into())),
            (_, Moves::Leaves) if !addresses.is_empty() => {
                self.guess();
                Pointer::Known(addresses[0].wrapping_add(8))
            }
            (_, Moves::Aligns(mask)) if is_known => Pointer::Known(sp & mask),
            // It mostly is a multiple already: a new thread does this first.
            (_, Moves::Aligns(_)) => Pointer::From(sp),
            _ => {
                self.guess();
                Pointer::From(0)
            }
        };
        if self.steps.len() - self.known > MOST_WAITING {
            self.guess();
        }
    }

    /// The stack pointer in a trace without addresses: before a return, what it was behind the call's push.
    fn by_calls(&mut self, step: &Step) -> Option<u64> {
        let kind = step.code.decoded.instruction.kind;
        match self.pointer {
            _ if kind == Kind::Return => self.calls.pop(),
            Pointer::Known(sp) if kind.is_call() => {
                self.calls.push(sp.wrapping_sub(8));
                None
            }
            // Calls tell nothing by themselves; where none is open, any place does.
            Pointer::From(_) if kind.is_call() || self.steps.is_empty() && self.calls.is_empty() => {
                self.guess();
                let Pointer::Known(sp) = self.pointer else { return None };
                if kind.is_call() {
                    self.calls.push(sp.wrapping_sub(8));
                }
                Some(sp)
            }
            _ => None,
        }
    }

    /// The stack pointer at the first step that waits is known.
    fn know(&mut self, base: u64) {
        for step in self.steps.range_mut(self.known..) {
            step.sp = step.sp.wrapping_add(base);
        }
        self.known = self.steps.len();
    }

    /// Nothing tells it: it is taken to be as it was last.
    fn guess(&mut self) {
        if self.known < self.steps.len() || matches!(self.pointer, Pointer::From(_)) {
            let base = self.last;
            self.know(base);
            if let Pointer::From(distance) = self.pointer {
                self.pointer = Pointer::Known(base.wrapping_add(distance));
            }
        }
    }

    /// The next step whose stack pointer is known.
    fn pop(&mut self, at_end: bool) -> Option<Step> {
        if at_end && self.known < self.steps.len() {
            self.guess();
        }
        if self.known == 0 {
            return None;
        }
        self.known -= 1;
        self.steps.pop_front()
    }
}
