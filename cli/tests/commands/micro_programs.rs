//! The micro programs, compiled and traced for real: the fetches are those that each model's rule implies.
//!
//! Programs written in assembly state their counts in `expect:` lines. For all of them, whatever the compiler made, the
//! rules are also run here, instruction by instruction and lane by lane, apart from the engine and its models.

use std::path::{Path, PathBuf};

use crate::support::{build, root, succeed};
use replay::Locks;
use replay::view::{Region, View, ViewOptions};
use replay::{Batch, Control, Entry};
use serde_json::Value;
use trace_format::{Kind, SpEffect, Trace};

/// An instruction of a lane, and how the lane stands before it.
#[derive(Clone, Copy)]
struct Stand {
    pc: u64,
    sp: i64,
    level: u32,
    starts_block: bool,
}

/// Every lane's instructions, in order.
fn lanes(view: &View) -> Vec<Vec<Stand>> {
    (0..view.lanes().len()).map(|lane| stands(view, lane)).collect()
}

fn stands(view: &View, lane: usize) -> Vec<Stand> {
    let mut all = Vec::new();
    let mut stream = view.stream(lane);
    let mut batch = Batch::default();
    let (mut sp, mut level, mut starts_block) = (0, 1, false);
    while stream.next_batch(&mut batch).unwrap() {
        let mut recorded = batch.sps.iter();
        for code in &batch.codes {
            match code.entry() {
                Entry::Control(index) => match batch.controls[index] {
                    Control::Sp(new) => sp = new,
                    Control::Level(new) => level = new,
                    control => panic!("the kernels have no {control:?} when locks are ignored"),
                },
                Entry::Segment(id) => {
                    let segment = &view.segments()[id];
                    for i in &segment.instructions {
                        all.push(Stand { pc: i.pc.0, sp, level, starts_block });
                        starts_block = i.kind.transfers_control();
                        level = match i.kind {
                            kind if kind.is_call() => level + 1,
                            Kind::Return => (level - 1).max(1),
                            _ => level,
                        };
                        if let SpEffect::Add(change) = i.sp {
                            sp += i64::from(change);
                        }
                    }
                    if segment.sp == SpEffect::Recorded {
                        sp = *recorded.next().unwrap();
                    }
                }
            }
        }
    }
    all
}

/// Fetches when, at each instruction, the lane with the smallest key runs with all lanes at its pc.
fn fetches_by<K: Ord>(lanes: &[Vec<Stand>], key: impl Fn(&Stand) -> K) -> u64 {
    let mut at = vec![0; lanes.len()];
    let mut fetches = 0;
    loop {
        let standing = (0..lanes.len()).filter_map(|l| Some((l, lanes[l].get(at[l])?)));
        let Some((_, first)) = standing.min_by_key(|(l, s)| (key(s), *l)) else { return fetches };
        let pc = first.pc;
        for l in 0..lanes.len() {
            if lanes[l].get(at[l]).is_some_and(|s| s.pc == pc) {
                at[l] += 1;
            }
        }
        fetches += 1;
    }
}

/// Fetches under Long's rule with a memory of four block entries.
fn fetches_of_long(lanes: &[Vec<Stand>]) -> u64 {
    let n = lanes.len();
    let (mut at, mut rings, mut queue) = (vec![0; n], vec![Vec::<u64>::new(); n], Vec::<usize>::new());
    let (mut reference, mut fetches) = (None, 0);
    loop {
        let stand = |l: usize| lanes[l].get(at[l]);
        let live: Vec<usize> = (0..n).filter(|l| stand(*l).is_some()).collect();
        if live.is_empty() {
            return fetches;
        }
        let pc = |l: usize| stand(l).unwrap().pc;
        let going_on = reference.filter(|l| stand(*l).is_some_and(|s| !s.starts_block));
        let active: Vec<usize> = match going_on {
            Some(l) => live.iter().copied().filter(|m| pc(*m) == pc(l)).collect(),
            None => {
                queue.retain(|l| live.contains(l));
                if queue.is_empty() {
                    let priority = |l: usize| (0..n).filter(|o| *o != l && rings[*o].contains(&pc(l))).count();
                    let most = live.iter().map(|l| priority(*l)).max().unwrap();
                    queue = live.iter().copied().filter(|l| priority(*l) == most).collect();
                }
                let leader = queue[0];
                reference = Some(leader);
                let active: Vec<usize> =
                    live.iter().copied().filter(|m| *m >= leader && pc(*m) == pc(leader)).collect();
                queue.retain(|l| !active.contains(l));
                for l in &active {
                    rings[*l].push(pc(leader));
                    if rings[*l].len() > 4 {
                        rings[*l].remove(0);
                    }
                }
                active
            }
        };
        active.iter().for_each(|l| at[*l] += 1);
        fetches += 1;
    }
}

/// The `expect:` lines of a program: what, and how much. The region is always the kernel.
fn expectations(source: &Path) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(source).unwrap();
    let lines = text.lines().filter_map(|line| Some(line.split_once("expect:")?.1.trim()));
    let parsed = |line: &str| {
        let (what, number) = line.split_once(' ')?;
        Some((what.to_owned(), number.trim().parse().ok()?))
    };
    let numbers = lines.filter(|line| *line != "region kernel");
    numbers.map(|line| parsed(line).unwrap_or_else(|| panic!("{}: expect: {line}", source.display()))).collect()
}

fn sources() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("workloads/micro")).unwrap();
    let mut sources: Vec<PathBuf> =
        folder.map(|f| f.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "c")).collect();
    sources.sort();
    sources
}

#[test]
fn fetches_are_those_that_the_rules_imply() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let (program, trace) = (program.to_str().unwrap(), trace.to_str().unwrap());
    let (mut stated, mut programs) = (0, 0);
    for source in sources() {
        let name = source.file_stem().unwrap().to_str().unwrap().to_owned();
        // Linked statically: no loader runs that would have to be single-stepped.
        build(&source, Path::new(program), &["-static"]);
        succeed("trace", &["-o", trace, program, "-p", "4"]);
        let replayed = |more: &[&str]| -> Vec<Value> {
            let mut arguments = vec!["--region", "kernel", "--check", "--json", trace];
            arguments.extend(more);
            let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
            json["results"].as_array().unwrap().clone()
        };
        let (all, models): (Vec<_>, Vec<_>) =
            expectations(&source).into_iter().partition(|(what, _)| what == "lanes" || what == "thread-instructions");
        let of_all = if all.is_empty() { Vec::new() } else { replayed(&[]) };
        for (what, expected) in all {
            assert_eq!(of_all[0][what.replace('-', "_")], expected, "{name}: {what}");
        }
        if !models.is_empty() {
            let names: Vec<&str> = models.iter().map(|(model, _)| model.as_str()).collect();
            let results = replayed(&["--heuristic", &names.join(",")]);
            assert_eq!(results.len(), models.len(), "{name}");
            for ((model, expected), result) in models.iter().zip(&results) {
                assert_eq!(result["fetches"], *expected, "{name}: {model}");
                stated += 1;
            }
        }
        let options =
            ViewOptions { region: Region::Symbol("kernel".to_owned()), locks: Locks::Ignore, ..ViewOptions::default() };
        let view = View::new(&Trace::open(Path::new(trace)).unwrap(), &options).unwrap();
        let lanes = lanes(&view);
        let by_rule = [
            ("minpc", fetches_by(&lanes, |s| s.pc)),
            ("minsp-pc", fetches_by(&lanes, |s| (s.sp, s.pc))),
            ("maxfun-minpc", fetches_by(&lanes, |s| (std::cmp::Reverse(s.level), s.pc))),
            ("long", fetches_of_long(&lanes)),
        ];
        let names = by_rule.map(|(model, _)| model).join(",");
        let results = replayed(&["--heuristic", &names, "--locks", "ignore"]);
        assert_eq!(results.len(), by_rule.len(), "{name}");
        for ((model, fetches), result) in by_rule.iter().zip(&results) {
            assert_eq!(result["fetches"], *fetches, "{name}: {model}");
        }
        programs += 1;
    }
    // As many as there were when this was written: none is passed over.
    assert!(programs >= 21 && stated >= 7 * 5 + 3 * 2, "{programs} programs state {stated} numbers of fetches");
}

#[test]
fn a_lock_serialises_and_a_stack_deadlocks_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    build(&root().join("workloads/micro/lock_contention.c"), &program, &["-static"]);
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, program.to_str().unwrap(), "-p", "4"]);
    let fetches = |locks: &str| {
        let model = ["--heuristic", "minsp-pc"];
        let arguments = ["--region", "kernel", "--json", "--check", "--locks", locks, trace];
        let json = succeed("replay", &[&model[..], &arguments].concat());
        serde_json::from_str::<Value>(&json).unwrap()["results"][0]["fetches"].as_u64().unwrap()
    };
    let (serialized, ignored, dropped) = (fetches("serialize"), fetches("ignore"), fetches("drop"));
    assert!(serialized > ignored && ignored > dropped, "{serialized} {ignored} {dropped}");
    let stack = crate::support::run("replay", &["--region", "kernel", "--heuristic", "ipdom", trace]);
    let said = String::from_utf8(stack.stdout).unwrap();
    assert_eq!(stack.status.code(), Some(6), "{said}");
    assert!(
        said.contains("ipdom:placement=binary,predicate=0 deadlocks")
            && said.contains("wait for")
            && said.contains("held by"),
        "{said}"
    );
}
