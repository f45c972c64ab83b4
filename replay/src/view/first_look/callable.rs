//! What a thread was really started for: the callable behind a start routine that a library has for all threads.
//!
//! `std::thread` starts every thread at one routine of the C++ library, which finds the callable behind its argument;
//! boost's threads and Rust's do the same. Taken by their start routine, threads of different work would be lanes of
//! one warp. So the first functions that such a thread enters are looked through, by their names in the symbol table:
//!
//! - a *launcher* is a start routine that runs what it was given: one outside of the program itself, or one with a name
//!   known here;
//! - a *carrier* is a function that the compiler makes for one type of callable, as
//!   `std::thread::_State_impl<…>::_M_run`. Lambdas and other function objects have a type each, so the carrier tells
//!   them apart; where the callable was not inlined, it is the `operator()` that comes next;
//! - pointers to functions share their types: there the callable is the first function of the program that is called
//!   through a pointer;
//! - Rust's library runs two carriers in a row. The first runs hooks and is the same for all threads. So the second one
//!   counts, or a first one that enters code of the program. The library calls the carrier through a *shim*; each type
//!   of closure has a shim of its own. Where the optimiser put the closure's carrier into the shim, the shim stands for
//!   it;
//! - the start routine of a sanitizer is a carrier of a pointer, which its own code calls.
//!
//! Where names and calls tell nothing, the start routine stays what the thread was started for.

use trace_format::{Block, Kind, ModuleRole, Pc, Trace};

use crate::view::code::sanitizers::{is_of_sanitizer, is_sanitizer_function};

/// So many instructions of a thread are looked at: what stands before the callable takes some hundreds, with the loader
/// binding functions some thousands.
const MOST_INSTRUCTIONS: u64 = 100_000;

/// The same where a sanitizer starts the thread: it makes its tables first.
const MOST_OF_SANITIZERS: u64 = 100_000_000;

/// Parts of the mangled names of launchers that can be linked into the program: of the C++ library, of boost, of Rust's
/// library.
const LAUNCHERS: [&str; 3] = ["execute_native_thread_routine", "thread_proxy", "12thread_start"];

/// What a carrier carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries {
    /// An object that is called: its type is its own.
    Object,
    /// A pointer to a function or to a member of a class.
    Pointer,
    /// A closure of Rust, or hooks of its library.
    Rust,
    /// What a sanitizer's start routine was given.
    Start,
}

/// What a function of this name carries, if it is a carrier.
fn carrier(name: &str) -> Option<Carries> {
    if name.contains("__rust_begin_short_backtrace") {
        return Some(Carries::Rust);
    }
    if is_sanitizer_function(name) && name.to_ascii_lowercase().contains("thread") {
        return Some(Carries::Start);
    }
    let is_run = name.starts_with("_ZNSt6thread11_State_implI") && name.ends_with("6_M_runEv");
    let is_boost = name.starts_with("_ZN5boost6detail11thread_dataI") && name.contains("3runEv");
    let is_llvm = name.starts_with("_ZNSt3__1") && name.contains("__thread_proxy");
    if !(is_run || is_boost || is_llvm) {
        return None;
    }
    // The arguments of the innermost tuple are those of the caller: with std::async a future's state stands around
    // them.
    let after = |text: &'static str, within: &'static str| {
        let inner = name.split_once(text).map(|(_, rest)| rest)?;
        inner.split_once(within).map(|(_, rest)| rest)
    };
    let own = match () {
        () if name.contains("_Async_state_implI") => after("_Async_state_implI", "IJ"),
        () if is_run => after("_State_implI", "tupleIJ"),
        () if is_boost => after("thread_data", "I"),
        () => after("__thread_proxy", "__thread_structEEEE"),
    };
    let is_pointer = own.is_some_and(|own| own.starts_with("PF") || own.starts_with('M') || own.contains("bind_t"));
    Some(if is_pointer { Carries::Pointer } else { Carries::Object })
}

/// Whether a function of this name is a library's that hands a call on.
pub(in crate::view) fn hands_on(name: &str) -> bool {
    const PREFIXES: [&str; 6] = ["_ZNSt", "_ZNKSt", "_ZSt", "_ZZNSt", "_ZN5boost", "_ZNK5boost"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        // By which `std::call_once` and futures call, a part of the program where that is static.
        || name == "__once_proxy"
        || name.ends_with(trace_format::STUB_NAME)
        || rust(name).is_some_and(|name| is_of_rust(&name))
}

/// The name as Rust has it, with the types of what it is generic over; none of another language's.
fn rust(name: &str) -> Option<String> {
    rustc_demangle::try_demangle(name).ok().map(|name| name.to_string())
}

/// Whether a function is of Rust's own libraries, or of what the compiler adds to them: by its path, or by that of the
/// type whose method it is.
fn is_of_rust(name: &str) -> bool {
    let path = name.trim_start_matches(['<', '&']);
    ["core", "std", "alloc", "__rustc"]
        .iter()
        .any(|library| path.strip_prefix(library).is_some_and(|rest| rest.starts_with("::") || rest.starts_with('[')))
}

/// Whether a function of this name does nothing but call the object that it is given.
fn invokes(name: &str) -> bool {
    const PREFIXES: [&str; 7] = [
        "_ZNSt6thread8_Invoker",
        "_ZSt8__invoke",
        "_ZSt13__invoke_impl",
        "_ZSt6invoke",
        "_ZNSt3__18__invoke",
        "_ZNSt3__116__thread_execute",
        "_ZNSt13__future_base",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || rust(name).is_some_and(|name| is_of_rust(&name) && name.contains("call_once"))
}

/// Whether a function of this name is the body of a function object: `operator()`, or a closure of Rust.
fn is_body(name: &str) -> bool {
    rust(name).is_some_and(|name| name.ends_with("}") || name.contains("closure}}") || name.contains("{closure#"))
        || name.contains("clE") && (name.starts_with("_ZN") || name.starts_with("_ZZ"))
}

/// Whether this is the function by which Rust calls a boxed closure: each type of closure has one.
fn is_shim(name: &str) -> bool {
    rust(name).is_some_and(|name| {
        name.contains("call_once") && (name.contains("vtable.shim") || name.contains("shim:vtable"))
    })
}

/// Whether a start routine is a launcher, which runs what it was given.
pub(in crate::view) fn is_given_work(trace: &Trace, routine: Pc) -> bool {
    let name = name_at(trace, routine).unwrap_or("");
    let in_program = trace.module_of(routine).is_some_and(|module| module.role == ModuleRole::Main);
    carrier(name).is_none() && (!in_program || LAUNCHERS.iter().any(|launcher| name.contains(launcher)))
}

/// Looks for the callable of one thread.
pub(in crate::view) struct Look<'t> {
    trace: &'t Trace,
    left: u64,
    /// Whether the C library is a part of the program.
    is_static: bool,
    /// The last instruction, where it transfers control.
    before: Option<(Kind, Pc)>,
    carrier: Option<(Pc, Carries)>,
    /// Of Rust's carriers: how many calls deep in it the thread is; none where it was left.
    depth: Option<u32>,
    /// The last of Rust's shims before the first carrier.
    shim: Option<Pc>,
    /// How many of Rust's carriers were entered.
    carriers: usize,
    found: Option<Pc>,
    calls: Option<Pc>,
    ended: bool,
}

impl<'t> Look<'t> {
    /// Of a thread that begins with this routine; none where the routine is the program's own.
    pub(in crate::view) fn begin(trace: &'t Trace, routine: Pc) -> Option<Look<'t>> {
        let name = name_at(trace, routine).unwrap_or("");
        let is_carrier = carrier(name);
        if is_carrier.is_none() && !is_given_work(trace, routine) {
            return None;
        }
        let mut look = Look {
            trace,
            left: MOST_INSTRUCTIONS,
            is_static: !trace.modules().iter().any(|module| module.role == ModuleRole::Loader),
            before: None,
            carrier: None,
            depth: None,
            shim: None,
            carriers: 0,
            found: None,
            calls: None,
            ended: false,
        };
        if let Some(carries) = is_carrier {
            look.enter_carrier(routine, carries);
        }
        Some(look)
    }

    /// Whether there is nothing more to see.
    pub(in crate::view) fn is_over(&self) -> bool {
        self.ended
    }

    /// What the thread was started for, where it is known by now to be another function than its routine.
    pub(in crate::view) fn callable(&self) -> Option<Pc> {
        let unsure = self.carriers == 1 && self.calls.is_none();
        self.found.or(self.shim.filter(|_| unsure)).or(self.carrier.map(|(pc, _)| pc))
    }

    /// The first function of the program that a closure of Rust calls, where it is not a function itself: its name says
    /// more than the library's names do.
    pub(in crate::view) fn calls(&self) -> Option<Pc> {
        self.calls
    }

    /// The thread runs the first instructions of a block.
    pub(in crate::view) fn block(&mut self, block: &Block, executed: usize) {
        for instruction in &block.instructions[..executed] {
            if let Some((kind, from)) = self.before {
                self.go(kind, from, instruction.pc);
            }
            if self.ended {
                return;
            }
            self.before = instruction.kind.transfers_control().then_some((instruction.kind, instruction.pc));
        }
        self.left = self.left.saturating_sub(executed as u64);
        self.ended |= self.left == 0;
    }

    fn enter_carrier(&mut self, pc: Pc, carries: Carries) {
        if carries == Carries::Start {
            self.left = MOST_OF_SANITIZERS;
        }
        self.carrier = Some((pc, carries));
        if carries == Carries::Rust {
            self.carriers += 1;
            self.depth = Some(0);
        }
    }

    /// The thread reached this address by a transfer of this kind, made at `from`.
    fn go(&mut self, kind: Kind, from: Pc, pc: Pc) {
        if kind == Kind::Return {
            self.depth = self.depth.and_then(|depth| depth.checked_sub(1));
        }
        if !matches!(kind, Kind::Call | Kind::IndirectCall | Kind::Jump | Kind::IndirectJump) {
            return;
        }
        let name = name_at(self.trace, pc);
        if name.is_none() && !kind.is_call() {
            return; // a jump within a function
        }
        let name = name.unwrap_or("");
        let is_new = |carries: &Carries| self.carrier.is_none() || *carries == Carries::Rust;
        if let Some(carries) = carrier(name).filter(|carries| is_new(carries) && *carries != Carries::Start) {
            self.enter_carrier(pc, carries);
            return;
        }
        if kind.is_call() {
            self.depth = self.depth.map(|depth| depth + 1);
        }
        let in_program = self.trace.module_of(pc).is_some_and(|module| module.role == ModuleRole::Main);
        match self.carrier {
            None if is_shim(name) => self.shim = Some(pc),
            None => {}
            Some((_, Carries::Object)) if is_body(name) && !hands_on(name) => self.find(pc),
            Some((_, Carries::Start)) => {
                let by_pointer = matches!(kind, Kind::IndirectCall | Kind::IndirectJump);
                let is_own = |pc| is_of_sanitizer(self.trace, self.trace.module_of(pc), pc);
                if by_pointer && in_program && is_own(from) && !is_own(pc) {
                    self.find(pc);
                }
            }
            // What else it calls, its own code does: the object is a part of the carrier.
            Some((_, Carries::Object)) => self.ended = !invokes(name),
            Some((_, Carries::Pointer)) => {
                let by_pointer = matches!(kind, Kind::IndirectCall | Kind::IndirectJump);
                if by_pointer && in_program && !hands_on(name) {
                    self.find(pc);
                }
            }
            Some((_, Carries::Rust)) if !in_program || hands_on(name) || name.is_empty() => {}
            // The C library, in a static program.
            Some((_, Carries::Rust)) if self.is_static && rust(name).is_none() => {}
            Some((_, Carries::Rust)) => self.rust_enters(pc, name),
        }
    }

    /// The thread enters a function of the program, after a carrier of Rust or in one.
    fn rust_enters(&mut self, pc: Pc, name: &str) {
        if self.depth.is_none() {
            // The closure is a part of the shim.
            self.carrier = self.shim.map(|shim| (shim, Carries::Rust)).or(self.carrier);
            self.calls = Some(pc);
            self.ended = true;
        } else if is_body(name) {
            self.find(pc);
        } else {
            self.calls = Some(pc);
            self.ended = true;
        }
    }

    fn find(&mut self, pc: Pc) {
        self.found = Some(pc);
        self.ended = true;
    }
}

/// The name of the function that begins at this address.
pub(in crate::view) fn name_at(trace: &Trace, pc: Pc) -> Option<&str> {
    trace.symbol_of(pc).filter(|symbol| symbol.pc == pc).map(|symbol| symbol.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_told_by_their_names_and_so_is_what_they_carry() {
        let pointer = "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJPFviEiEEEEE6_M_runEv";
        let lambda = "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJZ4mainEUlvE_EEEEE6_M_runEv";
        let member = "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJM4PoolFvvEPS3_EEEEE6_M_runEv";
        let future = "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJMNSt13__future_base17_Async_state_implINS1_IS2_IJZ4mainE\
                      UlvE_EEEEiEEFvvEPS8_EEEEE6_M_runEv";
        assert_eq!(carrier(pointer), Some(Carries::Pointer));
        assert_eq!(carrier(member), Some(Carries::Pointer));
        assert_eq!([carrier(lambda), carrier(future)], [Some(Carries::Object); 2]);
        let rust = "_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h0123456789abcdefE";
        assert_eq!(carrier(rust), Some(Carries::Rust));
        for other in ["main", "work", "_ZN4tree6insertEi", "_ZNSt6thread4joinEv"] {
            assert_eq!(carrier(other), None, "{other}");
        }
    }

    #[test]
    fn libraries_hand_calls_on_and_programs_do_not() {
        assert!(hands_on("_ZSt13__invoke_implIvPFviEJiEET_St14__invoke_otherOT0_DpOT1_") && hands_on("free@plt"));
        assert!(!hands_on("_ZZ4mainENKUlvE_clEv") && !hands_on("_Z4worki"));
        assert!(is_body("_ZZ4mainENKUlvE_clEv") && !is_body("_Z4worki"));
    }
}
