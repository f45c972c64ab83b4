//! Lanes written as text.

use replay::in_memory::Does;
use replay::{Control, LockId};
use trace_format::{Instruction, Kind, Pc, SpEffect};

/// A lane as text: decimal pcs, ranges `3-5`; a letter after a pc says what the instruction is: `b` branches, `c` calls
/// (8 bytes of stack), `r` returns. `+` takes the lock, `-` gives it back, `~` takes it shared; `+2` means lock 2, `+`
/// lock 0. At `!` all lanes meet at a barrier.
pub(crate) fn lane(text: &str) -> Vec<Does> {
    let mut does = Vec::new();
    for token in text.split_whitespace() {
        let (what, number) = token.split_at(1);
        let lock = || LockId(if number.is_empty() { 0 } else { number.parse().unwrap() });
        match what {
            "+" => does.push(Does::Comes(Control::Acquire(lock()))),
            "~" => does.push(Does::Comes(Control::AcquireShared(lock()))),
            "-" => does.push(Does::Comes(Control::Release(lock()))),
            "!" => does.push(Does::Comes(Control::MeetAll)),
            _ => instructions(token, &mut does),
        }
    }
    does
}

fn instructions(token: &str, does: &mut Vec<Does>) {
    let digits = token.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (first, last) = digits.split_once('-').unwrap_or((digits, digits));
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
    for pc in first..=last {
        let (kind, sp) = match &token[digits.len()..] {
            "b" if pc == last => (Kind::Branch, 0),
            "c" if pc == last => (Kind::Call, -8),
            "r" if pc == last => (Kind::Return, 8),
            _ => (Kind::Plain, 0),
        };
        let instruction = Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(sp), memory: 0 };
        does.push(Does::Runs(instruction, Vec::new()));
    }
}
