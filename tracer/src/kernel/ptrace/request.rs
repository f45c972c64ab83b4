//! Requests to a thread that is stopped for us.
//!
//! All of them fail with `ESRCH` when the thread was killed in the meantime; callers go on then, and learn of its end
//! by waiting.

use std::mem::MaybeUninit;

use nix::errno::Errno;
use nix::libc;

use super::{Registers, Tid};

/// `si_code` of a signal that was sent to one thread.
const SI_TKILL: i32 = -6;

/// The result of a request.
pub type Result<T> = std::result::Result<T, Errno>;

/// What the kernel tells about a signal that is about to be delivered.
#[derive(Clone, Copy)]
pub struct SignalInfo(libc::siginfo_t);

impl SignalInfo {
    /// Of SIGSYS, for a call with this number that ended at this address and is dispatched to the program itself.
    #[must_use]
    pub fn dispatched(number: u64, address: u64) -> SignalInfo {
        /// `SYS_USER_DISPATCH`: the `libc` crate does not have it.
        const DISPATCHED: i32 = 2;
        /// `AUDIT_ARCH_X86_64`.
        const ARCHITECTURE: u32 = 0xc000_003e;
        // SAFETY: `siginfo_t` holds numbers and pointers that are only looked at as numbers; zero is valid for all.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        (info.si_signo, info.si_code) = (libc::SIGSYS, DISPATCHED);
        let mut info = SignalInfo(info);
        info.set_address(address);
        info.set_half(24, number as u32);
        info.set_half(28, ARCHITECTURE);
        info
    }

    /// `si_code`: who raised it, and why.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.0.si_code
    }

    /// The address of a fault.
    #[must_use]
    pub fn address(&self) -> u64 {
        // SAFETY: every bit pattern is a valid pointer to look at as a number; for other signals it means nothing.
        unsafe { self.0.si_addr() as u64 }
    }

    /// Whether this process has sent it, to one thread.
    #[must_use]
    pub fn is_of_ours(&self) -> bool {
        self.0.si_code == SI_TKILL && self.is_from(Tid(std::process::id().cast_signed()))
    }

    /// Whether this process has sent it by a call.
    #[must_use]
    pub fn is_from(&self, process: Tid) -> bool {
        let by_call = [SI_TKILL, libc::SI_USER, libc::SI_QUEUE].contains(&self.0.si_code);
        // SAFETY: for a signal that was sent by a call, as the code says, the kernel has filled in who did.
        by_call && unsafe { self.0.si_pid() } == process.0
    }

    /// Changes the address of a fault.
    pub fn set_address(&mut self, address: u64) {
        /// Where the address is: behind signal, errno, code and padding, on x86-64.
        const OFFSET: usize = 16;
        let info: *mut libc::siginfo_t = &mut self.0;
        // SAFETY: `siginfo_t` has 128 bytes, aligned to 8, all of them plain data.
        unsafe { info.byte_add(OFFSET).cast::<u64>().write(address) }
    }

    /// Changes four bytes at this offset, a multiple of 4 below 128.
    fn set_half(&mut self, offset: usize, value: u32) {
        assert!(offset.is_multiple_of(4) && offset < size_of::<libc::siginfo_t>(), "within the information");
        let info: *mut libc::siginfo_t = &mut self.0;
        // SAFETY: `siginfo_t` is aligned to 8, all of it is plain data, and the offset was checked.
        unsafe { info.byte_add(offset).cast::<u32>().write(value) }
    }
}

/// A request whose two last arguments are plain numbers.
fn plain(request: libc::c_uint, tid: Tid, address: usize, data: usize) -> Result<()> {
    // SAFETY: for the requests of this file that come here the kernel takes both arguments as numbers; it writes
    // nothing to us.
    let result = unsafe { libc::ptrace(request, tid.0, address, data) };
    Errno::result(result).map(drop)
}

/// A request that fills in a value of type T.
fn fill<T>(request: libc::c_uint, tid: Tid, address: usize) -> Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: each caller names the T that the kernel writes for its request; all of them are plain data, valid when
    // zero.
    unsafe {
        Errno::result(libc::ptrace(request, tid.0, address, value.as_mut_ptr()))?;
        Ok(value.assume_init())
    }
}

/// Attaches to a thread without stopping it.
pub fn seize(tid: Tid, options: i32) -> Result<()> {
    plain(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Lets it run one instruction, after delivering the signal (0: none).
pub fn step(tid: Tid, signal: i32) -> Result<()> {
    plain(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize)
}

/// Lets it run to the next stop, after delivering the signal (0: none).
pub fn resume(tid: Tid, signal: i32) -> Result<()> {
    plain(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// The same, to the next border of a system call at the most: the stop there is one for [`CALL_STOP`], where
/// [`stop_at_calls`] was asked for.
pub fn resume_to_call(tid: Tid, signal: i32) -> Result<()> {
    plain(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// The signal of stops at borders of system calls: no other stop has it.
pub const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// From now on its only stops besides those for signals are at borders of system calls, where it is resumed to one. It
/// ends with this process.
pub fn stop_at_calls(tid: Tid) -> Result<()> {
    plain(libc::PTRACE_SETOPTIONS, tid, 0, (libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL) as usize)
}

/// Stops it, at once or before it leaves the kernel.
pub fn interrupt(tid: Tid) -> Result<()> {
    plain(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Writes eight bytes, also where the program itself may not.
pub fn poke(tid: Tid, address: u64, bytes: [u8; 8]) -> Result<()> {
    plain(libc::PTRACE_POKETEXT, tid, address as usize, usize::from_ne_bytes(bytes))
}

/// Leaves it in its group stop until a SIGCONT comes.
pub fn listen(tid: Tid) -> Result<()> {
    plain(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Lets it go for good.
pub fn detach(tid: Tid) -> Result<()> {
    plain(libc::PTRACE_DETACH, tid, 0, 0)
}

/// Its general registers.
pub fn registers(tid: Tid) -> Result<Registers> {
    fill(libc::PTRACE_GETREGS, tid, 0)
}

/// Sets its general registers.
pub fn set_registers(tid: Tid, registers: &Registers) -> Result<()> {
    let registers: *const Registers = registers;
    // SAFETY: the kernel reads one `user_regs_struct` from the pointer, which comes from a reference.
    Errno::result(unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid.0, 0usize, registers) }).map(drop)
}

/// One of its sets of registers, by the number that core files have for it, and as much of it as fits into so many
/// bytes.
pub fn register_set(tid: Tid, set: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let request = libc::PTRACE_GETREGSET;
    // SAFETY: the kernel writes no more bytes than `iov_len` says, to a vector that is as long, and sets `iov_len` to
    // how many it has written.
    Errno::result(unsafe { libc::ptrace(request, tid.0, set as usize, &raw mut part) })?;
    bytes.truncate(part.iov_len);
    Ok(bytes)
}

/// Sets the address of its next instruction alone.
pub fn set_pc(tid: Tid, pc: u64) -> Result<()> {
    plain(libc::PTRACE_POKEUSER, tid, std::mem::offset_of!(Registers, rip), pc as usize)
}

/// What is known about the signal it is stopped for.
pub fn signal_info(tid: Tid) -> Result<SignalInfo> {
    fill(libc::PTRACE_GETSIGINFO, tid, 0).map(SignalInfo)
}

/// Changes what the program will be told about the signal that is delivered next.
pub fn set_signal_info(tid: Tid, info: &SignalInfo) -> Result<()> {
    let info: *const libc::siginfo_t = &info.0;
    // SAFETY: the kernel reads one `siginfo_t` from the pointer, which comes from a reference.
    Errno::result(unsafe { libc::ptrace(libc::PTRACE_SETSIGINFO, tid.0, 0usize, info) }).map(drop)
}

/// The number that belongs to the event it is stopped for: a new thread's, or an exit status.
pub fn event_message(tid: Tid) -> Result<u64> {
    fill::<libc::c_ulong>(libc::PTRACE_GETEVENTMSG, tid, 0)
}

/// The signals it blocks: bit n-1 stands for signal n.
pub fn signal_mask(tid: Tid) -> Result<u64> {
    fill::<u64>(libc::PTRACE_GETSIGMASK, tid, size_of::<u64>())
}

/// Sets the signals it blocks.
pub fn set_signal_mask(tid: Tid, mask: u64) -> Result<()> {
    let mask: *const u64 = &mask;
    // SAFETY: the kernel reads as many bytes as the third argument says, the size of the mask, from a valid pointer.
    Errno::result(unsafe { libc::ptrace(libc::PTRACE_SETSIGMASK, tid.0, size_of::<u64>(), mask) }).map(drop)
}

/// Sends a signal to one thread of a process.
pub fn send(process: Tid, tid: Tid, signal: i32) -> Result<()> {
    // SAFETY: tgkill takes three numbers.
    Errno::result(unsafe { libc::syscall(libc::SYS_tgkill, process.0, tid.0, signal) }).map(drop)
}
