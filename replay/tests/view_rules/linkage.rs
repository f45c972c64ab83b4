//! Stubs of the linkage table: which code is one, and what levels there are behind it.

use trace_format::Kind;

use crate::recording::*;

const STUB: u64 = MAIN + 0xe00;

fn levels(view: &replay::view::View) -> Vec<u32> {
    seen(view, 0).iter().map(|s| s.level).collect()
}

#[test]
fn a_function_left_out_opens_no_level_for_what_it_calls_back() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run_stub(0, STUB).run(0, &[plain(LIBRARY), call(LIBRARY + 1)]);
    made.run(0, &[plain(MAIN + 0x40), ret(MAIN + 0x41)]).run(0, &[ret(LIBRARY + 2)]).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&options("all", "main", "serialize")).unwrap();
    assert_eq!(told(&view, 0), "100c f00s sp=-16 140 141r sp=0 101");
    assert_eq!(levels(&view), [1, 2, 2, 2, 1]);
}

#[test]
fn what_the_loader_does_to_bind_a_slot_changes_no_level() {
    let mut made = Recording::new();
    made.start(0)
        .run(0, &[call(MAIN)])
        .run_stub(0, STUB)
        .run(0, &[plain(LOADER), of_kind(Kind::IndirectJump, LOADER + 1)]);
    made.run(0, &[plain(LIBRARY), ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(told(&view, 0), "100c f00s 4000 4001r 101");
    assert_eq!(levels(&view), [1, 2, 2, 2, 1]);
}

#[test]
fn what_a_stub_does_to_be_bound_is_the_loaders() {
    let mut made = Recording::new();
    made.start(0).run(0, &[call(MAIN)]).run_stub(0, STUB).run_binding(0, STUB + 6);
    made.run(0, &[adds(LOADER, 16), of_kind(Kind::IndirectJump, LOADER + 1)]);
    made.run(0, &[plain(LIBRARY), ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 1)]).end(0);
    let view = made.view(&whole()).unwrap();
    assert_eq!(view.summary().sync_runtime, 5);
    assert_eq!(told(&view, 0), "100c f00s 4000 4001r 101");
    assert_eq!(levels(&view), [1, 2, 2, 2, 1]);
}

#[test]
fn code_of_that_form_is_a_stub_where_a_call_leads_to_it_and_where_a_symbol_says_so() {
    for (name, expected) in [("jumps", "100c 140 f00 4000r 101"), ("strlen@plt", "100c 140 f00s 4000r 101")] {
        let mut made = Recording::new();
        made.symbol(name, STUB, 16);
        made.start(0).run(0, &[call(MAIN)]).run(0, &[of_kind(Kind::Jump, MAIN + 0x40)]).run_stub(0, STUB);
        made.run(0, &[ret(LIBRARY)]).run(0, &[plain(MAIN + 1)]).end(0);
        let view = made.view(&whole()).unwrap();
        assert_eq!(told(&view, 0), expected, "{name}");
        assert_eq!(levels(&view), [1, 2, 2, 2, 1]);
    }
}

#[test]
fn a_stub_that_leads_to_a_mathematical_function_is_left_out_with_it() {
    let told_of = |library: &str, name: &str| {
        let mut made = Recording::with_library(library);
        made.symbol("sin@plt", STUB, 16).symbol(name, LIBRARY, 16);
        made.start(0).run(0, &[call(MAIN)]).run_stub(0, STUB);
        made.run(0, &[plain(LIBRARY), ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 1)]).end(0);
        told(&made.view(&whole()).unwrap(), 0)
    };
    assert_eq!(told_of("libm.so.6", "__sin_fma"), "100 101");
    assert_eq!(told_of("libfast.so", "sin"), "100c f00s 4000 4001r 101", "another library's, under the same name");
}

#[test]
fn a_mathematical_function_that_is_bound_leaves_no_more_than_one_that_was() {
    let told_of = |binds: bool| {
        let mut made = Recording::with_library("libm.so.6");
        made.symbol("sin@plt", STUB, 32).symbol("_dl_runtime_resolve@plt", STUB - 32, 16);
        made.start(0).run(0, &[call(MAIN)]).run_stub(0, STUB);
        if binds {
            made.run_binding(0, STUB + 6).run(0, &[plain(STUB - 32), of_kind(Kind::IndirectJump, STUB - 31)]);
            made.run(0, &[adds(LOADER, 16), of_kind(Kind::IndirectJump, LOADER + 1)]);
        }
        made.run(0, &[plain(LIBRARY), ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 1)]).end(0);
        told(&made.view(&whole()).unwrap(), 0)
    };
    assert_eq!(told_of(true), told_of(false));
}

#[test]
fn a_stub_that_leads_to_a_sanitizer_is_the_programs_and_binds_as_any_other() {
    let told_of = |name: &str, binds: bool| {
        let mut made = Recording::new();
        made.symbol(name, STUB, 16);
        made.symbol("__tsan_read8", LIBRARY, 16);
        made.start(0).run(0, &[call(MAIN)]).run_stub(0, STUB);
        if binds {
            made.run_binding(0, STUB + 6).run(0, &[adds(LOADER, 16), of_kind(Kind::IndirectJump, LOADER + 1)]);
        }
        made.run(0, &[plain(LIBRARY), ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 1)]).end(0);
        told(&made.view(&whole()).unwrap(), 0)
    };
    let bound = told_of("__tsan_read8@plt", false);
    assert_eq!(bound, told_of("other@plt", false));
    assert_eq!(told_of("__tsan_read8@plt", true), bound, "the first use runs no more of the program than a later one");
}

#[test]
fn what_a_sanitizer_calls_of_the_c_library_for_itself_is_left_out_and_what_it_calls_for_the_program_stays() {
    // The program calls a function by this name in its own module, which goes on in the C library.
    let told_of = |name: &str| {
        let mut made = Recording::with_library("libc.so.6");
        made.symbol("__msan_init", MAIN + 0xd00, 16).symbol(name, MAIN + 0x80, 16).symbol("memset", LIBRARY, 16);
        made.start(0).run(0, &[call(MAIN)]).run(0, &[of_kind(Kind::Jump, MAIN + 0x80)]);
        made.run(0, &[plain(LIBRARY), ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 1)]).end(0);
        told(&made.view(&whole()).unwrap(), 0)
    };
    assert_eq!(told_of("__msan_memset"), "100 sp=-8 4000 4001r 101", "for the program");
    assert_eq!(told_of("___interceptor_strlen"), "100 sp=-8 4000 4001r 101", "for the program");
    assert_eq!(told_of("__msan_poison_stack"), "100 101");
    assert_eq!(told_of("_ZN6__msan9SetShadowEPKvmh"), "100 101");
    assert_eq!(told_of("memset"), "100 101", "an instrumented function's call for the shadow");
    assert_eq!(told_of("fill"), "100c 180 4000 4001r 101", "a function of the program");
}

#[test]
fn a_function_called_back_behind_a_jump_to_a_stub_is_as_deep_as_without_one() {
    let callback = |by_stub: bool| {
        let mut made = Recording::new();
        made.symbol("strlen@plt", STUB, 16);
        made.start(0).run(0, &[call(MAIN)]).run(0, &[of_kind(Kind::Jump, MAIN + 0x40)]);
        if by_stub {
            made.run_stub(0, STUB);
        }
        made.run(0, &[call(LIBRARY)]).run(0, &[plain(MAIN + 0x60), ret(MAIN + 0x61)]);
        made.run(0, &[ret(LIBRARY + 1)]).run(0, &[plain(MAIN + 1)]).end(0);
        let view = made.view(&options("all", "main", "serialize")).unwrap();
        seen(&view, 0).iter().find(|s| s.instruction.pc.0 == MAIN + 0x60).unwrap().level
    };
    assert_eq!((callback(true), callback(false)), (3, 3));
}
