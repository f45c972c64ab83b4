//! The benchmarks of `linearize` (workloads/linearization): each has edges that the paper's definition 1 calls
//! unstructured, prints the same after the pass, and is structured then, in IR and in machine code.

use flowgraph::Reduction;
use transform::llvm::Module;
use transform::{Flow, Reason};

use crate::{build, machine};

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
        for passes in ["linearize:level=0", "linearize:level=4"] {
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
                void both(float x, float y) { if ((x == 1) & (y != 2)) call(3); call(4); }\n";
    std::fs::write(&source, text).unwrap();
    for optimised in ["-O1", "-O2", "-O3"] {
        let mut split = 0;
        for (pass, structured) in [("none", false), ("linearize", true)] {
            build::compile(&source, &object, pass, &[optimised]);
            let functions = machine::functions(&object);
            for name in ["goes", "structured", "chosen", "wide", "negated", "both"] {
                let left = machine::left(&functions[name]);
                assert!(!structured || left == Some(1), "{name} at {optimised}: {left:?}");
                split += usize::from(left != Some(1));
            }
        }
        assert!(split >= 3, "the original has two jumps at {optimised}: {split}");
    }
}
