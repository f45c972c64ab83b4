//! The program asks for memory where ours lies: it would get it without us, so ours moves away.
//!
//! Before a system call that names addresses, or that needs more room than is left beside ours, all threads are brought
//! to rest and translations are thrown away. Then `space/moving` finds other places, and each thread goes on with ours
//! there. This is rare: docs/tracing.md has the places that are taken, which no runtime is known to want.

use nix::libc;

use crate::kernel::calls::arguments_of;
use crate::kernel::ptrace::{self, Address, Registers, Stop, Tid};
use crate::translate::addresses::CachePc;
use crate::translate::layout::{PAGE, slot};
use crate::translate::memory::space::{END, Landing, Moved};
use crate::translate::remote::{self, Lost, Result};
use crate::translate::session::Session;
use crate::translate::session::processes::running;
use crate::translate::session::thread::{Rested, SpaceId, Thread};

const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
/// Where `MAP_32BIT` finds memory.
const LOW: std::ops::Range<u64> = 0x4000_0000..0x8000_0000;
/// Reservations from here on may need the room that is ours.
const LARGE: u64 = 1 << 38;
/// Where `shmctl` writes the size of a segment.
const SEGMENT_SIZE: u64 = 48;

/// The warning where our memory could not be moved away.
const NO_ROOM: &str = "the program asked for memory where that of lockstep lies, which could not be moved away: it was \
    told that there is none; use --engine step";

/// Memory that a call asks for: starts and lengths.
struct Wanted {
    ranges: Vec<(u64, u64)>,
    /// Whether the call leaves alone what others have mapped there.
    only_if_free: bool,
}

impl Session<'_> {
    /// Moves memory of ours away from where a thread that stands before a system call wants memory. If so, the thread
    /// comes to the same stop again, and true is returned.
    pub(in crate::translate::session) fn makes_room(&mut self, tid: Tid, registers: &Registers) -> Result<bool> {
        let (number, arguments) = (registers.rax.cast_signed(), arguments_of(registers));
        let wanted = self.wanted(tid, number, &arguments)?;
        let space = &self.translator(tid)?.space;
        let ours_are_in = |range: &(u64, u64)| space.is_in(range.0, range.1);
        if !wanted.ranges.iter().any(ours_are_in) || space.refused == Some((number, arguments)) {
            return Ok(false);
        }
        if wanted.only_if_free {
            let others = space.others();
            let end = |range: &(u64, u64)| range.0.saturating_add(range.1);
            let meets = |range: &(u64, u64)| others.iter().any(|o| o.start < end(range) && range.0 < o.end);
            if wanted.ranges.iter().any(meets) {
                return Ok(false);
            }
        }
        let id = self.threads.get(&tid).ok_or(Lost::Gone)?.space;
        self.met.push_front((tid, Stop::Signal(libc::SIGTRAP)));
        let Some(mut rested) = self.bring_to_rest(id) else { return Ok(true) };
        self.wait_for_all(id, &mut rested)?;
        self.forget_translations(id);
        let moved = self.move_away(id, &wanted.ranges);
        if !matches!(moved, Ok(true))
            && let Ok(translator) = self.translator_in_mut(id)
        {
            translator.space.refused = Some((number, arguments));
            if !self.found.warnings.iter().any(|known| known == NO_ROOM) {
                self.found.warnings.push(NO_ROOM.to_owned());
            }
        }
        self.let_go_on(rested);
        moved.map(|_| true)
    }

    /// Waits for threads that were in the kernel when all were brought to rest.
    fn wait_for_all(&mut self, id: SpaceId, rested: &mut Rested) -> Result<()> {
        let is_away = |tid: &Tid| !rested.resumable.contains(tid) && !self.is_met(*tid);
        let away: Vec<Tid> = rested.calls.iter().map(|(tid, _)| *tid).filter(is_away).collect();
        let still = self.wait_for_calls(id, away.clone()).ok_or(Lost::Gone)?;
        for tid in away {
            if !still.contains(&tid) && !self.is_met(tid) {
                self.retry_call(tid)?;
                rested.resumable.push(tid);
            }
        }
        Ok(())
    }

    /// Whether a call would overwrite or change memory of ours, which could not be moved away.
    pub(super) fn would_hit_ours(&self, tid: Tid, number: i64, arguments: &[u64; 6]) -> Result<bool> {
        let (wanted, space) = (self.wanted(tid, number, arguments)?, &self.translator(tid)?.space);
        Ok(!wanted.only_if_free && wanted.ranges.iter().any(|range| space.is_in(range.0, range.1)))
    }

    /// The memory that a call asks for.
    fn wanted(&self, tid: Tid, number: i64, arguments: &[u64; 6]) -> Result<Wanted> {
        let [first, second, third, fourth, fifth, _] = *arguments;
        let pages = |start: u64, len: u64| {
            let start = start & !(PAGE - 1);
            (start, len.checked_next_multiple_of(PAGE).unwrap_or(0))
        };
        let space = &self.translator(tid)?.space;
        let has = |flags: u64, flag: u64| flags & flag != 0;
        let mut only_if_free = false;
        let ranges = match number {
            libc::SYS_mmap if has(fourth, MAP_FIXED_NOREPLACE) => {
                only_if_free = true;
                vec![pages(first, second)]
            }
            libc::SYS_mmap if has(fourth, libc::MAP_FIXED as u64) => vec![pages(first, second)],
            libc::SYS_mmap => {
                only_if_free = first != 0;
                let near = if has(fourth, libc::MAP_32BIT as u64) { Some(LOW) } else { None };
                let room = match near {
                    None if first != 0 || second < LARGE => None,
                    near => space.in_way_of(second, &near.unwrap_or(0..END)),
                };
                let hint = (first != 0).then(|| pages(first, second));
                hint.into_iter().chain(room).collect()
            }
            libc::SYS_mremap => {
                let to = has(fourth, libc::MREMAP_FIXED as u64).then(|| pages(fifth, third));
                let stays = !has(fourth, libc::MREMAP_MAYMOVE as u64);
                vec![pages(first, if stays { third.max(second) } else { second })].into_iter().chain(to).collect()
            }
            libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect | libc::SYS_madvise => {
                vec![pages(first, second)]
            }
            libc::SYS_brk => {
                let end = self.ask(tid, libc::SYS_brk, [0; 6])?.cast_unsigned();
                // The kernel leaves a page free behind it.
                if first > end { vec![pages(end, first - end + PAGE)] } else { Vec::new() }
            }
            libc::SYS_shmat if second != 0 => {
                let scratch = space.scratch(self.threads.get(&tid).ok_or(Lost::Gone)?.slot, &[]);
                let known = self.ask(tid, libc::SYS_shmctl, [first, libc::IPC_STAT as u64, scratch, 0, 0, 0])?;
                let size = ptrace::read_u64(tid, Address(scratch).plus(SEGMENT_SIZE)).filter(|_| known == 0);
                vec![pages(second, size.unwrap_or(0))]
            }
            _ => Vec::new(),
        };
        // The kernel refuses these before it does anything. It gives advice about, and protects, what there is of them.
        let is_refused = |range: &(u64, u64)| range.0.checked_add(range.1).is_none_or(|end| end > END);
        let makes = !matches!(number, libc::SYS_mprotect | libc::SYS_pkey_mprotect | libc::SYS_madvise);
        let ranges = if makes { ranges.into_iter().filter(|range| !is_refused(range)).collect() } else { ranges };
        Ok(Wanted { ranges, only_if_free })
    }

    /// A call that changes nothing, made in the program's place.
    fn ask(&self, tid: Tid, number: i64, arguments: [u64; 6]) -> Result<i64> {
        remote::call(tid, self.translator(tid)?.space.syscall_at, number, arguments)
    }

    /// Moves our memory, and tells every thread of an address space where it lies now; all are at rest, and there are
    /// no translations. False where there is no place, or a thread is in the kernel where it cannot be told.
    fn move_away(&mut self, id: SpaceId, wanted: &[(u64, u64)]) -> Result<bool> {
        let in_it = |thread: &Thread| thread.space == id && !thread.has_ended();
        let tids: Vec<Tid> = self.threads.iter().filter(|(_, thread)| in_it(thread)).map(|(&tid, _)| tid).collect();
        let mut registers = Vec::new();
        for &tid in &tids {
            match ptrace::registers(tid) {
                Ok(known) => registers.push((tid, known)),
                Err(_) => return Ok(false),
            }
        }
        let space = &self.translator_in(id)?.space;
        let calls: Vec<Option<Landing>> =
            registers.iter().map(|(_, registers)| space.landing(CachePc(registers.rip))).collect();
        let mut at_rest = registers.iter().zip(&calls).filter(|(_, call)| call.is_none()).map(|((tid, _), _)| *tid);
        let Some(maker) = at_rest.next() else { return Ok(false) };
        for tid in [maker].into_iter().chain(at_rest) {
            let Thread { process, slot, .. } = *self.threads.get(&tid).ok_or(Lost::Gone)?;
            let space = &self.translator_in(id)?.space;
            let (scratch, at) = (space.scratch(slot, &[]), space.syscall_at);
            self.lead_to_handlers(tid, process, scratch, at)?;
            for (signal, _) in self.processes.direct(process) {
                self.processes.set_direct(process, signal, false);
            }
        }
        let space = &mut self.translator_in_mut(id)?.space;
        let Some(moved) = space.move_away(maker, wanted)? else { return Ok(false) };
        self.translator_in_mut(id)?.has_moved();
        for ((tid, registers), call) in registers.into_iter().zip(calls) {
            self.tell_of_move(tid, &moved, &registers, call)?;
        }
        Ok(true)
    }

    fn tell_of_move(&mut self, tid: Tid, moved: &Moved, registers: &Registers, call: Option<Landing>) -> Result<()> {
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let space = &translator.space;
        thread.pointer = space.record_after_move(moved, thread.pointer);
        space.set_value(thread.slot, slot::POINTER, thread.pointer.0);
        space.set_value(thread.slot, slot::AFTER, space.rest().0);
        let mut registers = space.after_move(moved, thread.slot, registers, call);
        if call.is_none() {
            registers.r11 = thread.pointer.0;
        }
        Ok(ptrace::set_registers(tid, &registers)?)
    }
}
