//! The instructions of the stubs of linkage tables, told by their bytes alone: each of a program is looked at.

use trace_format::Pc;

/// What an instruction can be to a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// It prepares the jump and falls through to this address.
    Prepares(Pc),
    /// It pushes what the loader needs to bind a slot, and falls through to this address.
    Pushes(Pc),
    /// It loads r11 from a slot and falls through to this address.
    Loads(Pc),
    /// It jumps through a slot.
    JumpsThroughSlot,
    /// It jumps to where r11 points.
    JumpsThroughR11,
    /// It jumps there.
    JumpsTo(Pc),
}

/// What the instruction of these bytes can be to a stub.
#[must_use]
pub fn piece(pc: Pc, code: &[u8]) -> Option<Piece> {
    let next = Pc(pc.0.wrapping_add(code.len() as u64));
    let target = |distance: i64| Piece::JumpsTo(Pc(next.0.wrapping_add_signed(distance)));
    Some(match *code {
        // endbr64, nop in its shorter forms, mov $n, %r11d, push $n, push %r11, push slot(%rip)
        [0xf3, 0x0f, 0x1e, 0xfa] | [0x90] | [0x66, 0x90] | [0x0f, 0x1f, ..] | [0x66, 0x0f, 0x1f, ..] => {
            Piece::Prepares(next)
        }
        [0x41, 0xbb, _, _, _, _] => Piece::Prepares(next),
        [0x68, _, _, _, _] | [0x41, 0x53] | [0xff, 0x35, ..] => Piece::Pushes(next),
        [0x4c, 0x8b, 0x1d, ..] => Piece::Loads(next),
        // jmp *slot(%rip), with the prefixes `bnd` and `notrack` too
        [0xff, 0x25, ..] | [0xf2 | 0x3e, 0xff, 0x25, ..] => Piece::JumpsThroughSlot,
        [0x41, 0xff, 0xe3] => Piece::JumpsThroughR11,
        [0xe9, a, b, c, d] | [0xf2, 0xe9, a, b, c, d] => target(i64::from(i32::from_le_bytes([a, b, c, d]))),
        [0xeb, distance] => target(i64::from(distance.cast_signed())),
        _ => return None,
    })
}
