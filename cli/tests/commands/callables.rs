//! Threads that one routine of a library starts, by what they were really started for: C++ and Rust programs, as they
//! are compiled for speed and without optimisation.

use std::hint::black_box;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;
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

/// The same in Rust, with closures that call no function of the program.
const INLINED: &str = r"
use std::hint::black_box;
use std::thread;
fn main() {
    let mut data = vec![0u64; 5];
    thread::scope(|scope| {
        let (many, one) = data.split_at_mut(4);
        scope.spawn(move || (0..9000).for_each(|i| one[0] = black_box(one[0] + i)));
        for own in many {
            scope.spawn(move || (0..300).for_each(|i| *own = black_box(*own ^ i)));
        }
    });
    std::process::exit(i32::from(data[4] == 0));
}
";

/// The same by boost's threads: by lambdas, or by pointers to functions.
const BOOST: &str = r"
#include <boost/thread.hpp>
static volatile long results[5];
__attribute__((noinline)) void work(int id) { for (int i = 0; i < 300; i++) results[id] = results[id] + (i ^ id); }
__attribute__((noinline)) void load(int id) { for (int i = 0; i < 9000; i++) results[id] = results[id] + i * id; }
int main() {
    boost::thread_group threads;
#ifdef LAMBDAS
    threads.create_thread([] { load(4); });
    for (int id = 0; id < 4; id++) threads.create_thread([id] { work(id); });
#else
    threads.create_thread(boost::bind(load, 4));
    for (int id = 0; id < 4; id++) threads.create_thread(boost::bind(work, id));
#endif
    threads.join_all();
}
";

/// Two loops of oneTBB.
const TBB: &str = r"
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
static volatile long out[2000];
int main() {
    tbb::global_control control(tbb::global_control::max_allowed_parallelism, 4);
    tbb::parallel_for(0, 2000, [](int i) { for (int k = 0; k < 50; k++) out[i] = out[i] + k; });
    tbb::parallel_for(0, 500, [](int i) { for (int k = 0; k < 300; k++) out[i] = out[i] ^ k; });
    return out[7] == 0;
}
";

const GO: &str = r#"
package main
import (
	"runtime"
	"sync"
)
func main() {
	runtime.GOMAXPROCS(2)
	var wait sync.WaitGroup
	var sums [64]int
	for id := 0; id < 2; id++ {
		wait.Add(1)
		go func(id int) { defer wait.Done(); for i := 0; i < 3000; i++ { sums[id * 8] += i ^ id } }(id)
	}
	wait.Wait()
}
"#;

/// Builds a program where its compiler and libraries are installed; else says so.
fn build(folder: &Path, compiler: &[&str], source: &str, flags: &[&str]) -> Option<PathBuf> {
    let name = match compiler[0] {
        "rustc" => "program.rs",
        "go" => "program.go",
        _ => "program.cpp",
    };
    let (source_file, program) = (folder.join(name), folder.join("program"));
    std::fs::write(&source_file, source).unwrap();
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-o").args([&program, &source_file]).args(flags).env("HOME", folder);
    if compiler[0] == "rustc" {
        // Found by way of the user's folder.
        command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(e) => {
            let _ = writeln!(stderr(), "skipped: {} cannot be run: {e}", compiler[0]);
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let needs = ["cannot find -l", "No such file or directory"];
    if needs.iter().any(|text| said.contains(text)) {
        let _ = writeln!(stderr(), "skipped: a library of {compiler:?} {flags:?} is not installed: {said}");
        return None;
    }
    assert!(output.status.success(), "{compiler:?} {flags:?}: {said}");
    Some(program)
}

/// What `--region auto` chose from, by the words for it.
fn regions(folder: &Path, compiler: &[&str], source: &str, flags: &[&str]) -> Option<(Vec<Value>, String)> {
    let program = build(folder, compiler, source, flags)?;
    Some(regions_of(folder, &[program.to_str().unwrap()]))
}

fn regions_of(folder: &Path, program: &[&str]) -> (Vec<Value>, String) {
    let trace = folder.join("trace.bin");
    succeed("trace", &[&["-o", trace.to_str().unwrap()], program].concat());
    let output = run("replay", &["--by", "region", "--json", trace.to_str().unwrap()]);
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    (json["regions"].as_array().unwrap().clone(), json["view"].to_string())
}

/// The four workers are the lanes, and the thread that loads is named and left out.
fn check(compiler: &[&str], source: &str, flags: &[&str], names: [&str; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let Some((regions, view)) = regions(folder.path(), compiler, source, flags) else { return };
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
    // The carrier is made again for each closure; only newer manglings of names tell for which.
    check(&["rustc"], RUST, &["-Copt-level=0"], ["", ""]);
    for level in ["-Copt-level=1", "-Copt-level=2", "-Copt-level=3"] {
        check(&["rustc"], RUST, &[level], ["(calls program::work)", "(calls program::load)"]);
    }
    let newer = ["-Copt-level=2", "-Csymbol-mangling-version=v0"];
    check(&["rustc"], RUST, &newer, ["program::main::{closure#", "program::main::{closure#"]);
    for level in ["-Copt-level=0", "-Copt-level=2", "-Copt-level=3"] {
        check(&["rustc"], INLINED, &[level], ["", ""]);
    }
}

#[test]
fn a_start_routine_without_a_name_is_called_that() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-Copt-level=2", "-Cstrip=symbols"];
    let Some((regions, view)) = regions(folder.path(), &["rustc"], RUST, &flags) else { return };
    assert_eq!(regions.len(), 1, "{regions:?}");
    assert!(view.contains("without a name: if it is a library's, what it runs may differ"), "{view}");
}

#[test]
fn threads_of_boost_are_told_apart() {
    let boost: [&str; 3] = ["g++", "-std=c++17", "-O2"];
    let libraries = ["-lboost_thread", "-lboost_system", "-pthread"];
    check(&boost, BOOST, &libraries, ["start routine work(int)", "start routine load(int)"]);
    check(&[&boost[..], &["-DLAMBDAS"]].concat(), BOOST, &libraries, ["main::{lambda()#2}", "main::{lambda()#1}"]);
}

#[test]
fn loops_of_tbb_are_tasks_of_two_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let Some((regions, view)) = regions(folder.path(), &["g++", "-std=c++17", "-O2"], TBB, &["-ltbb"]) else { return };
    let tasks: Vec<&Value> = regions.iter().filter(|r| r["region"].as_str().unwrap().starts_with("task ")).collect();
    assert_eq!(tasks.len(), 2, "{regions:?}");
    for (task, (name, taken)) in tasks.iter().zip([("lambda(int)#2", true), ("lambda(int)#1", false)]) {
        assert!(task["region"].as_str().unwrap().contains(name) && task["taken"] == taken, "{regions:?}");
    }
    assert!(view.contains("tasks of a pool of threads: ") && view.contains("one of 2 kinds of tasks"), "{view}");
}

/// Two loops of rayon: what is traced below.
#[test]
#[ignore = "a program for another test"]
fn program_of_rayon() {
    #[inline(never)]
    fn cube(x: u64) -> u64 {
        (0..10).fold(x, |sum, i| black_box(sum ^ (i * x)))
    }
    #[inline(never)]
    fn other(x: u64) -> u64 {
        (0..60).fold(x, |sum, i| black_box(sum + i))
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let cubes: u64 = pool.install(|| (0..2000u64).into_par_iter().map(cube).sum());
    let others: u64 = pool.install(|| (0..2000u64).into_par_iter().map(other).sum());
    assert!(cubes != others);
}

#[test]
fn loops_of_rayon_are_tasks_of_several_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let program = [own.to_str().unwrap(), "--ignored", "--exact", "callables::program_of_rayon"];
    let (regions, view) = regions_of(folder.path(), &program);
    let tasks: Vec<&Value> = regions.iter().filter(|r| r["region"].as_str().unwrap().starts_with("task ")).collect();
    assert!(tasks.len() > 1 && tasks[0]["taken"] == true, "{regions:?}");
    let share = |task: &&Value| task["share"].as_f64().unwrap();
    assert!(tasks.iter().map(share).sum::<f64>() > 0.9 && share(&tasks[0]) < 0.95, "{regions:?}");
    assert!(view.contains("tasks of a pool of threads: <rayon_core::job::"), "{view}");
}

#[test]
fn threads_of_go_are_said_to_run_goroutines() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = build(folder.path(), &["go", "build"], GO, &[]) else { return };
    let trace = folder.path().join("trace.bin");
    succeed("trace", &["-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
    let output = run("replay", &[trace.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("taken are whole threads"), "{said}");
    assert!(said.contains("threads belong to Go's scheduler, which runs goroutines on any of them"), "{said}");
}
