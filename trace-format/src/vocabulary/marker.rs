//! The markers of `lockstep.h` and of `lockstep cc`, as they stand in code.

/// A marker: an instruction that does nothing, `nopl N(%rax,%rax,1)`. No compiler or assembler pads
/// code with it, since padding has no displacement other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `LOCKSTEP_BEGIN`.
    Begin,
    /// `LOCKSTEP_END`.
    End,
    /// `lockstep cc --mark-iterations`: an iteration of a loop begins. Another one in it, of an inner loop that was
    /// inlined, may begin and end before it ends.
    IterationBegin,
    /// The one that began last in this call ends.
    IterationEnd,
}

/// What all start with, but for the displacement.
const START: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];

impl Marker {
    /// The marker that these bytes of code start with.
    #[must_use]
    pub fn in_code(code: &[u8]) -> Option<Marker> {
        let displacement = code.strip_prefix(&START)?.first_chunk()?;
        Marker::of_displacement(i32::from_le_bytes(*displacement).into())
    }

    /// The marker with this displacement: the bytes `LkS`, and one that tells which it is.
    #[must_use]
    pub fn of_displacement(displacement: i64) -> Option<Marker> {
        match i32::try_from(displacement).ok()?.to_le_bytes() {
            [b'L', b'k', b'S', 1] => Some(Marker::Begin),
            [b'L', b'k', b'S', 2] => Some(Marker::End),
            [b'L', b'k', b'S', 3] => Some(Marker::IterationBegin),
            [b'L', b'k', b'S', 4] => Some(Marker::IterationEnd),
            _ => None,
        }
    }

    /// Whether it marks an iteration.
    #[must_use]
    pub fn is_of_iteration(self) -> bool {
        matches!(self, Marker::IterationBegin | Marker::IterationEnd)
    }
}

/// How many instructions a GPU has for the basic block that begins here, as `lockstep cc --shape gpu` notes it: an
/// instruction that does nothing, `nopl N(%rcx,%rcx,1)`, whose displacement holds the bytes `Lk` and the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCost {
    tenths: u16,
}

impl BlockCost {
    /// The count, in tenths of an instruction.
    #[must_use]
    pub fn tenths(self) -> u32 {
        self.tenths.into()
    }

    /// The note of a `nopl` with this displacement, both of whose registers are `rcx`.
    #[must_use]
    pub fn of_displacement(displacement: i64) -> Option<BlockCost> {
        match i32::try_from(displacement).ok()?.to_le_bytes() {
            [b'L', b'k', low, high] if high < 0x80 => Some(BlockCost { tenths: u16::from_le_bytes([low, high]) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_in_the_upper_half_of_the_displacement() {
        let cost = |displacement: i64| BlockCost::of_displacement(displacement).map(BlockCost::tenths);
        assert_eq!(cost(0x0123_6b4c), Some(0x123));
        assert_eq!(cost(0x7fff_6b4c), Some(0x7fff));
        assert_eq!(cost(0x0003_536b), None);
        assert_eq!(cost(-0x0001_94b4), None, "more than fits");
        assert_eq!(cost(0x1_0123_6b4c), None);
    }

    #[test]
    fn padding_is_no_marker() {
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S', 1, 0x90]), Some(Marker::Begin));
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S', 2]), Some(Marker::End));
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S', 3]), Some(Marker::IterationBegin));
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0]), None);
        assert_eq!(Marker::in_code(&[0x0f, 0x1f, 0x84, 0x00, b'L', b'k', b'S']), None, "cut off");
    }
}
