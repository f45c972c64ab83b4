//! `lockstep cc --shape gpu`: the control flow of a GPU's compiler, in a program that does the same as ever.

use std::path::{Path, PathBuf};

use crate::folder::{Folder, TWO_CALLS, WORK, lockstep, printed};

/// A loop that compilers for processors make vectors of, and choices of floats and integers.
const KERNELS: &str = "#define KERNEL __attribute__((noinline))
KERNEL void halves(double *values, int n) { for (int i = 0; i < n; i++) values[i] = values[i] * 0.5 + 1; }
KERNEL double most(const double *of, int n) {
    double most = of[0];
    for (int i = 1; i < n; i++) if (of[i] > most) most = of[i];
    return most;
}
KERNEL int odd(const int *of, int n) {
    int odd = 0;
    for (int i = 0; i < n; i++) if (of[i] & 1) odd += of[i] * 3; else odd -= of[i] / 3;
    return odd;
}
KERNEL int first(const int *of, int n, int what) {
    for (int i = 0; i < n; i++) if (of[i] == what || of[i] < 0 && i > 3) return i;
    return -1;
}
KERNEL int steps(unsigned from) {
    int steps = 0;
    while (from != 1 && steps < 150) { from = from & 1 ? 3 * from + 1 : from >> 1; steps++; }
    return steps;
}
";

/// A program of them.
fn sums() -> String {
    let main = "#include <stdio.h>
static double values[1000];
static int counts[1000];
int main(void) {
    for (int i = 0; i < 1000; i++) { values[i] = (i * 7919 % 1000) * 0.25; counts[i] = i * i % 97; }
    halves(values, 1000);
    printf(\"%.17g %d %d %d\\n\", most(values, 1000), odd(counts, 1000), first(counts, 1000, 96), steps(27));
    return 0;
}
";
    format!("{KERNELS}{main}")
}

/// Compiles with the shape of a GPU; what is said on standard error.
fn shaped(folder: &Folder, words: &[&str]) -> String {
    let output = folder.run(lockstep(), &[&["cc", "--shape", "gpu", "--"], words].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_program_does_the_same_at_every_level() {
    let folder = Folder::with(&[("sums.c", &sums()), ("pick.c", TWO_CALLS), ("work.c", WORK)]);
    folder.succeed("clang-19", &["-O2", "sums.c", "-o", "native"]);
    let expected = folder.succeed("./native", &[]);
    for level in ["-O1", "-O2", "-O3", "-Os", "-Oz"] {
        for flags in [&[][..], &["-march=x86-64-v3"]] {
            assert_eq!(shaped(&folder, &[&[level, "sums.c", "-o", "sums"], flags].concat()), "");
            assert_eq!(folder.succeed("./sums", &[]), expected, "{level} {flags:?}");
        }
        assert_eq!(shaped(&folder, &[level, "pick.c", "work.c", "-o", "pick"]), "");
        assert_eq!(folder.succeed("./pick", &[]), printed(), "{level}");
    }
}

#[test]
fn control_flow_is_that_of_the_compiler_for_gpus() {
    let folder = Folder::with(&[("kernels.c", KERNELS)]);
    let counts = |compiler: &str, first: &[&str]| {
        folder.succeed(compiler, &[first, &["-O3", "-S", "-emit-llvm", "kernels.c", "-o", "kernels.ll"]].concat());
        let ir = folder.read("kernels.ll");
        ["br i1 ", "select i1 ", " x double>", " x i32>", "switch "].map(|what| ir.matches(what).count())
    };
    let ours = counts(lockstep(), &["cc", "--shape", "gpu", "--layout", "default", "--"]);
    assert_eq!(ours, counts("clang-19", &["--target=nvptx64-nvidia-cuda", "-nogpulib"]));
    assert_ne!(ours, counts("clang-19", &[]));
}

#[test]
fn options_for_the_optimiser_are_heard_as_the_compiler_for_gpus_hears_them() {
    let twice = "__attribute__((noinline)) int twice(const int *of) {
    int sum = 0;
    for (int i = 0; i < 8; i++) if (of[i] > sum) sum += of[i] / 3;
    return sum;
}
";
    let folder = Folder::with(&[("twice.c", twice)]);
    let branches = |compiler: &str, first: &[&str], options: &[&str]| {
        let words = [first, &["-O3", "-S", "-emit-llvm", "twice.c", "-o", "twice.ll"], options].concat();
        folder.succeed(compiler, &words);
        ["br i1 ", "sdiv "].map(|what| folder.read("twice.ll").matches(what).count())
    };
    let both = |options: &[&str]| {
        let ours = branches(lockstep(), &["cc", "--shape", "gpu", "--layout", "default", "--"], options);
        assert_eq!(ours, branches("clang-19", &["--target=nvptx64-nvidia-cuda", "-nogpulib"], options), "{options:?}");
        ours
    };
    let unrolled = both(&[]);
    assert_ne!(both(&["-fno-unroll-loops"]), unrolled);
    assert_ne!(both(&["-mllvm", "-unroll-threshold=0"]), unrolled);
    assert_eq!(shaped(&folder, &["-O2", "-mllvm", "-unroll-threshold=0", "-c", "twice.c", "-o", "twice.o"]), "");
    let said = shaped(&folder, &["-O2", "-fveclib=libmvec", "-c", "twice.c", "-o", "twice.o"]);
    assert!(said.contains("twice.c: -fveclib=libmvec has no effect") || said.contains("-fveclib=LIBMVEC"), "{said}");
}

#[test]
fn what_only_the_compilers_own_optimiser_can_do_is_told() {
    let folder = Folder::with(&[("sums.c", &sums())]);
    for words in [&["-O0"][..], &["-O2", "-fsanitize=undefined"], &["-O2", "-fprofile-instr-generate"]] {
        let said = shaped(&folder, &[words, &["-c", "sums.c", "-o", "sums.o"]].concat());
        assert!(said.contains("sums.c: not given a GPU's shape"), "{words:?}: {said}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The efficiency that counters of a GPU have for a kernel, made by clang for NVPTX.
fn of_silicon(kernel: &str) -> f64 {
    let table = std::fs::read_to_string(root().join("results/2026-11-27-silicon/kernels.tsv")).unwrap();
    let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let column = rows.next().unwrap().iter().position(|name| *name == "sil_eff").unwrap();
    rows.find(|row| row[0] == kernel).unwrap()[column].parse().unwrap()
}

#[test]
fn what_is_noted_of_blocks_makes_the_efficiency_that_of_a_gpu() {
    // In points, for lanes that wait in loops with several ends, short circuits, arms that are predicated, and copies;
    // an ordinary build of clang is 5 to 15 away for the first six.
    let kernels = [
        ("gcd", 2.0),
        ("search_tree", 2.0),
        ("merge_lists", 2.0),
        ("edit_distance", 2.0),
        ("knapsack", 2.0),
        ("bubble_sort", 2.0),
        ("tokens", 2.0),
        ("permutations", 2.0),
        ("continued_fraction", 2.0),
        ("mandelbrot", 1.0),
    ];
    let folder = Folder::with(&[]);
    let sources = root().join("workloads/gpu-kernels");
    for (kernel, near) in kernels {
        let source = sources.join(format!("{kernel}.c")).to_str().unwrap().to_owned();
        let include = format!("-I{}", sources.to_str().unwrap());
        shaped(&folder, &["-O3", "-g", "-pthread", &include, &source, "-o", kernel]);
        folder.succeed(lockstep(), &["trace", "-o", "t.bin", "--", &format!("./{kernel}")]);
        let json = folder.succeed(lockstep(), &["replay", "--json", "--region", "kernel", "t.bin"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let found = json["results"][0]["gpu_efficiency"].as_f64().unwrap_or_else(|| panic!("{kernel}: {json}"));
        let gpu = of_silicon(kernel);
        assert!((found - gpu).abs() * 100.0 <= near, "{kernel}: {found} here, {gpu} on a GPU");
    }
}
