//! The figures of linearization's paper (Anantpur and Govindarajan, CC 2014) as micro programs, with the counts that it
//! states, and all graphs of five blocks that escape its definition of what is unstructured.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use flowgraph::{Builder, Dominators, Graph, Loops, NodeId, PostDominators, Reduction, unstructured_edges};

use crate::folder::{Folder, lockstep, root};

#[path = "../../../flowgraph/tests/five/mod.rs"]
mod five;

/// Builds a program with a pass, traces it, and compares what it prints with what it printed before, if anything.
fn build(folder: &Folder, source: &Path, lanes: &str, pass: &str, expected: Option<&str>) -> String {
    let include = format!("-I{}", root().join("workloads/include").display());
    let source = source.display().to_string();
    let words =
        ["cc", "--transform", pass, "--", "-O2", "-w", "-no-pie", "-pthread", &include, &source, "-o", "program"];
    folder.succeed(lockstep(), &words);
    folder.succeed(lockstep(), &["trace", "-o", "trace.bin", "--", "./program", "-p", lanes]);
    let printed = folder.succeed("./program", &["-p", lanes]);
    assert!(expected.is_none_or(|expected| expected == printed), "{pass}: {printed}");
    printed
}

/// The functions of the blocks that are issued under a model, in order, for the program that was built last. Blocks are
/// functions whose name begins with b and a digit; each is issued as often as its first instruction.
fn issued(folder: &Folder, model: &str) -> Vec<String> {
    let listing = folder.succeed("nm", &["--defined-only", "program"]);
    let of_line = |line: &str| {
        let [address, _, name] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let is_block = name.strip_prefix('b').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        is_block.then(|| Some((u64::from_str_radix(address, 16).ok()?, name.to_owned())))?
    };
    let starts: BTreeMap<u64, String> = listing.lines().filter_map(of_line).collect();
    let replay = ["replay", "--region", "kernel", "-H", model, "--check", "--schedule", "schedule", "trace.bin"];
    folder.succeed(lockstep(), &replay);
    let schedule = folder.read("schedule");
    let at = |line: &str| u64::from_str_radix(line.split(' ').next().unwrap(), 16).ok();
    schedule.lines().skip(1).filter_map(|line| starts.get(&at(line)?).cloned()).collect()
}

/// How often each block is issued.
fn counts(issued: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    issued.iter().for_each(|name| *counts.entry(name.as_str()).or_default() += 1);
    counts
}

/// A micro program's source.
fn micro(name: &str) -> std::path::PathBuf {
    root().join("workloads/micro").join(name).with_extension("c")
}

#[test]
fn a_block_behind_short_circuits_is_issued_once_instead_of_thrice() {
    let folder = Folder::with(&[]);
    let printed = build(&folder, &micro("short_circuit"), "4", "none", None);
    let before = issued(&folder, "ipdom");
    let before = counts(&before);
    // Section 2.1: B3 is executed twice, B5 thrice.
    assert_eq!(before, BTreeMap::from([("b1", 1), ("b2", 1), ("b3", 2), ("b4", 1), ("b5", 3), ("b6", 1)]));
    let words = ["replay", "--region", "kernel", "-H", "tf-stack", "--schedule", "schedule", "trace.bin"];
    folder.succeed(lockstep(), &words);
    let original = Fetches::of(&folder, "kernel");
    for level in 0..=4 {
        build(
            &folder,
            &micro("short_circuit"),
            "4",
            &format!("linearize:threshold=-1000,level={level}"),
            Some(&printed),
        );
        no_lanes_miss_each_other(&folder, &original, "kernel", &format!("level {level}"));
        assert_eq!(issued(&folder, "ipdom"), ["b1", "b2", "b3", "b4", "b5", "b6"], "level {level}");
    }
}

#[test]
fn arms_of_a_branch_are_interleaved() {
    let folder = Folder::with(&[]);
    let printed = build(&folder, &micro("two_arms"), "4", "none", None);
    let order = issued(&folder, "ipdom").concat();
    // Section 2.2 has the then parts before the else parts; which side a stack takes first is the machine's choice.
    assert!(order.starts_with("b1b2b3b4b5") || order.starts_with("b1b5b6b7b2"), "{order}");
    // What each arm loads is used by the next instruction.
    assert_eq!(number(&folder, "load_stalls"), 2 * 19);
    let before = number(&folder, "fetches") + number(&folder, "load_stalls");
    build(&folder, &micro("two_arms"), "4", "linearize:threshold=-1000,interleave=yes,level=0", Some(&printed));
    // The paper has 6 before 4; what each arm loads comes before what either uses in both orders.
    assert_eq!(issued(&folder, "ipdom"), ["b1", "b2", "b5", "b3", "b4", "b6", "b7"]);
    // Both loads are under way together, and checks come between.
    assert_eq!(number(&folder, "load_stalls"), 13);
    // Without the checks whose answer is known, lanes still meet behind both loads, and it pays: the guards take fewer
    // cycles than the loads did.
    build(&folder, &micro("two_arms"), "4", "linearize:threshold=-1000,interleave=yes", Some(&printed));
    let order = issued(&folder, "ipdom");
    let (mut loads, mut uses) = (order[1..3].to_vec(), order[3..].to_vec());
    loads.sort_unstable();
    uses.sort_unstable();
    assert_eq!((loads.concat().as_str(), uses.concat().as_str()), ("b2b5", "b3b4b6b7"), "{order:?}");
    let after = number(&folder, "fetches") + number(&folder, "load_stalls");
    assert!(after < before, "{before} cycles, then {after}");
}

#[test]
fn lanes_wait_behind_an_inner_loop_for_the_longest_unless_it_is_merged() {
    let folder = Folder::with(&[]);
    let printed = build(&folder, &micro("trip_counts"), "4", "none", None);
    let before = issued(&folder, "ipdom");
    // Section 2.3: 15 turns of the inner loop in both turns of the outer.
    assert_eq!(counts(&before)["b2"], 30);
    // It is structured: the pass leaves it.
    build(&folder, &micro("trip_counts"), "4", "linearize:threshold=-1000", Some(&printed));
    assert_eq!(issued(&folder, "ipdom"), before);
    // As many as the lane with the most turns in all needs.
    build(&folder, &micro("trip_counts"), "4", "linearize:threshold=-1000,merge-loops=yes", Some(&printed));
    assert_eq!(counts(&issued(&folder, "ipdom"))["b2"], 25);
}

/// A graph of five blocks: its edges.
type Edges = Vec<(u32, u32)>;

fn graph_of(edges: &[(u32, u32)]) -> Graph {
    let mut builder = Builder::new(5);
    for &(from, to) in edges {
        builder.edge(NodeId(from), NodeId(to));
    }
    builder.build(NodeId(0))
}

/// All graphs of five blocks that do not reduce and have no edge that is unstructured by the paper's definition 1.
fn escaping() -> Vec<Edges> {
    let mut found = Vec::new();
    five::all(|edges| {
        let graph = graph_of(edges);
        let post = PostDominators::of(&graph, &[NodeId(4)]);
        let escapes = !Reduction::of(&graph, &[NodeId(4)]).is_structured()
            && unstructured_edges(&graph, &Loops::of(&graph), &Dominators::of(&graph), &post).is_empty();
        if escapes {
            found.push(edges.to_vec());
        }
    });
    found
}

/// How many edges it is to the last block.
fn distance(edges: &Edges, from: u32) -> u32 {
    let mut near = vec![4];
    for steps in 0.. {
        if near.contains(&from) {
            return steps;
        }
        near.extend(edges.iter().filter(|edge| near.contains(&edge.1)).map(|edge| edge.0).collect::<Vec<_>>());
    }
    unreachable!("every block leads to the last")
}

/// A program with a function for each graph. Lane i goes at its nth branch as bit n of i says; eight lanes take all
/// ways through a graph without loops. A loop is left on the shortest way when more branches were taken.
fn program_of(graphs: &[Edges]) -> String {
    let mut text = "#define PROGRAM \"graphs\"\n#include \"args.h\"\n#define GO (seen >= 12 ? nearest : lane >> (seen++ % 3) & 1)\n".to_owned();
    text.push_str("static long lane_of(long lane) { OPAQUE(lane); return lane; }\n");
    for (number, edges) in graphs.iter().enumerate() {
        for block in 0..5 {
            let digit = number * 5 + block + 1;
            writeln!(
                text,
                "static AS_WRITTEN long b{number}_{block}(long path) {{ OPAQUE(path); return path * 31 + {digit}; }}"
            )
            .unwrap();
        }
        writeln!(text, "static AS_WRITTEN long graph{number}(long lane, long path) {{ long seen = 0, nearest;")
            .unwrap();
        for block in 0..5_u32 {
            writeln!(text, "l{block}: path = b{number}_{block}(path);").unwrap();
            match edges.iter().filter(|edge| edge.0 == block).map(|edge| edge.1).collect::<Vec<_>>()[..] {
                [to] => writeln!(text, "goto l{to};"),
                [a, b] => {
                    let nearest = u32::from(distance(edges, b) < distance(edges, a));
                    writeln!(text, "nearest = {nearest}; if (GO) goto l{b}; goto l{a};")
                }
                _ => writeln!(text, "return path; }}"),
            }
            .unwrap();
        }
    }
    text.push_str("static AS_WRITTEN long all(long lane) { long path = 0; lane = lane_of(lane);\n");
    (0..graphs.len()).for_each(|number| writeln!(text, "path = graph{number}(lane, path);").unwrap());
    // What is right is what the program printed before the pass; the frame's own check has nothing to say.
    text.push_str(
        "return path; }\nstatic AS_WRITTEN long kernel(long lane) { return all(lane); }\nstatic long expected(long lane) { \
         return all(lane); }\n#include \"kernel.h\"\n",
    );
    text
}

#[test]
fn graphs_that_escape_definition_1_are_issued_as_thread_frontiers_would() {
    let graphs = escaping();
    assert_eq!(graphs.len(), 60);
    let folder = Folder::with(&[("graphs.c", &program_of(&graphs))]);
    let source = folder.path("graphs.c");
    let printed = build(&folder, &source, "8", "none", None);
    let (stack, frontiers) = (issued(&folder, "ipdom"), issued(&folder, "tf-stack"));
    let (stack, frontiers) = (counts(&stack), counts(&frontiers));
    // Each of them that has no loop has a block that a stack issues twice for lanes that could have met there.
    let mut without_loops = 0;
    for (number, edges) in graphs.iter().enumerate() {
        let own = |block: &str| block.starts_with(&format!("b{number}_"));
        if Loops::of(&graph_of(edges)).ids().next().is_none() {
            let mine: Vec<_> = stack.iter().chain(&frontiers).filter(|(b, _)| own(b)).collect();
            assert!(stack.iter().any(|(block, &times)| own(block) && times == 2), "graph {number}: {edges:?} {mine:?}");
            assert!(
                frontiers.iter().all(|(block, &times)| !own(block) || times == 1),
                "graph {number}: {edges:?} {mine:?}"
            );
            without_loops += 1;
        }
    }
    assert_eq!(without_loops, 6);
    folder.succeed(
        lockstep(),
        &["replay", "--region", "kernel", "-H", "tf-stack", "--schedule", "schedule", "trace.bin"],
    );
    let original = Fetches::of(&folder, "graph");
    for level in [0, 4] {
        build(&folder, &source, "8", &format!("linearize:threshold=-1000,level={level}"), Some(&printed));
        let after = issued(&folder, "ipdom");
        for (block, times) in counts(&after) {
            assert!(times <= frontiers[block], "level {level}: {block} {times} times, not {}", frontiers[block]);
        }
        no_lanes_miss_each_other(&folder, &original, "graph", &format!("level {level}"));
    }
}

/// The fetches of a schedule, by whether they lie in functions whose names begin so. What is in these functions is the
/// control flow of graphs, and the guards.
struct Fetches {
    inside: usize,
    outside: usize,
    /// Of those inside: all but calls and returns. Guards are among them, and saving of the registers that they need.
    of_guards: usize,
}

impl Fetches {
    /// Of the schedule that was written last, by the disassembly of the program that was built last.
    fn of(folder: &Folder, begins: &str) -> Fetches {
        let listing = folder.succeed("objdump", &["-d", "--no-show-raw-insn", "program"]);
        let (mut is_inside, mut code) = (false, BTreeMap::new());
        for line in listing.lines() {
            if let Some((_, name)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
                is_inside = name.starts_with(begins);
            } else if let Some((address, text)) = line.split_once(":\t").filter(|_| is_inside) {
                let is_call = ["call", "ret"].iter().any(|name| text.starts_with(name));
                code.insert(u64::from_str_radix(address.trim(), 16).unwrap(), !is_call);
            }
        }
        let schedule = folder.read("schedule");
        let at = |line: &str| u64::from_str_radix(line.split(' ').next()?, 16).ok();
        let mut fetches = Fetches { inside: 0, outside: 0, of_guards: 0 };
        for pc in schedule.lines().skip(1).filter_map(at) {
            match code.get(&pc) {
                Some(&is_of_guard) => {
                    fetches.inside += 1;
                    fetches.of_guards += usize::from(is_of_guard);
                }
                None => fetches.outside += 1,
            }
        }
        fetches
    }
}

/// The program that was built last, linearized, under `ipdom` against the original under `tf-stack`: what is issued
/// beside the guards is no more, so all of it is no more than that and the guards; and `tf-stack`, under which lanes
/// meet as early as can be, needs as many fetches on it, so no block is issued twice for lanes that could have met.
fn no_lanes_miss_each_other(folder: &Folder, original: &Fetches, begins: &str, what: &str) {
    let replayed = |model: &str| {
        let words = ["replay", "--region", "kernel", "-H", model, "--check", "--schedule", "schedule", "trace.bin"];
        folder.succeed(lockstep(), &words);
        Fetches::of(folder, begins)
    };
    let frontiers = replayed("tf-stack");
    let stack = replayed("ipdom");
    assert_eq!(stack.inside + stack.outside, frontiers.inside + frontiers.outside, "{what}");
    assert!(stack.outside <= original.outside, "{what}: {} beside the guards, not {}", stack.outside, original.outside);
    let guards = stack.of_guards.saturating_sub(original.of_guards);
    let (all, before) = (stack.inside + stack.outside, original.inside + original.outside);
    assert!(guards > 0 && all <= before + guards, "{what}: {all} fetches, not {before} and {guards} of guards");
}

/// A number that ipdom's replay reports, with loads of 20 cycles, for the program that was built last.
fn number(folder: &Folder, column: &str) -> u64 {
    let words = ["replay", "--region", "kernel", "-H", "ipdom", "--load-latency", "20", "--json", "trace.bin"];
    let said: serde_json::Value = serde_json::from_str(&folder.succeed(lockstep(), &words)).unwrap();
    said["results"][0][column].as_u64().unwrap()
}

#[test]
fn three_ifs_in_each_other_take_seven_entries_of_a_stack_and_five_in_a_row() {
    let folder = Folder::with(&[]);
    let printed = build(&folder, &micro("nested_ifs"), "4", "none", None);
    // Figure 3(b): two entries for each branch, and the bottom one. Which side waits makes no difference to the number.
    assert_eq!(number(&folder, "stack_depth"), 7);
    // One branch stays above the row. A check whose sides both are blocks takes two entries, as a branch does; at level
    // 0 the side that skips is the place where lanes meet, and takes none.
    for (pass, entries) in
        [("linearize:threshold=-1000,max-depth=1", 5), ("linearize:threshold=-1000,max-depth=1,level=0", 4)]
    {
        build(&folder, &micro("nested_ifs"), "4", pass, Some(&printed));
        assert_eq!(number(&folder, "stack_depth"), entries, "{pass}");
    }
}
