//! Memory accesses by instruction, line or function: as a table for people, and as JSON.

use std::collections::HashMap;

use replay::metrics::{ACCESS_HEADER, Accesses, Space, TRANSACTION_SIZES, Traffic};
use serde_json::{Map, Value, json};
use trace_format::Pc;

use crate::json;
use crate::source::Source;
use crate::table::{Align, aligned, cell};

/// What memory accesses are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MemoryBy {
    /// The instruction
    Instruction,
    /// The source line (from the binary's DWARF)
    Line,
    /// The function
    Function,
}

impl MemoryBy {
    fn name(self) -> &'static str {
        match self {
            MemoryBy::Instruction => "instruction",
            MemoryBy::Line => "line",
            MemoryBy::Function => "function",
        }
    }
}

/// An instruction, line or function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// What it is; rows with one label are one row.
    label: String,
    /// What else there is to say about it, for people.
    beside: String,
    /// The same and more, by name.
    facts: Map<String, Value>,
    accesses: Accesses,
}

/// The rows of one outcome, those with the most 32-byte transactions first.
pub(crate) fn rows(by: MemoryBy, traffic: &Traffic, source: &mut Source) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut labels: HashMap<String, usize> = HashMap::new();
    for (pc, accesses) in &traffic.by_instruction {
        let new = described(by, *pc, source);
        let at = *labels.entry(new.label.clone()).or_insert_with(|| {
            rows.push(new);
            rows.len() - 1
        });
        rows[at].accesses.add(accesses);
    }
    let transactions = |row: &Row| row.accesses.heap.transactions[0] + row.accesses.stack.transactions[0];
    rows.sort_by(|a, b| (transactions(b), &a.label).cmp(&(transactions(a), &b.label)));
    rows
}

/// The row of this instruction, without accesses.
fn described(by: MemoryBy, pc: Pc, source: &mut Source) -> Row {
    let function = source.function(pc);
    let line = if by == MemoryBy::Function { None } else { source.line(pc) };
    let label = match (by, &line) {
        (MemoryBy::Function, _) => function.clone(),
        (MemoryBy::Line, Some(line)) => line.short(),
        (MemoryBy::Line, None) => source.without_line(pc),
        (MemoryBy::Instruction, _) => pc.to_string(),
    };
    let mut facts = Map::from_iter([(by.name().to_owned(), json!(label)), ("function".to_owned(), json!(function))]);
    let mut beside = if by == MemoryBy::Function { String::new() } else { function };
    if by == MemoryBy::Instruction {
        beside = source.place(pc);
        facts.insert("place".into(), json!(beside));
    }
    if let Some(line) = line {
        if by == MemoryBy::Instruction {
            beside = format!("{beside} {}", line.short());
        }
        facts.insert("file".into(), json!(line.file));
        facts.insert("line".into(), json!(line.line));
    }
    Row { label, beside, facts, accesses: Accesses::default() }
}

/// The rows as JSON: `memory_by`, and the first `top` rows (all of them by default).
pub(crate) fn to_json(by: MemoryBy, rows: &[Row], top: Option<usize>) -> Value {
    let list: Vec<Value> = rows.iter().take(top.unwrap_or(usize::MAX)).map(row_json).collect();
    json!({ "by": by.name(), "rows": list })
}

fn row_json(row: &Row) -> Value {
    let sizes = |transactions: &[u64; 3]| -> Map<String, Value> {
        TRANSACTION_SIZES.iter().zip(transactions).map(|(size, n)| (size.to_string(), json!(n))).collect()
    };
    let space = |space: &Space| {
        json!({
            "accesses": space.accesses,
            "lane_accesses": space.lane_accesses,
            "transactions": sizes(&space.transactions),
        })
    };
    let accesses = &row.accesses;
    let mut all = row.facts.clone();
    all.insert("accesses".into(), json!(accesses.accesses()));
    all.insert("lane_accesses".into(), json!(accesses.lane_accesses()));
    all.insert("uniform".into(), json!(accesses.classes.uniform));
    all.insert("affine".into(), json!(accesses.classes.affine));
    all.insert("scattered".into(), json!(accesses.classes.scattered));
    all.insert("strides".into(), json::value(accesses.strides.named()));
    all.insert("heap".into(), space(&accesses.heap));
    all.insert("stack".into(), space(&accesses.stack));
    all.insert("interleaved_stack_transactions".into(), sizes(&accesses.interleaved).into());
    Value::Object(all)
}

/// The first `top` rows (20 by default) as a table.
pub(crate) fn table(by: MemoryBy, rows: &[Row], top: Option<usize>) -> String {
    let shown = top.unwrap_or(20).min(rows.len());
    let cells = rows[..shown].iter().map(|row| (row.label.clone(), row.beside.clone(), &row.accesses));
    let mut text = written(by.name(), cells);
    if shown < rows.len() {
        text += &format!("({} more rows: --top N shows N)\n", rows.len() - shown);
    }
    text
}

fn written<'a>(first: &str, rows: impl Iterator<Item = (String, String, &'a Accesses)>) -> String {
    let header = [first].into_iter().chain(ACCESS_HEADER).chain([""]);
    let mut text: Vec<Vec<String>> = vec![header.map(str::to_owned).collect()];
    for (label, beside, accesses) in rows {
        let cells = accesses.cells();
        text.push(std::iter::once(label).chain(cells.iter().map(cell)).chain([beside]).collect());
    }
    let last = text[0].len() - 1;
    aligned(&text, |column| if column == 0 || column == last { Align::Left } else { Align::Right })
}
