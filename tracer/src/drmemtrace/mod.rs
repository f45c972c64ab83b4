//! Reads what DynamoRIO's drmemtrace has recorded, and writes it as a trace.
//!
//! An offline trace has a file for each thread, whose records are instructions with their bytes, the addresses that
//! they access, times, and calls of the functions that were recorded by name. What it lacks follows from these: the
//! stack pointer from where instructions touch the stack (`steps`), the synchronisation functions from the program's
//! files and the recorded arguments (`thread`), and the order of what threads do to each other from the times and from
//! what that can have been (`order`).

mod code;
mod fault;
mod files;
mod logs;
mod order;
mod origin;
mod record;
mod steps;
mod thread;
mod times;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustc_hash::FxHashMap;
use trace_format::{Architecture, Finish, Meta, ModuleRole, SyncFunction};

use crate::error::Result;
use crate::images::modules::{Images, ModuleMap};
use crate::images::sync_functions::Role;
use crate::kernel::interrupt::Interrupt;
use crate::record::recorder::Recorder;
use fault::Fault;
use files::Files;
use logs::Function;
use order::Order;
use origin::Origin;
use steps::Steps;
use thread::{Shared, Thread};
use times::Times;

/// The functions that drmemtrace should record, as the value of its option `-record_function`.
#[must_use]
pub fn functions() -> String {
    logs::wanted()
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Instructions, over all threads.
    pub instructions: u64,
    /// Threads.
    pub threads: u32,
    /// The size of the trace in bytes.
    pub bytes: u64,
    /// What the user should know of it, as sentences.
    pub warnings: Vec<String>,
}

/// Writes the offline trace of drmemtrace in this folder as a trace of ours.
///
/// # Errors
/// When it cannot be read: it is not there, damaged, of another kind or processor, or lacks what a trace needs. Then no
/// trace is left. When the trace cannot be written.
pub fn convert(from: &Path, output: &Path) -> Result<Converted> {
    let files = Files::find(from)?;
    let opened = Opened::new(&files)?;
    let recorder = Recorder::over(output, &Interrupt::default(), &opened.meta(&files))?;
    let memory = opened.memory;
    let mut shared = Shared::new(recorder, opened.modules, Origin::default(), opened.functions, memory);
    let mut threads = opened.threads;
    for thread in &mut threads {
        let called = |function, arguments: &[u64]| shared.will_be_called(function, arguments);
        thread.times = files::open(&thread.path).map(|file| Times::read(file, called)).unwrap_or_default();
    }
    let converted = Conversion { threads, shared, order: Order::default() }.run();
    let converted = converted.map(|mut converted| {
        if files.modules.is_none() {
            converted.warnings.push(
                "modules.log is not there, neither beside the trace nor in raw/: functions have no names, and of locks \
                 and barriers only the recorded functions are known"
                    .to_owned(),
            );
        }
        converted
    });
    if converted.is_err() && fs::metadata(output).is_ok_and(|output| output.is_file()) {
        let _ = fs::remove_file(output);
    }
    converted
}

/// A trace whose files are open.
struct Opened {
    threads: Vec<Thread>,
    memory: bool,
    modules: ModuleMap,
    program: String,
    functions: FxHashMap<u64, Function>,
}

impl Opened {
    fn new(files: &Files) -> Result<Opened> {
        let mut threads = Vec::new();
        let mut memory = None;
        for path in &files.threads {
            let opened = files::open(path).and_then(Steps::new).and_then(|mut steps| Ok((steps.begin()?, steps)));
            let (has_addresses, steps) = opened.map_err(|fault| fault.of_file(path))?;
            if *memory.get_or_insert(has_addresses) != has_addresses {
                return Err(Fault::of("it has memory addresses and others have none").of_file(path));
            }
            threads.push(Thread::new(path.clone(), steps));
        }
        // The kernel numbers threads as they are made, and begins again with small numbers behind the largest.
        threads.sort_by_key(|thread| {
            let Steps { thread, process, .. } = &thread.steps;
            (thread != process, thread < process, *thread)
        });
        if let Some(other) = threads.iter().find(|thread| thread.steps.process != threads[0].steps.process) {
            let fault = Fault::of("it is of another process than the others: convert each by itself");
            return Err(fault.of_file(&other.path));
        }
        let program = program(&files.threads[0]);
        let modules = match &files.modules {
            Some(path) => read(path, |list| logs::modules(list, &program))?,
            None => Vec::new(),
        };
        let modules = modules.into_iter().map(|listed| (listed.module, listed.image)).collect();
        let modules = ModuleMap::listed(modules, &mut Images::default());
        let functions = match &files.functions {
            Some(path) => read(path, |list| Ok(logs::functions(&String::from_utf8_lossy(list))))?,
            None => FxHashMap::default(),
        };
        Ok(Opened { threads, memory: memory.unwrap_or(false), modules, program, functions })
    }

    fn meta(&self, files: &Files) -> Meta {
        let written = fs::metadata(&files.threads[0]).and_then(|file| file.modified()).ok();
        let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let main = self.modules.main().filter(|main| main.role == ModuleRole::Main);
        Meta {
            tool: concat!("lockstep ", env!("CARGO_PKG_VERSION")).to_owned(),
            engine: "drmemtrace".to_owned(),
            command: vec![main.map_or_else(|| self.program.clone(), |main| main.path.clone())],
            started: written.map_or(0, |time| time.as_secs()),
            cpu: "unknown".to_owned(),
            architecture: Architecture::X86_64,
            memory: self.memory,
            window: None,
        }
    }
}

/// The name of the traced program: files are called drmemtrace.PROGRAM.THREAD.NUMBER.trace.zip.
fn program(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split(".trace").next().unwrap_or("");
    let mut words: Vec<&str> = name.split('.').collect();
    while words.len() > 1 && words.last().is_some_and(|word| word.parse::<u64>().is_ok()) {
        words.pop();
    }
    if words.len() > 1 && words[0] == "drmemtrace" {
        words.remove(0);
    }
    words.join(".")
}

fn read<T>(path: &PathBuf, parse: impl FnOnce(&[u8]) -> std::result::Result<T, Fault>) -> Result<T> {
    let bytes = fs::read(path).map_err(|error| Fault::of(format!("it cannot be read: {error}")));
    bytes.and_then(|bytes| parse(&bytes)).map_err(|fault| fault.of_file(path))
}

/// A conversion that is under way.
struct Conversion {
    threads: Vec<Thread>,
    shared: Shared,
    order: Order,
}

impl Conversion {
    fn run(mut self) -> Result<Converted> {
        let is_maker = |function: &Function| {
            matches!(function.role, Some(Role::Sync { function: SyncFunction::ThreadCreate, .. }))
        };
        self.order.makers_are_known(self.shared.functions.values().any(is_maker));
        for number in 0..self.threads.len() {
            self.advance(number)?;
        }
        let mut first = None;
        while !self.shared.recorder.failed()
            && let Some(number) = self.order.choose(|number| self.threads[number].next[0])
        {
            let Some(happening) = self.threads[number].next.pop_front() else { continue };
            let maker = self.order.happens(number, &happening);
            let parent = maker.or(first).filter(|maker| *maker != number).and_then(|maker| self.threads[maker].id);
            self.threads[number].write(&happening, parent, &mut self.shared);
            first.get_or_insert(number);
            self.advance(number)?;
        }
        self.finish()
    }

    /// The thread goes on to what happens next, if nothing waits to be written.
    fn advance(&mut self, number: usize) -> Result<()> {
        let thread = &mut self.threads[number];
        if thread.advance(&mut self.shared).map_err(|fault| fault.of_file(&thread.path))? {
            let is_first = thread.id.is_none() && thread.steps.thread == thread.steps.process;
            self.order.add(if is_first { 0 } else { thread.time }, number);
        }
        Ok(())
    }

    fn finish(self) -> Result<Converted> {
        let warnings = self.warnings();
        let (progress, failure) = self.shared.recorder.finish(&Finish::default());
        match failure {
            Some(error) => Err(error.into()),
            None => Ok(Converted {
                instructions: progress.instructions,
                threads: progress.threads,
                bytes: progress.bytes,
                warnings,
            }),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let [missing, differing] = self.shared.origin.lacking();
        if !missing.is_empty() {
            warnings.push(format!(
                "functions and source lines of these files have no names, and of their locks and barriers only the \
                 recorded functions are known, as the files are not there any more: {}",
                missing.join(", ")
            ));
        }
        if !differing.is_empty() {
            warnings.push(format!(
                "these files are no longer those that ran, and are not used: {}. Convert the trace where it was \
                 recorded, before the program is built again",
                differing.join(", ")
            ));
        }
        let mut unrecorded: Vec<_> = self.shared.unrecorded.iter().collect();
        unrecorded.sort_unstable();
        if !unrecorded.is_empty() {
            let calls: Vec<String> =
                unrecorded.iter().map(|(function, count)| format!("{function:?} ({count})")).collect();
            warnings.push(format!(
                "calls of these functions have no arguments in the trace, and are taken for other code: {}. Record \
                 them with -record_function, as docs/imports.md says",
                calls.join(", ")
            ));
        }
        if self.order.forced > 0 {
            warnings.push(format!(
                "{} events stand where they cannot have been: the times in the trace are too coarse, or functions were \
                 not recorded",
                self.order.forced
            ));
        }
        let of_kernel: u64 = self.threads.iter().map(|thread| thread.steps.of_kernel).sum();
        if of_kernel > 0 {
            warnings.push(format!("{of_kernel} instructions of the kernel were left out"));
        }
        warnings
    }
}
