//! Processes that the program makes: they are followed if the user asked for that, else let go.
//!
//! A thread that makes a process is led through that call step by step, and nothing else is done in the meantime: the
//! child's memory, a copy of its maker's or the same, is what we know of its maker's.

use nix::libc;
use trace_format::{Event, ThreadId};

use super::Session;
use super::processes::running;
use super::thread::SpaceId;
use super::thread::{Birth, Thread};
use crate::images::modules::regions;
use crate::kernel::debuggers::is_inner_tracer;
use crate::kernel::frames::STEP_FLAG;
use crate::kernel::ptrace::{self, Address, EVENT_STOP, Registers, Stop, Tid};
use crate::translate::addresses::{CachePc, ProgramPc, RecordPlace};
use crate::translate::layout::{PAGE, slot};
use crate::translate::memory::mapper::SetUpError;
use crate::translate::memory::space::Landing;
use crate::translate::remote::{self, Lost, Result};
use crate::usage::Why;

/// What a call that was interrupted before it did anything returns, as long as the program does not see it: it is made
/// again.
const ERESTARTNOINTR: i64 = -513;
/// The arguments of `clone3` that we know, in bytes.
const CLONE_ARGUMENTS: u64 = 88;

/// What a new process has of its maker.
#[derive(Clone, Copy)]
struct Inherited {
    /// Who made it.
    maker: Option<Tid>,
    /// Whether it says together with its maker what to do at signals.
    same_actions: bool,
    /// The memory that it shares or has a copy of.
    space: SpaceId,
    /// Whether it has memory of its own.
    own_memory: bool,
    /// Those of the vital signals that the maker believes blocked.
    hidden_mask: u64,
    /// The base of gs.
    gs_base: u64,
    /// Where it goes on in the program.
    next: ProgramPc,
}

impl Session<'_> {
    /// A thread is about to make another, or a process. `registers` are the program's, before the call.
    pub(super) fn make_child(&mut self, tid: Tid, registers: &Registers, next: ProgramPc) -> Result<()> {
        let flags = clone_flags(tid, registers.rax, registers);
        if flags & libc::CLONE_THREAD as u64 != 0 {
            self.stand_before_call(tid, registers, next)?;
            self.resume(tid, 0);
            return Ok(());
        }
        let call = self.without_untraced(tid, registers, flags)?;
        self.stand_before_call(tid, &call, next)?;
        if let Some(child) = self.step_over_call(tid, registers)? {
            self.process_made(tid, child, flags, next)?;
        }
        self.resume(tid, 0);
        Ok(())
    }

    /// The registers of the call without the flag by which no tracer gets to know of the child: it would run our code
    /// unseen.
    fn without_untraced(&mut self, tid: Tid, registers: &Registers, flags: u64) -> Result<Registers> {
        let untraced = libc::CLONE_UNTRACED as u64;
        let mut call = *registers;
        if flags & untraced != 0 && registers.rax.cast_signed() == libc::SYS_clone {
            call.rdi &= !untraced;
        } else if flags & untraced != 0 {
            let mut arguments = [0; CLONE_ARGUMENTS as usize];
            let length = registers.rsi.min(CLONE_ARGUMENTS) as usize;
            ptrace::read(tid, Address(registers.rdi), &mut arguments[..length]);
            arguments[..8].copy_from_slice(&(flags & !untraced).to_le_bytes());
            let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
            call.rdi = translator.space.scratch(thread.slot, &arguments[..length]);
            call.rsi = length as u64;
        }
        Ok(call)
    }

    /// Lets a thread that stands before a call that makes a process make it; the program's registers before the call
    /// are `before`. Returns the number of the process; none when the call has failed.
    fn step_over_call(&mut self, tid: Tid, before: &Registers) -> Result<Option<Tid>> {
        loop {
            ptrace::step(tid, 0)?;
            let stop = ptrace::wait_for(tid).inspect_err(|_| self.expect_orphans(tid))?;
            let now = ptrace::registers(tid).inspect_err(|_| self.expect_orphans(tid))?;
            let landing = self.translator(tid)?.space.landing(CachePc(now.rip));
            let own = Registers { rdi: before.rdi, rsi: before.rsi, r11: now.r11 & !STEP_FLAG, ..now };
            match stop {
                Stop::Event {
                    event: libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE,
                    ..
                } => {
                    let child = ptrace::event_message(tid).inspect_err(|_| self.expect_orphans(tid))?;
                    // When this fails the thread has been killed; its child is there all the same.
                    let _ = ptrace::set_registers(tid, &own);
                    return Ok(Some(Tid(child as i32)));
                }
                Stop::Signal(libc::SIGTRAP) if ptrace::signal_info(tid)?.code() > 0 => {
                    if landing == Some(Landing::After) && now.rax.cast_signed() == ERESTARTNOINTR {
                        // A signal has interrupted it, which may have no handler, or have gone to another thread. The
                        // kernel would make the call again when the thread goes on, and it would do so unseen.
                        let rip = self.translator(tid)?.space.call().0;
                        ptrace::set_registers(tid, &Registers { rip, rax: before.rax, orig_rax: u64::MAX, ..own })?;
                    } else if landing == Some(Landing::After) {
                        ptrace::set_registers(tid, &own)?;
                        return Ok(None);
                    }
                }
                Stop::Signal(_) | Stop::Event { event: EVENT_STOP, .. } => {
                    // It is brought back to where the program stands before the call, and comes here again.
                    let again = now.rax.cast_signed() == ERESTARTNOINTR;
                    if landing == Some(Landing::Before) || again {
                        let rip = self.translator(tid)?.space.call().0;
                        ptrace::set_registers(tid, &Registers { rip, rax: before.rax, orig_rax: u64::MAX, ..own })?;
                        let settled = self.settle(tid)?;
                        self.run_at(tid, &settled)?;
                    }
                    return Err(Lost::Stopped(stop));
                }
                stop => {
                    if landing == Some(Landing::After) {
                        self.expect_orphans(tid);
                    }
                    return Err(Lost::Stopped(stop));
                }
            }
        }
    }

    /// A thread was killed in a call that makes a process: there may be one that has its memory.
    fn expect_orphans(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get(&tid) {
            self.processes.keep(thread.space);
        }
    }

    /// A process was made, and its maker stands in the call.
    fn process_made(&mut self, tid: Tid, child: Tid, flags: u64, next: ProgramPc) -> Result<()> {
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let inherited = Inherited {
            maker: Some(thread.process),
            same_actions: flags & libc::CLONE_SIGHAND as u64 != 0,
            space: thread.space,
            own_memory: flags & libc::CLONE_VM as u64 == 0,
            hidden_mask: thread.signals.hidden_mask,
            gs_base: thread.gs_base,
            next,
        };
        thread.pointer = RecordPlace(translator.space.value(thread.slot, slot::POINTER));
        self.drain(tid);
        self.store_pointer(tid);
        let number = match ptrace::wait_for(child)? {
            Stop::Event { event: EVENT_STOP, .. } => self.follow_or_let_go(tid, child, flags, inherited),
            // It was killed.
            stop => {
                self.met.push_back((child, stop));
                None
            }
        };
        if let Some(thread) = self.threads.get(&tid).filter(|thread| thread.recording) {
            let child = child.0.cast_unsigned();
            self.recorder.event(thread.stream.id, Event::Fork { child, thread: number });
        }
        Ok(())
    }

    /// Returns the number of the child's thread in the trace, if it is followed.
    fn follow_or_let_go(&mut self, tid: Tid, child: Tid, flags: u64, inherited: Inherited) -> Option<ThreadId> {
        if is_inner_tracer(flags) {
            let maker = self.threads.get(&tid)?.process;
            let result = self.lead_out(child, inherited).and_then(|()| self.begin_inner_tracer(child, maker));
            self.lost(child, result);
            return None;
        }
        let followed = self.options.follow_forks && self.recording;
        let result = match followed.then(|| self.share_memory(tid, child, flags, inherited)) {
            Some(Ok(space)) => {
                let birth = self.birth_of(tid, child, space, inherited)?;
                self.coming.births.insert(child, birth);
                self.others.set(child, true);
                let result = self.first_stop(child);
                self.lost(child, result);
                return Some(birth.id);
            }
            Some(Err(SetUpError::Lost(lost))) => Err(lost),
            Some(Err(SetUpError::Refused(what, errno))) => {
                self.found.warnings.push(format!("process {child} is not recorded: {what} in it ({errno})"));
                self.let_go(child, inherited)
            }
            None => self.let_go(child, inherited),
        };
        self.lost(child, result);
        None
    }

    fn birth_of(&mut self, tid: Tid, child: Tid, space: SpaceId, inherited: Inherited) -> Option<Birth> {
        let parent = self.threads.get(&tid)?.stream.id;
        let Inherited { hidden_mask, gs_base, next, .. } = inherited;
        let id = self.recorder.reserve_thread();
        Some(Birth { process: child, space, id, parent, hidden_mask, gs_base, next, ended: false })
    }

    /// Gives a child memory of its own, or lets it share that of its maker, and notes what else it has of it.
    fn share_memory(
        &mut self,
        tid: Tid,
        child: Tid,
        flags: u64,
        inherited: Inherited,
    ) -> std::result::Result<SpaceId, SetUpError> {
        let maker = self.threads.get(&tid).ok_or(Lost::Gone)?.process;
        let copy = match inherited.own_memory {
            true => Some(self.translator_in(inherited.space)?.copy_for(child)?),
            false => None,
        };
        let same_actions = flags & libc::CLONE_SIGHAND as u64 != 0;
        let space = self.processes.fork(maker, child, copy, same_actions).ok_or(Lost::Gone)?;
        if inherited.own_memory && self.processes.takes_too_much(space, self.options.translation) {
            // Processes that sleep would keep theirs.
            self.forget_translations(space);
        }
        Ok(space)
    }

    /// What happened to a process while it was worked on is handled later.
    pub(super) fn lost(&mut self, tid: Tid, result: Result<()>) {
        if let Err(Lost::Stopped(stop)) = result {
            self.met.push_back((tid, stop));
        }
    }

    /// A process that is not recorded goes on by itself.
    fn let_go(&mut self, tid: Tid, inherited: Inherited) -> Result<()> {
        self.lead_out(tid, inherited)?;
        Ok(ptrace::detach(tid)?)
    }

    /// Gives a process that is not recorded the program's own code and registers.
    fn lead_out(&mut self, tid: Tid, inherited: Inherited) -> Result<()> {
        let mut registers = ptrace::registers(tid)?;
        let translator = self.translator_in(inherited.space)?;
        if inherited.own_memory {
            for (&page, protected) in &translator.code.protected {
                let arguments = [page, PAGE, protected.allowed, 0, 0, 0];
                remote::call(tid, translator.space.syscall_at, libc::SYS_mprotect, arguments)?;
            }
        }
        if let Some(maker) = inherited.maker {
            let (scratch, at) = (registers.gs_base + u64::from(slot::SCRATCH), translator.space.syscall_at);
            if inherited.same_actions {
                self.processes.leave_handlers(maker);
            }
            self.lead_to_handlers(tid, maker, scratch, at)?;
        }
        (registers.rip, registers.rcx) = (inherited.next.0, inherited.next.0);
        registers.r11 &= !STEP_FLAG;
        registers.gs_base = inherited.gs_base;
        registers.orig_rax = u64::MAX;
        ptrace::set_registers(tid, &registers)?;
        let mask = ptrace::signal_mask(tid)?;
        Ok(ptrace::set_signal_mask(tid, mask | inherited.hidden_mask)?)
    }

    /// A process is there that nobody has announced: its maker was killed in the call that made it. It goes on by
    /// itself.
    pub(super) fn let_orphan_go(&mut self, tid: Tid) -> Result<()> {
        let registers = ptrace::registers(tid)?;
        // It still has the slot of the thread that made it, in memory that is its maker's too.
        let slot_at = |name: u32| ptrace::read_u64(tid, Address(registers.gs_base).plus(name.into()));
        let file =
            regions(tid).into_iter().find(|region| region.contains(registers.gs_base)).map(|region| region.file.1);
        let space = file.and_then(|inode| self.processes.space_with(inode));
        let (Some(space), Some(next)) = (space, slot_at(slot::NEXT).map(ProgramPc)) else {
            // There is no way on for it.
            self.kill_process_of(tid);
            return Ok(());
        };
        let inherited =
            Inherited { maker: None, same_actions: false, space, own_memory: true, hidden_mask: 0, gs_base: 0, next };
        self.let_go(tid, inherited)?;
        // Should the memory not be its own, others can write now what was protected.
        if let Some(space) = self.processes.space_mut(space) {
            for page in space.translator.code.protected.keys().copied().collect::<Vec<_>>() {
                space.translator.memory_changed(page, PAGE, Why::Shared);
            }
        }
        Ok(())
    }

    /// A thread in a system call takes its record pointer from its slot afterwards.
    fn store_pointer(&mut self, tid: Tid) {
        if let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) {
            translator.space.set_value(thread.slot, slot::POINTER, thread.pointer.0);
        }
    }

    /// A thread has made another.
    pub(super) fn thread_made(&mut self, tid: Tid) -> Result<()> {
        let child = Tid(ptrace::event_message(tid)? as i32);
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let Thread { process, space, gs_base, .. } = *thread;
        let hidden_mask = thread.signals.hidden_mask;
        let next = ProgramPc(translator.space.value(thread.slot, slot::NEXT));
        let (id, parent) = (self.recorder.reserve_thread(), thread.stream.id);
        self.coming
            .births
            .insert(child, Birth { process, space, id, parent, hidden_mask, gs_base, next, ended: false });
        if self.coming.early.remove(&child) {
            self.stopped(child, Stop::Event { event: EVENT_STOP, signal: libc::SIGTRAP });
        }
        self.resume(tid, 0);
        Ok(())
    }
}

/// The flags of the call by which a thread makes another, or a process, in the form of `clone`.
fn clone_flags(tid: Tid, number: u64, registers: &Registers) -> u64 {
    match number.cast_signed() {
        libc::SYS_clone => registers.rdi,
        libc::SYS_clone3 => ptrace::read_u64(tid, Address(registers.rdi)).unwrap_or(0),
        libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        _ => 0,
    }
}
