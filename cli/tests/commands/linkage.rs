//! Calls through the linkage table: one source made with the table and without (`-fno-plt`), by four linkers, has the
//! same schedule outside of the table's stubs under the models that count calls. Stubs are named by what they jump to.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::succeed;

/// Four threads whose ways part before, between and behind calls of the C library: in both arms, in loops of different
/// length, from a callee, by a callback, and at the end of a function, where the stub is jumped to.
const SOURCE: &str = r#"
#include <math.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static double results[4];
static pthread_barrier_t all_began;

__attribute__((noinline)) static double wave(double x, int id) {
    if (id & 1)
        return sin(x) + 1;
    return cos(x) * x;
}

__attribute__((noinline)) static long last(const char *text) {
    return strtol(text, NULL, 10);
}

static int other(const void *a, const void *b) {
    return *(const int *)a > *(const int *)b ? 1 : *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int key(const int *keys, int id) {
    int wanted = 5 * id;
    size_t count = 16;
    const int *found = lfind(&wanted, keys, &count, sizeof *keys, other);
    return found ? *found : last("12");
}

__attribute__((noinline)) void *work(void *argument) {
    long id = (long)argument;
    pthread_barrier_wait(&all_began);
    char text[64];
    int keys[16];
    double sum = 0;
    for (int i = 0; i < 16; i++)
        keys[i] = 3 * i;
    for (int i = 0; i < 3 + 5 * id; i++) {
        if ((i + id) % 3 == 0)
            sum += wave(i, id);
        else if ((i + id) % 3 == 1)
            memset(text, 'a' + i, 60);
        sum += strlen(memcpy(text, "a text of some length", 22)) + key(keys, id);
    }
    results[id] = sum + exp(id);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&all_began, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return results[0] < 0;
}
"#;

const MODELS: &str = "maxfun-minpc,maxfun-minpc:mode=2,maxfun-minpc:mode=3,lee";

/// What does not depend on the linkage table: of each model the fetches outside of stubs; and the stubs' names.
#[derive(Debug, PartialEq)]
struct Outside {
    thread_instructions: u64,
    fetches: Vec<u64>,
}

struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn new() -> Built {
        let built = Built { folder: tempfile::tempdir().unwrap() };
        std::fs::write(built.at("calls.c"), SOURCE).unwrap();
        built
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn trace(&self, flags: &[&str]) -> PathBuf {
        let (program, trace) = (self.at("program"), self.at("trace.bin"));
        let output = Command::new("clang-19")
            // Without padding in loops, whose length would hang on the size of the calls before it.
            .args(["-O1", "-fPIE", "-pie", "-fno-builtin", "-falign-loops=1", "-pthread", "-o"])
            .args([&program, &self.at("calls.c")])
            .args(flags)
            .arg("-lm")
            .output()
            .unwrap();
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        succeed("trace", &["-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
        trace
    }
}

fn outside(trace: &Path, code: &str) -> (Outside, Vec<String>) {
    let trace = trace.to_str().unwrap();
    let arguments = ["--region", "work", "--code", code, "-H", MODELS, "--by", "function", "--check", "--json", trace];
    let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
    let results = json["results"].as_array().unwrap();
    let mut outside = Outside { thread_instructions: 0, fetches: Vec::new() };
    let mut names = Vec::new();
    for result in results {
        let rows = result["by"]["rows"].as_array().unwrap();
        let name = |row: &Value| row["function"].as_str().unwrap().to_owned();
        // Libraries have stubs too, of which both programs run the same: what matters is that of the program.
        let is_ours = |target: &str| OURS.contains(&target) || target == "_dl_runtime_resolve";
        let is_stub = |row: &&Value| name(row).strip_suffix("@plt").is_some_and(is_ours);
        names = rows.iter().map(name).collect();
        let sum = |column: &str| -> u64 {
            let own = rows.iter().filter(is_stub).map(|row| row[column].as_u64().unwrap()).sum::<u64>();
            result[column].as_u64().unwrap() - own
        };
        outside.thread_instructions = sum("thread_instructions");
        outside.fetches.push(sum("fetches"));
    }
    (outside, names)
}

/// What the program calls of libraries, but for mathematical functions: the stubs of these are left out with them.
const OURS: [&str; 6] = ["pthread_barrier_wait", "strtol", "lfind", "memset", "memcpy", "strlen"];

#[test]
fn with_and_without_a_linkage_table_the_rest_is_scheduled_the_same() {
    let built = Built::new();
    let ways: [(&str, &[&str]); 8] = [
        ("bfd", &["-Wl,-z,lazy"]),
        ("bfd", &["-Wl,-z,now"]),
        ("bfd", &["-Wl,-z,now", "-fcf-protection=branch", "-Wl,-z,ibtplt"]),
        ("bfd", &["-Wl,-z,lazy", "-fcf-protection=branch", "-Wl,-z,ibtplt"]),
        ("gold", &["-Wl,-z,lazy"]),
        ("lld", &["-Wl,-z,lazy"]),
        ("lld", &["-Wl,-z,now"]),
        ("mold", &["-Wl,-z,lazy"]),
    ];
    for (linker, flags) in ways {
        let linker_flag = format!("-fuse-ld={linker}");
        let flags: Vec<&str> = [&[linker_flag.as_str()], flags].concat();
        // Bound when they are first used, functions with several forms are chosen then, by code of their libraries that
        // else runs before.
        let codes = if flags.contains(&"-Wl,-z,now") { &["main", "all"][..] } else { &["main"] };
        let of = |trace: PathBuf| codes.iter().map(|code| outside(&trace, code)).collect::<Vec<_>>();
        let without = of(built.trace(&[&flags[..], &["-fno-plt"]].concat()));
        let with = of(built.trace(&flags));
        for ((code, without), with) in codes.iter().zip(without).zip(with) {
            let is_stub = |name: &&str| with.1.iter().any(|n| n.strip_suffix("@plt") == Some(name));
            let stubs: Vec<&str> = OURS.into_iter().filter(is_stub).collect();
            assert_eq!(stubs, OURS, "{flags:?}: stubs are named by what they jump to: {:?}", with.1);
            assert!(!with.1.contains(&"_init".to_owned()), "{flags:?}: {:?}", with.1);
            assert!(
                *code == "all" || without.1.iter().all(|name| !name.ends_with("@plt")),
                "{flags:?}: {:?}",
                without.1
            );
            assert_eq!(with.0, without.0, "{flags:?}, --code {code}: {MODELS}");
        }
    }
}
