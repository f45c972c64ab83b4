//! System calls as the kernel's registers have them.

use nix::libc;

use crate::kernel::ptrace::Registers;

/// The argument registers of a system call, in order.
pub fn arguments_of(registers: &Registers) -> [u64; 6] {
    [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9]
}

/// Sets the argument register with this number.
pub fn set_argument(registers: &mut Registers, number: usize, value: u64) {
    match number {
        0 => registers.rdi = value,
        1 => registers.rsi = value,
        2 => registers.rdx = value,
        3 => registers.r10 = value,
        4 => registers.r8 = value,
        _ => registers.r9 = value,
    }
}

/// Whether this futex operation waits.
#[must_use]
pub fn is_futex_wait(operation: u32) -> bool {
    const COMMAND: i32 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    matches!(
        operation.cast_signed() & COMMAND,
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_LOCK_PI
            | libc::FUTEX_LOCK_PI2
            | libc::FUTEX_WAIT_REQUEUE_PI
    )
}

/// Whether a thread with these registers stands behind a system call that was interrupted, and that the kernel may
/// begin again when it goes on.
#[must_use]
pub fn asks_for_restart(registers: &Registers) -> bool {
    /// The codes by which the kernel tells itself to do so; programs never see them.
    const RESTART: [i64; 4] = [-512, -513, -514, -516];
    let from_syscall = registers.orig_rax.cast_signed() >= 0;
    from_syscall
        && RESTART.contains(&registers.rax.cast_signed())
        && registers.orig_rax.cast_signed() != libc::SYS_rt_sigreturn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_from_wakes_whatever_the_flags() {
        assert!(is_futex_wait(0) && is_futex_wait(128) && is_futex_wait(128 | 256 | 9) && is_futex_wait(6));
        assert!(!is_futex_wait(1) && !is_futex_wait(129) && !is_futex_wait(10) && !is_futex_wait(7));
    }
}
