//! The trace as it is written: blocks interned, events numbered, symbols added when their functions first run.
//!
//! When the trace cannot be written, the recorder keeps the error and silently drops everything that follows: the
//! program must not suffer for it. The engine asks [`Recorder::failed`] and stops stepping.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use rustc_hash::FxHashSet;
use trace_format::{
    Architecture, Block, BlockId, Event, Execution, Finish, Meta, ModuleId, Pc, Seq, SyncFunction, ThreadExit,
    ThreadId, TraceWriter,
};

use crate::engine::{Progress, TraceOptions};
use crate::images::modules::ModuleMap;
use crate::kernel::interrupt::Interrupt;
use crate::limit::Limit;
use crate::record::blocks::{Interner, PendingBlock};
use crate::record::output::Output;
use crate::record::sync_stack::SyncStack;

/// How many threads can act at one time; each gets a number of its own for it.
const AT_ONE_TIME: u64 = 64;

/// What tells a program from others: path, build id and bias of its file.
type ProgramKey = (String, Option<Vec<u8>>, u64);

/// Writes one trace.
pub struct Recorder {
    writer: TraceWriter<Output>,
    blocks: Interner,
    symbols: FxHashSet<Pc>,
    /// The programs that ran so far: what their files are, and how far they were moved.
    programs: Vec<ProgramKey>,
    next_seq: u64,
    /// Whether events are numbered by time, and then the last number of each thread, plus 1.
    timed: bool,
    last: Vec<u64>,
    threads: u32,
    /// Whether the program is outside of its window: what it runs is left out.
    paused: bool,
    failure: Option<trace_format::Error>,
}

impl Recorder {
    /// Creates the file and writes what is known before the start.
    pub fn create(options: &TraceOptions) -> trace_format::Result<Recorder> {
        let meta = Meta {
            tool: concat!("lockstep ", env!("CARGO_PKG_VERSION")).to_owned(),
            engine: options.engine.name().to_owned(),
            command: options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            started: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            cpu: processor(),
            architecture: Architecture::X86_64,
            memory: options.memory,
            window: options.window.words(),
        };
        let recorder = Recorder::over(&options.output, &options.interrupt, &meta)?;
        Ok(Recorder { paused: !options.window.is_open_at_first(), ..recorder })
    }

    /// Creates the file of a run of which this is known.
    pub fn over(path: &Path, interrupt: &Interrupt, meta: &Meta) -> trace_format::Result<Recorder> {
        let file = Output::create(path, interrupt).map_err(|source| trace_format::Error::Io {
            path: path.to_owned(),
            action: trace_format::Action::Create,
            source,
        })?;
        let mut writer = TraceWriter::new(file, path, meta)?;
        writer.forget_blocks();
        Ok(Recorder {
            writer,
            blocks: Interner::default(),
            symbols: FxHashSet::default(),
            programs: Vec::new(),
            next_seq: 0,
            timed: false,
            last: Vec::new(),
            threads: 0,
            paused: false,
            failure: None,
        })
    }

    /// Whether the trace can no longer be written.
    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether what runs is left out, since the program is outside of its window. Events are still written: a lock may
    /// be taken outside and given back inside, and a barrier's size is set before its first wait.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Nothing that the program runs is recorded from here on. `threads` are those whose streams are open.
    pub fn pause(&mut self, threads: &[ThreadId]) {
        self.paused = true;
        for &thread in threads {
            self.event(thread, Event::Gap);
        }
    }

    /// What the program runs is recorded from here on. `threads` are those whose streams are open, and their stack
    /// pointers.
    pub fn go_on(&mut self, threads: &[(ThreadId, u64)]) {
        self.paused = false;
        for &(thread, sp) in threads {
            self.event(thread, Event::SetSp(sp));
        }
    }

    fn check<T>(&mut self, result: trace_format::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }

    /// From now on events are numbered from this time on, for engines whose events become known out of order. The
    /// processors' clocks tick in steps, so two threads may act at one time; their numbers differ even then. An event
    /// comes behind the thread's others whatever its time; with 0 right behind them.
    pub fn set_time(&mut self, time: u64) {
        self.next_seq = time;
        self.timed = true;
    }

    /// The number of a block, which is added when the trace does not have it. While nothing is recorded it is any.
    pub fn intern(&mut self, block: &Block, modules: &ModuleMap) -> Option<BlockId> {
        if self.failed() {
            return None;
        }
        if self.paused {
            return Some(BlockId(0));
        }
        let result = self.find_or_add(Cow::Borrowed(block), modules);
        self.check(result)
    }

    /// The thread ran blocks without recorded stack pointers, as in [`TraceWriter::plain_blocks`].
    pub fn run_plain(&mut self, thread: ThreadId, blocks: &[u32], instructions: u32, sp_change: i64) {
        if !self.failed() && !self.paused {
            let result = self.writer.plain_blocks(thread, blocks, instructions, sp_change);
            self.check(result);
        }
    }

    /// The thread ran a block; `sps` and `values` as in [`TraceWriter::block`].
    pub fn run(&mut self, thread: ThreadId, block: BlockId, sps: &[u64], values: &[u64]) {
        if !self.failed() && !self.paused {
            let result = self.writer.block(thread, block, sps, values);
            self.check(result);
        }
    }

    /// The thread ran blocks without recorded stack pointers, as in [`TraceWriter::executions`].
    #[inline]
    pub fn run_many<'v>(&mut self, thread: ThreadId, mut next: impl FnMut() -> Option<Execution<'v>>) {
        if self.failed() || self.paused {
            while next().is_some() {}
            return;
        }
        let result = self.writer.executions(thread, next);
        self.check(result);
    }

    /// The number of the thread's next event.
    fn seq(&mut self, thread: ThreadId) -> Seq {
        let mut number = self.next_seq;
        if self.timed {
            if self.last.len() <= thread.index() {
                self.last.resize(thread.index() + 1, 0);
            }
            let last = &mut self.last[thread.index()];
            number = number.max(*last);
            *last = number + 1;
        }
        self.next_seq = number + 1;
        Seq(if self.timed { number * AT_ONE_TIME + u64::from(thread.0) % AT_ONE_TIME } else { number })
    }

    /// The number of a thread that is about to start; each must be started.
    pub fn reserve_thread(&mut self) -> ThreadId {
        self.threads += 1;
        ThreadId(self.threads - 1)
    }

    /// A thread starts.
    pub fn start_thread(&mut self, thread: ThreadId, parent: Option<ThreadId>, os_tid: i32, sp: u64) {
        let seq = self.seq(thread);
        self.event(thread, Event::ThreadStart { parent, os_tid: os_tid.cast_unsigned(), sp, seq });
        if self.paused {
            self.event(thread, Event::Gap);
        }
    }

    /// The thread ends.
    pub fn end_thread(&mut self, thread: ThreadId, exit: ThreadExit) {
        let seq = self.seq(thread);
        self.event(thread, Event::ThreadEnd { exit, seq });
    }

    /// The thread entered a function.
    pub fn enter(
        &mut self,
        thread: ThreadId,
        function: SyncFunction,
        mut object: u64,
        argument: u64,
        modules: &ModuleMap,
    ) {
        use SyncFunction::{
            ParallelBody, TargetBody, TargetFork, TaskBody, TaskCreate, TeamsBody, TeamsFork, ThreadBody,
        };
        let is_body = matches!(function, ThreadBody | ParallelBody | TaskBody | TeamsBody | TargetBody);
        if is_body || matches!(function, TaskCreate | TeamsFork | TargetFork) {
            let routine = modules.pc(object);
            object = routine.0;
            if is_body && self.paused && !self.failed() {
                // What the thread was started for has a name, though it was not recorded from its first instruction on.
                let added = self.name_function(routine, modules);
                self.check(added);
            }
        }
        let seq = self.seq(thread);
        self.event(thread, Event::Enter { function, object, argument, seq });
    }

    /// The thread left a function.
    pub fn leave(&mut self, thread: ThreadId, function: SyncFunction, result: u64) {
        let seq = self.seq(thread);
        self.event(thread, Event::Leave { function, result, seq });
    }

    /// The thread runs a parallel region by itself from here on; it is at the first instruction of a function that this
    /// caller called. What the runtime runs so for itself it tells of in another way.
    pub fn begin_alone(
        &mut self,
        thread: ThreadId,
        sync: &mut SyncStack,
        (function, caller): (u64, u64),
        modules: &ModuleMap,
    ) {
        for entered in sync.begin_alone(modules.are_of_one_file(function, caller)) {
            let threads = u64::from(*entered == SyncFunction::ParallelFork);
            self.enter(thread, *entered, caller, threads, modules);
        }
    }

    /// That region has ended.
    pub fn end_alone(&mut self, thread: ThreadId, sync: &mut SyncStack) {
        for left in sync.end_alone() {
            self.leave(thread, left, 0);
        }
    }

    /// The thread runs this task, with its routine, from here on.
    pub fn begin_task(
        &mut self,
        thread: ThreadId,
        sync: &mut SyncStack,
        (routine, task): (u64, u64),
        modules: &ModuleMap,
    ) {
        if sync.begin_task(task) {
            self.enter(thread, SyncFunction::TaskBody, routine, task, modules);
        }
    }

    /// That task has ended.
    pub fn end_task(&mut self, thread: ThreadId, sync: &mut SyncStack) {
        for left in sync.end_task() {
            self.leave(thread, left, 0);
        }
    }

    /// The thread waited at a futex.
    pub fn futex_wait(&mut self, thread: ThreadId, address: u64) {
        if !self.paused {
            let seq = self.seq(thread);
            self.event(thread, Event::FutexWait { address, seq });
        }
    }

    /// A signal handler begins, at this pc of the trace and this stack pointer; the code that it interrupted had the
    /// other one.
    pub fn signal(&mut self, thread: ThreadId, number: i32, handler: Pc, sp: u64, interrupted_sp: u64) {
        if self.paused {
            // It does not follow from what was recorded.
            self.event(thread, Event::SetSp(interrupted_sp));
        }
        self.event(thread, Event::Signal { number, handler });
        self.event(thread, Event::SetSp(sp));
    }

    /// An event without a number.
    #[inline]
    pub fn event(&mut self, thread: ThreadId, event: Event) {
        if !self.failed() {
            let result = self.writer.event(thread, event);
            self.check(result);
        }
    }

    /// The thread ran these instructions. The pending block is empty afterwards.
    pub fn block(&mut self, thread: ThreadId, pending: &mut PendingBlock, modules: &ModuleMap) {
        if !pending.is_empty() && !self.failed() && !self.paused {
            let result = self.try_block(thread, pending, modules);
            self.check(result);
        }
        pending.clear();
    }

    fn try_block(&mut self, thread: ThreadId, pending: &PendingBlock, modules: &ModuleMap) -> trace_format::Result<()> {
        let id = self.find_or_add(Cow::Borrowed(&pending.block), modules)?;
        self.writer.block(thread, id, &pending.sps, &pending.memory)
    }

    fn find_or_add(&mut self, mut block: Cow<'_, Block>, modules: &ModuleMap) -> trace_format::Result<BlockId> {
        if modules.program() != 0 {
            for instruction in &mut block.to_mut().instructions {
                instruction.pc = instruction.pc.in_program(modules.program());
            }
        }
        let digest = match self.blocks.find(&block) {
            Ok(id) => return Ok(id),
            Err(digest) => digest,
        };
        // A block may go through several functions, where it follows calls.
        for instruction in &block.instructions {
            self.name_function(instruction.pc, modules)?;
        }
        let id = self.writer.add_block_like(&block)?;
        self.blocks.insert(digest, id);
        Ok(id)
    }

    /// Adds the name of the function with this pc, which is one of the trace.
    fn name_function(&mut self, pc: Pc, modules: &ModuleMap) -> trace_format::Result<()> {
        if let Some(function) = modules.function_entered(pc.address()) {
            let symbol = function.symbol(modules.program());
            if self.symbols.insert(symbol.pc) {
                self.writer.add_symbol(&symbol)?;
            }
        }
        Ok(())
    }

    /// Looks for modules that came and went, and writes them, in the stream of the thread that saw it.
    pub fn modules(&mut self, thread: ThreadId, map: &mut ModuleMap, changes: &crate::images::modules::Changes) {
        if !map.has_program() {
            let program = self.program(map);
            map.set_program(program);
        }
        for &id in &changes.unloaded {
            self.event(thread, Event::ModuleUnloaded(id));
        }
        for &place in &changes.loaded {
            if let Some(id) = self.add_module(map, place) {
                self.event(thread, Event::ModuleLoaded(id));
            }
        }
    }

    /// The number of the program that these are the modules of.
    fn program(&mut self, map: &ModuleMap) -> u16 {
        let key = map.main().map(|main| (main.path.clone(), main.build_id.clone(), main.bias)).unwrap_or_default();
        let number = self.programs.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.programs.push(key);
            self.programs.len() - 1
        });
        u16::try_from(number).unwrap_or(u16::MAX).min(Pc::LAST_PROGRAM)
    }

    fn add_module(&mut self, map: &mut ModuleMap, place: usize) -> Option<ModuleId> {
        if self.failed() {
            return None;
        }
        let result = self.writer.add_module(&map.module(place));
        let id = self.check(result)?;
        map.set_id(place, id);
        Some(id)
    }

    /// Whether the trace is as long as it may become.
    pub fn has_reached(&self, limit: Limit) -> bool {
        match limit {
            Limit::Instructions(most) => self.writer.instructions() >= most,
            Limit::Bytes(most) => self.writer.bytes_expected() >= most,
        }
    }

    /// How many more instructions may be written.
    pub fn instructions_left(&self, limit: Option<Limit>) -> u64 {
        match limit {
            Some(Limit::Instructions(most)) if !self.paused => most.saturating_sub(self.writer.instructions()),
            Some(_) | None => u64::MAX,
        }
    }

    /// How far the recording is.
    pub fn progress(&self) -> Progress {
        Progress { instructions: self.writer.instructions(), threads: self.threads, bytes: self.writer.bytes_written() }
    }

    /// Writes the end of the trace and returns how large it is, and the first error, if there was one.
    pub fn finish(self, finish: &Finish) -> (Progress, Option<trace_format::Error>) {
        let mut progress = self.progress();
        match (self.failure, self.writer.finish(finish)) {
            (None, Ok(file)) => {
                progress.bytes = file.len().unwrap_or(progress.bytes);
                (progress, None)
            }
            (Some(error), _) | (None, Err(error)) => (progress, Some(error)),
        }
    }
}

/// The processor's name, as the kernel tells it.
fn processor() -> String {
    /// The name stands at the start of the file, which has a kilobyte for each of the processors.
    const START: usize = 4096;
    let mut text = Vec::with_capacity(START);
    let read = File::open("/proc/cpuinfo").and_then(|file| file.take(START as u64).read_to_end(&mut text));
    let text = if read.is_ok() { String::from_utf8_lossy(&text) } else { Cow::Borrowed("") };
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}
