//! Threads that one routine of a library starts, by what they were really started for: C++ and Rust programs, as they
//! are compiled for speed and without optimisation.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{run, succeed};

/// Four threads of `work`, one of `load`, which does more; each by a pointer to a function.
const POINTERS: &str = r"
#include <thread>
#include <vector>
static volatile long results[5];
__attribute__((noinline)) void work(int id) { for (int i = 0; i < 300; i++) results[id] = results[id] + (i ^ id); }
__attribute__((noinline)) void load(int id) { for (int i = 0; i < 9000; i++) results[id] = results[id] + i * id; }
int main() {
    std::vector<std::thread> threads;
    threads.emplace_back(load, 4);
    for (int i = 0; i < 4; i++) threads.emplace_back(work, i);
    for (auto &thread : threads) thread.join();
    return results[0] < 0;
}
";

/// The same by lambdas, of which each is a type.
const LAMBDAS: &str = r"
#include <thread>
#include <vector>
static volatile long results[5];
int main() {
    std::vector<std::thread> threads;
    threads.emplace_back([] { for (int i = 0; i < 9000; i++) results[4] = results[4] + i; });
    for (int id = 0; id < 4; id++)
        threads.emplace_back([id] { for (int i = 0; i < 300; i++) results[id] = results[id] + (i ^ id); });
    for (auto &thread : threads) thread.join();
    return results[0] < 0;
}
";

/// The same by members of a class.
const MEMBERS: &str = r"
#include <thread>
#include <vector>
static volatile long results[5];
struct Pool {
    __attribute__((noinline)) void work(int id) { for (int i = 0; i < 300; i++) results[id] = results[id] + i; }
    __attribute__((noinline)) void load(int id) { for (int i = 0; i < 9000; i++) results[id] = results[id] + i; }
};
int main() {
    Pool pool;
    std::vector<std::thread> threads;
    threads.emplace_back(&Pool::load, &pool, 4);
    for (int i = 0; i < 4; i++) threads.emplace_back(&Pool::work, &pool, i);
    for (auto &thread : threads) thread.join();
    return results[0] < 0;
}
";

/// The same by futures.
const FUTURES: &str = r"
#include <future>
#include <vector>
static volatile long results[5];
__attribute__((noinline)) int work(int id) { for (int i = 0; i < 300; i++) results[id] = results[id] + i; return id; }
__attribute__((noinline)) int load(int id) { for (int i = 0; i < 9000; i++) results[id] = results[id] + i; return id; }
int main() {
    std::vector<std::future<int>> all;
    all.push_back(std::async(std::launch::async, load, 4));
    for (int i = 0; i < 4; i++) all.push_back(std::async(std::launch::async, work, i));
    int sum = 0;
    for (auto &one : all) sum += one.get();
    return sum != 10;
}
";

/// The same in Rust, with closures.
const RUST: &str = r"
use std::hint::black_box;
use std::thread;
#[inline(never)]
fn work(id: u64) -> u64 { (0..300).fold(id, |sum, i| black_box(sum ^ i)) }
#[inline(never)]
fn load(id: u64) -> u64 { (0..9000).fold(id, |sum, i| black_box(sum + i)) }
fn main() {
    let mut threads = vec![thread::spawn(|| load(4))];
    threads.extend((0..4).map(|id| thread::spawn(move || work(id))));
    let sum: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    std::process::exit(i32::from(sum == 0));
}
";

/// What `--region auto` chose from, by the words for it.
fn regions(folder: &Path, compiler: &[&str], source: &str, flags: &[&str]) -> (Vec<Value>, String) {
    let name = if compiler[0] == "rustc" { "program.rs" } else { "program.cpp" };
    let (source_file, program, trace) = (folder.join(name), folder.join("program"), folder.join("trace.bin"));
    std::fs::write(&source_file, source).unwrap();
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(flags)
        .arg("-o")
        .args([&program, &source_file])
        .output()
        .unwrap_or_else(|e| panic!("{compiler:?}: {e}"));
    assert!(output.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&output.stderr));
    succeed("trace", &["-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
    let output = run("replay", &["--by", "region", "--json", trace.to_str().unwrap()]);
    assert!(output.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    (json["regions"].as_array().unwrap().clone(), json["view"].to_string())
}

/// The four workers are the lanes, and the thread that loads is named and left out.
fn check(compiler: &[&str], source: &str, flags: &[&str], names: [&str; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let (regions, view) = regions(folder.path(), compiler, source, flags);
    let what = format!("{compiler:?} {flags:?}: {regions:?} {view}");
    assert_eq!(regions.len(), 2, "{what}");
    for ((region, (threads, taken)), name) in regions.iter().zip([(4, true), (1, false)]).zip(names) {
        assert_eq!((&region["threads"], &region["taken"]), (&threads.into(), &taken.into()), "{what}");
        assert!(region["region"].as_str().unwrap().contains(name), "{what}: {name}");
    }
    assert!(view.contains("4 lanes of 6 threads") && view.contains("left out: "), "{what}");
    assert!(regions[1]["share"].as_f64().unwrap() > 0.5, "the thread that loads does most: {what}");
}

const GCC: [&str; 3] = ["g++", "-std=c++17", "-pthread"];
const CLANG: [&str; 3] = ["clang++-19", "-std=c++17", "-pthread"];

#[test]
fn threads_of_pointers_to_functions_are_what_these_point_to() {
    for flags in [["-O0"], ["-O2"]] {
        check(&GCC, POINTERS, &flags, ["start routine work(int)", "start routine load(int)"]);
        check(&CLANG, POINTERS, &flags, ["start routine work(int)", "start routine load(int)"]);
    }
}

#[test]
fn threads_of_lambdas_are_told_apart_by_their_types() {
    for flags in [["-O0"], ["-O2"]] {
        check(&GCC, LAMBDAS, &flags, ["main::{lambda()#2}", "main::{lambda()#1}"]);
        check(&CLANG, LAMBDAS, &flags, ["main::", "main::"]);
    }
}

#[test]
fn threads_of_members_are_those() {
    for flags in [["-O0"], ["-O2"]] {
        check(&GCC, MEMBERS, &flags, ["Pool::work(int)", "Pool::load(int)"]);
    }
}

#[test]
fn futures_are_looked_through_too() {
    for flags in [["-O0"], ["-O2"]] {
        check(&GCC, FUTURES, &flags, ["start routine work(int)", "start routine load(int)"]);
    }
}

#[test]
fn threads_of_closures_are_told_apart() {
    // The carrier is made anew for each closure; only newer manglings of names tell for which. With optimisation one
    // carrier can serve all.
    check(&["rustc"], RUST, &["-Copt-level=0"], ["", ""]);
}
