//! Reads the text form by writing it through [`TraceWriter`], so that there is one way of reading traces.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

use crate::{
    Action, Block, BlockId, Error, Event, Finish, Instruction, Kind, Meta, Pc, Result, Seq, SpEffect, ThreadExit,
    ThreadId, TraceWriter,
};

/// The most bytes a line may have: an instruction with 255 addresses takes less than a third.
const MAX_LINE: usize = 16 << 10;

/// Reads a text trace; the result is a binary trace in memory. `name` is the path for error messages.
///
/// The instructions between two `B`s become a block. The instruction before a `B` becomes a branch, unless it is a call
/// (`C`) or a return (`R`); an instruction changes the stack pointer by the difference to the line after it.
pub fn read_text(mut input: impl BufRead, name: &Path) -> Result<Vec<u8>> {
    let meta = Meta { tool: TOOL.to_owned(), engine: "text".to_owned(), ..Meta::default() };
    let writer = TraceWriter::new(Vec::new(), name, &meta)?;
    let mut reader = Reader { name, line: 0, writer, meta, interned: HashMap::new(), thread: None, threads: 0, seq: 0 };
    let mut line = Vec::new();
    loop {
        line.clear();
        let limited = (&mut input).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
        let action = Action::Read;
        if limited.map_err(|source| Error::Io { path: name.to_owned(), action, source })? == 0 {
            return reader.finish();
        }
        reader.line += 1;
        let text = std::str::from_utf8(&line).map_err(|_| reader.fault("the line is not text"))?;
        if line.len() > MAX_LINE {
            return Err(reader.fault(format!("the line is longer than {MAX_LINE} bytes")));
        }
        reader.read_line(text.trim())?;
    }
}

/// Who writes traces made from text.
const TOOL: &str = concat!("lockstep ", env!("CARGO_PKG_VERSION"));

struct Reader<'a> {
    name: &'a Path,
    line: u64,
    writer: TraceWriter<Vec<u8>>,
    meta: Meta,
    interned: HashMap<Block, BlockId>,
    thread: Option<Thread>,
    threads: u32,
    seq: u64,
}

/// A thread that is being read.
struct Thread {
    id: ThreadId,
    /// The instructions since the last cut. The stack-pointer change of the last one is not known yet.
    block: Block,
    sps: Vec<u64>,
    memory: Vec<u64>,
    /// The stack pointer before the last instruction; none before the first.
    sp: Option<i64>,
}

/// A line, taken apart.
struct Line {
    pc: Pc,
    sp: i64,
    starts_block: bool,
    waited: bool,
    kind: Kind,
    memory: Vec<u64>,
}

impl Reader<'_> {
    fn fault(&self, fault: impl Into<String>) -> Error {
        Error::Text { path: self.name.to_owned(), line: self.line, fault: fault.into() }
    }

    fn next_seq(&mut self) -> Seq {
        self.seq += 1;
        Seq(self.seq - 1)
    }

    fn read_line(&mut self, line: &str) -> Result<()> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(number) = line.strip_prefix("thread ") {
            return self.open_thread(number.trim());
        }
        let line = parse(line).map_err(|fault| self.fault(fault))?;
        let mut thread = self.thread.take().ok_or_else(|| {
            self.fault(
                "an instruction stands before the first `thread \
             0`",
            )
        })?;
        self.add(&mut thread, line)?;
        self.thread = Some(thread);
        Ok(())
    }

    fn open_thread(&mut self, number: &str) -> Result<()> {
        self.close_thread()?;
        if digits(number, 10) != Some(u64::from(self.threads)) {
            let fault =
                format!("`thread {number}`: threads are numbered from 0 in order, the next one is {}", self.threads);
            return Err(self.fault(fault));
        }
        let id = ThreadId(self.threads);
        let seq = self.next_seq();
        self.writer.event(id, Event::ThreadStart { parent: None, os_tid: 0, sp: 0, seq })?;
        self.threads += 1;
        self.thread = Some(Thread { id, block: Block::default(), sps: Vec::new(), memory: Vec::new(), sp: None });
        Ok(())
    }

    fn add(&mut self, thread: &mut Thread, line: Line) -> Result<()> {
        let after = thread.block.instructions.last().map(|last| last.kind);
        match thread.sp {
            None if line.sp != 0 => return Err(self.fault("the thread's first instruction must have sp 0")),
            None => {}
            Some(before) => thread.set_sp_after(before, line.sp),
        }
        if after.is_some_and(Kind::transfers_control) && !line.starts_block {
            return Err(self.fault(
                "the instruction after a call or return starts a basic block, so it must have flag \
                 B",
            ));
        }
        if line.starts_block
            && let Some(last) = thread.block.instructions.last_mut()
            && last.kind == Kind::Plain
        {
            last.kind = Kind::Branch;
        }
        if line.starts_block || line.waited || thread.block.instructions.len() == Block::MAX_INSTRUCTIONS {
            self.cut(thread)?;
        }
        if line.waited {
            self.writer.event(thread.id, Event::WarpBarrier)?;
        }
        self.meta.memory |= !line.memory.is_empty();
        let memory = line.memory.len() as u8;
        thread.memory.extend(line.memory);
        thread.block.instructions.push(Instruction {
            pc: line.pc,
            len: 0,
            kind: line.kind,
            sp: SpEffect::Add(0),
            memory,
        });
        thread.sp = Some(line.sp);
        Ok(())
    }

    /// Ends the block before the next instruction.
    fn cut(&mut self, thread: &mut Thread) -> Result<()> {
        if thread.block.instructions.is_empty() {
            return Ok(());
        }
        let id = match self.interned.get(&thread.block) {
            Some(&id) => id,
            None => {
                let id = self.writer.add_block(thread.block.clone())?;
                self.interned.insert(thread.block.clone(), id);
                id
            }
        };
        self.writer.block(thread.id, id, &thread.sps, &thread.memory)?;
        thread.block.instructions.clear();
        thread.sps.clear();
        thread.memory.clear();
        Ok(())
    }

    fn close_thread(&mut self) -> Result<()> {
        let Some(mut thread) = self.thread.take() else { return Ok(()) };
        self.cut(&mut thread)?;
        let seq = self.next_seq();
        self.writer.event(thread.id, Event::ThreadEnd { exit: ThreadExit::Exited(0), seq })
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        self.close_thread()?;
        if self.threads == 0 {
            return Err(self.fault("the text has no line `thread 0`"));
        }
        if self.meta.memory {
            self.writer.set_meta(&self.meta)?;
        }
        self.writer.finish(&Finish { exit_status: Some(0), ..Finish::default() })
    }
}

impl Thread {
    /// Settles what the last instruction does to the stack pointer.
    fn set_sp_after(&mut self, before: i64, after: i64) {
        let Some(last) = self.block.instructions.last_mut() else { return };
        match i32::try_from(i128::from(after) - i128::from(before)) {
            Ok(change) => last.sp = SpEffect::Add(change),
            Err(_) => {
                last.sp = SpEffect::Recorded;
                self.sps.push(after as u64);
            }
        }
    }
}

/// A number in this base, with digits only.
fn digits(text: &str, base: u32) -> Option<u64> {
    // The standard library would take a plus sign.
    if text.starts_with('+') { None } else { u64::from_str_radix(text, base).ok() }
}

fn parse(line: &str) -> Result<Line, String> {
    let mut fields = line.split_ascii_whitespace();
    let (Some(pc), Some(sp), Some(flags)) = (fields.next(), fields.next(), fields.next()) else {
        return Err(format!(
            "`{line}`: an instruction is written `pc sp flags [addresses]`, and a thread begins with \
             a line such as `thread 0`"
        ));
    };
    let hex = |text: &str| {
        digits(text, 16).ok_or_else(|| {
            format!(
                "`{text}` is not an address: write 1 to 16 hex \
         digits"
            )
        })
    };
    let pc = Pc(hex(pc)?);
    let number = if sp.starts_with('+') { None } else { sp.parse().ok() };
    let sp = number.ok_or_else(|| format!("`{sp}` is not a stack pointer: write a decimal number of bytes"))?;
    let mut parsed = Line { pc, sp, starts_block: false, waited: false, kind: Kind::Plain, memory: Vec::new() };
    let mut seen = String::new();
    for flag in flags.chars().filter(|_| flags != "-") {
        match flag {
            'B' => parsed.starts_block = true,
            'W' => parsed.waited = true,
            'C' => parsed.kind = Kind::Call,
            'R' => parsed.kind = Kind::Return,
            _ => return Err(format!("`{flag}` is not a flag: the flags are B, W, C, R, and - for none")),
        }
        if seen.contains(flag) {
            return Err(format!("the flags `{flags}` have {flag} twice"));
        }
        seen.push(flag);
    }
    if seen.contains('C') && seen.contains('R') {
        return Err(format!("the flags `{flags}`: an instruction cannot both call and return"));
    }
    parsed.memory = fields.map(hex).collect::<Result<_, _>>()?;
    if parsed.memory.len() > usize::from(u8::MAX) {
        return Err(format!("{} addresses: an instruction has at most {}", parsed.memory.len(), u8::MAX));
    }
    Ok(parsed)
}
