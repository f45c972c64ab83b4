//! What the codec of streams needs to know of a block: how much of the stream one execution takes.

use std::collections::HashMap;

use crate::{Block, BlockId, Pc, SpEffect};

/// The shape of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many instructions it has.
    pub instructions: u32,
    /// How many stack pointers the stream holds for one execution.
    pub sps: u32,
    /// How many values for memory addresses the stream holds for one execution.
    pub values: u32,
    /// How many memory addresses one execution has.
    pub memory: u32,
    /// Where the counts per instruction start in [`Shapes::running`]; unused when both counts are 0.
    running: u32,
    /// With sums of values: the number of the block's start among those of such blocks. Its whole executions are rows.
    pub start: Option<u32>,
    /// The sum of the constant stack-pointer changes after the last recorded stack pointer (of all, if there is none).
    pub sp_change: i64,
}

/// The shapes of all blocks.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    shapes: Vec<Shape>,
    /// Of blocks without stack pointers, values and addresses: how many instructions they have. 0 for others.
    plain: Vec<u32>,
    /// For each block that has stack pointers or values in the stream: how many its first instruction has, its first
    /// two, and so on. A partial block is looked up, since counting again each time would let a small file cost hours.
    running: Vec<(u32, u32)>,
    /// Where blocks with sums of values start.
    starts: HashMap<Pc, u32>,
}

impl Shapes {
    /// Adds the next block's shape; the fault when its sums are wrong, or the table is full.
    pub fn push(&mut self, block: &Block) -> Result<(), String> {
        self.add(block, block.values_after_each()?)
    }

    /// The same, when [`Block::values_after_each`] of the block is known.
    pub fn add(&mut self, block: &Block, values: Vec<u32>) -> Result<(), String> {
        let mut shape = Shape {
            instructions: block.instructions.len() as u32,
            sps: 0,
            values: values.last().copied().unwrap_or(0),
            memory: 0,
            running: 0,
            start: None,
            sp_change: 0,
        };
        for instruction in &block.instructions {
            shape.memory += u32::from(instruction.memory);
            match instruction.sp {
                SpEffect::Add(change) => shape.sp_change += i64::from(change),
                SpEffect::Recorded => (shape.sps, shape.sp_change) = (shape.sps + 1, 0),
            }
        }
        if !block.addresses.is_empty() && shape.values > 0 {
            let next = self.starts.len() as u32;
            shape.start = Some(*self.starts.entry(block.start()).or_insert(next));
        }
        if shape.sps + shape.values > 0 {
            shape.running =
                u32::try_from(self.running.len()).map_err(|_| "too many instructions in the block table")?;
            let mut sps = 0;
            self.running.extend(block.instructions.iter().zip(values).map(|(instruction, values)| {
                sps += u32::from(instruction.sp == SpEffect::Recorded);
                (sps, values)
            }));
        }
        let is_plain = shape.sps + shape.values + shape.memory == 0;
        self.plain.push(if is_plain { shape.instructions } else { 0 });
        self.shapes.push(shape);
        Ok(())
    }

    /// How many shapes there are.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether values of some block are rows.
    pub fn have_rows(&self) -> bool {
        !self.starts.is_empty()
    }

    /// The shape of a block, if there is such a block.
    #[inline]
    pub fn get(&self, block: BlockId) -> Option<&Shape> {
        self.shapes.get(block.index())
    }

    /// How many instructions the block of this number has, where all that a stream holds of its executions is that
    /// number: most blocks of most programs.
    #[inline]
    pub fn plain(&self, id: u32) -> Option<u32> {
        self.plain.get(id as usize).copied().filter(|instructions| *instructions > 0)
    }

    /// How many stack pointers and values an execution of the first `executed` instructions of a block takes
    /// (1 to the block's length).
    pub fn partial(&self, shape: &Shape, executed: u32) -> (u32, u32) {
        if shape.sps + shape.values == 0 {
            return (0, 0);
        }
        self.running[shape.running as usize + executed as usize - 1]
    }
}
