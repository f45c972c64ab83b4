//! `linearize`, over random programs whose control flow is made of jumps: loops with several entries, breaks out of
//! several loops, switches that fall through, returns in loops, conditions in a row.

use std::fmt::Write;

use transform::Kind;

use crate::generator::{Draw, Random, with_kernel};
use crate::structuring::Case;

/// The program of this number: blocks with labels, each with something to do, and jumps to any of them. Jumps to
/// earlier blocks take from a store that runs out, so that the program ends.
pub(crate) fn program(seed: u64) -> String {
    let mut random = Random(seed ^ 0x676f_746f);
    let blocks = 4 + random.below(9);
    let mut text = String::new();
    let end = ["break", "goto done", "return v0 ^ fuel"][random.below(3) as usize];
    text.push_str("#define SPENT (fuel ? (fuel--, 0) : 1)\n");
    text.push_str("static KEEP u kernel(u id, u round, u *m) {\n    u fuel = 40 + (id & 3) * 7, v0 = m[id & 63], ");
    text.push_str("v1 = round, v2 = id * 77, v3 = m[(id + round) & 63];\n");
    text.push_str("    function f = table[m[round & 63] & 3];\n    for (;;) {\n");
    for block in 0..blocks {
        let _ = writeln!(text, "    b{block}:");
        for _ in 0..random.below(4) {
            text.push_str(&statement(&mut random));
        }
        text.push_str(&jump(&mut random, block, blocks, end));
    }
    let _ = writeln!(text, "        if (v0 & 64) {end};\n        if (SPENT) {end};\n    }}");
    let _ = writeln!(text, "    note(m, v1);\ndone:\n    return v0 ^ v1 * 3 ^ v2 * 5 ^ v3 * 7 ^ fuel;\n}}");
    with_kernel(&text)
}

fn atom(random: &mut Random) -> &'static str {
    random.pick(&["v0", "v1", "v2", "v3", "id", "round", "m[v1 & 63]", "3u", "fuel"])
}

fn condition(random: &mut Random) -> String {
    let (a, b) = (atom(random), atom(random));
    match random.below(7) {
        6 => format!("({a} & 7) / 3.0 {} ({b} & 3) * 0.3", random.pick(&["==", "!="])),
        0 => format!("{a} & {}", 1 << random.below(4)),
        1 => format!("({a} ^ {b}) % 3 == {}", random.below(3)),
        2 => format!("{a} < {b}"),
        3 => format!("({a} & 2) || mix({b}, 3) & 1"),
        4 => format!("({a} & 1) && ({b} & 4)"),
        _ => format!("({a} & 3) == 1 || ({b} & 5) == 4 || ({a} + {b}) % 7 == 2"),
    }
}

fn statement(random: &mut Random) -> String {
    let (to, a, b) = (random.pick(&["v0", "v1", "v2", "v3"]), atom(random), atom(random));
    let condition = condition(random);
    match random.below(9) {
        0 => format!("        {to} = mix({a}, {b});\n"),
        1 => format!("        note(m, {a} + {b});\n"),
        2 => format!("        if ({condition}) {to} ^= {a} * 5; else note(m, {b});\n"),
        3 => format!("        for (u i = 0; i < ({a} & 7); i++) {{ if ({condition}) break; {to} += turn({b}, i); }}\n"),
        4 => format!(
            "        while ({to} & 8) {{ if (SPENT) break; {to} = {to} * 3 + {a}; if ({condition}) continue; {to}--; }}\n"
        ),
        5 => format!("        {to} += f({a}, {b});\n"),
        6 => format!("        if ({condition}) {to} = {to} * 33 + {a};\n"),
        _ => format!("        {to} = {to} * 1664525u + ({a} ^ {b});\n"),
    }
}

/// A jump from a block, to another or the next.
fn jump(random: &mut Random, block: u64, blocks: u64, end: &str) -> String {
    let leads = |random: &mut Random| {
        let target = random.below(blocks);
        if target > block { format!("goto b{target};") } else { format!("{{ if (SPENT) {end}; goto b{target}; }}") }
    };
    let (first, condition) = (leads(random), condition(random));
    match random.below(10) {
        0 => String::new(),
        1 | 2 => format!("        if ({condition}) {first}\n        else {}\n", leads(random)),
        3 => {
            let (second, third) = (leads(random), leads(random));
            let value = atom(random);
            format!(
                "        switch ({value} % 7) {{ case 0: {first}\n        case 1: case 5: v1 ^= 9;\n        \
                 case 2: {second}\n        case 3: break;\n        case 6: {third} }}\n"
            )
        }
        4 => format!("        if ({condition}) {{ v2 += 3; {end}; }}\n"),
        5 => format!("        if ({condition}) {first}\n        note(m, v3); {}\n", leads(random)),
        _ => format!("        if ({condition}) {first}\n"),
    }
}

/// The program of jumps of this number, optimised.
fn case_of(seed: u64) -> Case {
    let level = ["-O1", "-O2", "-O3", "-Os"][seed as usize % 4];
    Case::of(format!("program {seed}"), &program(seed), &[level]).expect("a program that ends")
}

/// The programs of these numbers print the same after the pass and are structured then, in IR and in machine code; how
/// many functions were changed.
fn linearized(seeds: std::ops::Range<u64>, lists: &[&str]) -> usize {
    let mut taken = 0;
    for seed in seeds {
        let case = case_of(seed);
        taken += lists.iter().map(|passes| case.judge_linearized(passes)).sum::<usize>();
    }
    taken
}

/// The same of the passes that `linearize` is compared with: in how many functions each did something, and how many it
/// gave up.
fn baselines(seeds: std::ops::Range<u64>) -> Vec<(usize, usize)> {
    let mut counts = vec![(0, 0); BASELINES.len()];
    for seed in seeds {
        let case = case_of(seed);
        for (pass, (taken, left)) in BASELINES.iter().zip(&mut counts) {
            let remarks = case.judge(pass);
            *taken += remarks.iter().filter(|remark| remark.is_taken()).count();
            *left += remarks.iter().filter(|remark| remark.kind() == Kind::Left).count();
        }
    }
    counts
}

/// With room for what they do to programs that are all jumps.
const BASELINES: &[&str] = &["split-nodes:growth=64", "structurizecfg:growth=1000"];

#[test]
fn baselines_print_the_same_and_are_structured_unless_they_say_not() {
    for (pass, (taken, left)) in BASELINES.iter().zip(baselines(0..6)) {
        assert!(taken >= 6 && left < taken, "{pass}: {taken} functions were changed, {left} left");
    }
}

#[test]
#[ignore = "takes minutes: scripts/check-linearize runs it"]
fn many_programs_of_jumps_after_the_baselines() {
    let (first, count) = asked();
    for (pass, (taken, left)) in BASELINES.iter().zip(baselines(first..first + count)) {
        println!("{pass}: {count} programs, {taken} functions changed, {left} left");
    }
}

/// Which programs the environment asks for: the first, and how many.
pub(crate) fn asked() -> (u64, u64) {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().expect("a number"));
    (number("FIRST", 0), number("COUNT", 1000))
}

/// At each level, however much a function grows.
pub(crate) const PASSES: &[&str] = &[
    "linearize:threshold=-1000,level=0,growth=1000",
    "linearize:threshold=-1000,level=1,growth=1000",
    "linearize:threshold=-1000,level=2,growth=1000",
    "linearize:threshold=-1000,level=3,growth=1000",
    "linearize:threshold=-1000,level=4,growth=1000",
];

/// What is in a row beside what was not structured.
pub(crate) const APPLIED: &[&str] = &[
    "linearize:threshold=-1000,merge-loops=yes,growth=1000",
    "linearize:threshold=-1000,max-depth=1,level=1,growth=1000",
    "linearize:threshold=-1000,interleave=yes,growth=1000",
    "linearize:threshold=-1000,merge-loops=yes,interleave=yes,max-depth=2,growth=1000",
];

#[test]
fn programs_of_jumps_print_the_same_with_loops_merged_and_arms_interleaved() {
    let taken = linearized(4..12, APPLIED);
    assert!(taken >= 8 * APPLIED.len(), "{taken} functions were changed");
}

/// Found by `scripts/check-linearize`: a part of an outer loop gave a value, of which later turns of the merged loop
/// knew nothing, since a region that `max-depth` found in the row was taken for one that is entered again.
#[test]
fn what_a_part_of_merged_loops_gave_is_there_turns_later() {
    let both = [
        "linearize:threshold=-1000,merge-loops=yes,max-depth=2,growth=1000",
        "linearize:threshold=-1000,merge-loops=yes,max-depth=3,growth=1000",
    ];
    assert!(linearized(531..532, &both) >= 2);
}

#[test]
fn programs_of_jumps_print_the_same_and_are_structured() {
    let taken = linearized(0..4, PASSES);
    assert!(taken >= 4 * PASSES.len(), "{taken} functions were changed");
}

/// How many programs, from the environment: `scripts/check-linearize` runs 1,000. Each at all levels, and with one of
/// what else is put in a row, in turn.
#[test]
#[ignore = "takes an hour: scripts/check-linearize runs it"]
fn many_programs_of_jumps_print_the_same_and_are_structured() {
    let (first, count) = asked();
    let mut taken = 0;
    for seed in first..first + count {
        let applied = APPLIED[seed as usize / 4 % APPLIED.len()];
        taken += linearized(seed..seed + 1, &[PASSES, &[applied]].concat());
        if seed % 50 == 49 {
            println!("programs up to {seed}: {taken} functions changed");
        }
    }
    println!("{count} programs, {taken} functions changed");
    assert!(taken as u64 > count, "{taken} functions were changed");
}
