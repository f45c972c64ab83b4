//! Writes any trace in the text form.

use std::io::{self, Write};
use std::path::Path;

use crate::{
    Action, Block, BlockId, BlockTable, Error, Event, Item, Kind, Result, SpEffect, SyncFunction, ThreadId, Trace,
};

/// Writes a trace as text.
///
/// `B` stands after every instruction that transfers control, `C` at calls, and `R` at returns, except a return that
/// would leave the function in which the thread began. `W` stands where the thread had waited at a barrier. What the
/// text form cannot express (modules, symbols, other events) is left out. After a gap stands a `B`, and a call right
/// before one has no `C`: the function called is not in the text.
///
/// # Errors
/// Damage of the trace, or a failure of `out`, which errors call `name`.
pub fn write_text(trace: &Trace, out: &mut impl Write, name: &Path) -> Result<()> {
    let io = |source| Error::Io { path: name.to_owned(), action: Action::Write, source };
    out.write_all(super::COMMENT.as_bytes()).map_err(io)?;
    for thread in trace.threads() {
        writeln!(out, "thread {}", thread.id).map_err(io)?;
        write_thread(trace, thread.id, out, io)?;
    }
    out.flush().map_err(io)
}

fn write_thread(
    trace: &Trace,
    thread: ThreadId,
    out: &mut impl Write,
    io: impl Fn(io::Error) -> Error + Copy,
) -> Result<()> {
    // In a text trace the flag R says which instructions return; for a recorded thread the open functions have to be
    // followed.
    let open = (trace.meta().engine != "text").then(Vec::new);
    let mut state = State {
        blocks: trace.blocks(),
        sp: 0,
        base: None,
        starts_block: false,
        waited: false,
        call: None,
        open,
        interrupted: Vec::new(),
    };
    let mut stream = trace.stream(thread);
    while let Some(item) = stream.next()? {
        match item {
            Item::Block { block, sps, memory } => {
                let len = state.blocks[block].instructions.len();
                state.run(block, len, sps, memory, out).map_err(io)?;
            }
            Item::Partial { block, executed, sps, memory } => {
                state.run(block, executed as usize, sps, memory, out).map_err(io)?;
            }
            Item::Event(event) => state.event(&event, out).map_err(io)?,
        }
    }
    state.write_call(true, out).map_err(io)
}

/// Where a thread is.
struct State<'a> {
    blocks: &'a BlockTable,
    sp: u64,
    /// The stack pointer before the first instruction; none before that has come.
    base: Option<u64>,
    /// Whether the next instruction follows one that transferred control.
    starts_block: bool,
    /// Whether the thread waited at a barrier since the last instruction.
    waited: bool,
    /// The line of a call, whose flags depend on the next instruction: the text before the flags, the flags except `C`,
    /// and the text after them.
    call: Option<(String, String, String)>,
    /// The stack pointer at the start of each called function that has not returned; none where returns are taken as
    /// they are.
    open: Option<Vec<u64>>,
    /// The same for the code that signal handlers have interrupted.
    interrupted: Vec<Vec<u64>>,
}

impl State<'_> {
    fn event(&mut self, event: &Event, out: &mut impl Write) -> io::Result<()> {
        match *event {
            Event::ThreadStart { sp, .. } | Event::SetSp(sp) => self.sp = sp,
            Event::WarpBarrier => self.waited = true,
            Event::Leave { function: SyncFunction::BarrierWait | SyncFunction::TeamBarrier, .. } => self.waited = true,
            Event::Signal { .. } => self.interrupted.extend(self.open.as_mut().map(std::mem::take)),
            Event::SignalReturn => {
                if let Some(open) = self.interrupted.pop() {
                    self.open = Some(open);
                }
            }
            Event::Exec => {
                self.open = self.open.take().map(|_| Vec::new());
                self.interrupted.clear();
            }
            Event::Gap => {
                if self.call.is_some()
                    && let Some(open) = &mut self.open
                {
                    open.pop();
                }
                self.write_call(false, out)?;
                self.starts_block = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the line of a call that waits; `into` tells whether the function called is in the text.
    fn write_call(&mut self, into: bool, out: &mut impl Write) -> io::Result<()> {
        let Some((before, mut flags, behind)) = self.call.take() else { return Ok(()) };
        if into {
            flags.push('C');
        } else if flags.is_empty() {
            flags.push('-');
        }
        writeln!(out, "{before}{flags}{behind}")
    }

    fn run(
        &mut self,
        block: BlockId,
        executed: usize,
        mut sps: &[u64],
        mut memory: &[u64],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let block: &Block = &self.blocks[block];
        for instruction in &block.instructions[..executed] {
            self.write_call(true, out)?;
            let base = *self.base.get_or_insert(self.sp);
            let (pc, sp) = (instruction.pc.0, self.sp.wrapping_sub(base) as i64);
            let flags = self.flags(instruction.kind);
            let (addresses, rest) = memory.split_at(usize::from(instruction.memory));
            memory = rest;
            if instruction.kind.is_call() {
                let behind = addresses.iter().map(|address| format!(" {address:x}")).collect();
                self.call = Some((format!("{pc:x} {sp} "), flags, behind));
            } else {
                write!(out, "{pc:x} {sp} {}", if flags.is_empty() { "-" } else { &flags })?;
                for address in addresses {
                    write!(out, " {address:x}")?;
                }
                out.write_all(b"\n")?;
            }
            self.sp = match (instruction.sp, sps) {
                (SpEffect::Add(change), _) => self.sp.wrapping_add(i64::from(change) as u64),
                (SpEffect::Recorded, [sp, rest @ ..]) => {
                    sps = rest;
                    *sp
                }
                (SpEffect::Recorded, []) => unreachable!("the reader checked the number of stack pointers"),
            };
            if let Some(open) = self.open.as_mut().filter(|_| instruction.kind.is_call()) {
                open.push(self.sp);
            }
        }
        Ok(())
    }

    /// Whether a return leaves a called function, rather than the one in which the thread or a signal handler began.
    fn leaves_called(&mut self) -> bool {
        let Some(open) = &mut self.open else { return true };
        // Functions further down the stack were left by longjmp or an exception.
        while open.last().is_some_and(|&start| start < self.sp) {
            open.pop();
        }
        open.pop_if(|start| *start == self.sp).is_some()
    }

    /// The flags of an instruction, except `C`.
    fn flags(&mut self, kind: Kind) -> String {
        let returns = kind == Kind::Return && self.leaves_called();
        let flags = [(self.starts_block, 'B'), (self.waited, 'W'), (returns, 'R')];
        self.starts_block = kind.transfers_control();
        self.waited = false;
        flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect()
    }
}
