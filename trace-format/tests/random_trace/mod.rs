//! Random traces that obey the writer's contract, and what a reader must give for them.

use proptest::collection::vec;
use proptest::prelude::*;
use trace_format::{
    Address, Block, BlockId, Chunk, Event, Finish, Instruction, Item, Kind, Mapping, Meta, Module, ModuleId,
    ModuleRole, Pc, Seq, Source, SpEffect, Symbol, SyncFunction, Term, ThreadExit, ThreadId, Trace, TraceWriter,
};

/// One step of the writer.
#[derive(Clone, Debug)]
pub enum Step {
    AddBlock(Block),
    AddModule(Module),
    AddSymbol(Symbol),
    /// A block, chosen by this number among those there are, with numbers made from the seed.
    Block(ThreadId, usize, u64),
    /// A part of a block, chosen by this number among those with two instructions or more.
    Partial(ThreadId, usize, u64),
    Event(ThreadId, Event),
    Flush,
}

/// An item with its slices as vectors.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnItem {
    Block(BlockId, Vec<u64>, Vec<u64>),
    Partial(BlockId, u32, Vec<u64>, Vec<u64>),
    Event(Event),
}

/// A trace as it was written.
pub struct Written {
    pub bytes: Vec<u8>,
    pub meta: Meta,
    pub finish: Finish,
    pub blocks: Vec<Block>,
    pub modules: Vec<Module>,
    pub symbols: Vec<Symbol>,
    pub threads: Vec<Vec<OwnItem>>,
    pub instructions: u64,
}

impl Written {
    /// Checks that a reader gives what was self.
    pub fn assert_reads_as(&self, trace: &Trace) {
        assert_eq!(trace.meta(), &self.meta);
        assert_eq!(trace.finish(), Some(&self.finish));
        assert_eq!(trace.recovered(), None);
        assert_eq!(trace.modules(), self.modules);
        let mut symbols = self.symbols.clone();
        symbols.sort_by(|a, b| (a.pc, a.size, &a.name).cmp(&(b.pc, b.size, &b.name)));
        assert_eq!(trace.symbols(), symbols);
        let blocks: Vec<&Block> = trace.blocks().iter().map(|(_, block)| block).collect();
        assert_eq!(blocks, self.blocks.iter().collect::<Vec<_>>());
        assert_eq!(trace.instructions(), self.instructions);
        assert_eq!(trace.threads().len(), self.threads.len());
        for (thread, expected) in self.threads.iter().enumerate() {
            assert_eq!(&items(trace, ThreadId(thread as u32)), expected);
            let summary = trace.threads()[thread];
            let blocks = expected.iter().filter(|item| matches!(item, OwnItem::Block(..))).count() as u64;
            assert_eq!((summary.blocks, summary.blocks + summary.events), (blocks, expected.len() as u64));
        }
    }
}

fn pc() -> impl Strategy<Value = Pc> {
    prop_oneof![3 => 0x40_0000..0x40_1000u64, 1 => any::<u64>()].prop_map(Pc)
}

fn instruction() -> impl Strategy<Value = Instruction> {
    let sp = prop_oneof![
        4 => Just(SpEffect::Add(0)),
        2 => any::<i32>().prop_map(SpEffect::Add),
        1 => Just(SpEffect::Recorded)
    ];
    let kind = (0..Kind::ALL.len()).prop_map(|i| Kind::ALL[i]);
    let memory = prop_oneof![6 => Just(0u8), 3 => 1..4u8, 1 => any::<u8>()];
    (pc(), 0..=15u8, kind, sp, memory).prop_map(|(pc, len, kind, sp, memory)| Instruction { pc, len, kind, sp, memory })
}

pub fn block() -> impl Strategy<Value = Block> {
    (vec(instruction(), 1..6), any::<bool>(), proptest::option::of(any::<u64>())).prop_map(
        |(instructions, with_code, sums)| {
            let len = instructions.iter().map(|i| usize::from(i.len)).sum();
            let addresses = sums.map_or_else(Vec::new, |seed| sums_for(&instructions, seed));
            Block { instructions, code: if with_code { vec![0x90; len] } else { Vec::new() }, addresses }
        },
    )
}

/// Sums for all addresses of the instructions, of sources that are there by then.
fn sums_for(instructions: &[Instruction], mut random: u64) -> Vec<Address> {
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let (mut sums, mut sps, mut values) = (Vec::new(), 0, 0);
    for instruction in instructions {
        for _ in 0..instruction.memory {
            let mut terms = Vec::new();
            for _ in 0..below(Address::MAX_TERMS as u64 + 1) {
                let source = if below(2) == 0 {
                    let number = below(values + 1);
                    values += u64::from(number == values);
                    Source::Value(number as u32)
                } else {
                    Source::StackPointer(below(sps + 1) as u32)
                };
                terms.push(Term { source, factor: (below(64) as i64 - 32) << below(60) });
            }
            sums.push(Address { constant: below(1 << 30) << below(40), terms });
        }
        sps += u64::from(instruction.sp == SpEffect::Recorded);
    }
    sums
}

/// How many values the first instructions of a block take.
fn value_count(block: &Block, executed: usize) -> usize {
    let addresses = block.recorded_addresses(executed);
    let named =
        block.addresses.iter().take(addresses).flat_map(|sum| &sum.terms).filter_map(|term| match term.source {
            Source::Value(number) => Some(number as usize + 1),
            Source::StackPointer(_) => None,
        });
    if block.addresses.is_empty() { addresses } else { named.max().unwrap_or(0) }
}

/// The addresses of the first instructions of a block; the stack pointer before it becomes the one after it.
fn addresses(block: &Block, executed: usize, sp: &mut u64, sps: &[u64], values: &[u64]) -> Vec<u64> {
    let all: Vec<u64> = std::iter::once(*sp).chain(sps.iter().copied()).collect();
    let mut recorded = sps.iter();
    for instruction in &block.instructions[..executed] {
        *sp = match instruction.sp {
            SpEffect::Add(change) => sp.wrapping_add(change as u64),
            SpEffect::Recorded => *recorded.next().unwrap(),
        };
    }
    if block.addresses.is_empty() {
        return values.to_vec();
    }
    let sum = |sum: &Address| {
        let mut address = u128::from(sum.constant);
        for term in &sum.terms {
            let source = match term.source {
                Source::Value(number) => values[number as usize],
                Source::StackPointer(number) => all[number as usize],
            };
            // In 128 bits, of which the lower 64 are wanted.
            address = address.wrapping_add(u128::from(term.factor as u64) * u128::from(source));
        }
        address as u64
    };
    block.addresses[..block.recorded_addresses(executed)].iter().map(sum).collect()
}

fn module() -> impl Strategy<Value = Module> {
    let role = prop_oneof![
        Just(ModuleRole::Main),
        Just(ModuleRole::Loader),
        Just(ModuleRole::Library),
        Just(ModuleRole::Kernel)
    ];
    let mapping = (pc(), pc(), any::<u64>(), any::<bool>()).prop_map(|(start, end, offset, executable)| Mapping {
        start,
        end,
        offset,
        executable,
    });
    (".{0,20}", role, any::<u64>(), proptest::option::of(vec(any::<u8>(), 0..20)), vec(mapping, 0..3))
        .prop_map(|(path, role, bias, build_id, mappings)| Module { path, role, bias, build_id, mappings })
}

fn symbol() -> impl Strategy<Value = Symbol> {
    (pc(), prop_oneof![0..64u64, any::<u64>()], ".{0,12}").prop_map(|(pc, size, name)| Symbol { pc, size, name })
}

/// Every event that can be written at any place. Modules are numbered 0: the trace always has one.
pub fn event() -> impl Strategy<Value = Event> {
    let seq = || any::<u64>().prop_map(Seq);
    let function = || (0..SyncFunction::ALL.len()).prop_map(|i| SyncFunction::ALL[i]);
    let exit = prop_oneof![
        any::<i32>().prop_map(ThreadExit::Exited),
        any::<i32>().prop_map(ThreadExit::Killed),
        Just(ThreadExit::Replaced),
        Just(ThreadExit::StillRunning)
    ];
    prop_oneof![
        (exit, seq()).prop_map(|(exit, seq)| Event::ThreadEnd { exit, seq }),
        any::<u64>().prop_map(Event::SetSp),
        (function(), any::<u64>(), any::<u64>(), seq()).prop_map(|(function, object, argument, seq)| Event::Enter {
            function,
            object,
            argument,
            seq
        }),
        (function(), any::<u64>(), seq()).prop_map(|(function, result, seq)| Event::Leave { function, result, seq }),
        Just(Event::WarpBarrier),
        (any::<u64>(), seq()).prop_map(|(address, seq)| Event::FutexWait { address, seq }),
        (any::<i32>(), pc()).prop_map(|(number, handler)| Event::Signal { number, handler }),
        Just(Event::SignalReturn),
        Just(Event::ModuleLoaded(ModuleId(0))),
        Just(Event::ModuleUnloaded(ModuleId(0))),
        (any::<u32>(), proptest::option::of((0..1u32 << 20).prop_map(ThreadId)))
            .prop_map(|(child, thread)| Event::Fork { child, thread }),
        Just(Event::Exec),
        Just(Event::Gap),
        (pc(), any::<[i64; 4]>()).prop_map(|(site, [lower, upper, step, stride])| Event::Chunk(Chunk {
            site,
            lower,
            upper,
            step,
            stride
        }))
    ]
}

/// Up to `steps` steps of the writer, on up to five threads.
pub fn steps(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let thread = || (0..5u32).prop_map(ThreadId);
    let step = prop_oneof![
        3 => block().prop_map(Step::AddBlock),
        1 => module().prop_map(Step::AddModule),
        1 => symbol().prop_map(Step::AddSymbol),
        20 => (thread(), any::<usize>(), any::<u64>()).prop_map(|(t, b, s)| Step::Block(t, b, s)),
        5 => (thread(), any::<usize>(), any::<u64>()).prop_map(|(t, b, s)| Step::Partial(t, b, s)),
        5 => (thread(), event()).prop_map(|(t, e)| Step::Event(t, e)),
        1 => Just(Step::Flush),
    ];
    vec(step, 0..steps)
}

/// Numbers that are mostly near each other, as addresses are, and sometimes anywhere.
fn numbers(seed: u64, count: usize) -> Vec<u64> {
    let mut state = seed;
    let mut last = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        last = if state >> 61 == 0 { state } else { last.wrapping_add(state >> 56).wrapping_sub(100) };
        last
    };
    (0..count).map(next).collect()
}

fn start(thread: ThreadId) -> Event {
    let parent = thread.0.checked_sub(1).map(ThreadId);
    Event::ThreadStart { parent, os_tid: 1000 + thread.0, sp: 0x7fff_0000_0000, seq: Seq(u64::from(thread.0)) }
}

/// Takes the steps with a writer, and keeps what a reader must give.
pub fn write(steps: &[Step]) -> Written {
    let meta = Meta {
        tool: "test".into(),
        engine: "step".into(),
        command: vec!["a b".into(), String::new()],
        ..Meta::default()
    };
    let finish = Finish { exit_status: Some(3), signal: None, stopped_early: Some("limit".into()) };
    let mut writer = TraceWriter::new(Vec::new(), "random", &meta).unwrap();
    let first = Module { path: "/bin/x".into(), role: ModuleRole::Main, bias: 0, build_id: None, mappings: Vec::new() };
    assert_eq!(writer.add_module(&first).unwrap(), ModuleId(0));
    let (mut modules, mut symbols, mut threads) = (vec![first], Vec::new(), Vec::<Vec<OwnItem>>::new());
    let mut stacks = [0x7fff_0000_0000u64; 5];
    for step in steps {
        if let Step::Block(thread, ..) | Step::Partial(thread, ..) | Step::Event(thread, _) = *step {
            if threads.len() <= thread.index() {
                threads.resize(thread.index() + 1, Vec::new());
            }
            if threads[thread.index()].is_empty() {
                writer.event(thread, start(thread)).unwrap();
                threads[thread.index()].push(OwnItem::Event(start(thread)));
            }
        }
        match step {
            Step::AddBlock(block) => {
                let next = BlockId(writer.blocks().len() as u32);
                assert_eq!(writer.add_block(block.clone()).unwrap(), next);
            }
            Step::AddModule(module) => {
                assert_eq!(writer.add_module(module).unwrap().index(), modules.len());
                modules.push(module.clone());
            }
            Step::AddSymbol(symbol) => {
                writer.add_symbol(symbol).unwrap();
                symbols.push(symbol.clone());
            }
            &Step::Block(thread, choice, seed) => {
                if writer.blocks().is_empty() {
                    continue;
                }
                let id = BlockId((choice % writer.blocks().len()) as u32);
                let block = &writer.blocks()[id];
                let len = block.instructions.len();
                let (sps, values) = (numbers(seed, block.recorded_sps(len)), numbers(!seed, value_count(block, len)));
                let memory = addresses(block, len, &mut stacks[thread.index()], &sps, &values);
                writer.block(thread, id, &sps, &values).unwrap();
                threads[thread.index()].push(OwnItem::Block(id, sps, memory));
            }
            &Step::Partial(thread, choice, seed) => {
                let long: Vec<BlockId> = writer
                    .blocks()
                    .iter()
                    .filter(|(_, block)| block.instructions.len() > 1)
                    .map(|(id, _)| id)
                    .collect();
                if long.is_empty() {
                    continue;
                }
                let id = long[choice % long.len()];
                let block = &writer.blocks()[id];
                let executed = 1 + seed as usize % (block.instructions.len() - 1);
                let sps = numbers(seed, block.recorded_sps(executed));
                let values = numbers(!seed, value_count(block, executed));
                let memory = addresses(block, executed, &mut stacks[thread.index()], &sps, &values);
                writer.partial(thread, id, executed as u32, &sps, &values).unwrap();
                threads[thread.index()].push(OwnItem::Partial(id, executed as u32, sps, memory));
            }
            Step::Event(thread, event) => {
                if let Event::SetSp(sp) = *event {
                    stacks[thread.index()] = sp;
                }
                writer.event(*thread, *event).unwrap();
                threads[thread.index()].push(OwnItem::Event(*event));
            }
            Step::Flush => writer.flush().unwrap(),
        }
    }
    let blocks = writer.blocks().iter().map(|(_, block)| block.clone()).collect();
    let instructions = writer.instructions();
    let bytes = writer.finish(&finish).unwrap();
    Written { bytes, meta, finish, blocks, modules, symbols, threads, instructions }
}

/// All items of a thread up to its end or a fault.
pub fn items(trace: &Trace, thread: ThreadId) -> Vec<OwnItem> {
    let mut stream = trace.stream(thread);
    let mut items = Vec::new();
    while let Ok(Some(item)) = stream.next() {
        items.push(match item {
            Item::Block { block, sps, memory } => OwnItem::Block(block, sps.to_vec(), memory.to_vec()),
            Item::Partial { block, executed, sps, memory } => {
                OwnItem::Partial(block, executed, sps.to_vec(), memory.to_vec())
            }
            Item::Event(event) => OwnItem::Event(event),
        });
    }
    items
}
