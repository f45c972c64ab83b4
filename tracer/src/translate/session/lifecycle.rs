//! Threads and processes that begin and end.

use std::fs;

use nix::errno::Errno;
use nix::libc;
use trace_format::{Event, ThreadExit};

use super::Session;
use super::processes::running;
use super::thread::Thread;
use crate::engine::Exit;
use crate::kernel::frames::CODE_64;
use crate::kernel::ptrace::{self, Tid};
use crate::limit::Limit;
use crate::translate::addresses::{ProgramPc, RecordPlace};
use crate::translate::code::superblock::MAX_HOT_INSTRUCTIONS;
use crate::translate::expand::Stream;
use crate::translate::hooks::SmallBuffers;
use crate::translate::layout::{BUFFER_LEN, CACHE_LEN, TABLES_LEN, VALUES_BUFFER_LEN, slots_len};
use crate::translate::memory::mapper::SetUpError;
use crate::translate::memory::space::Space;
use crate::translate::program::program_code::ProgramCode;
use crate::translate::remote::{self, Lost, Result};
use crate::translate::translator::Translator;

/// The longest record fits into it: a path of [`MAX_HOT_INSTRUCTIONS`], which has no more than three values for each,
/// since no run of instructions makes more unknown, and what is known is not recorded again.
const LEAST_ROOM: u64 = 16 << 10;
const _: () = assert!(MAX_HOT_INSTRUCTIONS as u64 * 3 * 8 < LEAST_ROOM);

impl Session<'_> {
    /// The program stands at its exec event. An error is the reason why it cannot be recorded.
    pub(super) fn begin_program(&mut self) -> std::result::Result<(), String> {
        let main = self.main;
        let id = self.recorder.reserve_thread();
        let Ok(registers) = ptrace::registers(main) else { return Ok(()) };
        self.recorder.set_time(self.clock.now());
        self.recorder.start_thread(id, None, main.0, registers.rsp);
        if let Some(limit @ Limit::Instructions(0)) = self.options.limit {
            self.stop_recording(format!("{limit} was reached"));
        }
        let stream = Stream::new(id, main, registers.rsp);
        match self.begin_image(main, stream) {
            Ok(()) => {
                if let Some(limit) = limit_of(main, ADDRESS_SPACE) {
                    let taken = (slots_len(self.buffer_len()) + TABLES_LEN + CACHE_LEN) >> 20;
                    self.found.warnings.push(format!(
                        "the program's address space is limited to {limit} (ulimit -v), and its translation takes \
                         {taken} MiB of that or more: if the program runs out of memory, raise the limit or use \
                         --engine step"
                    ));
                }
                Ok(())
            }
            Err(SetUpError::Lost(Lost::Gone | Lost::NoRoom)) => Ok(()),
            Err(SetUpError::Lost(Lost::Stopped(stop))) => {
                self.met.push_back((main, stop));
                Ok(())
            }
            Err(SetUpError::Refused(what, errno)) => {
                let limit = limit_behind(main, errno).map_or_else(|| ":".to_owned(), |limit| format!(": {limit}, or"));
                Err(format!("its memory cannot be set up for translation ({what}: {errno}){limit} use --engine step"))
            }
        }
    }

    /// A new program begins in a thread, which stands at its exec event.
    fn begin_image(&mut self, tid: Tid, mut stream: Stream) -> std::result::Result<(), SetUpError> {
        if self.recording {
            self.coming.beginning.insert(tid, stream.id);
        }
        // The system call ends first.
        remote::step_quietly(tid)?;
        let registers = ptrace::registers(tid).map_err(Lost::from)?;
        if registers.cs != CODE_64 {
            self.stop_recording("the program started a 32-bit program, which cannot be recorded".to_owned());
            self.together.end();
            let _ = ptrace::detach(tid);
            return Ok(());
        }
        let mut space = Space::set_up(tid, ProgramPc(registers.rip), registers.rsp, self.buffer_len())?;
        space.room = self.room();
        space.small = SmallBuffers::new(self.hooks.small_buffers);
        let code = ProgramCode::new(tid, space.syscall_at, space.tables.lookup);
        let mut translator = Translator::new(code, space, self.options.memory, self.hooks);
        translator.code.gates.follow(&self.switch);
        let slot = translator.space.take_slot(tid)?.ok_or(Lost::Gone)?;
        let pointer = translator.space.buffer(slot);
        let space = self.processes.begin(tid, translator, self.clock);
        stream.sp = registers.rsp;
        stream.segments = [registers.fs_base, 0];
        let mut thread = Thread::new(space, slot, pointer, stream);
        thread.recording = self.recording;
        self.threads.insert(tid, thread);
        self.coming.beginning.remove(&tid);
        self.refresh_modules(tid);
        self.recall(tid);
        let translator = self.translator_mut(tid)?;
        if translator.code.region(0).is_some() {
            translator.space.tables.fill_all();
        }
        if self.threads.len() == 1 && self.coming.births.is_empty() {
            self.together.begin(tid);
        }
        self.run_at(tid, &registers)?;
        self.resume(tid, 0);
        Ok(())
    }

    /// The process has become another program; `tid` is the only thread left, with the number of the process.
    pub(super) fn exec(&mut self, tid: Tid) -> Result<()> {
        let former = self.leave_for_exec(tid);
        let Some(thread) = self.forget_thread(former) else { return Ok(()) };
        let others: Vec<Tid> = self.threads.iter().filter(|(_, other)| other.process == tid).map(|(t, _)| *t).collect();
        for other in others {
            self.end_thread(other, ThreadExit::Replaced);
            self.forget_thread(other);
        }
        let Ok(registers) = ptrace::registers(tid) else { return Ok(()) };
        let mut stream = Stream::new(thread.stream.id, tid, registers.rsp);
        stream.transferred = true;
        if self.recording {
            self.recorder.event(stream.id, Event::Exec);
            self.recorder.event(stream.id, Event::SetSp(registers.rsp));
        }
        self.warn_of_unseen_changes(tid);
        self.remember_last(tid);
        self.processes.end(tid);
        self.calls_are_replaced(stream.id);
        match self.begin_image(tid, stream) {
            Ok(()) => Ok(()),
            Err(SetUpError::Lost(lost)) => Err(lost),
            Err(SetUpError::Refused(what, errno)) => {
                self.stop_recording(format!("the next program's memory cannot be set up ({what}: {errno})"));
                self.together.end();
                let _ = ptrace::detach(tid);
                Ok(())
            }
        }
    }

    /// The process has become another program, and the thread that it was is done with its code. Returns the number
    /// that the thread had before.
    pub(super) fn leave_for_exec(&mut self, tid: Tid) -> Tid {
        let former = ptrace::event_message(tid).map_or(tid, |message| Tid(message as i32));
        if let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, former)
            && thread.end()
        {
            thread.pointer = RecordPlace(translator.space.value(thread.slot, crate::translate::layout::slot::POINTER));
            self.drain(former);
        }
        former
    }

    fn buffer_len(&self) -> u64 {
        if self.options.memory { VALUES_BUFFER_LEN } else { BUFFER_LEN }
    }

    /// How much of a buffer is used: with a limit, little enough that one thread's records do not take all of it before
    /// those of the others are looked at.
    pub(super) fn room(&self) -> u64 {
        let most = self.buffer_len();
        match self.options.limit {
            _ if self.hooks.routes_at_once && self.recording => LEAST_ROOM,
            Some(Limit::Instructions(limit)) if self.recording => (limit / 64).clamp(LEAST_ROOM, most),
            _ => most,
        }
    }

    /// The first stop of a thread that is not known yet.
    pub(super) fn first_stop(&mut self, tid: Tid) -> Result<()> {
        let Some(&birth) = self.coming.births.get(&tid) else {
            if is_process(tid) {
                return self.let_orphan_go(tid);
            }
            self.coming.early.insert(tid);
            return Ok(());
        };
        let mut registers = ptrace::registers(tid)?;
        let mut stream = Stream::new(birth.id, birth.process, registers.rsp);
        stream.segments = [registers.fs_base, birth.gs_base];
        let translator = &mut self.processes.space_mut(birth.space).ok_or(Lost::Gone)?.translator;
        let Some(slot) = translator.space.take_slot(tid)? else {
            // There is no way on for a thread without a slot.
            self.stop_recording("the program has more than 16384 threads: use --engine step".to_owned());
            let _ = ptrace::detach(tid);
            return Ok(());
        };
        let pointer = translator.space.buffer(slot);
        // Until here the thread may be lost, and its birth then is all that is known about it.
        self.coming.births.remove(&tid);
        let mut thread = Thread::new(birth.space, slot, pointer, stream);
        thread.signals.hidden_mask = birth.hidden_mask;
        thread.gs_base = birth.gs_base;
        thread.recording = self.recording && !birth.ended;
        if thread.recording {
            self.recorder.set_time(self.clock.now());
            self.recorder.start_thread(birth.id, Some(birth.parent), tid.0, registers.rsp);
        }
        self.threads.insert(tid, thread);
        (registers.rip, registers.rcx) = (birth.next.0, birth.next.0);
        self.run_at(tid, &registers)?;
        self.resume(tid, 0);
        Ok(())
    }

    /// The thread is about to end; its registers can still be read.
    pub(super) fn exiting(&mut self, tid: Tid) {
        self.together.end();
        self.hand_postponed_on(tid);
        self.settle_at_end(tid);
        self.drain(tid);
        let status = ptrace::event_message(tid).unwrap_or(0) as i32;
        let exit = match status & 0x7f {
            0 if status == 0 && self.is_replaced(tid) => ThreadExit::Replaced,
            0 => ThreadExit::Exited(status >> 8 & 0xff),
            signal => ThreadExit::Killed(signal),
        };
        self.end_thread(tid, exit);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.end();
        }
        self.resume(tid, 0);
    }

    /// A thread is gone, or has become another program: its slot is free.
    pub(super) fn forget_thread(&mut self, tid: Tid) -> Option<Thread> {
        let thread = self.threads.remove(&tid)?;
        if let Some(space) = self.processes.space_mut(thread.space) {
            space.translator.space.give_slot_back(thread.slot);
        }
        Some(thread)
    }

    /// Whether a thread that ends with status 0 was removed by another thread's `execve`: somebody makes that call, and
    /// nobody one that ends threads. A thread that has not begun has made none.
    fn is_replaced(&self, tid: Tid) -> bool {
        let (process, space, slot) = match (self.threads.get(&tid), self.coming.births.get(&tid)) {
            (Some(thread), _) => (thread.process, thread.space, Some(thread.slot)),
            (None, Some(birth)) => (birth.process, birth.space, None),
            (None, None) => return false,
        };
        let Ok(translator) = self.translator_in(space) else { return false };
        let number = |slot| translator.space.value(slot, crate::translate::layout::slot::NUMBER).cast_signed();
        let of_process = |other: &&Thread| !other.has_ended() && other.process == process;
        let others = || self.threads.values().filter(of_process).map(|other| number(other.slot));
        slot.map(number) != Some(libc::SYS_exit)
            && others().any(|call| call == libc::SYS_execve || call == libc::SYS_execveat)
            && !others().any(|call| call == libc::SYS_exit_group)
    }

    /// Writes a thread's end. Nothing when that was done before.
    pub(super) fn end_thread(&mut self, tid: Tid, exit: ThreadExit) {
        if let Some(id) = self.coming.beginning.remove(&tid) {
            self.recorder.set_time(self.clock.now());
            self.recorder.end_thread(id, exit);
        }
        if let Some(thread) = self.threads.get_mut(&tid)
            && std::mem::take(&mut thread.recording)
        {
            self.recorder.set_time(self.clock.now());
            self.recorder.end_thread(thread.stream.id, exit);
            self.switch.calls_are_gone(thread.stream.id);
        }
    }

    /// An announced thread is gone, or will not be recorded: its number has been given away already.
    pub(super) fn stillborn(&mut self, tid: Tid, exit: ThreadExit) {
        if let Some(birth) = self.coming.births.get_mut(&tid)
            && !std::mem::replace(&mut birth.ended, true)
        {
            let birth = *birth;
            self.recorder.set_time(self.clock.now());
            self.recorder.start_thread(birth.id, Some(birth.parent), tid.0, 0);
            self.recorder.end_thread(birth.id, exit);
        }
    }

    /// The thread is gone.
    pub(super) fn gone(&mut self, tid: Tid, exit: Exit) {
        self.together.end();
        let thread_exit = match exit {
            Exit::Exited(0) if self.is_replaced(tid) => ThreadExit::Replaced,
            Exit::Exited(status) => ThreadExit::Exited(status),
            Exit::Signalled(signal) => ThreadExit::Killed(signal),
        };
        if self.threads.get(&tid).is_some_and(|thread| !thread.has_ended()) {
            self.settle_unseen_end(tid);
        }
        self.end_thread(tid, thread_exit);
        self.stillborn(tid, thread_exit);
        self.coming.births.remove(&tid);
        self.forget_thread(tid);
        self.warn_of_unseen_changes(tid);
        self.remember_last(tid);
        self.processes.end(tid);
        self.others.set(tid, false);
        self.coming.early.remove(&tid);
        if tid == self.main {
            self.found.exit = Some(exit);
        }
    }
}

/// Whether this is the number of a process, and not of another thread of one.
fn is_process(tid: Tid) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group.is_some_and(|number| number.trim() == tid.to_string())
}

/// The name of the limit for address space.
const ADDRESS_SPACE: &str = "Max address space";

/// The limit of a process for which the kernel has refused memory of ours, and what to do about it.
fn limit_behind(process: Tid, errno: Errno) -> Option<String> {
    let (name, what, option) = match errno {
        Errno::ENOMEM => (ADDRESS_SPACE, "its address space is limited", "-v"),
        Errno::EFBIG => ("Max file size", "the size of files and of shared memory is limited", "-f"),
        Errno::EMFILE => ("Max open files", "the number of open files is limited", "-n"),
        _ => return None,
    };
    let limit = limit_of(process, name)?;
    Some(format!("{what} to {limit} (ulimit {option}), which is too little: raise that limit"))
}

/// A limit of a process that has this name in its list of them, if it is limited.
fn limit_of(process: Tid, name: &str) -> Option<String> {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?;
    (limit != "unlimited").then(|| limit.to_owned())
}
