//! Runtimes of sanitizers: which code is theirs, what of it stands in front of the C library's functions, and what
//! instrumented functions call for the sanitizer.

use trace_format::{Module, Pc, STUB_NAME, Trace};

/// Libraries that are runtimes of sanitizers. gcc's runtimes are libraries; clang's are linked into the program, where
/// the names of functions tell. Nobody moves that code to another machine with the program.
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
pub(in crate::view) fn is_of_sanitizer(trace: &Trace, module: Option<&Module>, pc: Pc) -> bool {
    module.is_some_and(|module| LIBRARIES.iter().any(|library| module.name().starts_with(library)))
        || trace.symbol_of(pc).is_some_and(|symbol| {
            // A stub of the linkage table that leads there is code of the program, as any other stub.
            !symbol.name.ends_with(STUB_NAME) && is_sanitizer_function(&symbol.name)
        })
}

/// Whether a function of this name, mangled where it is one of C++, is one's.
pub(in crate::view) fn is_sanitizer_function(name: &str) -> bool {
    // A nested name begins with the length of its first part: `_ZN11__sanitizer5Mutex4LockEv`.
    let first = name.strip_prefix("_ZN").map(|rest| rest.trim_start_matches(['K', 'V']));
    let first = first.map_or(name, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    NAMESPACES.iter().any(|namespace| first.starts_with(namespace))
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a function of a sanitizer does what a function of the C library is called for, so that what it calls of that
/// is the program's call: `__interceptor_memset`, `__asan_memset`, `memset` of a sanitizer's library. Others call the C
/// library for themselves.
pub(super) fn stands_for_another(name: &str) -> bool {
    let is_allocation = ["_Znw", "_Zna", "_Zdl", "_Zda"].iter().any(|operator| name.starts_with(operator));
    let of_memory = |name: &str| ["memset", "memcpy", "memmove"].contains(&name);
    let is_copy = name.strip_prefix("__").and_then(|name| name.split_once("san_")).is_some_and(|(_, f)| of_memory(f));
    let is_plain = !name.is_empty() && !name.starts_with("_Z") && !is_sanitizer_function(name);
    name.trim_start_matches('_').starts_with("interceptor_") || is_copy || is_plain || is_allocation
}

/// Whether clang's memory sanitizer is in the program.
pub(super) fn poisons(trace: &Trace) -> bool {
    let mut names = trace.symbols().iter().map(|symbol| &symbol.name);
    names.any(|name| name.starts_with("__msan_") || name.starts_with("_ZN6__msan"))
}

/// Whether a function of a program with the memory sanitizer fills or copies memory by this name. Functions that the
/// sanitizer instruments call `__msan_memset` where their source calls `memset`, and `memset` for the shadow of their
/// variables.
pub(super) fn is_poisoned_by(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("interceptor_trampoline_").unwrap_or(name);
    ["memset", "memcpy", "memmove"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn interceptors_call_for_the_program_and_others_for_the_sanitizer() {
        for name in
            ["___interceptor_memset", "__interceptor_free", "__msan_memset", "__hwasan_memcpy", "malloc", "_Znwm"]
        {
            assert!(stands_for_another(name), "{name}");
        }
        for name in ["_ZN6__msan9SetShadowEPKvmh", "__msan_poison_stack", "__asan_report_load8", "_ZL5closev", ""] {
            assert!(!stands_for_another(name), "{name}");
        }
    }

    #[test]
    fn the_memory_sanitizer_fills_shadows_under_plain_names() {
        for name in ["memset", "__interceptor_trampoline_memcpy", "memmove"] {
            assert!(is_poisoned_by(name), "{name}");
        }
        for name in ["__msan_memset", "memset_rows", "___interceptor_memset", "strlen"] {
            assert!(!is_poisoned_by(name), "{name}");
        }
    }
}
