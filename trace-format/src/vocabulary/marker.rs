//! The markers of `lockstep.h`, as they stand in code.

/// A marker of `lockstep.h`: an instruction that does nothing, `nopl N(%rax,%rax,1)`. No compiler or assembler pads
/// code with it, since padding has no displacement other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `LOCKSTEP_BEGIN`.
    Begin,
    /// `LOCKSTEP_END`.
    End,
}

/// What both start with; the last byte of the displacement tells them apart.
const START: [u8; 7] = [0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S'];

impl Marker {
    /// The marker that these bytes of code start with.
    #[must_use]
    pub fn in_code(code: &[u8]) -> Option<Marker> {
        match code.strip_prefix(&START)?.first()? {
            1 => Some(Marker::Begin),
            2 => Some(Marker::End),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_no_marker() {
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S', 1, 0x90]), Some(Marker::Begin));
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S', 2]), Some(Marker::End));
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0]), None);
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S']), None, "cut off");
    }
}
