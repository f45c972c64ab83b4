//! What marks of predicted places cost the program that has them: next to nothing with gcc, and with clang what its
//! optimiser leaves undone where there is something that it takes for a call.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{is_whole, root, succeed};

const BENCHMARKS: [(&str, &str); 8] = [
    ("rsbench", "32"),
    ("xsbench", "32"),
    ("mcb", "64"),
    ("pathtracer", "16"),
    ("mc-gpu", "64"),
    ("mummer", "32"),
    ("meiyamd5", "32"),
    ("gpu-mcml", "16"),
];

/// The instructions that the threads of a program run, without marks and with them.
fn instructions(folder: &Path, compiler: &str, options: &[&str], source: &Path, words: &[&str]) -> [u64; 2] {
    [&["-DLOCKSTEP_NO_MARKS"][..], &[]].map(|marks| {
        let (program, trace) = (folder.join("program"), folder.join("trace.bin"));
        let mut command = Command::new(compiler);
        command.args(["-std=gnu11", "-g", "-fno-math-errno", "-pthread"]).args(options).args(marks);
        for include in ["include", "workloads/include", "workloads/lookups"] {
            command.arg("-I").arg(root().join(include));
        }
        let built = command.arg("-o").args([&program, source]).arg("-lm").output().expect("a compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let (program, trace) = (program.to_str().unwrap(), trace.to_str().unwrap());
        succeed("trace", &[&["-o", trace, program, "-p", "8"], words].concat());
        let json: Value = serde_json::from_str(&succeed("replay", &["-H", "minpc", "--json", trace])).unwrap();
        json["results"][0]["thread_instructions"].as_u64().unwrap()
    })
}

/// Of each benchmark: how many instructions more it runs with its marks, as a share. At -O0 and -O2 in turn, and at all
/// four levels for `scripts/check --whole`.
fn shares(compiler: &str) -> Vec<(String, f64)> {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for (number, (name, tasks)) in BENCHMARKS.into_iter().enumerate() {
        let levels: &[&str] = if is_whole() { &["-O0", "-O1", "-O2", "-O3"] } else { &[["-O2", "-O0"][number % 2]] };
        for &level in levels {
            let source = root().join(format!("workloads/speculation/{name}/{name}.c"));
            let [without, with] = instructions(folder.path(), compiler, &[level], &source, &["-n", tasks]);
            all.push((format!("{name} {level}"), with as f64 / without as f64 - 1.0));
        }
    }
    all
}

#[test]
fn marks_cost_the_benchmarks_nothing_with_gcc() {
    // 0 in most, -0.1% to 0.02% in the others: the order of blocks differs.
    let all = shares("gcc");
    assert!(all.iter().all(|(_, share)| share.abs() < 0.002), "{all:?}");
    assert!(all.iter().filter(|(_, share)| share.abs() < 1e-9).count() >= all.len() * 3 / 4, "{all:?}");
}

#[test]
fn marks_cost_the_benchmarks_nothing_with_clang() {
    // -2.5% to 0: a mark keeps clang from unrolling loops that run a few turns only.
    let all = shares("clang-19");
    assert!(all.iter().all(|(_, share)| (-0.05..0.002).contains(share)), "{all:?}");
}

/// `lookups` with marks in its inner loop, and what stands before that.
fn marked(folder: &Path, before_loop: &str) -> PathBuf {
    let source = std::fs::read_to_string(root().join("workloads/lookups/lookups.c")).unwrap();
    let (outer, inner) = ("    for (long lookup = first;", "        for (int nuclide = 0;");
    let body = "            sum += contribution";
    let marked = source
        .replace(outer, &format!("    LOCKSTEP_PREDICT(inner);\n{outer}"))
        .replace(inner, &format!("{before_loop}\n{inner}"))
        .replace(body, &format!("            LOCKSTEP_RECONVERGE(inner);\n{body}"));
    assert_eq!(marked.matches("(inner);").count(), 2, "{marked}");
    let file = folder.join("marked.c");
    std::fs::write(&file, format!("#include <lockstep.h>\n{marked}")).unwrap();
    file
}

#[test]
fn a_mark_in_a_loop_that_clang_would_unroll_takes_a_word_for_that() {
    let folder = tempfile::tempdir().unwrap();
    for level in ["-O2", "-O3"] {
        let share = |before_loop: &str| {
            let source = marked(folder.path(), before_loop);
            let [without, with] = instructions(folder.path(), "clang-19", &[level], &source, &["-n", "128"]);
            with as f64 / without as f64 - 1.0
        };
        // By itself clang would make two turns one, and does not where a mark is: 10% more instructions.
        let (bare, asked) = (share(""), share("#pragma clang loop unroll_count(2)"));
        assert!(bare < 0.15 && asked < 0.01, "{level}: {bare} {asked}");
    }
}
