//! ALU utilisation: how many lanes are active where arithmetic is fetched.
//!
//! An *ALU fetch* is one of an instruction that neither accesses memory nor transfers control. Formula: utilisation =
//! active lanes summed over ALU fetches / (W x ALU fetches), as AMD's profiler has VALUUtilization.
//!
//! Worked number: W = 4; all lanes add and branch, then two lanes multiply and store, and the others multiply: three
//! ALU fetches with 4, 2 and 2 active lanes: 8 / 12 = 67%. The branch and the store do not count.
//!
//! *Limitation*: x86-64 has arithmetic with an operand in memory; such a fetch counts as one of memory.

use trace_format::Instruction;

use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::entry::{Cell, Entry, Switch, Table, of};
use crate::{Column, Kind, Result};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "alu",
    file: "replay/src/metrics/alu.rs",
    switch: Some(&Switch {
        name: "alu",
        help: "Count the fetches of instructions that neither access memory nor transfer control; the trace must have addresses",
        number: None,
    }),
    needs_addresses: true,
    measure: Some(|_| Alu::measure()),
    columns: &[
        Column::counted(
            "alu_fetches",
            "Warp instructions that neither access memory nor transfer control; with --alu.",
            |o| of(o, |found: &Alu| found.fetches),
        ),
        Column::counted("alu_instructions", "Thread instructions in them.", |o| {
            of(o, |found: &Alu| found.thread_instructions)
        }),
        Column::counted("alu_utilisation", "alu_instructions / (alu_fetches x warp_size): 0 to 1.", |o| {
            of(o, |found: &Alu| found.utilisation(o.warp_size))
        })
        .of(Kind::Quotient),
    ],
    table: Some(&Table {
        header: &["ALU fetches", "utilisation"],
        row: |outcome| {
            let found: &Alu = outcome.found()?;
            let utilisation = found.utilisation(outcome.warp_size).map_or(Cell::Empty, Cell::Share);
            Some(vec![Cell::Count(found.fetches), utilisation])
        },
        legend: |_| {
            "ALU fetches: those of instructions that neither access memory nor transfer control; utilisation: the \
             active share of their lane-slots"
                .to_owned()
        },
    }),
};

/// Fetches that neither access memory nor transfer control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Alu {
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
}

impl Alu {
    /// Asks for them; the trace must have addresses, since instructions have no memory operands without.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |_| Some(Box::new(Alu::default())))
    }

    /// The active share of the lane-slots; none where there is no such fetch.
    #[must_use]
    pub fn utilisation(&self, warp_size: usize) -> Option<f64> {
        (self.fetches > 0).then(|| self.thread_instructions as f64 / (self.fetches as f64 * warp_size as f64))
    }

    fn count(&mut self, instructions: &[Instruction], active: usize) {
        let alu = instructions.iter().filter(|i| i.memory == 0 && !i.kind.transfers_control()).count() as u64;
        self.fetches += alu;
        self.thread_instructions += alu * active as u64;
    }
}

impl Measured for Alu {
    fn merge(&mut self, other: &Alu) {
        self.fetches += other.fetches;
        self.thread_instructions += other.thread_instructions;
    }
}

impl Metric for Alu {
    fn step(&mut self, step: &Step) -> Result<()> {
        self.count(step.instructions, step.lanes.len());
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        run.instructions().for_each(|instructions| self.count(instructions, run.lanes().len()));
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(*self))
    }
}

#[cfg(test)]
mod tests {
    use trace_format::{Kind, Pc, SpEffect};

    use super::*;

    fn instruction(kind: Kind, memory: u8) -> Instruction {
        Instruction { pc: Pc(0), len: 1, kind, sp: SpEffect::Add(0), memory }
    }

    #[test]
    fn branches_and_what_accesses_memory_do_not_count() {
        let [plain, branch] = [Kind::ALL[0], Kind::Branch].map(|kind| instruction(kind, 0));
        let mut alu = Alu::default();
        alu.count(&[plain, branch], 4);
        alu.count(&[plain, instruction(Kind::ALL[0], 1)], 2);
        alu.count(&[plain], 2);
        assert_eq!(alu, Alu { fetches: 3, thread_instructions: 8 });
        assert_eq!(alu.utilisation(4), Some(8.0 / 12.0));
        assert_eq!(Alu::default().utilisation(4), None);
    }
}
