//! Waits of the libraries of C++ and Rust, which call no function of pthreads: known by the names of the functions that
//! are left of them in the program.
//!
//! libstdc++'s barriers, latches, semaphores and `std::atomic::wait` all wait in a function of one name, whose
//! parameters tell for what; a compiler may have put its code into the caller's. libc++'s are loops that come to a
//! function of its library only if they last; those that wake who waits always do. Its locks that are more than one of
//! pthreads are made of a mutex, condition variables and a state. Rust's are compiled into its library, with the names
//! of the modules in which they stand, some of which have moved from version to version.

use trace_format::SyncFunction::{
    self, BarrierWait, ConditionBroadcast, ConditionSignal, MutexLock, MutexTryLock, MutexUnlock, ReadLock,
    ReadTryLock, ReadWriteUnlock, ValueWait, WriteLock, WriteTryLock,
};
use trace_format::names::demangled;

use crate::images::sync_functions::{Argument, CONDITION_WAIT, RETURNS_NOTHING, Role, alone, on_first, role};

/// The role of the function with this symbol, if it is such a wait, or wakes who waits.
pub(super) fn by_name(symbol: &str) -> Option<Role> {
    if let Some(of_libcpp) = symbol.strip_prefix("_ZNSt3__1") {
        return of_libcpp_for(of_libcpp);
    }
    if let Some(of_cpp) = symbol.strip_prefix("_ZSt") {
        return of_cpp
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .starts_with("__atomic_wait_address")
            .then(|| of_cpp_for(of_cpp));
    }
    let is_of_rust = symbol.starts_with("_R") || symbol.starts_with("_ZN3std");
    let may_wait =
        || ["7Barrier4wait", "7Condvar", "park", "7Channel", "recv"].iter().any(|part| symbol.contains(part));
    (is_of_rust && may_wait()).then(|| of_rust(&demangled(symbol))).flatten()
}

/// The role by what libstdc++'s function waits for.
fn of_cpp_for(symbol: &str) -> Role {
    let on = |function, argument| role(function, Argument::Register(0), Argument::Constant(argument));
    if symbol.contains("__tree_barrier") || symbol.contains("5latch") {
        return on(BarrierWait, 1);
    }
    on(ValueWait, u8::from(symbol.contains("_semaphore")))
}

/// Of libc++, whose namespace is left out.
fn of_libcpp_for(symbol: &str) -> Option<Role> {
    let with = |function, argument| Some(role(function, Argument::Register(0), Argument::Constant(argument)));
    let name = symbol.trim_start_matches(|c: char| c.is_ascii_digit());
    let of_lock = |[takes, tries, gives]: [SyncFunction; 3], function: &str| match function {
        "4lockEv" | "11lock_sharedEv" => Some(role(takes, Argument::Register(0), RETURNS_NOTHING)),
        "8try_lockEv" | "15try_lock_sharedEv" => with(tries, 2),
        "6unlockEv" | "13unlock_sharedEv" => Some(on_first(gives)),
        _ => None,
    };
    let of_mutex = name.strip_prefix("timed_mutex").or_else(|| name.strip_prefix("recursive_timed_mutex"));
    match (of_mutex, name.strip_prefix("__shared_mutex_base")) {
        (Some(function), _) => of_lock([MutexLock, MutexTryLock, MutexUnlock], function),
        (_, Some(function)) if function.contains("_shared") => {
            of_lock([ReadLock, ReadTryLock, ReadWriteUnlock], function)
        }
        (_, Some(function)) => of_lock([WriteLock, WriteTryLock, ReadWriteUnlock], function),
        // The thread waits behind it.
        _ if name.starts_with("__arrive_barrier_algorithm_base") => with(BarrierWait, 2),
        _ if ["__libcpp_atomic_wait", "__libcpp_atomic_monitor"].iter().any(|n| name.starts_with(n)) => {
            with(ValueWait, 0)
        }
        _ => name.starts_with("__cxx_atomic_notify").then(|| with(ValueWait, 2)).flatten(),
    }
}

fn of_rust(name: &str) -> Option<Role> {
    let name = name.replace(['<', '>'], "");
    let path = name.strip_prefix("std::")?;
    match path.rsplit_once("::")? {
        ("sync::barrier::Barrier", "wait") => Some(on_first(BarrierWait)),
        // It may return at once, as of a channel that is not empty.
        (of, "park" | "park_timeout") if of.starts_with("thread") => Some(alone(ValueWait)),
        (of, "recv" | "recv_timeout" | "recv_deadline") if of.starts_with("sync::mp") => Some(alone(ValueWait)),
        (of, wait) if of.ends_with("::Condvar") => match wait {
            // That of the system takes the mutex itself, and not what guards it.
            "wait" | "wait_timeout" | "wait_optional_timeout" if of.starts_with("sys") => Some(CONDITION_WAIT),
            "notify_one" => Some(on_first(ConditionSignal)),
            "notify_all" => Some(on_first(ConditionBroadcast)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_libraries_are_known_by_what_is_left_of_their_names() {
        let later = |function| Some(role(function, Argument::Register(0), Argument::Constant(1)));
        for (symbol, wanted) in [
            (
                "_ZSt21__atomic_wait_addressISt17__barrier_phase_tZNKSt14__tree_barrierISt18__empty_completionE4waitEOS0_\
                 EUlvE_EvPKT_T0_",
                later(BarrierWait),
            ),
            ("_ZSt21__atomic_wait_addressIiZNKSt5latch4waitEvEUlvE_EvPKT_T0_", later(BarrierWait)),
            ("_ZSt26__atomic_wait_address_bareIZNSt18__atomic_semaphore10_M_acquireEvEUlvE_EvPKiT_", later(ValueWait)),
            (
                "_ZSt23__atomic_wait_address_vIiZNKSt13__atomic_baseIiE4waitEiSt12memory_orderEUlvE_EvPKT_S4_T0_",
                Some(role(ValueWait, Argument::Register(0), Argument::Constant(0))),
            ),
            ("_ZSt23__atomic_notify_addressIiEvPKT_b", None),
            (
                "_ZNSt3__119__shared_mutex_base11lock_sharedEv",
                Some(role(ReadLock, Argument::Register(0), RETURNS_NOTHING)),
            ),
            ("_ZNSt3__119__shared_mutex_base6unlockEv", Some(on_first(ReadWriteUnlock))),
            (
                "_ZNSt3__121recursive_timed_mutex8try_lockEv",
                Some(role(MutexTryLock, Argument::Register(0), Argument::Constant(2))),
            ),
            ("_ZNSt3__111timed_mutexC1Ev", None),
            (
                "_ZNSt3__131__arrive_barrier_algorithm_baseEPNS_24__barrier_algorithm_baseEh",
                Some(role(BarrierWait, Argument::Register(0), Argument::Constant(2))),
            ),
            (
                "_ZNSt3__123__cxx_atomic_notify_allEPVKv",
                Some(role(ValueWait, Argument::Register(0), Argument::Constant(2))),
            ),
            ("_RNvNtNtCsjrHSEGnQ3l9_3std6thread9functions4park", Some(alone(ValueWait))),
            ("_ZN3std4sync4mpmc4list16Channel$LT$T$GT$4recv17hbdb97d3e5f904cbcE", Some(alone(ValueWait))),
            ("_ZN3std4sync4mpmc4list16Channel$LT$T$GT$4send17hbdb97d3e5f904cbcE", None),
            ("_RNvMs0_NtNtCsjrHSEGnQ3l9_3std4sync7barrierNtB5_7Barrier4wait", Some(on_first(BarrierWait))),
            ("_ZN3std4sync7barrier7Barrier4wait17h0123456789abcdefE", Some(on_first(BarrierWait))),
            ("_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync7condvar5futexNtB2_7Condvar4wait", Some(CONDITION_WAIT)),
            ("_ZN3std3sys4sync7condvar5futex7Condvar21wait_optional_timeout17h0123456789abcdefE", Some(CONDITION_WAIT)),
            (
                "_RNvMNtNtNtCsjrHSEGnQ3l9_3std4sync6poison7condvarNtB2_7Condvar10notify_all",
                Some(on_first(ConditionBroadcast)),
            ),
            ("_ZN3std4sync7condvar7Condvar10notify_one17h0123456789abcdefE", Some(on_first(ConditionSignal))),
            // It takes the guard of a mutex, and calls that of the system.
            ("_ZN3std4sync6poison7condvar7Condvar4wait17h03c6ff37ded22111E", None),
            ("_ZN3std4sync7barrier7Barrier3new17hb8b99f42fc709d65E", None),
            ("_ZN2my7barrier7Barrier4wait17h0123456789abcdefE", None),
        ] {
            assert_eq!(by_name(symbol), wanted, "{symbol}");
        }
    }
}
