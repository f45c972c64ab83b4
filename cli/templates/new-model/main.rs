// `lockstep` with one more reconvergence model.
//
// Rule: the largest pc runs, with all ready lanes that stand there. It is the mirror image of `minpc`: put yours here.

use lockstep::heuristics::{Choice, Entry, Family, Heuristic, WarpView};

const ENTRY: Entry = Entry {
    name: "own-model",
    family: Family::MinPc,
    rule: "The largest pc runs.",
    source: "an example",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_settings, _lanes, _program| Box::new(OwnModel),
};

struct OwnModel;

impl Heuristic for OwnModel {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let last = warp.groups().iter().max_by_key(|group| group.pc);
        Choice::Run(last.expect("a choice is asked for only while a lane is ready").lanes)
    }
}

fn main() -> std::process::ExitCode {
    lockstep::run(lockstep::Registry::standard().with(ENTRY))
}
