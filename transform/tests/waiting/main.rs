//! Passes make no function hang on a machine that runs lanes in lockstep, where it did not hang there before.

#![allow(
    clippy::mutable_key_type,
    reason = "handles are hashed and compared by the address that they hold, which does not change"
)]

mod generate;
mod machine;
#[path = "../support/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::ops::Range;

use machine::{Order, Outcome, Program};
use transform::llvm::Module;
use transform::{Pipeline, Reason};

/// Each as eager as it can be.
const PASSES: [&str; 9] = [
    "fcs:threshold=-1000",
    "tail-merge:threshold=-1000",
    "branch-fusion:threshold=-1000",
    "meld:threshold=-1",
    "linearize:threshold=-1000",
    "linearize:threshold=-1000,max-depth=1",
    "linearize:threshold=-1000,interleave=yes",
    "split-nodes",
    "structurizecfg",
];

/// SSA form of the random functions with these numbers.
fn functions(seeds: Range<u64>) -> Vec<u8> {
    let mut text = generate::PRELUDE.to_owned();
    text.extend(seeds.map(generate::function));
    random::in_ssa(text, "mem2reg,simplifycfg<no-sink-common-insts>")
}

/// The first order in which a function hangs, of those that do not draw and of so many that do.
fn hangs(program: &Program<'_>, name: &str, draws: u64) -> Option<Order> {
    let orders = [Order::First, Order::Last].into_iter().chain((0..draws).map(Order::Drawn));
    orders.into_iter().find(|&order| program.run(name, order) == Outcome::Hangs)
}

/// Runs each function before and after each pass. By pass: how many that hang in no order were changed, how many were
/// left for a wait; and what went wrong.
fn check(seeds: Range<u64>) -> (BTreeMap<&'static str, [usize; 2]>, Vec<String>) {
    let text = functions(seeds.clone());
    let before = Module::parse(&text, "random.ll").unwrap();
    let plain = Program::of(&before);
    let names: Vec<String> = seeds.map(|seed| format!("f{seed}")).collect();
    let live: Vec<&String> = names.iter().filter(|name| hangs(&plain, name, 24).is_none()).collect();
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    assert!(live.len() * 2 > names.len(), "{} of {} functions hang in no order", live.len(), names.len());
    for pass in PASSES {
        let mut after = Module::parse(&text, "random.ll").unwrap();
        let remarks = Pipeline::parse(pass).unwrap().run(&mut after).unwrap();
        let changed = Program::of(&after);
        let count = counts.entry(pass).or_insert([0, 0]);
        for name in &live {
            let of_it = || remarks.iter().filter(|remark| remark.function == **name);
            count[0] += usize::from(of_it().any(transform::Remark::is_taken));
            let left = |reason: &Reason| matches!(reason, Reason::HeldUp | Reason::WaitsApart);
            count[1] += usize::from(of_it().any(|remark| left(&remark.reason)));
            if let Some(order) = hangs(&changed, name, 6)
                && hangs(&plain, name, 1000).is_none()
            {
                wrong.push(format!("{name} hangs after {pass}, {order:?}"));
            } else if hangs(&changed, name, 6).is_none()
                && changed.run(name, Order::First) != plain.run(name, Order::First)
            {
                wrong.push(format!("{name} does something else after {pass}"));
            }
        }
    }
    (counts, wrong)
}

fn hold(seeds: Range<u64>) {
    let (counts, wrong) = check(seeds);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each changes functions; and each but the one whose arms have no calls leaves some for what lanes wait for.
    assert!(counts.values().all(|[changed, _]| *changed > 0), "{counts:?}");
    let waits = counts.iter().filter(|(pass, _)| !pass.starts_with("branch-fusion"));
    assert!(waits.into_iter().all(|(_, [_, left])| *left > 0), "{counts:?}");
}

#[test]
fn no_pass_makes_lanes_wait_for_ever() {
    hold(0..400);
}

#[test]
#[ignore = "three minutes: cargo test -p transform --test waiting -- --ignored"]
fn no_pass_makes_lanes_of_many_functions_wait_for_ever() {
    for turn in 1..13 {
        hold(turn * 1000..(turn + 1) * 1000);
    }
}
