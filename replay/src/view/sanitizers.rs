//! Code that a compiler's checks bring along: the runtimes of sanitizers, and of stacks in pieces. Nobody moves it to
//! another machine with the program, so it is no lane's.
//!
//! gcc's runtimes are libraries; clang's are linked into the program, where the names of functions tell. Some of the
//! compiler's code stays in the program's own functions, as a test of the shadow before each access.

use trace_format::{Module, Pc, Trace};

/// Libraries that are nothing else.
const LIBRARIES: [&str; 8] =
    ["libasan", "libtsan", "liblsan", "libubsan", "libhwasan", "libmsan", "libdfsan", "libclang_rt."];
/// Their namespaces, which functions without a namespace have as prefixes: `__asan_report_load8`.
const NAMESPACES: [&str; 10] = [
    "__asan",
    "__tsan",
    "__msan",
    "__lsan",
    "__ubsan",
    "__hwasan",
    "__dfsan",
    "__sanitizer",
    "__interception",
    "__sancov",
];
/// Other prefixes: functions that stand before those of the C library, the start routines of threads, and what makes
/// stacks grow.
const PREFIXES: [&str; 12] = [
    "__interceptor_",
    "___interceptor_",
    "_ZL17asan_thread_start",
    "_ZL18hwasan_thread_start",
    "_ZL19MsanThreadStartFunc",
    "_ZL19DFsanThreadStartFunc",
    "_ZL20DFsanThreadStartFunc",
    // The leak checker's.
    "_ZL15ThreadStartFuncILb",
    "__morestack",
    "__generic_morestack",
    "__splitstack_",
    "__releasestack",
];

/// Whether the code at an address belongs to one.
pub(super) fn is_of_sanitizer(trace: &Trace, module: Option<&Module>, pc: Pc) -> bool {
    module.is_some_and(|module| LIBRARIES.iter().any(|library| module.name().starts_with(library)))
        || trace.symbol_of(pc).is_some_and(|symbol| is_sanitizer_function(&symbol.name))
}

/// Whether a function of this name, mangled where it is one of C++, is one's.
pub(super) fn is_sanitizer_function(name: &str) -> bool {
    // A nested name begins with the length of its first part: `_ZN11__sanitizer5Mutex4LockEv`.
    let first = name.strip_prefix("_ZN").map(|rest| rest.trim_start_matches(['K', 'V']));
    let first = first.map_or(name, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    NAMESPACES.iter().any(|namespace| first.starts_with(namespace))
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_sanitizer_function;

    #[test]
    fn functions_of_sanitizers_are_known_and_those_of_programs_are_not() {
        for name in [
            "__asan_report_load8",
            "_ZN6__asan12PoisonShadowEmmh",
            "_ZNK11__sanitizer15ThreadArgRetval7GetArgsEm",
            "_ZN11__sanitizer5Mutex4LockEv",
            "__interceptor_free",
            "___interceptor_malloc",
            "__tsan_thread_start_func",
            "_ZL17asan_thread_startPv",
            "_ZL15ThreadStartFuncILb0EEPvS0_",
            "__ubsan_handle_add_overflow",
            "__sanitizer_cov_trace_pc_guard",
            "__morestack",
        ] {
            assert!(is_sanitizer_function(name), "{name}");
        }
        for name in ["work", "asan_thread_start", "_ZN4asan4workEv", "malloc", "_ZL15ThreadStartFuncPv", "more_stack"] {
            assert!(!is_sanitizer_function(name), "{name}");
        }
    }
}
