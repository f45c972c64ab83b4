//! What `meld` costs where lanes agree about the branch: never more than its remarks say that it costs at most.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use crate::folder::{Folder, lockstep, root};
use crate::predicting::fetches;

/// Functions that are generated; calls of each, half of them for each side; turns of each loop in them.
const KERNELS: u64 = 160;
const CALLS: i64 = 8;
const TRIPS: i64 = 5;

/// Clang by itself makes selects and common blocks of what is to be melded.
const APART: [&str; 4] = ["-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"];

const HEAD: &str = "#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
typedef uint32_t u;
enum { LANES = 4, WORDS = 32 };
static struct { u m[WORDS], n[WORDS], results; double x[8], y[8]; } memory[LANES];
static volatile u trips = TRIPS;
__attribute__((noinline)) static u mix(u a, u b) { return a * 1664525u + (b ^ a >> 3); }
";

const TAIL: &str = "static void *worker(void *argument) {
    long lane = (long)(intptr_t)argument;
    for (u i = 0; i < WORDS; i++) memory[lane].m[i] = i * 2654435761u, memory[lane].n[i] = i * 40503u + 7;
    for (u i = 0; i < 8; i++) memory[lane].x[i] = i * 0.5, memory[lane].y[i] = i + 0.25;
    for (u call = 0; call < CALLS; call++) {
        for (u k = 0; k < sizeof kernels / sizeof *kernels; k++) {
            u result = kernels[k](call & 1, trips, memory[lane].m, memory[lane].n, memory[lane].x, memory[lane].y);
            memory[lane].results = memory[lane].results * 33 + result;
        }
    }
    return NULL;
}
int main(void) {
    pthread_t threads[LANES];
    for (long i = 0; i < LANES; i++) pthread_create(&threads[i], NULL, worker, (void *)(intptr_t)i);
    for (long i = 0; i < LANES; i++) pthread_join(threads[i], NULL), printf(\"%u\\n\", memory[i].results);
    return 0;
}
";

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// An arm of a kernel: `@` stands for its letter, `#` for its memory, `~` for its numbers.
struct Arm {
    common: Random,
    own: Random,
    /// Of so many draws one goes its own way; 0 for none.
    one_in: u64,
    text: String,
    loops: i64,
}

impl Arm {
    fn below(&mut self, n: u64) -> u64 {
        let common = self.common.below(n);
        if self.one_in > 0 && self.own.below(self.one_in) == 0 { self.own.below(n) } else { common }
    }

    fn expression(&mut self) -> String {
        let kinds = ["+", "-", "*", "^", "&", "|"];
        let (kind, a, b) = (self.below(9), self.below(4), self.below(4));
        let right = match self.below(3) {
            0 => format!("{}u", 3 + self.below(90)),
            1 => format!("#[{}]", self.below(16)),
            _ => format!("@{b}"),
        };
        match kind {
            6 => format!("(@{a} << {})", 1 + self.below(9)),
            7 => format!("(@{a} >> {})", 1 + self.below(9)),
            8 => format!("mix(@{a}, {right})"),
            _ => format!("(@{a} {} {right})", kinds[kind as usize]),
        }
    }

    /// A statement: an if has an `else` and a loop may stand only where nothing is repeated, so that a region comes by
    /// once for each call.
    fn statement(&mut self, repeated: bool, depth: u64) {
        let (to, value) = (self.below(4), self.expression());
        let kind = self.below(if depth < 2 { 10 } else { 7 });
        match kind {
            0..=3 => self.text += &format!("@{to} = {value} ^ {};\n", self.common.0 % 50),
            4 => {
                let value = format!("#[{}] = {value} + @{to};\n", 16 + self.below(16));
                self.text += &value;
            }
            5 => {
                let value = format!("~[{to}] = ~[{}] * ~[{}] + {}.5;\n", self.below(8), self.below(8), self.below(9));
                self.text += &value;
            }
            6 => {
                let value = format!("@{to} += #[@{} & 15];\n", self.below(4));
                self.text += &value;
            }
            7 if !repeated => {
                self.loops += 1;
                self.text += "for (u i = 0; i < trips; i++) {\n";
                self.block(true, depth + 1);
                self.text += "}\n";
            }
            _ => {
                let condition = format!("if ({value} & {}) {{\n", 1 << self.below(3));
                self.text += &condition;
                self.block(repeated, depth + 1);
                if !repeated && self.below(2) == 0 {
                    self.text += "} else {\n";
                    self.block(repeated, depth + 1);
                }
                self.text += "}\n";
            }
        }
    }

    fn block(&mut self, repeated: bool, depth: u64) {
        for _ in 0..2 + self.below(3) {
            self.statement(repeated, depth);
        }
    }
}

/// A kernel, and how many turns of loops a call of it makes at most.
fn kernel(number: u64) -> (String, i64) {
    let mut random = Random(number.wrapping_mul(0x517c_c1b7_2722_0a95) ^ 0x1234_5678);
    let mut text = format!(
        "__attribute__((noinline)) static u k_{number}(u side, u trips, u *m, u *n, double *x, double *y) {{\n"
    );
    for i in 0..4 {
        let _ = writeln!(text, "u a{i} = m[{i}] + {i}, b{i} = n[{i}] ^ {i};");
    }
    let (common, one_in) = (random.below(u64::MAX) | 1, [0, 24, 8, 3][(number % 4) as usize]);
    let mut most = 0;
    for (side, [letter, memory, numbers]) in [["a", "m", "x"], ["b", "n", "y"]].into_iter().enumerate() {
        text += ["if (side) {\n", "} else {\n"][side];
        let one_in = if side == 0 { 0 } else { one_in };
        let own = Random(random.below(u64::MAX) | 1);
        let mut arm = Arm { common: Random(common), own, one_in, text: String::new(), loops: 0 };
        arm.block(false, 0);
        arm.block(false, 0);
        most = most.max(arm.loops * TRIPS);
        text += &arm.text.replace('@', letter).replace('#', memory).replace('~', numbers);
    }
    text += "}\nreturn a0 ^ a1 * 3 ^ a2 * 5 ^ a3 * 7 ^ b0 * 11 ^ b1 * 13 ^ b2 * 17 ^ b3 * 19;\n}\n";
    (text, most)
}

/// By function: what its taken remarks say is lost at most, each time and for each turn.
fn losses(report: &str) -> BTreeMap<String, Vec<[i64; 2]>> {
    let mut losses: BTreeMap<String, Vec<[i64; 2]>> = BTreeMap::new();
    for remark in report.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if remark["kind"] == "taken" {
            let loss = ["loss", "turn"].map(|name| remark["numbers"][name].as_i64().unwrap());
            losses.entry(remark["function"].as_str().unwrap().to_owned()).or_default().push(loss);
        }
    }
    losses
}

#[test]
fn lanes_that_agree_lose_no_more_than_the_remarks_say() {
    let kernels: Vec<(String, i64)> = (0..KERNELS).map(kernel).collect();
    let names: Vec<String> = (0..KERNELS).map(|number| format!("k_{number}")).collect();
    let texts: String = kernels.iter().map(|(text, _)| text.as_str()).collect();
    let list = format!("static u (*const kernels[])(u, u, u *, u *, double *, double *) = {{{}}};\n", names.join(", "));
    let folder = Folder::with(&[("a.c", &[HEAD, &texts, &list, TAIL].concat())]);
    let (calls, trips) = (format!("-DCALLS={CALLS}"), format!("-DTRIPS={TRIPS}"));
    let flags = ["-O2", "-w", "-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize", "-no-pie", "-pthread"];
    let files = [&calls, &trips, "a.c", "-lm", "-o"];
    let mut printed = Vec::new();
    let mut wrong = String::new();
    let (mut bounds, mut lost, mut losing, mut melding) = (0, 0, 0, 0);
    let mut before = BTreeMap::new();
    for (program, pass) in [("none", "none"), ("worth", "meld:threshold=0"), ("forced", "meld:threshold=-1")] {
        let ours = ["cc", "--transform", pass, "--report", program, "--report-format", "json", "--"];
        let to = format!("{program}.program");
        folder.succeed(lockstep(), &[&ours[..], &flags, &APART, &files, &[&to]].concat());
        folder.succeed(lockstep(), &["trace", "-o", &format!("{to}.bin"), &format!("./{to}")]);
        printed.push(folder.succeed(&format!("./{to}"), &[]));
        let counts = fetches(&folder, &to, "ipdom");
        if program == "none" {
            before = counts;
            continue;
        }
        let losses = losses(&folder.read(program));
        for (name, (_, turns)) in names.iter().zip(&kernels) {
            let Some(losses) = losses.get(name) else { continue };
            let bound = losses.iter().map(|[once, turn]| once + turn * turns).sum::<i64>();
            let number = name.strip_prefix("k_").unwrap();
            let measured = (counts[number] - before[number]) as i64;
            if measured > bound * CALLS {
                wrong += &format!("{name} after {pass}: {measured} fetches lost, at most {} said\n", bound * CALLS);
            }
            melding += 1;
            losing += usize::from(measured > 0);
            (bounds, lost) = (bounds + bound * CALLS, lost + measured.max(0));
        }
    }
    assert!(printed.iter().all(|said| *said == printed[0]), "{printed:?}");
    assert!(wrong.is_empty(), "{wrong}");
    // A bound that holds because it is huge says nothing.
    assert!(melding >= 100 && 2 * losing >= melding, "{losing} of {melding} that meld lose");
    assert!(bounds < 8 * lost, "{lost} fetches lost in all, at most {bounds} said");
}

/// The fetches of a benchmark's kernel between its barriers, in one group of 64 threads; what the remarks say of
/// losses.
fn stages(folder: &Folder, pass: &str) -> (Vec<i64>, BTreeMap<String, Vec<[i64; 2]>>) {
    let [source, include] =
        ["melding/bitonic.c", "include"].map(|name| root().join("workloads").join(name).display().to_string());
    let ours = ["cc", "--transform", pass, "--report", pass, "--report-format", "json", "--"];
    let flags = ["-std=gnu11", "-O3", "-pthread", "-no-pie", "-DBLOCK=64", "-I", &include, &source, "-o", "bitonic"];
    folder.succeed(lockstep(), &[&ours[..], &flags, &APART].concat());
    folder.succeed(lockstep(), &["trace", "-o", "trace.bin", "--", "./bitonic", "-p", "64"]);
    let how = ["replay", "-H", "ipdom", "-W", "64", "--region", "kernel", "--workers", "1", "--schedule", "schedule"];
    folder.succeed(lockstep(), &[&how[..], &["trace.bin"]].concat());
    let listing = folder.succeed("objdump", &["-d", "--no-show-raw-insn", "bitonic"]);
    let calls = listing.lines().filter(|line| line.contains("call") && line.ends_with("<pthread_barrier_wait@plt>"));
    let calls: Vec<u64> = calls.map(|line| address(line.trim_start())).collect();
    let mut stages = vec![0];
    for line in folder.read("schedule").lines().filter(|line| line.split(' ').count() == 2) {
        *stages.last_mut().unwrap() += 1;
        if calls.contains(&address(line)) {
            stages.push(0);
        }
    }
    (stages, losses(&folder.read(pass)))
}

/// The hexadecimal number that a line begins with.
fn address(line: &str) -> u64 {
    let digits = line.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap();
    u64::from_str_radix(digits, 16).unwrap()
}

/// The last stages of a bitonic sort, where the blocks that are sorted are as large as the group, sort all upwards.
#[test]
fn the_stages_of_bitonic_in_which_all_lanes_agree_lose_no_more_than_the_remarks_say() {
    let folder = Folder::with(&[]);
    let (before, _) = stages(&folder, "none");
    let (after, losses) = stages(&folder, "meld");
    assert_eq!((before.len(), after.len()), (21, 21), "the last barrier is jumped to");
    let most = losses["kernel"].iter().map(|[once, _]| *once).max().unwrap();
    let lost: Vec<i64> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
    assert!(lost[15..21].iter().all(|lost| (0..=most).contains(lost)), "{lost:?}, at most {most} said");
    assert!(lost[1..15].iter().all(|&lost| lost < 0), "{lost:?}");
}
