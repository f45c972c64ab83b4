//! The payload of a stream chunk: items of one thread, by columns.
//!
//! ```text
//! sp u64 | address u64 | seq u64         the stack pointer, last address and last `seq` before the first item
//! items u32 | sps u32 | values u32       how many of each; NUMBERED: the items are bytes, see numbering
//! sp bytes u32 | address bytes u32 | event bytes u32
//! block numbers   items x u32; ESCAPE: the next event stands here
//! stack pointers  zigzag varint differences, the first to `sp`
//! addresses       addresses, and the values that those of partial blocks follow from: zigzag varint differences
//! events          see event_codec
//! rows            where there are some: the values of whole executions of blocks with sums, see rows
//! ```

use crate::codec::bytes::{Cursor, put_delta};
use crate::codec::column::{Column, column};
use crate::codec::event_codec::{self, Before};
use crate::codec::numbering::{self, Numbering};
use crate::codec::rows::{Plans, RowDecoder, RowEncoder, Wide};
use crate::codec::shape::{Shape, Shapes};
use crate::layout::{ESCAPE, MAX_ITEMS, STREAM_HEAD_LEN, TARGET_RAW, Version};
use crate::{Block, BlockId, Event, SpEffect};

/// A thread's items that are not in a chunk yet.
#[derive(Debug, Default)]
pub struct StreamBuffer {
    ids: Vec<u32>,
    sps: Vec<u8>,
    addresses: Vec<u8>,
    events: Vec<u8>,
    sp_count: u32,
    address_count: u32,
    event_count: u32,
    instructions: u32,
    /// The state before the first buffered item: stack pointer, last address, last `seq`.
    base: Base,
    /// The state after the last.
    now: Base,
    /// The last object of this chunk; 0 to start with.
    object: u64,
    /// The last stack pointer in the column (of this chunk; the base's to start with).
    last_sp: u64,
    /// The values of blocks with sums.
    pub rows: RowEncoder,
    /// The number of this chunk among all that are written; 0 when it has none.
    pub number: u64,
}

/// Memory that goes from chunk to chunk.
#[derive(Debug, Default)]
pub struct Spare {
    ids: Vec<u32>,
    events: Vec<u8>,
    /// The payload of the chunk that was taken last, and where its values of memory addresses begin.
    pub payload: Vec<u8>,
    pub values_at: usize,
}

/// The base of a chunk's differences.
#[derive(Clone, Copy, Debug, Default)]
struct Base {
    sp: u64,
    address: u64,
    seq: u64,
}

/// What a chunk's header says about its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whole blocks.
    pub blocks: u32,
    /// Events, partial blocks included.
    pub events: u32,
    /// Instructions of both.
    pub instructions: u32,
}

impl StreamBuffer {
    /// Whether it holds no item.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The bytes of its payload, except the sizes of its columns.
    #[inline]
    pub fn len(&self) -> usize {
        self.ids.len() * 4 + self.sps.len() + self.addresses.len() + self.events.len() + self.rows.len()
    }

    /// The bytes of memory that it holds.
    #[inline]
    pub fn held(&self) -> usize {
        self.len() + self.rows.held()
    }

    /// Whether it is time to make it a chunk.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.ids.len() >= MAX_ITEMS || self.len() >= TARGET_RAW || self.rows.is_full()
    }

    /// How many more items a chunk can take.
    pub fn ids_left(&self) -> usize {
        MAX_ITEMS.saturating_sub(self.ids.len())
    }

    /// Adds one execution of a block that has neither stack pointers nor values in the stream.
    #[inline]
    pub fn push_plain(&mut self, block: BlockId, shape: &Shape) {
        self.ids.push(block.0);
        self.instructions += shape.instructions;
        self.now.sp = self.now.sp.wrapping_add(shape.sp_change as u64);
    }

    /// Adds the number of a block whose values are added elsewhere.
    #[inline]
    pub fn push_id(&mut self, block: BlockId) {
        self.ids.push(block.0);
    }

    /// Blocks that were added by number ran so many instructions, and moved the stack pointer so far.
    #[inline]
    pub fn ran(&mut self, instructions: u32, sp_change: i64) {
        self.instructions += instructions;
        self.now.sp = self.now.sp.wrapping_add_signed(sp_change);
    }

    /// Whether the rows or the items are so many that it is time to make it a chunk. The other columns count in
    /// [`StreamBuffer::is_full`] only.
    #[inline]
    pub fn has_many(&self) -> bool {
        self.ids.len() >= MAX_ITEMS || self.rows.is_full()
    }

    /// Adds executions of blocks as in [`StreamBuffer::push_plain`], which run so many instructions and move the stack
    /// pointer so far.
    pub fn push_run(&mut self, blocks: &[u32], instructions: u32, sp_change: i64) {
        self.ids.extend_from_slice(blocks);
        self.instructions += instructions;
        self.now.sp = self.now.sp.wrapping_add_signed(sp_change);
    }

    /// Adds one execution of a block. The lengths fit the shape.
    #[inline]
    pub fn push_block<V: Wide>(&mut self, block: BlockId, shape: &Shape, sps: &[u64], values: &[V], plans: &Plans) {
        self.ids.push(block.0);
        self.instructions += shape.instructions;
        self.now.sp = sps.last().copied().unwrap_or(self.now.sp).wrapping_add(shape.sp_change as u64);
        match shape.start {
            Some(_) => {
                if !sps.is_empty() {
                    self.push_sps(sps);
                }
                self.rows.push(block, shape, values, plans);
            }
            None => self.push_recorded(sps, values),
        }
    }

    /// Adds one execution of the first `executed` instructions of a block, after which the stack pointer is `sp`.
    pub fn push_partial(&mut self, block: BlockId, executed: u32, sp: u64, sps: &[u64], values: &[u64]) {
        self.push_event(&Event::Partial { block, executed });
        self.instructions += executed;
        self.now.sp = sp;
        self.push_recorded(sps, values);
    }

    fn push_sps(&mut self, sps: &[u64]) {
        for &sp in sps {
            put_delta(&mut self.sps, self.last_sp, sp);
            self.last_sp = sp;
        }
        self.sp_count += sps.len() as u32;
    }

    fn push_recorded<V: Wide>(&mut self, sps: &[u64], values: &[V]) {
        self.push_sps(sps);
        self.address_count += values.len() as u32;
        for value in values {
            let last = std::mem::replace(&mut self.now.address, value.wide());
            put_delta(&mut self.addresses, last, value.wide());
        }
    }

    /// Adds an event. Returns how many bytes it takes.
    #[inline]
    pub fn push_event(&mut self, event: &Event) -> usize {
        let len = self.events.len();
        self.ids.push(ESCAPE);
        self.event_count += 1;
        let mut before = Before { seq: self.now.seq, object: self.object, version: Version::NEWEST };
        event_codec::put_event(&mut self.events, event, &mut before);
        (self.now.seq, self.object) = (before.seq, before.object);
        if let Event::ThreadStart { sp, .. } | Event::SetSp(sp) = *event {
            self.now.sp = sp;
        }
        4 + self.events.len() - len
    }

    /// The stack pointer after the last item.
    pub fn sp(&self) -> u64 {
        self.now.sp
    }

    /// Makes the payload of the items in `spare`, and returns what the chunk's header says about them. The buffer is
    /// empty afterwards and holds what was spare; its own memory is spare now, so that threads that have ended hold
    /// none. The plans learn from it.
    pub fn take(&mut self, plans: &mut Plans, numbering: &mut Numbering, spare: &mut Spare) -> Counts {
        let next = StreamBuffer {
            ids: std::mem::take(&mut spare.ids),
            events: std::mem::take(&mut spare.events),
            ..StreamBuffer::default()
        };
        let mut taken = std::mem::replace(self, next);
        self.base = taken.now;
        self.now = taken.now;
        self.last_sp = taken.now.sp;
        let payload = &mut spare.payload;
        payload.clear();
        payload.reserve(STREAM_HEAD_LEN + taken.len());
        for long in [taken.base.sp, taken.base.address, taken.base.seq] {
            payload.extend(long.to_le_bytes());
        }
        let lens = [taken.sps.len(), taken.addresses.len(), taken.events.len()].map(|len| len as u32);
        let items_at = payload.len();
        for word in [taken.ids.len() as u32, taken.sp_count, taken.address_count].into_iter().chain(lens) {
            payload.extend(word.to_le_bytes());
        }
        let items = numbering.put_items(&taken.ids, payload);
        payload[items_at..items_at + 4].copy_from_slice(&items.to_le_bytes());
        payload.extend(&taken.sps);
        payload.extend(&taken.addresses);
        payload.extend(&taken.events);
        spare.values_at = payload.len();
        taken.rows.take(payload, plans);
        let counts = Counts {
            blocks: taken.ids.len() as u32 - taken.event_count,
            events: taken.event_count,
            instructions: taken.instructions,
        };
        taken.ids.clear();
        taken.events.clear();
        (spare.ids, spare.events) = (taken.ids, taken.events);
        counts
    }
}

/// The items of one chunk, checked: every block is in the table and the columns are as long as the blocks need them.
///
/// Block numbers and events are decoded at once, stack pointers and addresses item by item, so that a chunk in memory
/// takes little more than its payload.
#[derive(Debug, Default)]
pub struct StreamChunk {
    ids: Vec<u32>,
    next_item: usize,
    events: Vec<Event>,
    next_event: usize,
    /// Whether any item has stack pointers or addresses.
    recorded: bool,
    /// The stack pointer before the next item, kept up to date where items are recorded.
    sp: u64,
    sps: Column,
    /// Addresses, and the values that those of partial blocks follow from.
    addresses: Column,
    /// The values of whole executions of blocks with sums.
    rows: RowDecoder,
    /// Whether the current item has a row.
    in_row: bool,
    /// The addresses of the current item, where they are sums.
    sums: Vec<u64>,
}

/// One item of a chunk: what stands at a place of the column of block numbers.
pub enum Entry {
    /// A block without stack pointers in the stream, and without addresses.
    Plain(BlockId),
    /// A block with this many stack pointers and values.
    Block(BlockId, u32, u32),
    /// A partial block, how many instructions ran, with this many stack pointers and values.
    Partial(BlockId, u32, u32, u32),
    /// An event other than a partial block.
    Event(Event),
}

impl StreamChunk {
    /// Whether all items have been read.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.next_item == self.ids.len()
    }

    /// Reads a payload, in place of the chunk before it. `first`: whether it starts the thread.
    pub fn load(
        &mut self,
        payload: &[u8],
        version: Version,
        counts: Counts,
        shapes: &Shapes,
        modules: usize,
        first: bool,
    ) -> Result<(), String> {
        self.ids.clear();
        self.events.clear();
        (self.next_item, self.next_event) = (0, 0);
        let mut cursor = Cursor::new(payload);
        let (sp, address, seq) = (cursor.long()?, cursor.long()?, cursor.long()?);
        self.sp = sp;
        let [items, sps, values] = [cursor.word()?, cursor.word()?, cursor.word()?];
        let (items, numbered) = numbering::count(items, version);
        let [sp_len, address_len, event_len] =
            [cursor.word()? as usize, cursor.word()? as usize, cursor.word()? as usize];
        if u64::from(items) != u64::from(counts.blocks) + u64::from(counts.events) || items as usize > MAX_ITEMS {
            return Err(format!("{items} items, but the chunk's header counts {counts:?}"));
        }
        numbering::take_items(&mut cursor, items as usize, numbered, &mut self.ids)?;
        self.sps = column(&mut cursor, "stack pointers", sps, sp_len, sp, &mut self.sps)?;
        self.addresses = column(&mut cursor, "values of addresses", values, address_len, address, &mut self.addresses)?;
        let mut events = Cursor::new(cursor.take(event_len)?);
        let rows = self.rows.load(payload, cursor.position(), |block| shapes.get(block)?.start)?;
        let mut before = Before::chunk(version, seq);
        for _ in 0..counts.events {
            self.events.push(event_codec::event(&mut events, &mut before, modules)?);
        }
        events.end()?;
        self.check(counts, [sps, values, rows], shapes, first)
    }

    /// Checks that the columns fit each other and the block table.
    fn check(&mut self, counts: Counts, recorded: [u32; 3], shapes: &Shapes, first: bool) -> Result<(), String> {
        // In 64 bits no sum overflows, whatever a damaged file says: items and what each counts have 32.
        let (mut instructions, mut sps, mut values, mut escapes) = (0u64, 0u64, 0u64, 0u32);
        let (mut addresses, mut rows, mut row_values) = (false, 0, 0u64);
        for &id in &self.ids {
            if let Some(plain) = shapes.plain(id) {
                instructions += u64::from(plain);
            } else if let Some(shape) = shapes.get(BlockId(id)) {
                instructions += u64::from(shape.instructions);
                sps += u64::from(shape.sps);
                let in_row = shape.start.is_some();
                rows += u32::from(in_row);
                *(if in_row { &mut row_values } else { &mut values }) += u64::from(shape.values);
                addresses |= shape.memory > 0;
            } else if id == ESCAPE {
                escapes += 1;
            } else {
                return Err(format!("block {id} is not in the block table, which has {}", shapes.len()));
            }
        }
        if escapes != counts.events {
            return Err(format!("{escapes} items are events, but the chunk's header counts {}", counts.events));
        }
        for (i, event) in self.events.iter().enumerate() {
            let starts = matches!(event, Event::ThreadStart { .. });
            if starts && !(first && i == 0) {
                return Err("a thread starts twice".into());
            }
            if let Event::Partial { block, executed } = *event {
                let shape = shapes.get(block).ok_or_else(|| format!("block {} is not in the block table", block.0))?;
                if executed == 0 || executed >= shape.instructions {
                    let len = shape.instructions;
                    return Err(format!(
                        "{executed} instructions cannot be a part of block {}, which has {len}",
                        block.0
                    ));
                }
                let partial = shapes.partial(shape, executed);
                instructions += u64::from(executed);
                sps += u64::from(partial.0);
                values += u64::from(partial.1);
                addresses |= shape.memory > 0;
            }
        }
        if first
            && !self.ids.is_empty()
            && !(self.ids[0] == ESCAPE && matches!(self.events[0], Event::ThreadStart { .. }))
        {
            return Err("a thread's first item is not its start".into());
        }
        let needed = [instructions, sps, values];
        let given = [counts.instructions, recorded[0], recorded[1]].map(u64::from);
        if needed != given {
            return Err(format!(
                "the items run {} instructions with {} stack pointers and {} values of addresses, but the chunk counts {}, {} and {}",
                needed[0], needed[1], needed[2], given[0], given[1], given[2]
            ));
        }
        if row_values != u64::from(recorded[2]) {
            return Err(format!("the items' rows have {row_values} values, but the chunk counts {}", recorded[2]));
        }
        self.recorded = sps > 0 || addresses;
        self.rows.expect(rows)
    }

    /// The next item. There must be one.
    #[inline]
    pub fn next(&mut self, shapes: &Shapes) -> Entry {
        let id = self.ids[self.next_item];
        self.next_item += 1;
        if id != ESCAPE && !self.recorded {
            return Entry::Plain(BlockId(id));
        }
        self.next_recorded(id, shapes)
    }

    fn next_recorded(&mut self, id: u32, shapes: &Shapes) -> Entry {
        let shape = |block| shapes.get(block).expect("the chunk was checked against the block table");
        if id != ESCAPE {
            let block = BlockId(id);
            let Shape { sps, values, memory, sp_change, .. } = *shape(block);
            if sps + memory > 0 {
                return Entry::Block(block, sps, values);
            }
            self.sp = self.sp.wrapping_add_signed(sp_change);
            return Entry::Plain(block);
        }
        let event = self.events[self.next_event];
        self.next_event += 1;
        match event {
            Event::Partial { block, executed } => {
                let (sps, values) = shapes.partial(shape(block), executed);
                Entry::Partial(block, executed, sps, values)
            }
            event => {
                if let Event::ThreadStart { sp, .. } | Event::SetSp(sp) = event {
                    self.sp = sp;
                }
                Entry::Event(event)
            }
        }
    }

    /// Decodes the stack pointers and values of the current item, which ran the first `executed` instructions of the
    /// block, and works out its addresses.
    pub fn decode(
        &mut self,
        payload: &[u8],
        [sps, values]: [u32; 2],
        block: &Block,
        shape: &Shape,
        executed: usize,
    ) -> Result<(), String> {
        self.sps.decode(payload, sps)?;
        let start = shape.start.filter(|_| executed == block.instructions.len());
        match start {
            Some(start) => self.rows.next(payload, start, values as usize)?,
            None => self.addresses.decode(payload, values)?,
        }
        self.in_row = start.is_some();
        self.sums.clear();
        let count = if block.addresses.is_empty() { 0 } else { block.recorded_addresses(executed) };
        let (sp, sps, values) =
            (self.sp, &self.sps.values, if self.in_row { self.rows.values() } else { &self.addresses.values });
        self.sums.extend(block.addresses[..count].iter().map(|sum| sum.evaluate(sp, sps, values)));
        if executed == block.instructions.len() {
            self.sp = sps.last().copied().unwrap_or(sp).wrapping_add_signed(shape.sp_change);
            return Ok(());
        }
        let mut recorded = sps.iter();
        for instruction in &block.instructions[..executed] {
            self.sp = match instruction.sp {
                SpEffect::Add(change) => self.sp.wrapping_add_signed(change.into()),
                // As many were decoded as these instructions record.
                SpEffect::Recorded => recorded.next().copied().unwrap_or(self.sp),
            };
        }
        Ok(())
    }

    /// The stack pointers and addresses of the current item, after [`StreamChunk::decode`].
    pub fn values(&self, block: &Block) -> (&[u64], &[u64]) {
        let addresses = if block.addresses.is_empty() { &self.addresses.values } else { &self.sums };
        (&self.sps.values, addresses)
    }
}
