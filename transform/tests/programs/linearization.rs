//! The benchmarks of `linearize` (workloads/linearization): each has edges that the paper's definition 1 calls
//! unstructured, prints the same after the pass, and is structured then, in IR and in machine code.

use flowgraph::Reduction;
use transform::llvm::Module;
use transform::{Flow, Kind, Reason};

use crate::{build, machine, workloads};

#[test]
fn benchmarks_have_unstructured_edges_and_become_structured() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut programs = 0;
    for entry in std::fs::read_dir(build::root().join("workloads/linearization")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let source = build::root().join("workloads/linearization").join(&name).join(&name).with_extension("c");
        if !source.exists() {
            continue;
        }
        let (bitcode, program, object) = (path("a.bc"), path("a"), path("a.o"));
        build::to_bitcode(&source, &bitcode, &["-O2"]);
        build::link(&bitcode, &program, &[]);
        let expected = build::output(&program, ["-p", "32"]);
        for passes in ["linearize:threshold=-1000,level=0", "linearize:threshold=-1000,level=4"] {
            let what = format!("{name} after {passes}");
            let after = path("b.bc");
            let remarks = build::transform(&bitcode, passes, &after);
            let of_kernel = remarks.iter().find_map(|remark| match remark.reason {
                Reason::Linearized(done) if remark.function == "kernel" => Some(done),
                _ => None,
            });
            assert!(of_kernel.is_some_and(|done| done.edges > 0), "{what}: {of_kernel:?}");
            let module = Module::read(&after).unwrap();
            let kernel =
                module.functions_to_optimise().into_iter().find(|function| function.name() == "kernel").unwrap();
            assert!(Reduction::of(Flow::of(kernel).graph(), &[]).is_structured(), "{what}");
            build::compile(&source, &object, passes, &["-O2"]);
            assert_eq!(machine::left(&machine::functions(&object)["kernel"]), Some(1), "{what}: machine code");
            build::link(&object, &program, &[]);
            assert_eq!(build::output(&program, ["-p", "32"]), expected, "{what}");
        }
        programs += 1;
    }
    assert_eq!(programs, 7);
}

/// Reduced from `mcx`. On x86-64 a branch on equality of floats is two jumps, one of them for what is no number: that
/// is `if (a || b)`. What is greater or less takes one. So are choices between what has no conditional move.
#[test]
fn equality_of_floats_is_one_jump() {
    let folder = tempfile::tempdir().unwrap();
    let [source, object] = ["a.c", "a.o"].map(|name| folder.path().join(name));
    let text = "void call(int);\n\
                void goes(float x, int a, int b) { if (a || b) call(1); else call(2); if (x != 0) call(3); call(4); }\n\
                void structured(double x, double y) { if (x == y) call(3); call(4); }\n\
                float chosen(double x, double y, float a, float b) { return x == y ? a : b; }\n\
                double wide(long double x, double a, double b) { return x != 0 ? a : b; }\n\
                void negated(float x, int *to) { int same = x == 1; *to = same; if (!same) call(3); call(4); }\n\
                double ends(double x, double y, int a, double b) { if (a == 1 || b > 2) return x; return x + y * b; }\n\
                int q(int), g(int);\n\
                int one(int a, int b, int x) { if (a == 1 || q(b)) return x; return g(x); }\n\
                void both(float x, float y) { if ((x == 1) & (y != 2)) call(3); call(4); }\n";
    std::fs::write(&source, text).unwrap();
    for optimised in ["-O1", "-O2", "-O3"] {
        let mut split = 0;
        for (pass, structured) in [("none", false), ("linearize:threshold=-1000", true)] {
            build::compile(&source, &object, pass, &[optimised]);
            let functions = machine::functions(&object);
            for name in ["goes", "structured", "chosen", "wide", "negated", "both", "ends", "one"] {
                let left = machine::left(&functions[name]);
                assert!(!structured || left == Some(1), "{name} at {optimised}: {left:?}");
                split += usize::from(left != Some(1));
            }
        }
        assert!(split >= 3, "the original has two jumps at {optimised}: {split}");
    }
}

/// All workloads, benchmarks and micro programs: at each level they print the same, and are structured in IR and in
/// machine code, except for functions that a remark says to be left. How many were changed is printed.
#[test]
#[ignore = "takes minutes: scripts/check-linearize runs it"]
fn workloads_are_structured_at_each_level() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (mut programs, mut changed, mut left) = (0, 0, 0);
    for source in workloads::sources() {
        let (bitcode, program, object) = (path("a.bc"), path("a"), path("a.o"));
        let openmp: &[&str] = if source.ends_with("mandelbrot.c") { &["-fopenmp"] } else { &[] };
        let flags = [&["-O2"], openmp].concat();
        build::to_bitcode(&source, &bitcode, &flags);
        build::link(&bitcode, &program, openmp);
        let expected = build::output(&program, ["-p", "4"]);
        for level in 0..=4 {
            let passes = format!("linearize:threshold=-1000,level={level}");
            let what = format!("{} after {passes}", source.display());
            let after = path("b.bc");
            let remarks = build::transform(&bitcode, &passes, &after);
            let is_left =
                |name: &str| remarks.iter().any(|remark| remark.function == name && remark.kind() == Kind::Left);
            // What is written in assembly is none of the module's functions.
            let mut compiled = Vec::new();
            for function in Module::read(&after).unwrap().functions_to_optimise() {
                compiled.push(function.name());
                let structured = Reduction::of(Flow::of(function).graph(), &[]).is_structured();
                assert!(structured || is_left(&function.name()), "{what}: {}", function.name());
            }
            build::compile(&source, &object, &passes, &flags);
            let of_module = |(name, _): &(String, _)| compiled.contains(name);
            for (name, listing) in machine::functions(&object).into_iter().filter(of_module) {
                let parts = machine::left(&listing);
                assert!(parts == Some(1) || is_left(&name), "{what}: machine code of {name}: {parts:?}");
            }
            build::link(&object, &program, openmp);
            assert_eq!(build::output(&program, ["-p", "4"]), expected, "{what}");
            changed += remarks.iter().filter(|remark| remark.is_taken()).count();
            left += remarks.iter().filter(|remark| remark.kind() == Kind::Left).count();
        }
        programs += 1;
    }
    println!("{programs} programs at 5 levels: {changed} functions changed, {left} remarks of what was left");
    assert!(changed > 7 * 5, "{changed} functions were changed");
}

/// Found by Csmith's program 61: a loop without a way out is no way to what follows, whatever is asked before it. The
/// pass took it for one, and went over the same region again and again.
#[test]
fn loops_without_an_end_come_last_in_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let [source, bitcode, after, object, program] = ["a.c", "a.bc", "b.bc", "a.o", "a"].map(|n| folder.path().join(n));
    let text = "#include <stdio.h>\nvolatile int v;\n\
                __attribute__((noinline)) void call(int n) { v += n; printf(\"%d \", n); }\n\
                void inside(int a, int b, int c) { if (a) { if (b) for (;;) v++; call(1); } call(c); }\n\
                void two(int a, int b, int c) { if (a || b) { if (c) for (;;) v += 2; call(2); } \
                    else if (c > 1) while (1) call(3); call(4); }\n\
                void round(int a, int b, int c) { while (a-- > 0) { if (b && a == c) for (;;) call(5); \
                    if (b || a == 2) call(6); } call(7); }\n\
                void none(int a, int b, int c) { if (a || b) { if (c) for (;;) call(8); for (;;) call(9); } \
                    for (;;) v += c; }\n\
                int main(void) { inside(1, 0, 3); inside(0, 1, 4); two(1, 0, 0); two(0, 0, 1); round(4, 0, 9); \
                    round(4, 1, 9); if (v < 0) none(1, 2, 3); printf(\"%d\\n\", v); }\n";
    std::fs::write(&source, text).unwrap();
    build::to_bitcode(&source, &bitcode, &["-O2"]);
    build::link(&bitcode, &program, &[]);
    let expected = build::output(&program, [""; 0]);
    let applied = ["linearize:threshold=-1000,merge-loops=yes,interleave=yes", "linearize:threshold=-1000,max-depth=1"]
        .map(str::to_owned);
    for passes in (0..=4).map(|level| format!("linearize:threshold=-1000,level={level}")).chain(applied) {
        let remarks = build::transform(&bitcode, &passes, &after);
        for name in ["inside", "two", "round"] {
            let of_it = |remark: &transform::Remark| remark.function == name && remark.is_taken();
            assert!(remarks.iter().any(of_it), "{name} after {passes}: {remarks:?}");
        }
        for function in Module::read(&after).unwrap().functions_to_optimise() {
            let structured = Reduction::of(Flow::of(function).graph(), &[]).is_structured();
            assert!(structured, "{passes}: {}", function.name());
        }
        build::compile(&source, &object, &passes, &["-O2"]);
        for (name, listing) in machine::functions(&object) {
            assert_eq!(machine::left(&listing), Some(1), "machine code of {name} after {passes}");
        }
        build::link(&object, &program, &[]);
        assert_eq!(build::output(&program, [""; 0]), expected, "{passes}");
    }
}

/// The turn is a number in a register. It is the one value of 32 bits in the micro programs after the paper's figures:
/// nothing of that size is spilled or reloaded, nor is a number in the stack's memory compared with a constant. Where
/// more values live across calls than there are registers, numbers of 64 bits and truths are spilled, nowhere else.
#[test]
fn the_guards_of_the_micro_programs_lie_in_registers() {
    let folder = tempfile::tempdir().unwrap();
    let listing = |source: &str, passes: &str| {
        let to = folder.path().join("a.s");
        build::compile(&build::root().join("workloads").join(source), &to, passes, &["-O2", "-S"]);
        let text = std::fs::read_to_string(&to).unwrap();
        let body = text.split("\nkernel:").nth(1).and_then(|rest| rest.split(".Lfunc_end").next());
        body.expect("the function kernel").to_owned()
    };
    let compares = |body: &str| body.lines().filter(|line| line.trim_start().starts_with("cmp")).count();
    for (name, asked, spills_up_to) in [
        ("short_circuit", "", None),
        ("two_arms", ",interleave=yes", Some(0)),
        ("trip_counts", ",merge-loops=yes", Some(4)),
        ("nested_ifs", ",max-depth=1", None),
    ] {
        let source = format!("micro/{name}.c");
        let before = listing(&source, "none");
        for level in 0..=4 {
            let after = listing(&source, &format!("linearize:threshold=-1000,level={level}{asked}"));
            assert!(compares(&after) > compares(&before), "{name} has no guard at level {level}");
            assert!(!after.contains("# 4-byte"), "{name} at level {level}: {after}");
            let spills = spills_up_to.is_some_and(|most| level <= most);
            assert_eq!(after.contains("Spill"), spills, "{name} at level {level}: {after}");
            let in_memory = |line: &&str| {
                let line = line.trim_start();
                line.starts_with("cmp") && line.contains("(%rsp)") && line.contains('$')
            };
            assert_eq!(after.lines().find(in_memory), None, "{name} at level {level}");
        }
    }
    // What is spilled is named so in the text: mcx needs more registers than there are.
    assert!(listing("linearization/mcx/mcx.c", "linearize:threshold=-1000").contains("# 4-byte Spill"));
}
