//! What `linearize` does to structured code where it is asked, at each level: figures 2(a) and 2(b) of its paper
//! (Anantpur and Govindarajan, CC 2014) as programs with loads and loops of their own, in numbers.

use serde_json::Value;

use crate::folder::{Folder, lockstep, root};

/// A program after a pass, traced.
struct Traced {
    folder: Folder,
    printed: String,
}

fn traced(pass: &str) -> Traced {
    let folder = Folder::with(&[]);
    let source = root().join("cli/tests/transforms/nested.c").display().to_string();
    let words = ["cc", "--transform", pass, "--", "-O2", "-w", "-no-pie", "-pthread", &source, "-o", "nested"];
    folder.succeed(lockstep(), &words);
    folder.succeed(lockstep(), &["trace", "-o", "nested.bin", "./nested"]);
    let printed = folder.succeed("./nested", &[]);
    Traced { folder, printed }
}

impl Traced {
    /// What ipdom counts, with loads of so many cycles.
    fn counts(&self, latency: &str) -> Value {
        let words = ["replay", "--region", "kernel", "-H", "ipdom", "--check", "--load-latency", latency, "--json"];
        let json = self.folder.succeed(lockstep(), &[&words[..], &["nested.bin"]].concat());
        serde_json::from_str::<Value>(&json).unwrap()["results"][0].take()
    }

    /// How often ipdom issues a function.
    fn issued(&self, function: &str) -> usize {
        let listing = self.folder.succeed("nm", &["--defined-only", "nested"]);
        let address = listing.lines().find_map(|line| line.strip_suffix(&format!(" t {function}"))).unwrap();
        let start = u64::from_str_radix(address, 16).unwrap();
        let words = ["replay", "--region", "kernel", "-H", "ipdom", "--check", "--schedule", "schedule", "nested.bin"];
        self.folder.succeed(lockstep(), &words);
        let schedule = self.folder.read("schedule");
        let pcs =
            schedule.lines().skip(1).map(|line| u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap());
        pcs.filter(|&pc| pc == start).count()
    }
}

#[test]
fn lanes_that_are_done_with_an_inner_loop_join_the_others_at_each_level() {
    let before = traced("none");
    // 15 turns in each of the outer loop's two.
    assert_eq!(before.issued("merge_s2"), 30);
    for level in 0..=4 {
        let after = traced(&format!("linearize:merge-loops=yes,level={level}"));
        assert_eq!(after.printed, before.printed);
        // 10 and then 15, or 15 and then 10: 25 for each lane, and no more for all.
        assert_eq!(after.issued("merge_s2"), 25, "level {level}");
    }
}

#[test]
fn code_of_the_other_arm_fills_the_wait_for_a_load() {
    let (before, after) = (traced("none"), traced("linearize:interleave=yes"));
    assert_eq!(after.printed, before.printed);
    let stalls = |traced: &Traced, latency: &str| traced.counts(latency)["load_stalls"].as_u64().unwrap();
    // All loads but those of the arms are there at once: latency 1 tells that nothing else waits.
    let others = |traced: &Traced| stalls(traced, "1");
    let [old, new] = [&before, &after].map(|traced| stalls(traced, "100") - others(traced));
    // Each arm waited for a load of its own; now both loads are under way together.
    assert!(old >= 180 && new + 80 <= old, "{old} cycles of stalls, then {new}");
}
