//! `long-irb`: `long` with a new choice at every instruction.
//!
//! Long et al. (MICRO 2010), as the simulator of Milanez et al. runs it with an instruction reuse buffer.
//!
//! Rule: as `long`, but lanes remember instructions, not blocks, and the model chooses again at each instruction.
//!
//! It reconverges inside blocks too. It fails earlier than `long`, since `n` instructions are a shorter past than `n`
//! blocks.
//!
//! Worked example: `1 2b 3 5` and `1 2b 4 5`: lanes part at 2; lane 0 runs 3, lane 1 runs 4, and both stand at 5.

use crate::models::long::{self, PARAMETER};
use crate::warp::history::Rule;
use crate::{Entry, Family};

pub(crate) const ENTRY: Entry = Entry {
    name: "long-irb",
    family: Family::MinPc,
    rule: "As long, with a new choice at every instruction.",
    source: "Long et al. 2010; Milanez et al. 2014",
    file: file!(),
    parameters: &[PARAMETER],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, lanes, _| long::of(settings.count("n"), lanes, Rule::InstructionsInTurns),
};

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn lanes_that_part_take_turns_by_instruction() {
        assert_eq!(schedule("long-irb", &["1 2b 3 5", "1 2b 4 5"]), "1:0-1 2:0-1 3:0 4:1 5:0-1");
        assert_eq!(schedule("long-irb", &["1b 2 3", "1b 5 6"]), "1:0-1 2:0 5:1 3:0 6:1");
    }
}
