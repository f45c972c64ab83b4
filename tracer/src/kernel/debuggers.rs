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

/// The warning where a leak checker cannot stop the threads that it looks at.
const CANNOT_CHECK: &str = "a process of the program, as a sanitizer's leak checker makes one at the end, could not trace \
    its threads, which the engine `step` traces: record without --engine step, or set detect_leaks=0 in ASAN_OPTIONS or \
    LSAN_OPTIONS";

/// Whether a call with these flags makes a process as the leak checker does: with its maker's memory, beside it, and
/// not to be traced.
#[must_use]
pub fn is_inner_tracer(flags: u64) -> bool {
    let wanted = (libc::CLONE_VM | libc::CLONE_UNTRACED) as u64;
    flags & (wanted | (libc::CLONE_VFORK | libc::CLONE_THREAD) as u64) == wanted
}

/// A process is made with these flags of `clone`: notes once that it cannot trace its maker's threads, if it is there
/// for that.
pub fn note_inner_tracer(warnings: &mut Vec<String>, flags: u64) {
    if is_inner_tracer(flags) && !warnings.iter().any(|known| known == CANNOT_CHECK) {
        warnings.push(CANNOT_CHECK.to_owned());
    }
}

/// `ptrace(request, …)` has returned this: notes once that a process could not be traced, if that is so.
pub fn note_refusal(warnings: &mut Vec<String>, request: u64, result: i64) {
    let asks = [u64::from(libc::PTRACE_TRACEME), u64::from(libc::PTRACE_ATTACH), u64::from(libc::PTRACE_SEIZE)];
    let refused = asks.contains(&request) && result == -i64::from(libc::EPERM);
    if refused && !warnings.iter().any(|known| known == REFUSED) {
        warnings.push(REFUSED.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_beside_its_maker_that_hides_from_tracers_is_one() {
        let flags = |all: &[i32]| all.iter().fold(0, |flags, &flag| flags | flag as u64);
        let leak_checker = [libc::CLONE_VM, libc::CLONE_FS, libc::CLONE_FILES, libc::CLONE_UNTRACED];
        let mut warnings = Vec::new();
        for others in [&[libc::CLONE_VM, libc::CLONE_VFORK, libc::CLONE_UNTRACED][..], &[libc::CLONE_UNTRACED], &[]] {
            note_inner_tracer(&mut warnings, flags(others));
        }
        assert!(warnings.is_empty());
        note_inner_tracer(&mut warnings, flags(&leak_checker));
        note_inner_tracer(&mut warnings, flags(&leak_checker));
        assert_eq!(warnings, [CANNOT_CHECK]);
    }
}
