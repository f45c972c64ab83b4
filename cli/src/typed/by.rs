//! What rows are summed by, as it is typed.

use attribution::{lost, memory};
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// What `--by` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Lost lane-slots.
    Lost(lost::By),
    /// What each lock cost.
    Lock,
    /// What there is to replay.
    Region,
}

impl ValueEnum for By {
    fn value_variants<'a>() -> &'a [By] {
        use lost::By::{Branch, Cause, Function, Line, Path};
        &[By::Lost(Branch), By::Lost(Line), By::Lost(Function), By::Lost(Cause), By::Lost(Path), By::Lock, By::Region]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            By::Lost(by) => (
                by.name(),
                match by {
                    lost::By::Branch => "The branch at which lanes parted",
                    lost::By::Line => "The source line (from the binary's DWARF)",
                    lost::By::Function => "The function",
                    lost::By::Cause => {
                        "What they were lost to: branch, loop trip count, call target, lock, barrier, finished, \
                         empty seat, schedule"
                    }
                    lost::By::Path => "The call path of the instructions fetched without them",
                },
            ),
            By::Lock => ("lock", "The lock, and what it cost (no lost lane-slots)"),
            By::Region => ("region", "The start routine or parallel region, and what each holds (no lost lane-slots)"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// What `--memory-by` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryBy(pub(crate) memory::By);

impl ValueEnum for MemoryBy {
    fn value_variants<'a>() -> &'a [MemoryBy] {
        &[MemoryBy(memory::By::Instruction), MemoryBy(memory::By::Line), MemoryBy(memory::By::Function)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            memory::By::Instruction => "The instruction",
            memory::By::Line => "The source line (from the binary's DWARF)",
            memory::By::Function => "The function",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}
