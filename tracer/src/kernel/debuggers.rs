//! Programs that trace others themselves, as debuggers and strace do: a process has one tracer.

use nix::libc;

/// Why a process that asks its parent to trace it is not recorded any further.
pub const TRACED_BY_ITS_MAKER: &str = "its parent traces it, as debuggers and strace do";

/// The warning when the program could not trace a process that is recorded.
const REFUSED: &str = "the program could not trace another process, as debuggers and strace do, since a process that \
    is recorded can have no second tracer: record without --follow-forks";

/// Whether `ptrace(request, …)` asks the maker of the process to trace it.
#[must_use]
pub fn asks_maker(number: i64, request: u64) -> bool {
    number == libc::SYS_ptrace && request == u64::from(libc::PTRACE_TRACEME)
}

/// `ptrace(request, …)` has returned this: notes once that a process could not be traced, if that is so.
pub fn note_refusal(warnings: &mut Vec<String>, request: u64, result: i64) {
    let asks = [u64::from(libc::PTRACE_TRACEME), u64::from(libc::PTRACE_ATTACH), u64::from(libc::PTRACE_SEIZE)];
    let refused = asks.contains(&request) && result == -i64::from(libc::EPERM);
    if refused && !warnings.iter().any(|known| known == REFUSED) {
        warnings.push(REFUSED.to_owned());
    }
}
