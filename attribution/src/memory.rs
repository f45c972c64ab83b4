//! Memory accesses by instruction, line or function.

use std::collections::HashMap;

use replay::metrics::{Accesses, Traffic};

use crate::{Source, Subject};

/// What memory accesses are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The instruction.
    Instruction,
    /// The source line.
    Line,
    /// The function.
    Function,
}

impl By {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            By::Instruction => "instruction",
            By::Line => "line",
            By::Function => "function",
        }
    }
}

/// The accesses of an instruction, line or function.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What it is about.
    pub subject: Subject,
    /// Its accesses.
    pub accesses: Accesses,
}

/// The rows of one outcome, those with the most 32-byte transactions first.
#[must_use]
pub fn rows(by: By, traffic: &Traffic, source: &mut Source) -> Vec<Row> {
    let mut rows: Vec<(String, Row)> = Vec::new();
    let mut labels: HashMap<String, usize> = HashMap::new();
    for (pc, accesses) in &traffic.by_instruction {
        let subject = match by {
            By::Instruction => Subject::instruction(*pc, source),
            By::Line => Subject::line(*pc, source),
            By::Function => Subject::Function(source.function(*pc)),
        };
        let label = subject.to_string();
        let at = *labels.entry(label.clone()).or_insert_with(|| {
            rows.push((label, Row { subject, ..Row::default() }));
            rows.len() - 1
        });
        rows[at].1.accesses.add(accesses);
    }
    let transactions = |row: &Row| row.accesses.heap.transactions[0] + row.accesses.stack.transactions[0];
    rows.sort_by(|(a_label, a), (b_label, b)| (transactions(b), a_label).cmp(&(transactions(a), b_label)));
    rows.into_iter().map(|(_, row)| row).collect()
}
