//! Modules, symbols and blocks as bytes: the payload of a table chunk.
//!
//! Three lists, each with its length before it. An instruction takes 4 bytes or more: the difference of its pc to the
//! end of the instruction before it, its length, its kind (with the bits [`RECORDED_SP`] and [`SUMS`]), how many memory
//! addresses it has, its constant change of the stack pointer, if that is constant, and the sums that give its
//! addresses, if they are given so.

use crate::codec::bytes::{Cursor, put_bytes, put_delta, put_varint, zigzag};
use crate::layout::{RECORDED_SP, SUMS};
use crate::{Address, Block, Instruction, Kind, Mapping, Module, ModuleRole, Pc, Source, SpEffect, Symbol, Term};

/// The longest instruction, in bytes.
const MAX_INSTRUCTION_LEN: u8 = 15;

/// Appends a module.
pub fn put_module(out: &mut Vec<u8>, module: &Module) {
    put_bytes(out, module.path.as_bytes());
    out.push(module.role as u8);
    put_varint(out, module.bias);
    match &module.build_id {
        None => out.push(0),
        Some(id) => {
            out.push(1);
            put_bytes(out, id);
        }
    }
    put_varint(out, module.mappings.len() as u64);
    for mapping in &module.mappings {
        put_varint(out, mapping.start.0);
        put_varint(out, mapping.end.0);
        put_varint(out, mapping.offset);
        out.push(u8::from(mapping.executable));
    }
}

fn flag(cursor: &mut Cursor) -> Result<bool, String> {
    match cursor.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        code => Err(format!("payload byte {}: {code} where 0 or 1 must stand", cursor.position() - 1)),
    }
}

fn mapping(cursor: &mut Cursor) -> Result<Mapping, String> {
    let (start, end, offset) = (Pc(cursor.varint()?), Pc(cursor.varint()?), cursor.varint()?);
    Ok(Mapping { start, end, offset, executable: flag(cursor)? })
}

fn module(cursor: &mut Cursor) -> Result<Module, String> {
    let path = cursor.string()?;
    let code = cursor.byte()?;
    let role = ModuleRole::from_code(code).ok_or_else(|| format!("module role {code} is unknown to this version"))?;
    let bias = cursor.varint()?;
    let build_id = if flag(cursor)? { Some(cursor.bytes()?.to_vec()) } else { None };
    let mappings = list(cursor, 4, mapping)?;
    Ok(Module { path, role, bias, build_id, mappings })
}

/// Appends a symbol.
pub fn put_symbol(out: &mut Vec<u8>, symbol: &Symbol) {
    put_varint(out, symbol.pc.0);
    put_varint(out, symbol.size);
    put_bytes(out, symbol.name.as_bytes());
}

fn symbol(cursor: &mut Cursor) -> Result<Symbol, String> {
    Ok(Symbol { pc: Pc(cursor.varint()?), size: cursor.varint()?, name: cursor.string()? })
}

/// Appends a block.
pub fn put_block(out: &mut Vec<u8>, block: &Block) {
    put_varint(out, block.instructions.len() as u64);
    let mut expected = 0u64;
    let mut sums = block.addresses.iter();
    for instruction in &block.instructions {
        let sums = sums.by_ref().take(instruction.memory.into());
        let kind = instruction.kind as u8 | if sums.len() > 0 { SUMS } else { 0 };
        let in_a_row = instruction.pc.0 == expected;
        let change = match instruction.sp {
            SpEffect::Add(change) => zigzag(change.into()),
            SpEffect::Recorded => u64::MAX,
        };
        let before = std::mem::replace(&mut expected, instruction.pc.0.wrapping_add(u64::from(instruction.len)));
        if in_a_row && change < 0x80 && sums.len() == 0 {
            // Most instructions: each of the numbers is a byte.
            out.extend([0, instruction.len, kind, instruction.memory, change as u8]);
            continue;
        }
        put_delta(out, before, instruction.pc.0);
        out.push(instruction.len);
        match instruction.sp {
            SpEffect::Add(change) => {
                out.extend([kind, instruction.memory]);
                put_varint(out, zigzag(change.into()));
            }
            SpEffect::Recorded => out.extend([kind | RECORDED_SP, instruction.memory]),
        }
        for sum in sums {
            put_sum(out, sum);
        }
    }
    put_bytes(out, &block.code);
}

fn put_sum(out: &mut Vec<u8>, sum: &Address) {
    put_varint(out, sum.terms.len() as u64);
    put_varint(out, zigzag(sum.constant as i64));
    for term in &sum.terms {
        put_varint(
            out,
            match term.source {
                Source::Value(number) => u64::from(number) << 1,
                Source::StackPointer(number) => u64::from(number) << 1 | 1,
            },
        );
        put_varint(out, zigzag(term.factor));
    }
}

fn sum(cursor: &mut Cursor) -> Result<Address, String> {
    let terms = cursor.varint()?;
    if terms > Address::MAX_TERMS as u64 {
        return Err(format!("an address of {terms} terms; the most is {}", Address::MAX_TERMS));
    }
    let constant = cursor.delta(0)?;
    let term = |_| {
        let code = cursor.varint()?;
        let number = u32::try_from(code >> 1).map_err(|_| format!("a term with source {code}"))?;
        let source = if code & 1 == 0 { Source::Value(number) } else { Source::StackPointer(number) };
        Ok(Term { source, factor: cursor.delta(0)? as i64 })
    };
    Ok(Address { constant, terms: (0..terms).map(term).collect::<Result<_, String>>()? })
}

fn block(cursor: &mut Cursor) -> Result<Block, String> {
    let start = cursor.position();
    let count = cursor.count(4)?;
    if count == 0 || count > Block::MAX_INSTRUCTIONS {
        let most = Block::MAX_INSTRUCTIONS;
        return Err(format!("payload byte {start}: a block of {count} instructions; it must have 1 to {most}"));
    }
    let mut instructions = Vec::with_capacity(count);
    let mut expected = 0u64;
    let mut bytes = 0usize;
    let mut addresses = Vec::new();
    let mut plain = false;
    for _ in 0..count {
        let pc = cursor.delta(expected)?;
        let (len, code, memory) = (cursor.byte()?, cursor.byte()?, cursor.byte()?);
        if len > MAX_INSTRUCTION_LEN {
            return Err(format!("the instruction at {pc:#x} has {len} bytes; the most is {MAX_INSTRUCTION_LEN}"));
        }
        let kind = Kind::from_code(code & !(RECORDED_SP | SUMS))
            .ok_or_else(|| format!("the instruction at {pc:#x} has kind {code}, unknown to this version"))?;
        let sp = if code & RECORDED_SP != 0 { SpEffect::Recorded } else { SpEffect::Add(cursor.signed32()?) };
        expected = pc.wrapping_add(u64::from(len));
        bytes += usize::from(len);
        instructions.push(Instruction { pc: Pc(pc), len, kind, sp, memory });
        if code & SUMS != 0 && memory > 0 {
            for _ in 0..memory {
                addresses.push(sum(cursor)?);
            }
        } else {
            plain |= memory > 0;
        }
        if addresses.len() > Block::MAX_SUMS || plain && !addresses.is_empty() {
            return Err(format!(
                "the block with the instruction at {pc:#x} gives only some addresses, or too many, as sums"
            ));
        }
    }
    let code = cursor.bytes()?.to_vec();
    if !code.is_empty() && code.len() != bytes {
        let at = instructions[0].pc;
        return Err(format!("the block at {at} has {bytes} bytes of instructions, but {} bytes of code", code.len()));
    }
    Ok(Block { instructions, code, addresses })
}

/// What a table chunk holds.
#[derive(Debug, Default)]
pub struct Table {
    /// Modules, numbered on from those of the table chunks before.
    pub modules: Vec<Module>,
    /// Symbols, in no order.
    pub symbols: Vec<Symbol>,
    /// Blocks, numbered on from those of the table chunks before.
    pub blocks: Vec<Block>,
}

fn list<T>(
    cursor: &mut Cursor,
    least: usize,
    one: impl Fn(&mut Cursor) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let count = cursor.count(least)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        entries.push(one(cursor)?);
    }
    Ok(entries)
}

/// Reads the payload of a table chunk.
pub fn table(payload: &[u8]) -> Result<Table, String> {
    let mut cursor = Cursor::new(payload);
    let modules = list(&mut cursor, 5, module)?;
    let symbols = list(&mut cursor, 3, symbol)?;
    let blocks = list(&mut cursor, 6, block)?;
    cursor.end()?;
    Ok(Table { modules, symbols, blocks })
}

/// Entries of the next table chunk, as bytes already.
#[derive(Debug, Default)]
pub struct TableBuffer {
    /// How many modules, symbols and blocks, and their bytes.
    lists: [(u64, Vec<u8>); 3],
}

impl TableBuffer {
    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.lists.iter().all(|(count, _)| *count == 0)
    }

    /// How many bytes the payload has at most.
    pub fn len(&self) -> usize {
        self.lists.iter().map(|(_, bytes)| bytes.len() + 10).sum()
    }

    /// Adds a module.
    pub fn add_module(&mut self, module: &Module) {
        self.lists[0].0 += 1;
        put_module(&mut self.lists[0].1, module);
    }

    /// Adds a symbol.
    pub fn add_symbol(&mut self, symbol: &Symbol) {
        self.lists[1].0 += 1;
        put_symbol(&mut self.lists[1].1, symbol);
    }

    /// Adds a block.
    pub fn add_block(&mut self, block: &Block) {
        self.lists[2].0 += 1;
        put_block(&mut self.lists[2].1, block);
    }

    /// The payload; the buffer is empty afterwards.
    pub fn take(&mut self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.len());
        for (count, bytes) in std::mem::take(&mut self.lists) {
            put_varint(&mut payload, count);
            payload.extend(bytes);
        }
        payload
    }
}
