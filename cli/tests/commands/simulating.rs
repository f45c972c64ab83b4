//! `lockstep export --format accel-sim`: a reader of the format finds what `replay` counts.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::Value;

use crate::support::{build, root, run, succeed};

/// Lanes part at each odd thread and meet at three barriers; each has a variable in its stack.
const CELLS: &str = "\
#include <pthread.h>
static pthread_barrier_t barrier;
static long cells[70];
static void *run(void *argument) {
    long thread = (long)argument;
    volatile long own = thread;
    for (int round = 0; round < 3; round++) {
        if (thread % 2)
            own = own / 7 + round;
        cells[thread] = own;
        pthread_barrier_wait(&barrier);
    }
    return 0;
}
int main(void) {
    pthread_t threads[70];
    pthread_barrier_init(&barrier, 0, 70);
    for (long i = 0; i < 70; i++)
        pthread_create(&threads[i], 0, run, (void *)i);
    for (int i = 0; i < 70; i++)
        pthread_join(threads[i], 0);
    return cells[3] == 1;
}
";

/// The lines of it on which the lane's own variable is used, and of the store to the array.
const OWN: &str = "9";
const CELL: &str = "10";

fn traced(folder: &Path, options: &[&str]) -> String {
    let [source, program, trace] = ["cells.c", "cells", "cells.bin"].map(|name| folder.join(name));
    std::fs::write(&source, CELLS).unwrap();
    build(&source, &program, &["-O1"]);
    let trace = trace.to_str().unwrap().to_owned();
    succeed("trace", &[options, &["-o", &trace, program.to_str().unwrap()]].concat());
    trace
}

/// An instruction of a warp, as it stands in a kernel.
#[derive(Debug)]
struct Instruction {
    pc: String,
    mask: u32,
    opcode: String,
    /// By active lane, in their order.
    addresses: Vec<u64>,
    width: u64,
}

/// Reads a line as the format says: pc, mask, registers written, opcode, registers read, width, addresses.
fn instruction(line: &str) -> Instruction {
    let mut words = line.split_whitespace();
    let mut word = || words.next().unwrap_or_else(|| panic!("{line:?} ends too early"));
    let (pc, mask) = (word().to_owned(), u32::from_str_radix(word(), 16).unwrap());
    let hexadecimal = |word: &str| u64::from_str_radix(word.strip_prefix("0x").unwrap(), 16).unwrap();
    let count = |text: &str, most: usize| {
        let count: usize = text.parse().unwrap();
        assert!(count <= most, "{line}");
        count
    };
    let is_register = |word: &str| word.strip_prefix('R').is_some_and(|number| number.parse::<u8>().is_ok());
    for _ in 0..count(word(), 1) {
        assert!(is_register(word()), "{line}");
    }
    let opcode = word().to_owned();
    for _ in 0..count(word(), 4) {
        assert!(is_register(word()), "{line}");
    }
    let width = word().parse().unwrap();
    let mut addresses = Vec::new();
    if width > 0 {
        let mode = word();
        addresses.push(hexadecimal(word()));
        let lanes = mask.count_ones() as usize;
        let stride: Option<i64> = (mode == "1").then(|| word().parse().unwrap());
        assert!(stride.is_some() || mode == "2", "{line}");
        while addresses.len() < lanes {
            let step = stride.unwrap_or_else(|| word().parse().unwrap());
            addresses.push(addresses[addresses.len() - 1].wrapping_add_signed(step));
        }
        // Lanes of a stride stand side by side.
        assert!(stride.is_none() || (mask >> mask.trailing_zeros()).wrapping_add(1).count_ones() <= 1, "{line}");
    }
    assert_eq!(words.next(), None, "{line}");
    Instruction { pc, mask, opcode, addresses, width }
}

/// The head of a kernel, and by block and warp its instructions.
type Kernel = (HashMap<String, String>, BTreeMap<(u32, u32), Vec<Instruction>>);

fn kernel(path: &Path) -> Kernel {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, body) = text.split_once("\n#").expect("a head");
    let head = head.lines().filter_map(|line| line.strip_prefix('-')?.split_once(" = "));
    let head = head.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (mut warps, mut at, mut left) = (BTreeMap::new(), (0, 0), 0);
    for line in body.lines().skip(1).filter(|line| !line.is_empty()) {
        let number =
            |prefix: &str| line.strip_prefix(prefix).map(|rest| rest.split(',').next().unwrap().parse().unwrap());
        if let Some(block) = number("thread block = ") {
            at = (block, 0);
        } else if let Some(warp) = number("warp = ") {
            assert_eq!(left, 0, "the warp before has as many instructions as it says");
            at.1 = warp;
        } else if let Some(count) = number("insts = ") {
            left = count;
            assert!(left > 0 && warps.insert(at, Vec::new()).is_none(), "{at:?}");
        } else if !["#BEGIN_TB", "#END_TB"].contains(&line) {
            left -= 1;
            warps.get_mut(&at).unwrap().push(instruction(line));
        }
    }
    assert_eq!(left, 0);
    (head, warps)
}

/// By pc: part, file and line, as `code.csv` says.
fn code(path: &Path) -> HashMap<String, [String; 3]> {
    let mut rows = csv::Reader::from_path(path).unwrap();
    let header = rows.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let [pc, part, file, line] = ["pc", "part", "file", "line"].map(at);
    let row =
        |row: csv::StringRecord| (format!("{:0>4}", &row[pc]), [part, file, line].map(|column| row[column].to_owned()));
    rows.records().map(|record| row(record.unwrap())).collect()
}

#[test]
fn a_kernel_has_the_fetches_lanes_and_addresses_of_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), &["--memory"]);
    let out = folder.path().join("kernels");
    succeed("lockstep", &["export", "--format", "accel-sim", "-o", out.to_str().unwrap(), &trace]);
    assert_eq!(std::fs::read_to_string(out.join("kernelslist.g")).unwrap(), "kernel-1.traceg\n");
    let (head, warps) = kernel(&out.join("kernel-1.traceg"));
    assert_eq!([&head["grid dim"], &head["block dim"], &head["accelsim tracer version"]], ["(1,1,1)", "(70,1,1)", "3"]);
    let code = code(&out.join("code.csv"));

    let text = succeed("replay", &["--json", "--by", "line", &trace]);
    let row = serde_json::from_str::<Value>(&text).unwrap()["results"][0].take();
    let count = |value: &Value| value.as_u64().unwrap();
    assert_eq!(warps.keys().copied().collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(count(&row["warps"]), 3);
    let mut by_line: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut histogram = [0; 33];
    for instruction in warps.values().flatten().filter(|instruction| code[&instruction.pc][0] == "0") {
        let lanes = u64::from(instruction.mask.count_ones());
        let sums = by_line.entry(&code[&instruction.pc][2]).or_default();
        *sums = [sums[0] + 1, sums[1] + lanes];
        histogram[lanes as usize] += 1;
    }
    let expected: Vec<u64> = row["active_histogram"].as_array().unwrap().iter().map(count).collect();
    assert_eq!(histogram[1..], expected);
    for row in row["by"]["rows"].as_array().unwrap().iter().filter(|row| row["line"].is_u64()) {
        let sums = by_line.remove(&*row["line"].to_string()).unwrap_or_default();
        assert_eq!(sums, ["fetches", "thread_instructions"].map(|column| count(&row[column])), "{row}");
    }
    by_line.remove("");
    assert!(by_line.is_empty(), "{by_line:?}");

    let of_line = |line: &str, opcode: &str| -> Vec<&Instruction> {
        let is_it = |i: &&Instruction| code[&i.pc][2] == line && i.opcode.starts_with(opcode);
        warps[&(0, 0)].iter().filter(is_it).collect()
    };
    let stores = of_line(CELL, "STG.E.64");
    assert_eq!(stores.len(), 3);
    for store in stores {
        assert_eq!((store.mask, store.width), (u32::MAX, 8));
        assert!(store.addresses.windows(2).all(|two| two[1] == two[0] + 8), "{store:x?}");
    }
    let own = of_line(OWN, "LDL.64");
    assert_eq!(own.len(), 3);
    for load in own {
        assert_eq!(load.mask, 0xaaaa_aaaa);
        assert!(load.addresses.iter().all(|address| *address == load.addresses[0]), "{load:x?}");
    }
    for ((_, warp), instructions) in &warps {
        let lanes = [u32::MAX, u32::MAX, 0b11_1111][*warp as usize];
        let masks =
            |opcode: &str| -> Vec<u32> { instructions.iter().filter(|i| i.opcode == opcode).map(|i| i.mask).collect() };
        assert_eq!(masks("BAR.SYNC"), [lanes; 3]);
        assert_eq!(masks("EXIT"), [lanes]);
        assert_eq!(instructions[instructions.len() - 1].opcode, "EXIT");
    }
}

#[test]
fn lanes_that_are_started_together_are_a_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let [program, trace, out] = ["program", "trace.bin", "kernels"].map(|name| folder.path().join(name));
    build(&root().join("cli/tests/programs/generations.c"), &program, &[]);
    let trace = trace.to_str().unwrap();
    succeed("trace", &["--memory", "-o", trace, program.to_str().unwrap()]);
    succeed("lockstep", &["export", "--format", "accel-sim", "-o", out.to_str().unwrap(), trace]);
    let list = std::fs::read_to_string(out.join("kernelslist.g")).unwrap();
    let kernels: Vec<Kernel> = list.lines().map(|file| kernel(&out.join(file))).collect();
    let ids: Vec<&str> = kernels.iter().map(|(head, _)| &*head["kernel id"]).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert!(kernels.iter().all(|(head, warps)| head["block dim"] == "(4,1,1)" && warps.len() == 1));
    let code = code(&out.join("code.csv"));
    let all = kernels.iter().flat_map(|(_, warps)| warps.values().flatten());
    let fetches = all.filter(|instruction| code[&instruction.pc][0] == "0").count();
    let row = serde_json::from_str::<Value>(&succeed("replay", &["--json", trace])).unwrap()["results"][0].take();
    assert_eq!(row["fetches"], fetches);
}

#[test]
fn what_the_format_cannot_say_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), &["--memory"]);
    let out = folder.path().join("kernels").to_str().unwrap().to_owned();
    let refused = |options: &[&str], why: &str| {
        let output = run("lockstep", &[&["export", "--format", "accel-sim"], options].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(why), "{options:?}: {text}");
        assert!(!Path::new(&out).exists(), "{options:?}");
    };
    refused(&["--warp-size", "64", "-o", &out, &trace], "give --warp-size 32");
    refused(&["--model", "dwf", "--warp-size", "32", "-o", &out, &trace], "give --warps-per-block 1");
    refused(&[&trace], "name a folder for them with --output");
    let without = traced(folder.path(), &[]);
    refused(&["-o", &out, &without], "record it with trace --memory");
}
