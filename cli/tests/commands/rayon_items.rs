//! Items that a pool of rayon's works on, as lanes: this very program is traced while it runs one of its tests.

use rayon::prelude::*;
use replay::view::{Lanes, Region};

use crate::lanes::lengths_of;
use crate::support::succeed;

const ITEMS: u64 = 200;

/// An item, whose loop turns 4 times as often as its number says.
#[inline(never)]
fn work_item(number: u64) -> u64 {
    let (mut x, mut turn) = (1_u64, 0);
    while turn < std::hint::black_box(4 * number) {
        x = x.wrapping_mul(5).wrapping_add(turn);
        turn += 1;
    }
    x
}

#[test]
#[ignore = "the other test traces it"]
fn items_of_a_pool() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let all: Vec<u64> = pool.install(|| (0..ITEMS).into_par_iter().map(work_item).collect());
    assert_eq!(all[1], work_item(1));
}

#[test]
fn each_call_of_the_body_of_rayons_loop_is_a_lane() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace").to_str().unwrap().to_owned();
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    succeed("trace", &["-o", &trace, program, "--ignored", "--exact", "rayon_items::items_of_a_pool"]);
    let region: Region = "commands::rayon_items::work_item".parse().unwrap();
    let mut lengths = lengths_of(&trace, Lanes::Calls, region);
    // Which thread took which item is rayon's affair; one more is called beside the loop.
    lengths.sort_unstable();
    assert_eq!(lengths.len() as u64, ITEMS + 1, "{lengths:?}");
    lengths.dedup();
    assert_eq!(lengths.len() as u64, ITEMS, "{lengths:?}");
    let steps: Vec<usize> = lengths.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps[1] >= 12 && steps[1..].iter().all(|step| *step == steps[1]), "{steps:?}");
}
