//! A model that lockstep does not bring: the largest pc first, the mirror image of `minpc`.
//! `cargo run --release -p replay --example heuristic -- trace.bin` replays a trace under both.

use std::error::Error;
use std::path::Path;

use heuristics::{Choice, Entry, Family, Heuristic, Spec, WarpView};
use replay::view::{View, ViewOptions};
use replay::{LaneSource, Outcome, ReplayOptions};

static LARGEST: Entry = Entry {
    name: "maxpc",
    family: Family::MinPc,
    rule: "The largest pc runs.",
    source: "an example",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_values, _lanes, _program| Box::new(MaxPc),
};

struct MaxPc;

impl Heuristic for MaxPc {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let last = warp.groups().iter().max_by_key(|group| group.pc);
        Choice::Run(last.expect("a lane is ready when a choice is asked for").lanes)
    }
}

fn replayed(lanes: &dyn LaneSource, models: &str) -> Result<Vec<Outcome>, Box<dyn Error>> {
    let mut specs = Spec::parse_list(models)?;
    specs.push(Spec::of(&LARGEST));
    Ok(replay::replay(lanes, &specs, &ReplayOptions::default(), None, &|_, _| {})?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which trace?")?;
    let trace = trace_format::Trace::open(Path::new(&path))?;
    for outcome in replayed(&View::new(&trace, &ViewOptions::default())?, "minpc")? {
        println!("{}: {} fetches", outcome.heuristic, outcome.counts.fetches());
    }
    Ok(())
}

#[test]
fn the_largest_pc_misses_the_join_of_a_diamond() {
    let lanes = replay::in_memory::InMemory::of_branches(&[&[1, 2, 3, 5], &[1, 2, 4, 5]]);
    let fetches: Vec<u64> = replayed(&lanes, "minpc").unwrap().iter().map(|o| o.counts.fetches()).collect();
    assert_eq!(fetches, [5, 6]);
}
