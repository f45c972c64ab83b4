//! What the threads of a trace did, in a form in which the engines agree.

use trace_format::{Event, Item, Pc, SpEffect, ThreadId, Trace};

/// What a thread did, one entry after another.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Instruction { pc: Pc, len: u8, sp: u64, addresses: Vec<u64> },
    Event(String),
}

/// Times differ from run to run; so do the numbers that the kernel gives to threads and processes.
fn timeless(event: Event) -> Option<String> {
    Some(match event {
        Event::ThreadStart { parent, sp, .. } => format!("start {parent:?} {sp:#x}"),
        Event::ThreadEnd { exit, .. } => format!("end {exit:?}"),
        Event::Enter { function, object, argument, .. } => format!("enter {function:?} {object:#x} {argument:#x}"),
        // A function that was unwound has no result, so `rax` is whatever it was.
        Event::Leave { function, .. } => format!("leave {function:?}"),
        Event::FutexWait { address, .. } => format!("futex {address:#x}"),
        Event::Fork { thread, .. } => format!("fork {thread:?}"),
        Event::ModuleLoaded(_) | Event::ModuleUnloaded(_) | Event::SetSp(_) => return None,
        other => format!("{other:?}"),
    })
}

/// What a thread did.
pub fn steps(trace: &Trace, thread: ThreadId) -> Vec<Step> {
    let mut stream = trace.stream(thread);
    let (mut steps, mut sp) = (Vec::new(), 0);
    while let Some(item) = stream.next().unwrap() {
        let (block, executed, sps, mut memory) = match item {
            Item::Block { block, sps, memory } => (block, usize::MAX, sps, memory),
            Item::Partial { block, executed, sps, memory } => (block, executed as usize, sps, memory),
            Item::Event(event) => {
                if let Event::ThreadStart { sp: new, .. } | Event::SetSp(new) = event {
                    sp = new;
                }
                steps.extend(timeless(event).map(Step::Event));
                continue;
            }
        };
        let mut recorded = sps.iter();
        for &at in trace.blocks()[block].instructions.iter().take(executed) {
            // Whether the stack pointer is in the stream or follows from the code is each engine's own matter.
            let (addresses, rest) = memory.split_at(at.memory.into());
            memory = rest;
            steps.push(Step::Instruction { pc: at.pc, len: at.len, sp, addresses: addresses.to_vec() });
            sp = match at.sp {
                SpEffect::Add(bytes) => sp.wrapping_add_signed(bytes.into()),
                SpEffect::Recorded => *recorded.next().unwrap(),
            };
        }
    }
    steps
}
