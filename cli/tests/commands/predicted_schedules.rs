//! The schedules of figures 1, 2 and 3(b) of Damani et al. (*Speculative reconvergence for improved SIMT efficiency*,
//! CGO 2020), with trip counts of our own, written down and compared fetch by fetch with what `replay --schedule` says
//! of the micro programs.

use std::path::{Path, PathBuf};

use crate::support::{build, root, succeed};

/// The parts of a kernel in the order of their addresses: a letter and how many instructions.
type Parts = [(char, usize)];

/// A trace of a micro program with 4 threads.
fn traced(folder: &Path, program: &str) -> PathBuf {
    let (binary, trace) = (folder.join(program), folder.join(format!("{program}.bin")));
    build(&root().join(format!("workloads/micro/{program}.c")), &binary, &[]);
    succeed("trace", &["-o", trace.to_str().unwrap(), binary.to_str().unwrap(), "-p", "4"]);
    trace
}

/// The fetches of the kernel without a prediction, or with it: address and active lanes, lane 0 first.
fn fetched(trace: &Path, prediction: Option<&str>) -> Vec<(u64, String)> {
    let file = trace.with_extension("schedule");
    let (file, trace) = (file.to_str().unwrap(), trace.to_str().unwrap());
    let mut arguments = vec!["-H", "barrier", "--region", "kernel", "--check", "--schedule", file];
    arguments.extend(prediction.iter().flat_map(|prediction| ["--predict", prediction]));
    arguments.push(trace);
    succeed("replay", &arguments);
    let text = std::fs::read_to_string(file).unwrap();
    // Of two, the one with the prediction is the second.
    let last = text.rsplit("heuristic ").next().unwrap();
    last.lines()
        .skip(1)
        .map(|line| {
            let (pc, lanes) = line.split_once(' ').unwrap();
            let lanes = u64::from_str_radix(lanes, 2).unwrap();
            let lanes = (0..4).filter(|lane| lanes >> lane & 1 == 1).map(|lane| lane.to_string()).collect();
            (u64::from_str_radix(pc, 16).unwrap(), lanes)
        })
        .collect()
}

/// The same with a part at a time: `P0123 E01`. Each part is fetched whole, for the same lanes.
fn schedule(trace: &Path, prediction: Option<&str>, parts: &Parts) -> String {
    let addresses = addresses(trace);
    assert_eq!(addresses.len(), parts.iter().map(|(_, size)| size).sum::<usize>());
    let fetched = fetched(trace, prediction);
    let (mut shown, mut at) = (Vec::new(), 0);
    while at < fetched.len() {
        let (first, lanes) = &fetched[at];
        let mut before = 0;
        let starts = parts.iter().find(|(_, size)| {
            let is_it = addresses[before] == *first;
            before += if is_it { 0 } else { *size };
            is_it
        });
        let (name, size) = starts.unwrap_or_else(|| panic!("no part begins at {first:x}: {shown:?}"));
        for (fetch, address) in fetched[at..].iter().zip(&addresses[before..before + size]) {
            assert_eq!((&fetch.0, &fetch.1), (address, lanes), "in {name} after {shown:?}");
        }
        shown.push(format!("{name}{lanes}"));
        at += size;
    }
    shown.join(" ")
}

/// The addresses of a kernel's instructions, in order.
fn addresses(trace: &Path) -> Vec<u64> {
    let all: std::collections::BTreeSet<u64> = fetched(trace, None).into_iter().map(|fetch| fetch.0).collect();
    all.into_iter().collect()
}

/// How many fetches a schedule has.
fn fetches(schedule: &str, parts: &Parts) -> usize {
    let size = |part: &str| parts.iter().find(|(name, _)| part.starts_with(*name)).unwrap().1;
    schedule.split(' ').map(size).sum()
}

#[test]
fn an_expensive_arm_is_run_once_where_lanes_are_collected_over_the_turns_of_figures_1_and_2a() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "iteration_delay");
    // Init, prolog, expensive, epilog, return.
    let parts = [('I', 2), ('P', 3), ('X', 12), ('E', 3), ('R', 1)];
    // Figure 1(a): one lane after the other.
    let waits_behind = "I0123 P0123 X0 E0123 P0123 X1 E0123 P0123 X2 E0123 P0123 X3 E0123 R0123";
    assert_eq!(schedule(&trace, None, &parts), waits_behind);
    // Figure 1(b): all at once, and prolog and epilog are run for fewer.
    let collected = "I0123 P0123 E123 P123 E23 P23 E3 P3 X0123 E0123 P012 E012 P01 E01 P0 E0 R0123";
    let expensive = format!("{:#x}", addresses(&trace)[5]);
    assert_eq!(schedule(&trace, Some(&expensive), &parts), collected);
    assert_eq!((fetches(waits_behind, &parts), fetches(collected, &parts)), (75, 57));
}

#[test]
fn the_inner_loops_of_figures_2b_and_3b_are_repacked_at_the_price_of_prolog_and_epilog() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "loop_merge");
    // Init, prolog, the inner loop's body, epilog, return.
    let parts = [('I', 5), ('P', 1), ('B', 12), ('E', 4), ('R', 1)];
    // (i) The longest of each turn counts.
    let waits_behind =
        "I0123 P0123 B0123 B03 B0 B0 E0123 P0123 B0123 B13 B1 B1 E0123 P0123 B0123 B23 B2 B2 E0123 R0123";
    assert_eq!(schedule(&trace, None, &parts), waits_behind);
    // (iii) Six bodies, each for all; those that left the inner loop get new work by themselves.
    let collected = "I0123 P0123 B0123 E12 P12 B0123 E23 P23 B0123 B0123 E03 P03 B0123 E01 P01 B0123 E0123 R0123";
    let body = format!("{:#x}", addresses(&trace)[6]);
    assert_eq!(schedule(&trace, Some(&body), &parts), collected);
    // (ii) The same with prolog and epilog as before.
    let ideal = 5 + 3 * (1 + 4) + 6 * 12 + 1;
    assert_eq!((fetches(waits_behind, &parts), ideal, fetches(collected, &parts)), (165, 93, 103));
    // Two lanes are enough: those behind the inner loop wait until one is left in it, which waits for new ones.
    let soft = "I0123 P0123 B0123 B03 E123 P123 B0123 B013 E023 P023 B0123 B123 E013 P01 B012 E01 B2 E2 R0123";
    assert_eq!(schedule(&trace, Some(&format!("{body},threshold=2")), &parts), soft);
    assert_eq!(fetches(soft, &parts), 5 + 4 + 8 * 12 + 5 * 4 + 1);
}

#[test]
fn a_function_that_both_sides_of_figure_2c_call_is_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "common_call");
    // The function, the branch, the even side's call and its way on, what the odd side does before and behind its call.
    let parts = [('F', 13), ('T', 3), ('C', 1), ('J', 1), ('B', 2), ('D', 1), ('R', 1)];
    let waits_behind = "T0123 C02 F02 J02 B13 F13 D13 R0123";
    assert_eq!(schedule(&trace, None, &parts), waits_behind);
    let collected = schedule(&trace, Some("call:foo"), &parts);
    assert_eq!(collected, "T0123 C02 B13 F0123 J02 D13 R0123");
    assert_eq!((fetches(waits_behind, &parts), fetches(&collected, &parts)), (35, 22));
}
