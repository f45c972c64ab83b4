//! `linearize`, over random programs whose control flow is made of jumps: loops with several entries, breaks out of
//! several loops, switches that fall through, returns in loops, conditions in a row.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use flowgraph::Reduction;
use transform::llvm::Module;
use transform::wrapper::{self, Build, Layout, Shape};
use transform::{Flow, Kind, Pipeline, Reason, Remark};

use crate::generator::{HEAD, Random, TAIL};
use crate::{build, machine};

/// The program of this number: blocks with labels, each with something to do, and jumps to any of them. Jumps to
/// earlier blocks take from a store that runs out, so that the program ends.
pub(crate) fn program(seed: u64) -> String {
    let mut random = Random(seed ^ 0x676f_746f);
    let blocks = 4 + random.below(9);
    let mut text = HEAD.to_owned();
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
    text + TAIL
}

fn atom(random: &mut Random) -> &'static str {
    random.pick(&["v0", "v1", "v2", "v3", "id", "round", "m[v1 & 63]", "3u", "fuel"])
}

fn condition(random: &mut Random) -> String {
    let (a, b) = (atom(random), atom(random));
    match random.below(6) {
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
fn grows_linearly(before: &Module, after: &Module, remarks: &[Remark], what: &str) {
    let count = |module: &Module, name: &str| {
        let function = module.functions().into_iter().find(|f| f.name() == name).expect("no pass takes functions away");
        function.blocks().into_iter().flat_map(|block| block.instructions()).filter(|i| !i.is_phi()).count()
    };
    for remark in remarks {
        let Reason::Linearized(done) = remark.reason else { continue };
        let bound = 2 * (done.guards + done.backs) + 2 * done.parts + 2 * done.regions + 1;
        let (old, new) = (count(before, &remark.function), count(after, &remark.function));
        // What a switch becomes grows with its cases.
        assert!(done.switches > 0 || new <= old + bound, "{what}: {} has {old}, then {new}: {done}", remark.function);
    }
}

/// The programs of these numbers print the same after the pass and are structured then, in IR and in machine code; how
/// many functions were changed.
fn linearized(seeds: std::ops::Range<u64>, lists: &[&str]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut taken = 0;
    for seed in seeds {
        if seed % 50 == 49 {
            println!("programs up to {seed}: {taken} functions changed");
        }
        let (source, bitcode, program) = (path("a.c"), path("a.bc"), path("a"));
        fs::write(&source, self::program(seed)).unwrap();
        let level = ["-O1", "-O2", "-O3", "-Os"][seed as usize % 4];
        build::to_bitcode(&source, &bitcode, &[level, "-Wno-everything"]);
        build::link(&bitcode, &program, &[]);
        let expected = build::output(&program, [""; 0]);
        for passes in lists {
            let what = format!("program {seed} at {level} after {passes}");
            let (after, program) = (path("b.bc"), path("b"));
            let remarks = build::transform(&bitcode, passes, &after);
            taken += remarks.iter().filter(|remark| remark.is_taken()).count();
            assert!(remarks.iter().all(|remark| remark.kind() != Kind::Left), "{what}: {remarks:?}");
            let [before, module] = [&bitcode, &after].map(|file| Module::read(file).unwrap());
            all_structured(&module, &remarks, &what);
            grows_linearly(&before, &module, &remarks, &what);
            build::link(&after, &program, &[]);
            assert_eq!(build::output(&program, [""; 0]), expected, "{what}");
            let object = path("c.o");
            compile(&source, &object, passes, level);
            output_of_object(&object, &program, &expected, &what);
            for (function, listing) in machine::functions(&object) {
                let left = machine::left(&listing);
                assert_eq!(left, Some(1), "{what}: machine code of {function}");
            }
        }
    }
    taken
}

/// The same of the passes that `linearize` is compared with: in how many functions each did something, and how many it
/// gave up.
fn baselines(seeds: std::ops::Range<u64>) -> Vec<(usize, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut counts = vec![(0, 0); BASELINES.len()];
    for seed in seeds {
        let (source, bitcode, program) = (path("a.c"), path("a.bc"), path("a"));
        fs::write(&source, self::program(seed)).unwrap();
        let level = ["-O1", "-O2", "-O3", "-Os"][seed as usize % 4];
        build::to_bitcode(&source, &bitcode, &[level, "-Wno-everything"]);
        build::link(&bitcode, &program, &[]);
        let expected = build::output(&program, [""; 0]);
        for (pass, (taken, left)) in BASELINES.iter().zip(&mut counts) {
            let what = format!("program {seed} at {level} after {pass}");
            let (after, program) = (path("b.bc"), path("b"));
            let remarks = build::transform(&bitcode, pass, &after);
            *taken += remarks.iter().filter(|remark| remark.is_taken()).count();
            *left += remarks.iter().filter(|remark| remark.kind() == Kind::Left).count();
            assert!(remarks.iter().all(|remark| remark.kind() != Kind::Refused), "{what}: {remarks:?}");
            all_structured(&Module::read(&after).unwrap(), &remarks, &what);
            build::link(&after, &program, &[]);
            assert_eq!(build::output(&program, [""; 0]), expected, "{what}");
            let object = path("c.o");
            compile(&source, &object, pass, level);
            output_of_object(&object, &program, &expected, &what);
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

/// As the compiler wrapper makes code.
fn compile(source: &Path, object: &Path, passes: &str, level: &str) {
    let words = [level, "-std=gnu11", "-w", "-c", "-o"].map(OsString::from);
    let build = Build {
        compiler: "clang-19".into(),
        passes: Pipeline::parse(passes).unwrap(),
        layout: Layout::Ordered,
        shape: Shape::Cpu,
        keep_ir: None,
        arguments: words.into_iter().chain([object.into(), source.into()]).collect(),
    };
    assert_eq!(wrapper::build(&build).unwrap().status, 0);
}

fn output_of_object(object: &Path, program: &Path, expected: &str, what: &str) {
    build::link(object, program, &[]);
    assert_eq!(build::output(program, [""; 0]), expected, "{what}, by the compiler wrapper");
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
    let taken = linearized(4..6, APPLIED);
    assert!(taken >= 2 * APPLIED.len(), "{taken} functions were changed");
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
    let taken = linearized(first..first + count, PASSES);
    println!("{count} programs, {taken} functions changed");
}
