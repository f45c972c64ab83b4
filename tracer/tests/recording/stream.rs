//! What is recorded is what ran, instruction by instruction.

use crate::support::{assert_like_native, assert_step_like_native, compile, events, record};
use trace_format::{Event, Item, ModuleRole, Pc, ThreadExit, ThreadId, Trace};

/// The pcs of a thread's instructions, in order.
fn pcs(trace: &Trace, thread: u32) -> Vec<Pc> {
    let mut stream = trace.stream(ThreadId(thread));
    let mut pcs = Vec::new();
    while let Some(item) = stream.next().unwrap() {
        if let Item::Block { block, .. } = item {
            pcs.extend(trace.blocks()[block].instructions.iter().map(|i| i.pc));
        }
    }
    pcs
}

#[test]
fn every_instruction_is_counted_once_and_rep_is_one() {
    let recorded = assert_like_native(&compile("counts.S", &[]), &[]);
    let trace = recorded.trace();
    assert_eq!(recorded.output.status.code(), Some(42));
    assert_eq!(trace.instructions(), 83);
    assert_eq!(pcs(&trace, 0).len(), 83);
    assert_eq!(trace.threads().len(), 1);
}

#[test]
fn long_runs_are_cut_into_blocks() {
    let trace = assert_step_like_native(&compile("long_block.S", &[]), &[]).trace();
    assert_eq!(trace.instructions(), 203);
    assert_eq!(trace.blocks().len(), 4);
}

#[test]
fn the_same_run_gives_the_same_stream() {
    let program = compile("hello.c", &[]);
    let [a, b] = [record("", &program, &[]).trace(), record("", &program, &[]).trace()];
    assert_eq!(pcs(&a, 0), pcs(&b, 0));
}

#[test]
fn addresses_differ_where_the_kernel_may_choose_them() {
    let program = compile("hello.c", &[]);
    let [a, b] = [record("aslr", &program, &[]).trace(), record("aslr", &program, &[]).trace()];
    assert_ne!(a.modules()[0].bias, b.modules()[0].bias);
}

#[test]
fn modules_and_symbols_explain_the_addresses() {
    let trace = record("", &compile("hello.c", &[]), &[]).trace();
    let role = |role| trace.modules().iter().find(|m| m.role == role).unwrap();
    assert_eq!(role(ModuleRole::Main).name(), "hello");
    assert!(role(ModuleRole::Main).build_id.as_ref().is_some_and(|id| id.len() == 20));
    assert!(role(ModuleRole::Loader).name().starts_with("ld-linux"));
    assert!(trace.modules().iter().any(|m| m.role == ModuleRole::Library && m.name() == "libc.so.6"));
    let main = trace.symbols().iter().find(|s| s.name == "main").unwrap();
    assert!(role(ModuleRole::Main).contains(main.pc) && main.size > 0);
    assert!(pcs(&trace, 0).contains(&main.pc));
    assert!(trace.symbols().iter().any(|s| s.name == "puts" || s.name == "printf"));
    assert_eq!(trace.meta().engine, tracer::ENGINES[0].name());
    assert!(trace.meta().command[0].ends_with("hello"));
    assert!(trace.meta().started > 1_600_000_000);
}

#[test]
fn code_that_changes_is_recorded_as_it_was_when_it_ran() {
    let trace = assert_step_like_native(&compile("generated.c", &["-static"]), &[]).trace();
    // mov eax, N; ret
    let mut numbers: Vec<u8> = trace
        .blocks()
        .iter()
        .filter(|(_, b)| b.instructions.len() == 2 && b.code.len() == 6 && b.code[0] == 0xb8 && b.code[5] == 0xc3)
        .filter(|(_, b)| trace.module_of(b.start()).is_none())
        .map(|(_, b)| b.code[1])
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn libraries_come_and_go() {
    let plugin = compile("plugin.c", &["-shared", "-fPIC"]);
    let program = compile("loads.c", &[]);
    let trace = assert_like_native(&program, &[plugin.to_str().unwrap()]).trace();
    let is_plugin = |id: trace_format::ModuleId| trace.modules()[id.index()].name() == "plugin";
    let plugin: Vec<bool> = events(&trace, 0)
        .into_iter()
        .filter_map(|event| match event {
            Event::ModuleLoaded(id) if is_plugin(id) => Some(true),
            Event::ModuleUnloaded(id) if is_plugin(id) => Some(false),
            _ => None,
        })
        .collect();
    assert_eq!(plugin, [true, false, true, false]);
    assert!(trace.symbols().iter().any(|s| s.name == "answer"));
}

#[test]
fn memory_addresses_are_recorded_on_request() {
    let program = compile("memory.S", &[]);
    let trace = record("memory", &program, &[]).trace();
    assert!(trace.meta().memory);
    let Some(&Event::ThreadStart { sp, .. }) = events(&trace, 0).first() else { panic!("no start") };
    let mut stream = trace.stream(ThreadId(0));
    let mut addresses = Vec::new();
    while let Some(item) = stream.next().unwrap() {
        if let Item::Block { memory, .. } = item {
            addresses.extend_from_slice(memory);
        }
    }
    let data = addresses[3];
    assert_eq!(addresses, [data + 12, sp - 8, sp - 8, data]);
    assert_eq!(data % 64, 0);
    assert!(!record("", &program, &[]).trace().meta().memory);
}

#[test]
fn a_limit_ends_the_recording_but_not_the_program() {
    let program = compile("threads64.c", &["-static"]);
    let recorded = record("engine=step limit=5000", &program, &[]);
    assert_eq!((recorded.stdout().as_str(), recorded.output.status.code()), ("85344\n", Some(64)));
    let trace = recorded.trace();
    assert_eq!(trace.instructions(), 5000);
    assert!(trace.finish().unwrap().stopped_early.as_ref().unwrap().contains("5000"));
    assert_eq!(trace.finish().unwrap().exit_status, Some(64));
    assert!(matches!(events(&trace, 0).last(), Some(Event::ThreadEnd { exit: ThreadExit::StillRunning, .. })));
}

#[test]
fn a_limit_within_many_threads_lets_all_of_them_go() {
    let program = compile("threads64.c", &["-static"]);
    let whole = record("engine=step", &program, &[]).trace().instructions();
    for part in [3, 4] {
        let limit = whole * part / 5;
        let recorded = record(&format!("engine=step limit={limit}"), &program, &[]);
        assert_eq!((recorded.stdout().as_str(), recorded.output.status.code()), ("85344\n", Some(64)), "{limit}");
        assert_eq!(recorded.trace().instructions(), limit);
    }
}
