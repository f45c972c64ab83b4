//! Traces made by hand: blocks and events as a tracer would record them, written by the writer and read back by the
//! reader.

use std::collections::HashMap;

use replay::view::{View, ViewOptions};
use replay::{Batch, Control, Entry, Result};
use trace_format::{
    Block, BlockId, Event, Finish, Instruction, Kind, Mapping, Meta, Module, ModuleRole, Pc, Seq, SpEffect, Symbol,
    SyncFunction, ThreadExit, ThreadId, Trace, TraceWriter,
};

/// The main executable lies at 0x100 to 0x1000, the loader at 0x1000, the C library at 0x2000, libgomp at 0x3000, and a
/// library that has nothing to do with threads at 0x4000.
pub const MAIN: u64 = 0x100;
pub const LOADER: u64 = 0x1000;
pub const LIBC: u64 = 0x2000;
pub const LIBGOMP: u64 = 0x3000;
pub const LIBRARY: u64 = 0x4000;

/// The stack pointer with which each thread starts.
pub const STACK: u64 = 0x7000_0000;

pub fn plain(pc: u64) -> Instruction {
    Instruction { pc: Pc(pc), len: 1, kind: Kind::Plain, sp: SpEffect::Add(0), memory: 0 }
}

pub fn of_kind(kind: Kind, pc: u64) -> Instruction {
    Instruction { kind, ..plain(pc) }
}

pub fn branch(pc: u64) -> Instruction {
    of_kind(Kind::Branch, pc)
}

pub fn pause(pc: u64) -> Instruction {
    of_kind(Kind::Pause, pc)
}

/// Adds to the stack pointer.
pub fn adds(pc: u64, bytes: i32) -> Instruction {
    Instruction { sp: SpEffect::Add(bytes), ..plain(pc) }
}

/// Sets the stack pointer to what the stream says.
pub fn sets(pc: u64) -> Instruction {
    Instruction { sp: SpEffect::Recorded, ..plain(pc) }
}

pub fn call(pc: u64) -> Instruction {
    Instruction { kind: Kind::Call, ..adds(pc, -8) }
}

pub fn ret(pc: u64) -> Instruction {
    Instruction { kind: Kind::Return, ..adds(pc, 8) }
}

/// A trace being made.
pub struct Recording {
    writer: TraceWriter<Vec<u8>>,
    blocks: HashMap<Vec<Instruction>, BlockId>,
    seq: u64,
    executed: u64,
}

impl Recording {
    /// Of a dynamic program.
    pub fn new() -> Recording {
        Recording::with_library("libz.so.1")
    }

    /// Of a dynamic program, with this library in place of the one that has nothing to do with threads.
    pub fn with_library(name: &str) -> Recording {
        let mut made = Recording::of_modules(&[("/bin/program", ModuleRole::Main, MAIN, LOADER)]);
        made.module("/lib/ld-linux-x86-64.so.2", ModuleRole::Loader, LOADER, LIBC);
        made.module("/lib/libc.so.6", ModuleRole::Library, LIBC, LIBGOMP);
        made.module("/lib/libgomp.so.1", ModuleRole::Library, LIBGOMP, LIBRARY);
        made.module(&format!("/lib/{name}"), ModuleRole::Library, LIBRARY, 0x5000);
        made
    }

    /// Of a static program: all code is in the main executable.
    pub fn of_static_program() -> Recording {
        Recording::of_modules(&[("/bin/program", ModuleRole::Main, MAIN, 0x5000)])
    }

    fn of_modules(modules: &[(&str, ModuleRole, u64, u64)]) -> Recording {
        let mut made = Recording::of_run(&Meta { engine: "step".into(), memory: true, ..Meta::default() });
        for (path, role, start, end) in modules {
            made.module(path, *role, *start, *end);
        }
        made
    }

    /// Without modules, of a run of which this is known.
    pub fn of_run(meta: &Meta) -> Recording {
        let writer = TraceWriter::new(Vec::new(), "made by hand", meta).unwrap();
        Recording { writer, blocks: HashMap::new(), seq: 0, executed: 0 }
    }

    fn module(&mut self, path: &str, role: ModuleRole, start: u64, end: u64) {
        let mapping = Mapping { start: Pc(start), end: Pc(end), offset: 0, executable: true };
        let module = Module { path: path.into(), role, bias: 0, build_id: None, mappings: vec![mapping] };
        self.writer.add_module(&module).unwrap();
    }

    pub fn symbol(&mut self, name: &str, pc: u64, size: u64) -> &mut Recording {
        self.writer.add_symbol(&Symbol { pc: Pc(pc), size, name: name.into() }).unwrap();
        self
    }

    pub fn next_seq(&mut self) -> Seq {
        self.seq += 1;
        Seq(self.seq)
    }

    pub fn start(&mut self, thread: u32) -> &mut Recording {
        let seq = self.next_seq();
        self.event(thread, Event::ThreadStart { parent: None, os_tid: 1 + thread, sp: STACK, seq })
    }

    pub fn end(&mut self, thread: u32) -> &mut Recording {
        let seq = self.next_seq();
        self.event(thread, Event::ThreadEnd { exit: ThreadExit::Exited(0), seq })
    }

    pub fn event(&mut self, thread: u32, event: Event) -> &mut Recording {
        self.writer.event(ThreadId(thread), event).unwrap();
        self
    }

    pub fn enter(&mut self, thread: u32, function: SyncFunction, object: u64) -> &mut Recording {
        self.enter_with(thread, function, object, 0)
    }

    pub fn enter_with(&mut self, thread: u32, function: SyncFunction, object: u64, argument: u64) -> &mut Recording {
        let seq = self.next_seq();
        self.event(thread, Event::Enter { function, object, argument, seq })
    }

    pub fn leave(&mut self, thread: u32, function: SyncFunction) -> &mut Recording {
        self.leave_with(thread, function, 0)
    }

    pub fn leave_with(&mut self, thread: u32, function: SyncFunction, result: u64) -> &mut Recording {
        let seq = self.next_seq();
        self.event(thread, Event::Leave { function, result, seq })
    }

    fn intern(&mut self, instructions: &[Instruction]) -> BlockId {
        if let Some(id) = self.blocks.get(instructions) {
            return *id;
        }
        let code = vec![0x90; instructions.iter().map(|i| usize::from(i.len)).sum()];
        let id =
            self.writer.add_block(Block { instructions: instructions.to_vec(), code, ..Block::default() }).unwrap();
        self.blocks.insert(instructions.to_vec(), id);
        id
    }

    /// A block, whole.
    pub fn run(&mut self, thread: u32, instructions: &[Instruction]) -> &mut Recording {
        self.run_with(thread, instructions, &[], &[])
    }

    pub fn run_with(
        &mut self,
        thread: u32,
        instructions: &[Instruction],
        sps: &[u64],
        memory: &[u64],
    ) -> &mut Recording {
        let block = self.intern(instructions);
        self.executed += instructions.len() as u64;
        self.writer.block(ThreadId(thread), block, sps, memory).unwrap();
        self
    }

    /// A block with these bytes, whole.
    pub fn run_code(&mut self, thread: u32, instructions: &[Instruction], code: &[u8]) {
        self.run_code_with(thread, instructions, code, &[]);
    }

    pub fn run_code_with(&mut self, thread: u32, instructions: &[Instruction], code: &[u8], sps: &[u64]) {
        self.executed += instructions.len() as u64;
        let id = match self.blocks.get(instructions) {
            Some(id) => *id,
            None => {
                let block = Block { instructions: instructions.to_vec(), code: code.to_vec(), ..Block::default() };
                let id = self.writer.add_block(block).unwrap();
                self.blocks.insert(instructions.to_vec(), id);
                id
            }
        };
        self.writer.block(ThreadId(thread), id, sps, &[]).unwrap();
    }

    /// A marker of `lockstep.h` and one plain instruction in front of it and behind it: `number` is 1 where it begins a
    /// part, 2 where it ends one.
    pub fn run_marker(&mut self, thread: u32, pc: u64, number: u8) -> &mut Recording {
        let marker = Instruction { len: 8, ..plain(pc + 1) };
        let code = [&[0x90, 0x0f, 0x1f, 0x84, 0x00, 0x4c, 0x6b, 0x53, number][..], &[0x90]].concat();
        let instructions = vec![plain(pc), marker, plain(pc + 9)];
        self.executed += instructions.len() as u64;
        let block = self.writer.add_block(Block { instructions, code, ..Block::default() }).unwrap();
        self.writer.block(ThreadId(thread), block, &[], &[]).unwrap();
        self
    }

    /// A stub of the linkage table: `jmp *slot(%rip)`.
    pub fn run_stub(&mut self, thread: u32, pc: u64) -> &mut Recording {
        let instructions = vec![Instruction { len: 6, ..of_kind(Kind::IndirectJump, pc) }];
        self.executed += 1;
        let code = vec![0xff, 0x25, 0, 0, 0, 0];
        let block = self.writer.add_block(Block { instructions, code, ..Block::default() }).unwrap();
        self.writer.block(ThreadId(thread), block, &[], &[]).unwrap();
        self
    }

    /// What stands behind a stub whose slot is not bound: `push $0; push slot(%rip); jmp *slot(%rip)`.
    pub fn run_binding(&mut self, thread: u32, pc: u64) -> &mut Recording {
        let push = |pc, len| Instruction { len, ..adds(pc, -8) };
        let jump = Instruction { len: 6, ..of_kind(Kind::IndirectJump, pc + 11) };
        let instructions = vec![push(pc, 5), push(pc + 5, 6), jump];
        self.executed += 3;
        let code = [&[0x68, 0, 0, 0, 0][..], &[0xff, 0x35, 0, 0, 0, 0], &[0xff, 0x25, 0, 0, 0, 0]].concat();
        let block = self.writer.add_block(Block { instructions, code, ..Block::default() }).unwrap();
        self.writer.block(ThreadId(thread), block, &[], &[]).unwrap();
        self
    }

    /// The first instructions of a block.
    pub fn run_part(&mut self, thread: u32, instructions: &[Instruction], executed: u32) -> &mut Recording {
        let block = self.intern(instructions);
        self.executed += u64::from(executed);
        self.writer.partial(ThreadId(thread), block, executed, &[], &[]).unwrap();
        self
    }

    /// A call of a synchronisation function from `pc`: the call, ten instructions in the C library, back behind the
    /// call.
    pub fn sync(&mut self, thread: u32, pc: u64, function: SyncFunction, object: u64) -> &mut Recording {
        self.run(thread, &[call(pc)]);
        self.inside(thread, function, object, 0, 0)
    }

    /// The inside of a synchronisation function.
    pub fn inside(
        &mut self,
        thread: u32,
        function: SyncFunction,
        object: u64,
        argument: u64,
        result: u64,
    ) -> &mut Recording {
        self.enter_with(thread, function, object, argument);
        let at = LIBC + 0x100;
        self.run(thread, &[adds(at, -24), plain(at + 1), branch(at + 2)]);
        self.run(thread, &[plain(at + 3), plain(at + 4), plain(at + 5), plain(at + 6), adds(at + 7, 24), ret(at + 8)]);
        self.leave_with(thread, function, result)
    }

    /// How many instructions were recorded.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    pub fn trace(self) -> Trace {
        let bytes = self.writer.finish(&Finish::default()).unwrap();
        Trace::from_bytes(bytes, "made by hand").unwrap()
    }

    /// The view, of which kept and dropped must add up to what was recorded.
    pub fn view(self, options: &ViewOptions) -> Result<View> {
        let executed = self.executed();
        let view = View::new(&self.trace(), options)?;
        let summary = view.summary();
        let dropped: u64 = summary.dropped().iter().map(|(_, n)| n).sum();
        assert_eq!((summary.instructions, summary.kept + dropped), (executed, executed), "{summary}");
        Ok(view)
    }
}

/// Numbers that look random.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// An executed instruction as a replay sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub instruction: Instruction,
    /// The stack pointer before it.
    pub sp: i64,
    /// The call level of it.
    pub level: u32,
    /// The addresses of its memory operands.
    pub addresses: Vec<u64>,
    /// Whether it is in a stub of the linkage table.
    pub in_stub: bool,
}

/// What a lane's stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Runs(Seen),
    Comes(Control),
}

/// Follows a lane's stream as a replay does, and checks what every stream must keep to.
pub fn follow(view: &View, lane: usize) -> Vec<Told> {
    let mut told = Vec::new();
    let mut stream = view.stream(lane);
    let mut batch = Batch::default();
    let (mut sp, mut level) = (0, 1);
    let mut ended = false;
    while stream.next_batch(&mut batch).unwrap() {
        assert!(!ended, "only the last batch of a lane ends with a control");
        let mut sps = batch.sps.iter();
        let mut addresses = batch.addresses.iter();
        for code in &batch.codes {
            match code.entry() {
                Entry::Control(index) => {
                    let control = batch.controls[index];
                    match control {
                        Control::Sp(to) => sp = to,
                        Control::Level(to) => level = to,
                        _ => {}
                    }
                    told.push(Told::Comes(control));
                }
                Entry::Segment(id) => {
                    let segment = &view.segments()[id];
                    for instruction in &segment.instructions {
                        let addresses = addresses.by_ref().take(usize::from(instruction.memory)).copied().collect();
                        let in_stub = segment.in_stub;
                        told.push(Told::Runs(Seen { instruction: *instruction, sp, level, addresses, in_stub }));
                    }
                    match segment.sp {
                        SpEffect::Add(change) => sp += i64::from(change),
                        SpEffect::Recorded => sp = *sps.next().expect("a stack pointer for each recorded change"),
                    }
                    match segment.last().kind {
                        kind if kind.is_call() => level += 1,
                        Kind::Return => level = level.max(2) - 1,
                        _ => {}
                    }
                }
            }
        }
        assert_eq!((sps.count(), addresses.count()), (0, 0), "nothing is left over in a batch");
        ended = batch.codes.last().is_some_and(|c| c.as_segment().is_none());
    }
    assert!(!stream.next_batch(&mut batch).unwrap() && batch.codes.is_empty(), "the end stays the end");
    told
}

/// A lane's stream as text: pcs in hex (`c` behind calls, `r` behind returns, `s` in stubs), controls by their names.
pub fn told(view: &View, lane: usize) -> String {
    let word = |told: Told| match told {
        Told::Runs(seen) => {
            let mark = match seen.instruction.kind {
                _ if seen.in_stub => "s",
                Kind::Return => "r",
                kind if kind.is_call() => "c",
                _ => "",
            };
            format!("{:x}{mark}", seen.instruction.pc.0)
        }
        Told::Comes(Control::Sp(sp)) => format!("sp={sp}"),
        Told::Comes(Control::Level(level)) => format!("level={level}"),
        Told::Comes(Control::Stack { .. }) => unreachable!("left out"),
        Told::Comes(Control::Meet(episode)) => format!("meet{}", episode.0),
        Told::Comes(Control::MeetAll) => "meet-all".into(),
        Told::Comes(Control::Post(episode)) => format!("post{}", episode.0),
        Told::Comes(Control::Await(episode)) => format!("await{}", episode.0),
        Told::Comes(Control::Acquire(lock)) => format!("take{}", lock.0),
        Told::Comes(Control::AcquireShared(lock)) => format!("share{}", lock.0),
        Told::Comes(Control::AcquireOneOf { lock, most }) => format!("place{}of{most}", lock.0),
        Told::Comes(Control::Release(lock)) => format!("give{}", lock.0),
        Told::Comes(Control::Begin { .. }) => "begin".to_owned(),
        Told::Comes(Control::Leave(place)) => format!("leave{place}"),
        Told::Comes(Control::GoOn(place)) => format!("go-on{place}"),
        Told::Comes(Control::Chunk { first, .. }) => format!("chunk{first}"),
        Told::Comes(Control::Iterations(count)) => format!("iterations{count}"),
        Told::Comes(Control::Piece { first, .. }) => format!("piece{first}"),
        Told::Comes(Control::Team { order, .. }) => format!("team{order}"),
        Told::Comes(Control::Turns(turns)) => format!("turns{turns}"),
        Told::Comes(Control::Part(team)) => team.map_or("part".to_owned(), |team| format!("part{}", team.0)),
        Told::Comes(Control::PartEnd) => "part-end".into(),
    };
    // Every stream of these recordings tells first where its stack lies: what is asked for is the rest.
    let rest = follow(view, lane).into_iter().filter(|t| !matches!(t, Told::Comes(Control::Stack { .. })));
    rest.map(word).collect::<Vec<_>>().join(" ")
}

/// The executed instructions of a lane.
pub fn seen(view: &View, lane: usize) -> Vec<Seen> {
    let seen = |told| match told {
        Told::Runs(seen) => Some(seen),
        Told::Comes(_) => None,
    };
    follow(view, lane).into_iter().filter_map(seen).collect()
}

pub fn options(region: &str, code: &str, locks: &str) -> ViewOptions {
    ViewOptions {
        region: region.parse().unwrap(),
        code: code.parse().unwrap(),
        locks: locks.parse().unwrap(),
        ..ViewOptions::default()
    }
}

/// Whole threads, without thread runtime.
pub fn whole() -> ViewOptions {
    options("all", "all", "serialize")
}

/// The error of a view that cannot be had.
pub fn refusal(result: Result<View>) -> String {
    match result {
        Ok(view) => panic!("this was to be refused: {}", view.summary()),
        Err(error) => error.to_string(),
    }
}
