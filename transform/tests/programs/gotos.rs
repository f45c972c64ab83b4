//! `linearize`, over random programs whose control flow is made of jumps: loops with several entries, breaks out of
//! several loops, switches that fall through, returns in loops, conditions in a row.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use flowgraph::Reduction;
use transform::llvm::Module;
use transform::{Flow, Kind, Reason, Remark};

use crate::generator::{Draw, Random, with_kernel};
use crate::{build, machine};

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

/// Fails where a function is not structured after the pass, unless it was left with a remark.
fn all_structured(module: &Module, remarks: &[Remark], what: &str) {
    for function in module.functions_to_optimise() {
        let left = remarks.iter().any(|r| r.function == function.name() && r.kind() == Kind::Left);
        let flow = Flow::of(function);
        let reduction = Reduction::of(flow.graph(), &[]);
        assert!(left || reduction.is_structured(), "{what}: {} has {} parts", function.name(), reduction.left().len());
    }
}

/// Claim 3 of the paper, of instructions, without phis: a comparison and a branch for each guard, a choice for each
/// part where a branch was; and a jump where a region or a part gets a block before it, or where ends become one.
/// Equality of floating-point numbers takes three instructions to become a value.
fn grows_linearly(before: &Module, after: &Module, remarks: &[Remark], what: &str) {
    let count = |module: &Module, name: &str| {
        let function = module.functions().into_iter().find(|f| f.name() == name).expect("no pass takes functions away");
        function.blocks().into_iter().flat_map(|block| block.instructions()).filter(|i| !i.is_phi()).count()
    };
    for remark in remarks {
        let Reason::Linearized(done) = remark.reason else { continue };
        let guards = 2 * (done.guards + done.backs);
        let bound = guards + 2 * done.parts + 2 * done.regions + 3 * done.equalities + 1;
        let (old, new) = (count(before, &remark.function), count(after, &remark.function));
        // What a switch becomes grows with its cases.
        assert!(done.switches > 0 || new <= old + bound, "{what}: {} has {old}, then {new}: {done}", remark.function);
    }
}

/// A program of jumps, optimised.
struct Case {
    folder: tempfile::TempDir,
    seed: u64,
    /// How it was optimised.
    level: &'static str,
    /// What it prints.
    expected: String,
}

impl Case {
    fn of(seed: u64) -> Case {
        let level = ["-O1", "-O2", "-O3", "-Os"][seed as usize % 4];
        let mut case = Case { folder: tempfile::tempdir().unwrap(), seed, level, expected: String::new() };
        fs::write(case.path("a.c"), program(seed)).unwrap();
        build::to_bitcode(&case.path("a.c"), &case.path("a.bc"), &[level, "-Wno-everything"]);
        build::link(&case.path("a.bc"), &case.path("a"), &[]);
        case.expected = build::output(case.path("a"), [""; 0]);
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs passes. What they say not to have left is structured in IR, and the program prints the same, built from
    /// that IR and by the compiler wrapper, whose object is `c.o` then.
    fn judge(&self, passes: &str) -> Vec<Remark> {
        let what = self.with(passes);
        let (after, program, object) = (self.path("b.bc"), self.path("b"), self.path("c.o"));
        let remarks = build::transform(&self.path("a.bc"), passes, &after);
        assert!(remarks.iter().all(|remark| remark.kind() != Kind::Refused), "{what}: {remarks:?}");
        all_structured(&Module::read(&after).unwrap(), &remarks, &what);
        build::link(&after, &program, &[]);
        assert_eq!(build::output(&program, [""; 0]), self.expected, "{what}");
        build::compile(&self.path("a.c"), &object, passes, &[self.level]);
        build::link(&object, &program, &[]);
        assert_eq!(build::output(&program, [""; 0]), self.expected, "{what}, by the compiler wrapper");
        remarks
    }

    fn with(&self, passes: &str) -> String {
        format!("program {} at {} after {passes}", self.seed, self.level)
    }
}

/// The programs of these numbers print the same after the pass and are structured then, in IR and in machine code; how
/// many functions were changed.
fn linearized(seeds: std::ops::Range<u64>, lists: &[&str]) -> usize {
    let mut taken = 0;
    for seed in seeds {
        if seed % 50 == 49 {
            println!("programs up to {seed}: {taken} functions changed");
        }
        let case = Case::of(seed);
        for passes in lists {
            let (what, remarks) = (case.with(passes), case.judge(passes));
            taken += remarks.iter().filter(|remark| remark.is_taken()).count();
            assert!(remarks.iter().all(|remark| remark.kind() != Kind::Left), "{what}: {remarks:?}");
            let [before, after] = ["a.bc", "b.bc"].map(|file| Module::read(&case.path(file)).unwrap());
            grows_linearly(&before, &after, &remarks, &what);
            for (function, listing) in machine::functions(&case.path("c.o")) {
                assert_eq!(machine::left(&listing), Some(1), "{what}: machine code of {function}");
            }
        }
    }
    taken
}

/// The same of the passes that `linearize` is compared with: in how many functions each did something, and how many it
/// gave up.
fn baselines(seeds: std::ops::Range<u64>) -> Vec<(usize, usize)> {
    let mut counts = vec![(0, 0); BASELINES.len()];
    for seed in seeds {
        let case = Case::of(seed);
        for (pass, (taken, left)) in BASELINES.iter().zip(&mut counts) {
            let remarks = case.judge(pass);
            *taken += remarks.iter().filter(|remark| remark.is_taken()).count();
            *left += remarks.iter().filter(|remark| remark.kind() == Kind::Left).count();
        }
    }
    counts
}

const BASELINES: &[&str] = &["split-nodes", "structurizecfg"];

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
fn asked() -> (u64, u64) {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().expect("a number"));
    (number("FIRST", 0), number("COUNT", 1000))
}

/// At each level.
const PASSES: &[&str] =
    &["linearize:level=0", "linearize:level=1", "linearize:level=2", "linearize:level=3", "linearize:level=4"];

/// What is in a row beside what was not structured.
const APPLIED: &[&str] = &[
    "linearize:merge-loops=yes",
    "linearize:max-depth=1,level=1",
    "linearize:interleave=yes",
    "linearize:merge-loops=yes,interleave=yes,max-depth=2",
];

#[test]
fn programs_of_jumps_print_the_same_with_loops_merged_and_arms_interleaved() {
    let taken = linearized(4..12, APPLIED);
    assert!(taken >= 8 * APPLIED.len(), "{taken} functions were changed");
}

/// Found by `scripts/check-linearize`: a part of an outer loop gave a value, of which later turns of the merged loop
/// knew nothing, since a region that `max-depth` found in the row was taken for one that is entered anew.
#[test]
fn what_a_part_of_merged_loops_gave_is_there_turns_later() {
    let both = ["linearize:merge-loops=yes,max-depth=2", "linearize:merge-loops=yes,max-depth=3"];
    assert!(linearized(531..532, &both) >= 2);
}

#[test]
fn programs_of_jumps_print_the_same_and_are_structured() {
    let taken = linearized(0..4, PASSES);
    assert!(taken >= 4 * PASSES.len(), "{taken} functions were changed");
}

/// How many programs, from the environment: `scripts/check-linearize` runs 1,000.
#[test]
#[ignore = "takes minutes: scripts/check-linearize runs it"]
fn many_programs_of_jumps_print_the_same_and_are_structured() {
    let (first, count) = asked();
    let taken = linearized(first..first + count, &[PASSES, APPLIED].concat());
    println!("{count} programs, {taken} functions changed");
}
