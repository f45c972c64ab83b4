//! One thread of the trace: from its instructions to blocks and events.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use trace_format::{Block, BlockId, Event, Pc, SpEffect, SyncFunction, ThreadExit, ThreadId};

use crate::drmemtrace::code::{Code, Codes};
use crate::drmemtrace::fault::Fault;
use crate::drmemtrace::files::Contents;
use crate::drmemtrace::logs::Function;
use crate::drmemtrace::origin::Origin;
use crate::drmemtrace::steps::{Note, Step, Steps};
use crate::drmemtrace::times::Times;
use crate::images::modules::ModuleMap;
use crate::images::sync_functions::{self, Role};
use crate::kernel::calls::is_futex_wait;
use crate::kernel::ptrace::{Registers, no_registers};
use crate::record::blocks::MAX_INSTRUCTIONS;
use crate::record::recorder::Recorder;
use crate::record::sync_stack::{Interrupted, SyncStack};

/// The numbers of recorded system calls begin here.
const SYSTEM_CALLS: u64 = 1 << 32;
const FUTEX: u64 = 202;
/// Two addresses further apart than a stack is large lie on two.
const MOST_OF_A_STACK: u64 = 64 << 20;

/// Something that happened, of which other threads may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The thread starts with this stack pointer.
    Start(u64),
    /// It enters a function.
    Enter {
        /// Which.
        function: SyncFunction,
        /// Its object.
        object: u64,
        /// Its argument.
        argument: u64,
    },
    /// It leaves a function.
    Leave {
        /// Which.
        function: SyncFunction,
        /// What that returned.
        result: u64,
        /// The object with which it was entered, and the argument.
        object: u64,
        /// See the object.
        argument: u64,
    },
    /// It waited for a futex.
    FutexWait(u64),
    /// It concerns the thread alone.
    Own(Event),
    /// The thread ends.
    End(ThreadExit),
}

/// A block that the trace has.
struct Known {
    codes: Box<[Rc<Code>]>,
    id: BlockId,
}

/// What all threads share.
pub struct Shared {
    /// Writes the trace.
    pub recorder: Recorder,
    /// The program's modules.
    pub modules: ModuleMap,
    /// Whether their files are those that ran.
    pub origin: Origin,
    /// The recorded functions.
    pub functions: FxHashMap<u64, Function>,
    /// The instructions.
    pub codes: Codes,
    /// The blocks by their first instruction and length.
    blocks: FxHashMap<(*const Code, usize), Vec<Known>>,
    /// What recorded functions are, and routines that were handed to them, by address.
    routines: FxHashMap<u64, Role>,
    /// Functions that were entered though the trace has no arguments of them, with how often.
    pub unrecorded: FxHashMap<SyncFunction, u64>,
}

impl Shared {
    /// Nothing has run yet.
    pub fn new(
        recorder: Recorder,
        modules: ModuleMap,
        origin: Origin,
        functions: FxHashMap<u64, Function>,
        memory: bool,
    ) -> Shared {
        let (blocks, unrecorded) = (FxHashMap::default(), FxHashMap::default());
        // Their places are known without the files of their modules, too.
        let routines = functions.values().filter_map(|function| Some((function.start, function.role?))).collect();
        Shared { recorder, modules, origin, functions, codes: Codes::new(memory), blocks, routines, unrecorded }
    }

    /// A recorded function is called somewhere with these arguments, which may be a routine that other threads run. One
    /// of them may be read up to there before the call is: it does nothing else in between that others know of. But no
    /// thread starts before it was made, and what it starts with may have run before as plain code.
    pub fn will_be_called(&mut self, function: u64, arguments: &[u64]) {
        let role = self.functions.get(&function).and_then(|function| function.role);
        let routine = role.filter(|role| !(arguments.len() as u8..6).any(|number| role.names(number)));
        match routine.and_then(|role| role.of_routine(&registers(0, 0, arguments), |_| None)) {
            None | Some((_, Role::Sync { function: SyncFunction::ThreadBody, .. })) => {}
            Some((routine, role)) => _ = self.routines.entry(routine).or_insert(role),
        }
    }

    fn block(&mut self, thread: ThreadId, run: &[Rc<Code>], sps: &[u64], addresses: &[u64]) {
        let key = (Rc::as_ptr(&run[0]), run.len());
        let same = |known: &[Rc<Code>]| known.iter().zip(run).all(|(a, b)| Rc::ptr_eq(a, b));
        let known = self.blocks.get(&key).and_then(|all| all.iter().find(|known| same(&known.codes)));
        let id = match known {
            Some(known) => known.id,
            None => {
                let pc = run[0].decoded.instruction.pc.0;
                self.origin.check(pc, &run[0].decoded, &mut self.modules);
                if let Some(place) = self.modules.new_at(pc) {
                    let changes = crate::images::modules::Changes { unloaded: Vec::new(), loaded: vec![place] };
                    self.recorder.modules(thread, &mut self.modules, &changes);
                }
                let mut block = Block::default();
                for code in run {
                    block.instructions.push(code.decoded.instruction);
                    block.code.extend(code.decoded.code());
                }
                let Some(id) = self.recorder.intern(&block, &self.modules) else { return };
                self.blocks.entry(key).or_default().push(Known { codes: run.into(), id });
                id
            }
        };
        self.recorder.run(thread, id, sps, addresses);
    }
}

/// A thread of the trace.
pub struct Thread {
    /// Its file.
    pub path: PathBuf,
    /// Its number, once it has started.
    pub id: Option<ThreadId>,
    /// The kernel's number of it.
    pub os_tid: i32,
    /// The time of what it does next, in nanoseconds.
    pub time: u64,
    /// When it did what; empty until it is read.
    pub times: Times,
    /// Its instructions that were looked at.
    done: u64,
    /// What it does next, in order: nothing of it has been written.
    pub next: VecDeque<Happening>,
    /// Its instructions.
    pub steps: Steps<Contents>,
    /// The instruction that ran last.
    last: Option<Step>,
    last_addresses: Vec<u64>,
    /// The stack pointer behind it.
    expected_sp: u64,
    run: Vec<Rc<Code>>,
    sps: Vec<u64>,
    addresses: Vec<u64>,
    sync: SyncStack,
    /// The objects and arguments of the functions that it is in.
    entered: Vec<(SyncFunction, u64, u64)>,
    team_size: u64,
    system_call: u64,
    ended: bool,
}

impl Thread {
    /// A thread that has not started.
    pub fn new(path: PathBuf, steps: Steps<Contents>) -> Thread {
        let os_tid = steps.thread.unwrap_or(0) as i32;
        Thread {
            path,
            id: None,
            os_tid,
            time: 0,
            times: Times::default(),
            done: 0,
            next: VecDeque::new(),
            steps,
            last: None,
            last_addresses: Vec::new(),
            expected_sp: 0,
            run: Vec::new(),
            sps: Vec::new(),
            addresses: Vec::new(),
            sync: SyncStack::default(),
            entered: Vec::new(),
            team_size: 0,
            system_call: 0,
            ended: false,
        }
    }

    /// Goes on until something happens, or to the end: false. What was to happen before has been written.
    pub fn advance(&mut self, shared: &mut Shared) -> Result<bool, Fault> {
        while self.next.is_empty() && !self.ended {
            match self.steps.next(&mut shared.codes)? {
                Some(step) => self.step(step, shared),
                None => self.end(shared),
            }
        }
        Ok(!self.next.is_empty())
    }

    /// Writes what happened first; `parent` is the thread that made this one, where it starts.
    pub fn write(&mut self, happening: &Happening, parent: Option<ThreadId>, shared: &mut Shared) {
        let Shared { recorder, modules, .. } = shared;
        let started = self.id;
        let thread = *self.id.get_or_insert_with(|| recorder.reserve_thread());
        match *happening {
            Happening::Start(sp) if started.is_none() => recorder.start_thread(thread, parent, self.os_tid, sp),
            Happening::Start(_) => {}
            Happening::Enter { function, object, argument } => {
                recorder.enter(thread, function, object, argument, modules);
            }
            Happening::Leave { function, result, .. } => recorder.leave(thread, function, result),
            Happening::FutexWait(address) => recorder.futex_wait(thread, address),
            Happening::Own(event) => recorder.event(thread, event),
            Happening::End(exit) => recorder.end_thread(thread, exit),
        }
    }

    fn step(&mut self, step: Step, shared: &mut Shared) {
        let transferred = self.retire(Some(&step), shared);
        self.time = self.time.max(self.times.after(self.done));
        self.done += 1;
        if self.last.is_none() {
            self.next.push_back(Happening::Start(step.sp));
        }
        let arrived = self.note(&step, transferred);
        if transferred || arrived {
            self.functions_left(&step, shared);
            self.function_entered(&step, shared);
        }
        self.last_addresses.clear();
        self.steps.take_addresses(&step, &mut self.last_addresses);
        self.last = Some(step);
    }

    /// The last instruction has run. Returns whether control was transferred by it.
    fn retire(&mut self, next: Option<&Step>, shared: &mut Shared) -> bool {
        let (Some(last), Some(thread)) = (&self.last, self.id) else { return false };
        let instruction = last.code.decoded.instruction;
        self.run.push(last.code.clone());
        self.addresses.append(&mut self.last_addresses);
        // Behind a signal the stack pointer is another one's.
        let sp = next.filter(|next| !next.notes.iter().any(Note::moves)).map(|next| next.sp);
        let expected = match instruction.sp {
            SpEffect::Add(change) => last.sp.wrapping_add_signed(change.into()),
            SpEffect::Recorded => {
                self.sps.push(sp.unwrap_or(last.sp));
                sp.unwrap_or(last.sp)
            }
        };
        self.expected_sp = expected;
        let is_noted = next.is_some_and(|next| next.notes.iter().any(|note| !matches!(note, Note::Time(_))));
        let surprise = sp.filter(|sp| *sp != expected);
        let ends = last.code.decoded.ends_block() || self.run.len() >= MAX_INSTRUCTIONS;
        if ends || is_noted || surprise.is_some() || next.is_none() {
            shared.block(thread, &self.run, &self.sps, &self.addresses);
            self.run.clear();
            self.sps.clear();
            self.addresses.clear();
        }
        self.next.extend(surprise.map(|sp| Happening::Own(Event::SetSp(sp))));
        instruction.kind.transfers_control()
    }

    /// What stands before the step. Returns whether control came to the step by the kernel.
    fn note(&mut self, step: &Step, transferred: bool) -> bool {
        let mut arrived = false;
        for note in &step.notes {
            match *note {
                Note::Signal(number) => {
                    self.next.push_back(Happening::Own(Event::Signal { number, handler: Pc(step.pc()) }));
                    let sp = if self.last.is_some() { self.expected_sp } else { step.sp };
                    let elsewhere = step.sp > sp || sp - step.sp > MOST_OF_A_STACK;
                    let alternate = elsewhere.then(|| step.sp.saturating_sub(1 << 16)..step.sp.saturating_add(1 << 16));
                    self.sync.signal(Interrupted { sp, transferred }, alternate);
                    self.next.push_back(Happening::Own(Event::SetSp(step.sp)));
                    arrived = true;
                }
                Note::HandlerReturned => {
                    let interrupted = self.sync.signal_return();
                    self.next.push_back(Happening::Own(Event::SignalReturn));
                    self.next.push_back(Happening::Own(Event::SetSp(step.sp)));
                    arrived |= interrupted.is_some_and(|interrupted| interrupted.transferred);
                }
                Note::Moved => self.next.push_back(Happening::Own(Event::SetSp(step.sp))),
                Note::Gap => {
                    self.next.push_back(Happening::Own(Event::Gap));
                    self.next.push_back(Happening::Own(Event::SetSp(step.sp)));
                }
                Note::SystemCall(number) => self.system_call = number,
                Note::Called { function, ref arguments, .. } => {
                    let operation = arguments.get(1).copied().unwrap_or(u64::MAX);
                    if function == SYSTEM_CALLS + FUTEX && is_futex_wait(operation as u32) {
                        self.next.push_back(Happening::FutexWait(arguments[0]));
                    }
                }
                Note::Time(_) | Note::Returned { .. } => {}
            }
        }
        arrived
    }

    /// The functions that the transfer to the step leaves.
    fn functions_left(&mut self, step: &Step, shared: &Shared) {
        let same_stack = |a: u64, b: u64| a.abs_diff(b) < MOST_OF_A_STACK;
        let returned = |note: &Note, of: SyncFunction| match note {
            Note::Returned { function, result } => match shared.functions.get(function)?.role? {
                Role::Sync { function, .. } if function == of => Some(*result),
                _ => None,
            },
            _ => None,
        };
        while !self.sync.is_empty() {
            let Some(function) = self.sync.leave(step.sp, same_stack) else { break };
            let result = step.notes.iter().find_map(|note| returned(note, function)).unwrap_or(0);
            let at = self.entered.iter().rposition(|(entered, ..)| *entered == function);
            let (object, argument) = at.map_or((0, 0), |at| {
                let (_, object, argument) = self.entered[at];
                self.entered.truncate(at);
                (object, argument)
            });
            self.next.push_back(Happening::Leave { function, result, object, argument });
        }
    }

    /// The function that the transfer to the step enters.
    fn function_entered(&mut self, step: &Step, shared: &mut Shared) {
        let pc = step.pc();
        if shared.modules.role(pc).is_some() {
            shared.origin.check(pc, &step.code.decoded, &mut shared.modules);
        }
        let Some(role) = shared.modules.role(pc).or_else(|| shared.routines.get(&pc).copied()) else { return };
        let called = step.notes.iter().find_map(|note| match note {
            Note::Called { function, from, arguments } if *function < SYSTEM_CALLS => {
                let known = shared.functions.get(function).and_then(|function| function.role);
                (known.is_none() || known == Some(role)).then_some((*from, &arguments[..]))
            }
            _ => None,
        });
        let arguments = called.map_or(&[][..], |(_, arguments)| arguments);
        let is_missing = (arguments.len() as u8..6).any(|number| role.names(number));
        let registers = registers(pc, step.sp, arguments);
        match role {
            Role::Sync { function, object, argument } => {
                // What is read of memory is unknown.
                let is_missing = is_missing || role.words().is_some();
                if is_missing {
                    *shared.unrecorded.entry(function).or_default() += 1;
                    return;
                }
                if !self.sync.enter(function, step.sp) {
                    return;
                }
                let object = object.value(&registers, 0, &[]);
                let argument = argument.value(&registers, self.team_size, &[]);
                self.enter(function, object, argument);
                if sync_functions::takes_team_size(function) {
                    self.team_size = 0;
                }
                if let Some((routine, role)) = role.of_routine(&registers, |_| None) {
                    shared.routines.entry(routine).or_insert(role);
                }
            }
            Role::SetsTeamSize(size) if !is_missing => self.team_size = size.value(&registers, 0, &[]),
            Role::BeginsAlone => {
                let Some((from, _)) = called else {
                    *shared.unrecorded.entry(SyncFunction::ParallelFork).or_default() += 1;
                    return;
                };
                for entered in self.sync.begin_alone(shared.modules.are_of_one_file(pc, from)) {
                    let threads = u64::from(*entered == SyncFunction::ParallelFork);
                    self.enter(*entered, from, threads);
                }
            }
            Role::EndsAlone => {
                for function in self.sync.end_alone() {
                    let (result, object, argument) = (0, 0, 0);
                    self.next.push_back(Happening::Leave { function, result, object, argument });
                }
            }
            // Which task, and its routine, memory would say.
            Role::BeginsTask => *shared.unrecorded.entry(SyncFunction::TaskBody).or_default() += 1,
            Role::SetsTeamSize(_) | Role::GivesChunk(_) | Role::MakesPieces | Role::EndsTask => {}
        }
    }

    fn enter(&mut self, function: SyncFunction, object: u64, argument: u64) {
        self.entered.push((function, object, argument));
        self.next.push_back(Happening::Enter { function, object, argument });
    }

    fn end(&mut self, shared: &mut Shared) {
        self.ended = true;
        self.time = self.time.max(self.times.after(self.done));
        for note in self.steps.last_notes() {
            if let Note::SystemCall(number) = note {
                self.system_call = number;
            }
        }
        self.retire(None, shared);
        if self.last.is_none() {
            self.next.push_back(Happening::Start(0));
        }
        let exit = if self.steps.exited { ThreadExit::Exited(0) } else { ThreadExit::StillRunning };
        self.next.push_back(Happening::End(exit));
    }
}

/// The registers at the first instruction of a function, as far as recorded arguments tell them.
fn registers(pc: u64, sp: u64, arguments: &[u64]) -> Registers {
    let argument = |number: usize| arguments.get(number).copied().unwrap_or(0);
    Registers {
        rip: pc,
        rsp: sp,
        rdi: argument(0),
        rsi: argument(1),
        rdx: argument(2),
        rcx: argument(3),
        r8: argument(4),
        r9: argument(5),
        ..no_registers()
    }
}
