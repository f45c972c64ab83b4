//! Lines, regions and locks of one program as four linkers lay it out: segments that share a page of the file, gaps
//! between them, addresses fixed beforehand, with the C library inside and beside it. The judges are what the program
//! says of itself (where `work` lies), `nm` and `addr2line`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use trace_format::{Event, Item, ModuleRole, SyncFunction, Trace};

use crate::support::{run, succeed};

/// Three threads with 40 rounds each; all of it is in this file, so each line that ran can be asked for.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static long shared;
long table[600000] = {1};

static inline __attribute__((always_inline)) long step(long x) {
    if (x & 1)
        return 3 * x + 1;
    return x / 2;
}

__attribute__((noinline)) void *work(void *argument) {
    long x = 27 + (long)argument;
    for (int i = 0; i < 40; i++) {
        x = step(x);
        pthread_mutex_lock(&work_lock);
        shared += x + table[i];
        pthread_mutex_unlock(&work_lock);
    }
    return (void *)x;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%p %ld\n", (void *)work, shared);
}
"#;

struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn new() -> Built {
        let built = Built { folder: tempfile::tempdir().unwrap() };
        std::fs::write(built.at("places.c"), SOURCE).unwrap();
        for (object, flags) in [("pic.o", "-fPIE"), ("fixed.o", "-fno-pie")] {
            let compiler = ["-O1", "-g", "-gdwarf-4", "-pthread", "-c", flags, "-o"];
            let object = built.at(object);
            let source = built.at("places.c");
            let output = Command::new("clang-19").args(compiler).args([&object, &source]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        built
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn link(&self, linker: &str, flags: &[&str]) -> Linked {
        let program = self.at("program");
        let object = if flags.contains(&"-no-pie") || flags.contains(&"-static") { "fixed.o" } else { "pic.o" };
        let output = Command::new("clang-19")
            .arg(format!("-fuse-ld={linker}"))
            .args(["-pthread", "-o"])
            .args([&program, &self.at(object)])
            .args(flags)
            .output()
            .unwrap();
        assert!(output.status.success(), "{linker} {flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        let trace = self.at("trace.bin");
        let said = succeed("trace", &["-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
        let address = said.split_whitespace().next().unwrap().trim_start_matches("0x");
        let work = u64::from_str_radix(address, 16).unwrap();
        Linked { name: format!("{linker} {flags:?}"), program, trace, work }
    }
}

/// A linked program that was traced.
struct Linked {
    name: String,
    program: PathBuf,
    trace: PathBuf,
    /// Where its function `work` lay.
    work: u64,
}

impl Linked {
    /// Where this lies in the file, as binutils read it.
    fn in_file(&self, symbol: &str) -> u64 {
        let output = Command::new("nm").arg(&self.program).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.split(' ').nth(2) == Some(symbol)).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }

    /// How many instructions each source line ran, as `addr2line` has it.
    fn judged(&self, trace: &Trace, bias: u64) -> BTreeMap<u64, u64> {
        let main = trace.modules().iter().find(|m| m.role == ModuleRole::Main).unwrap();
        let mut runs: BTreeMap<u64, u64> = BTreeMap::new();
        for thread in trace.threads() {
            let mut stream = trace.stream(thread.id);
            while let Some(item) = stream.next().unwrap() {
                let (block, executed) = match item {
                    Item::Block { block, .. } => (block, usize::MAX),
                    Item::Partial { block, executed, .. } => (block, executed as usize),
                    Item::Event(_) => continue,
                };
                let instructions = trace.blocks()[block].instructions.iter().take(executed);
                for instruction in instructions.filter(|i| main.contains(i.pc)) {
                    *runs.entry(instruction.pc.0 - bias).or_default() += 1;
                }
            }
        }
        let addresses: String = runs.keys().map(|address| format!("{address:#x}\n")).collect();
        let mut judge = Command::new("addr2line")
            .args(["-a", "-i", "-e", self.program.to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Its answers fit into the pipe only while they are read.
        let mut stdin = judge.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(addresses.as_bytes()));
        let output = judge.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let mut lines = BTreeMap::new();
        let text = String::from_utf8(output.stdout).unwrap();
        // An address, then a place for each function that was inlined, the innermost first: `/a/places.c:12
        // (discriminator 2)`. Of instructions that belong to no line it says `?`: those belong to where their function
        // was called.
        for (answer, count) in text.split("0x").skip(1).zip(runs.values()) {
            let places = answer.lines().skip(1).filter_map(|place| place.split(' ').next()?.rsplit_once(':'));
            let mut known = places.filter_map(|(file, line)| Some((file, line.parse().ok()?)));
            if let Some((_, line)) = known.next().filter(|(file, _)| file.ends_with("/places.c")) {
                *lines.entry(line).or_default() += count;
            }
        }
        lines
    }

    fn lines(&self) -> BTreeMap<u64, u64> {
        let trace = self.trace.to_str().unwrap();
        let arguments = ["--by", "line", "-H", "none", "--region", "all", "--locks", "ignore", "--json", trace];
        let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
        let mut lines = BTreeMap::new();
        for row in json["results"][0]["by"]["rows"].as_array().unwrap() {
            if row["file"].as_str().is_some_and(|file| file.ends_with("/places.c")) {
                *lines.entry(row["line"].as_u64().unwrap()).or_default() += row["fetches"].as_u64().unwrap();
            }
        }
        lines
    }

    fn check(&self) {
        let name = &self.name;
        let trace = Trace::open(&self.trace).unwrap();
        let main = trace.modules().iter().find(|m| m.role == ModuleRole::Main).unwrap();
        assert_eq!(main.bias, self.work.wrapping_sub(self.in_file("work")), "{name}: the bias");
        assert!(trace.symbols().iter().any(|s| s.name == "work" && s.pc.0 == self.work), "{name}: the symbol");
        let judged = self.judged(&trace, main.bias);
        assert!(judged.len() >= 15, "{name}: {judged:?}");
        assert_eq!(self.lines(), judged, "{name}: instructions by line");
        let region = run("replay", &["-H", "minpc", "--region", "work", self.trace.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&region.stderr).into_owned();
        assert!(region.status.success() && said.contains("3 lanes of 4 threads, function work"), "{name}: {said}");
        assert_eq!(locks_taken(&trace, main.bias.wrapping_add(self.in_file("work_lock"))), 3 * 40, "{name}: locks");
    }

    /// What is recorded of `work` alone is what runs in it: less than the whole by all that the loader does.
    fn check_window(&self) {
        let (whole, part) = (self.trace.clone(), self.trace.with_file_name("part.bin"));
        let program = self.program.to_str().unwrap();
        succeed("trace", &["--start", "work", "--stop", "work", "-o", part.to_str().unwrap(), program]);
        let (whole, part) = (Trace::open(&whole).unwrap(), Trace::open(&part).unwrap());
        assert!(part.instructions() > 3 * 40 && part.instructions() < whole.instructions() / 2, "{}", self.name);
    }
}

/// How often the lock at this address was taken: the C library takes locks of its own.
fn locks_taken(trace: &Trace, address: u64) -> usize {
    let mut taken = 0;
    for thread in trace.threads() {
        let mut stream = trace.stream(thread.id);
        while let Some(item) = stream.next().unwrap() {
            let lock = SyncFunction::MutexLock;
            taken += usize::from(
                matches!(item, Item::Event(Event::Enter { function, object, .. }) if (function, object) == (lock, address)),
            );
        }
    }
    taken
}

fn check(linker: &str, ways: &[&[&str]]) {
    let built = Built::new();
    for flags in ways {
        let linked = built.link(linker, flags);
        linked.check();
        if flags.len() == 1 {
            linked.check_window();
        }
    }
}

/// What each of them can do.
const WAYS: [&[&str]; 4] = [&["-no-pie"], &["-pie"], &["-static"], &["-pie", "-Wl,-z,max-page-size=0x200000"]];

#[test]
fn lines_and_regions_are_right_for_bfd() {
    check("bfd", &WAYS);
    check(
        "bfd",
        &[
            &["-static-pie"],
            &["-no-pie", "-Wl,-z,noseparate-code"],
            &["-pie", "-Wl,-Ttext-segment=0x12345000"],
            &["-no-pie", "-Wl,-Ttext-segment=0x10000000"],
        ],
    );
}

#[test]
fn lines_and_regions_are_right_for_gold() {
    check("gold", &WAYS);
    check(
        "gold",
        &[
            &["-pie", "-Wl,-Ttext-segment=0x12345000"],
            &["-no-pie", "-Wl,-Ttext-segment=0x10000000"],
            &["-no-pie", "-Wl,--rosegment"],
        ],
    );
}

#[test]
fn lines_and_regions_are_right_for_lld() {
    check("lld", &WAYS);
    check(
        "lld",
        &[
            &["-static-pie"],
            &["-pie", "-Wl,--image-base=0x12345000"],
            &["-no-pie", "-Wl,--image-base=0x10000000"],
            &["-pie", "-Wl,-z,separate-loadable-segments"],
            &["-pie", "-Wl,--no-rosegment"],
            &["-static", "-Wl,-N"],
        ],
    );
}

#[test]
fn lines_and_regions_are_right_for_mold() {
    check("mold", &WAYS);
    check(
        "mold",
        &[
            &["-static-pie"],
            &["-pie", "-Wl,--image-base=0x12345000"],
            &["-no-pie", "-Wl,--image-base=0x10000000"],
            &["-pie", "-Wl,-z,separate-loadable-segments"],
            &["-static", "-Wl,-N"],
        ],
    );
}
