//! Which code is replayed: what lies outside the main executable, and what belongs to synchronisation, the thread
//! runtime, mathematical functions, and the runtimes of sanitizers.

use rustc_hash::FxHashSet;
use trace_format::{Module, ModuleRole, Pc, STUB_NAME, Symbol, Trace};

use super::mathematics::{self, Mathematics};
use super::sanitizers::{self, is_of_sanitizer};
use crate::view::CodeFilter;
use crate::view::thread_state::Side;

/// What the code filter says about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Class {
    /// It stays.
    Keep,
    /// It is not in the main executable, and only that was asked for.
    OutsideMain,
    /// It belongs to a thread runtime or to the dynamic loader.
    SyncRuntime,
    /// It belongs to the runtime of a sanitizer, or of stacks in pieces.
    Checks,
    /// It is a mathematical function's of the C library.
    Mathematics,
}

/// Libraries that are thread runtime as a whole.
const RUNTIME_LIBRARIES: [&str; 4] = ["libgomp", "libomp", "libiomp", "libpthread"];
/// Those of OpenMP.
const OPENMP_LIBRARIES: [&str; 3] = ["libgomp", "libomp", "libiomp"];

/// Tells the class of code by its address.
pub(in crate::view) struct Classifier<'a> {
    trace: &'a Trace,
    filter: CodeFilter,
    /// Without a loader the C library is in the main executable.
    is_static: bool,
    /// Whether clang's memory sanitizer is in the program.
    poisons: bool,
    /// What the program, or a library that stands in front of the C library's, has by the name of a mathematical
    /// function.
    own: FxHashSet<&'a str>,
}

impl<'a> Classifier<'a> {
    pub fn new(trace: &'a Trace, filter: CodeFilter) -> Classifier<'a> {
        let is_static = !trace.modules().iter().any(|m| m.role == ModuleRole::Loader);
        let is_own = |symbol: &Symbol| {
            mathematics::is_one(&symbol.name)
                && !symbol.name.ends_with(STUB_NAME)
                && !mathematics::is_of_library(trace.module_of(symbol.pc), is_static, &symbol.name)
        };
        let own = trace.symbols().iter().filter(|symbol| is_own(symbol)).map(|symbol| symbol.name.as_str()).collect();
        Classifier { trace, filter, is_static, poisons: sanitizers::poisons(trace), own }
    }

    /// The class of the code at an address.
    pub fn class(&self, pc: Pc) -> Class {
        let module = self.trace.module_of(pc);
        if is_of_sanitizer(self.trace, module, pc) || self.is_poisoning(module, pc) {
            return Class::Checks;
        }
        if self.is_runtime(module, pc) {
            return Class::SyncRuntime;
        }
        let name = self.trace.symbol_of(pc).map_or("", |symbol| symbol.name.as_str());
        let is_mathematics = match name.strip_suffix(STUB_NAME) {
            // The head of the linkage table, by which a stub's slot is bound: nothing comes there but to the loader.
            Some("_dl_runtime_resolve") => return Class::SyncRuntime,
            Some(function) => self.leads_to_mathematics(function),
            None => mathematics::is_of_library(module, self.is_static, name),
        };
        if self.filter != CodeFilter::Whole && is_mathematics {
            return Class::Mathematics;
        }
        let in_main = module.is_some_and(|m| m.role == ModuleRole::Main);
        if self.filter == CodeFilter::Main && !in_main { Class::OutsideMain } else { Class::Keep }
    }

    /// What a GPU has for what a call leads to, if that is a mathematical function whose inside is left out, or a stub
    /// of the linkage table that leads there. A program may have a function of its own by that name, which is replayed.
    pub(super) fn mathematics(&self, target: Pc) -> Option<Mathematics> {
        let symbol = self.trace.symbol_of(target).filter(|symbol| symbol.pc == target)?;
        mathematics::of_function(&symbol.name).filter(|_| self.class(target) == Class::Mathematics)
    }

    /// Whether a stub of the linkage table for this function leads to a mathematical one of the C library.
    fn leads_to_mathematics(&self, function: &str) -> bool {
        mathematics::is_one(function) && !self.own.contains(function)
    }

    /// Whether this is where the memory sanitizer's code in the program's functions fills the shadow of memory.
    fn is_poisoning(&self, module: Option<&Module>, pc: Pc) -> bool {
        self.poisons
            && module.is_some_and(|module| module.role == ModuleRole::Main)
            && self.trace.symbol_of(pc).is_some_and(|symbol| sanitizers::is_poisoned_by(&symbol.name))
    }

    /// On whose side the code at an address is when a runtime calls it.
    pub fn side(&self, pc: Pc) -> Side {
        let module = self.trace.module_of(pc);
        let name = self.trace.symbol_of(pc).map_or("", |symbol| symbol.name.as_str());
        let of_library = |libraries: &[&str]| {
            module.is_some_and(|module| libraries.iter().any(|library| module.name().starts_with(library)))
        };
        match module.map(|module| module.role) {
            _ if of_library(&OPENMP_LIBRARIES) || is_openmp_function(name) => Side::OpenMp,
            _ if self.is_poisoning(module, pc) => Side::Checks,
            _ if is_of_sanitizer(self.trace, module, pc) => match sanitizers::stands_for_another(name) {
                true => Side::Helper,
                false => Side::Checks,
            },
            _ if of_library(&HELPERS) || is_of_memory(name) => Side::Helper,
            Some(ModuleRole::Main) if !self.is_static => Side::Program,
            Some(ModuleRole::Loader) => Side::Helper,
            _ => Side::Unknown,
        }
    }

    fn is_runtime(&self, module: Option<&Module>, pc: Pc) -> bool {
        let Some(module) = module else { return false };
        let name = module.name();
        // musl's loader is also its C library: there the names of the functions decide.
        let is_libc = ["libc.so", "libc-", "libc.musl", "ld-musl"].iter().any(|l| name.starts_with(l));
        if is_libc || (module.role == ModuleRole::Main && self.is_static) {
            return self.trace.symbol_of(pc).is_some_and(|s| is_runtime_function(&s.name));
        }
        module.role == ModuleRole::Loader || RUNTIME_LIBRARIES.iter().any(|l| name.starts_with(l))
    }
}

/// Whether a function is OpenMP's, by its name.
fn is_openmp_function(name: &str) -> bool {
    name.starts_with("__kmp") || name.starts_with("GOMP_") || name.starts_with("gomp_")
}

/// Libraries that programs and runtimes call alike, by the beginnings of their names.
const HELPERS: [&str; 12] = [
    "libc.so",
    "libc-",
    "libc.musl",
    "ld-musl",
    "libm.so",
    "libm-",
    "libgcc_s",
    "libstdc++",
    "libc++",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// Whether a function allocates memory, or fills it: it does so for its caller wherever it is, in a static program or
/// in place of the C library's.
fn is_of_memory(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "malloc",
        "calloc",
        "realloc",
        "free",
        "cfree",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "reallocarray",
        "malloc_usable_size",
        "memset",
        "memcpy",
        "memmove",
    ];
    let bare = name.trim_start_matches('_');
    let bare = bare.strip_prefix("GI_").unwrap_or(bare).trim_start_matches('_');
    let bare = bare.strip_prefix("libc_").unwrap_or(bare);
    // The C library has some of them for each kind of processor: `__memset_avx2_unaligned_erms`.
    let of_processor = name.strip_prefix("__").and_then(|name| name.split_once('_')).map_or("", |(first, _)| first);
    NAMES.contains(&bare) || of_processor.starts_with("mem") && NAMES.contains(&of_processor)
}

/// Whether a function of the C library, or of a static program, belongs to synchronisation or the thread runtime.
fn is_runtime_function(name: &str) -> bool {
    const PREFIXES: [&str; 9] =
        ["pthread_", "nptl_", "lll_", "futex_", "new_sem_", "dl_runtime_resolve", "dl_fixup", "GOMP_", "gomp_"];
    const NAMES: [&str; 5] = ["start_thread", "clone", "clone3", "clone_internal", "clone_internal_fallback"];
    // The functions of omp.h by their first words: a user's own `omp_…` must stay.
    const OPENMP: [&str; 14] = [
        "get_", "set_", "unset_", "init_", "destroy_", "test_", "in_", "is_", "fulfill_", "pause_", "display_",
        "capture_", "control_", "target_",
    ];
    if name.starts_with("__kmp") {
        return true;
    }
    // glibc has the same function as `pthread_x`, `__pthread_x`, `___pthread_x` and `__GI___pthread_x`.
    let bare = name.trim_start_matches('_');
    let bare = bare.strip_prefix("GI_").unwrap_or(bare).trim_start_matches('_');
    PREFIXES.iter().any(|p| bare.starts_with(p))
        || NAMES.contains(&bare)
        || bare.strip_prefix("omp_").is_some_and(|rest| OPENMP.iter().any(|o| rest.starts_with(o)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_functions_are_known_under_all_their_names() {
        for name in [
            "pthread_mutex_lock",
            "___pthread_mutex_lock",
            "__GI___pthread_cond_wait",
            "start_thread",
            "__clone3",
            "__lll_lock_wait",
            "_dl_runtime_resolve_xsavec",
            "GOMP_parallel",
            "gomp_team_end",
            "omp_get_thread_num",
            "__kmpc_fork_call",
        ] {
            assert!(is_runtime_function(name), "{name}");
        }
    }

    #[test]
    fn memory_is_allocated_and_filled_under_many_names() {
        for name in
            ["malloc", "__libc_malloc", "__GI___libc_malloc", "free", "__memset_avx2_unaligned_erms", "__GI_memcpy"]
        {
            assert!(is_of_memory(name), "{name}");
        }
        for name in ["main", "malloc_test", "free_list", "memory_of", "inside", "memset_rows", "qsort"] {
            assert!(!is_of_memory(name), "{name}");
        }
    }

    #[test]
    fn functions_with_similar_names_are_no_runtime() {
        for name in
            ["clone_tree", "main._omp_fn.0", ".omp_outlined.", "omp_mandelbrot", "worker", "kmp_search", "memcpy"]
        {
            assert!(!is_runtime_function(name), "{name}");
        }
    }
}
