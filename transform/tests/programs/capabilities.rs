//! What each pass can do with the benchmarks of melding, and that the branches which these are about are still there
//! when clang's optimiser is done.

use std::collections::BTreeMap;

use crate::build;

/// The flags by which clang leaves alike arms apart.
const APART: [&str; 6] =
    ["-O3", "-DBLOCK=64", "-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"];

/// How many changes a pass makes in the function `kernel` of a program of workloads/melding.
fn changes(program: &str, passes: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["a.bc", "b.bc"].map(|name| folder.path().join(name));
    let source = build::root().join("workloads/melding").join(program).with_extension("c");
    build::to_bitcode(&source, &before, &APART);
    let remarks = build::transform(&before, passes, &after);
    remarks.iter().filter(|remark| remark.is_taken() && remark.function == "kernel").count()
}

/// By program: the changes of tail merging, branch fusion and melding, also at branches at which no warp parts.
fn table<'a>(programs: &[&'a str]) -> BTreeMap<&'a str, [usize; 3]> {
    let of = |pass: &str, program| changes(program, &format!("{pass}:only-divergent=no"));
    let all = |program: &&'a str| (*program, ["tail-merge", "branch-fusion", "meld"].map(|pass| of(pass, program)));
    programs.iter().map(all).collect()
}

#[test]
fn melding_treats_what_branch_fusion_cannot_and_that_what_tail_merging_cannot() {
    let table = table(&["sb1", "sb1_r", "sb2", "sb2_r", "sb3", "sb3_r", "bitonic", "lud"]);
    println!("{table:?}");
    // A diamond with other instructions on its sides has no common end, but pairs.
    assert_eq!((table["sb1_r"][0], table["sb1_r"][1] > 0), (0, true), "{table:?}");
    for complex in ["sb2", "sb2_r", "sb3", "sb3_r", "bitonic", "lud"] {
        let [_, fused, melded] = table[complex];
        assert!(fused == 0 && melded > 0, "{complex}: {table:?}");
    }
    for simple in ["sb1", "sb1_r"] {
        let [_, fused, melded] = table[simple];
        assert!(fused > 0 && melded > 0, "{simple}: {table:?}");
    }
    // Two ifs on each side are two pairs.
    assert!(table["sb3"][2] > 1, "{table:?}");
}

#[test]
fn branches_that_all_lanes_take_alike_are_left_unless_that_is_not_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let [source, before, after] = ["a.c", "a.bc", "b.bc"].map(|name| folder.path().join(name));
    let arms =
        "{ if (s[t] > n) { s[t] = s[t] * 7 ^ n; } } else { if (s[t + 64] > n) { s[t + 64] = s[t + 64] * 7 ^ n; } }";
    let text = format!(
        "#include <pthread.h>
        #include <stdint.h>
        static int s[128], n;
        static void *worker(void *p) {{
            unsigned t = (unsigned)(uintptr_t)p;
            if (t & 1) {arms}
            return 0;
        }}
        int main(int count, char **arguments) {{
            pthread_t all[64];
            n = count;
            for (long i = 0; i < 64; i++) pthread_create(&all[i], 0, worker, (void *)i);
            for (long i = 0; i < 64; i++) pthread_join(all[i], 0);
            unsigned t = s[3];
            if (count & 1) {arms}
            return s[5];
        }}"
    );
    std::fs::write(&source, text).unwrap();
    build::to_bitcode(&source, &before, &["-O1", "-mllvm", "-sink-common-insts=false"]);
    let melded = |passes| {
        let remarks = build::transform(&before, passes, &after);
        let names = remarks.into_iter().filter(|r| r.is_taken()).map(|r| r.function);
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let both: std::collections::BTreeSet<String> = ["main", "worker"].map(str::to_owned).into();
    assert_eq!(melded("meld:only-divergent=no"), both);
    assert_eq!(melded("meld"), ["worker".to_owned()].into());
}
