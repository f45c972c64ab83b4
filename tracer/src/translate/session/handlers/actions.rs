//! What a program does at a signal.

use nix::libc;

use crate::translate::remote::VITAL;

/// The flag of actions: the signal is not blocked while its handler runs.
pub const SA_NODEFER: u64 = 0x4000_0000;

/// What the program does at a signal, as `rt_sigaction` was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Where the handler starts.
    pub handler: u64,
    /// The flags, as `SA_RESTART`.
    pub flags: u64,
    restorer: u64,
    mask: u64,
}

impl Action {
    /// The length of the kernel's form.
    pub const LEN: usize = 32;

    /// From the kernel's form.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Action::LEN]) -> Action {
        let [handler, flags, restorer, mask] =
            [0, 8, 16, 24].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")));
        Action { handler, flags, restorer, mask }
    }

    /// To the kernel's form.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Action::LEN] {
        let mut bytes = [0; Action::LEN];
        for (place, value) in bytes.chunks_mut(8).zip([self.handler, self.flags, self.restorer, self.mask]) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// The same with another handler.
    #[must_use]
    pub fn with_handler(self, handler: u64) -> Action {
        Action { handler, ..self }
    }

    /// What the kernel is told: no vital signal is blocked by the handler, or ignored.
    #[must_use]
    pub fn for_kernel(self, signal: i32) -> Action {
        let vital = VITAL & 1u64 << (signal - 1).clamp(0, 63) != 0;
        let flags = if vital { self.flags | SA_NODEFER } else { self.flags };
        let handler = if vital && self.handler == libc::SIG_IGN as u64 { libc::SIG_DFL as u64 } else { self.handler };
        Action { handler, flags, mask: self.mask & !VITAL, ..self }
    }

    /// The vital signals that the program believes blocked while the handler runs.
    pub fn hides(self, signal: i32) -> u64 {
        let own = if self.flags & SA_NODEFER == 0 { 1u64 << (signal - 1).clamp(0, 63) } else { 0 };
        (self.mask | own) & VITAL
    }

    /// Whether a function of the program handles the signal.
    pub fn is_handler(self) -> bool {
        self.handler != libc::SIG_DFL as u64 && self.handler != libc::SIG_IGN as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_keeps_its_form() {
        let action = Action { handler: 1, flags: 2, restorer: 3, mask: u64::MAX };
        assert_eq!(Action::from_bytes(&action.to_bytes()), action);
    }

    #[test]
    fn the_kernel_never_blocks_a_vital_signal() {
        let action = Action { handler: 0x1000, flags: 0, restorer: 0, mask: u64::MAX };
        assert_eq!(action.for_kernel(libc::SIGUSR1).mask & VITAL, 0);
        assert_eq!(action.for_kernel(libc::SIGUSR1).flags, 0);
        assert_eq!(action.for_kernel(libc::SIGSEGV).flags, SA_NODEFER);
        let ignored = Action { handler: libc::SIG_IGN as u64, ..action };
        assert_eq!(ignored.for_kernel(libc::SIGSEGV).handler, libc::SIG_DFL as u64, "a forced signal would reset it");
        assert_eq!(ignored.for_kernel(libc::SIGUSR1), Action { mask: !VITAL, ..ignored });
        assert_eq!(action.hides(libc::SIGUSR1), VITAL);
        assert_eq!(Action { mask: 0, ..action }.hides(libc::SIGSEGV), 1 << (libc::SIGSEGV - 1));
    }
}
