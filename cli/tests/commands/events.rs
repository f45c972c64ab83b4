//! `dump --events`: each event of a trace, one a line.

use serde_json::Value;
use trace_format::{Item, Trace};

use crate::support::{build, run, succeed};

/// Two threads that take a lock ten times each; the first one then gets iterations of a loop.
const LOCKS: &str = r"
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;
__attribute__((noinline)) void *work(void *p) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        sum += i;
        pthread_mutex_unlock(&lock);
    }
    return p;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    pthread_join(other, 0);
    work(0);
#pragma omp parallel for schedule(dynamic, 3) num_threads(1)
    for (int i = 0; i < 9; i++) sum += i;
    return sum != 126;
}";

/// The lines that the command writes, as JSON.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let text = succeed("lockstep", &[&["dump"], arguments].concat());
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

#[test]
fn every_event_is_a_line_with_its_place_and_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (source, program, path) = (place("locks.c"), place("locks"), place("trace.bin"));
    std::fs::write(&source, LOCKS).unwrap();
    build(source.as_ref(), program.as_ref(), &["-O1", "-pthread", "-fopenmp"]);
    succeed("trace", &["-o", &path, &program]);
    let trace = Trace::open(path.as_ref()).unwrap();

    let all = lines(&["--events", "--json", &path]);
    let mut expected = Vec::new();
    for thread in trace.threads() {
        let (mut stream, mut before) = (trace.stream(thread.id), 0);
        while let Some(item) = stream.next().unwrap() {
            match item {
                Item::Block { block, .. } => before += trace.blocks()[block].instructions.len() as u64,
                Item::Partial { executed, .. } => {
                    expected.push((thread.id.0, before, "Partial".to_owned()));
                    before += u64::from(executed);
                }
                Item::Event(event) => {
                    let name = format!("{event:?}");
                    expected.push((thread.id.0, before, name.split([' ', '(']).next().unwrap().to_owned()));
                }
            }
        }
        assert_eq!(before, thread.instructions);
    }
    let found = all.iter().map(|line| {
        let number = |name: &str| line[name].as_u64().unwrap();
        (number("thread") as u32, number("instructions"), line["event"].as_str().unwrap().to_owned())
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);

    // What the program knows of itself.
    let of = |event: &str, function: &str| {
        let is_it = |line: &&Value| line["event"] == event && (function.is_empty() || line["function"] == function);
        all.iter().filter(is_it).collect::<Vec<_>>()
    };
    let locks: Vec<_> = of("Enter", "MutexLock").into_iter().map(|line| line["object"].as_str().unwrap()).collect();
    let of_one = |object: &&&str| locks.iter().filter(|other| other == object).count() == 20;
    assert_eq!(locks.iter().filter(of_one).count(), 20, "both threads take one lock: {locks:?}");
    let bodies = of("Enter", "ThreadBody");
    let of_bodies: Vec<_> = bodies.iter().map(|line| (line["thread"].as_u64(), line["symbol"].as_str())).collect();
    assert_eq!(of_bodies, [(Some(0), Some("work")), (Some(1), Some("work"))], "main calls it too");
    let chunks: Vec<_> = of("Chunk", "").iter().map(|line| (line["lower"].clone(), line["upper"].clone())).collect();
    assert_eq!(chunks, [(0, 3), (3, 6), (6, 9)].map(|(lower, upper)| (lower.into(), upper.into())));
    assert!(of("Chunk", "").iter().all(|line| line["symbol"] == "main._omp_fn.0"), "{all:?}");

    // The same as text, and some of it.
    let text = succeed("lockstep", &["dump", "--events", &path]);
    assert_eq!(text.lines().count(), all.len());
    let line = text.lines().rfind(|line| line.contains(" Enter function=ThreadBody object=0x")).unwrap();
    assert!(line.starts_with("  1 ") && line.ends_with("(work)"), "{line}");
    let some = lines(&["--events=Chunk,ThreadBody", "--json", &path]);
    assert_eq!(some.len(), chunks.len() + 4, "bodies are entered and left");
}

#[test]
fn an_unknown_event_is_refused_with_those_that_there_are() {
    let output = run("lockstep", &["dump", "--events=Lock", "no-such-trace"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(4) && said.contains("`Lock`") && said.contains("Chunk"), "{said}");
    let output = run("lockstep", &["dump", "--json", "no-such-trace"]);
    assert_eq!(output.status.code(), Some(2), "--json alone says nothing");
}
