//! Marks that a program's source left in its binary: where lanes had better wait for each other.
//!
//! `include/lockstep.h` puts them into the section `.lockstep.marks`, which is never loaded, one after another. Each
//! has the address (8 bytes), the kind and a number of lanes (4 bytes each), and a name that ends with a zero, all
//! little-endian.

use trace_format::Pc;

/// The section.
pub(crate) const SECTION: &str = ".lockstep.marks";

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// `LOCKSTEP_PREDICT`: from here on a lane is waited for.
    Begins,
    /// `LOCKSTEP_RECONVERGE`: here lanes are collected.
    Waits,
    /// `LOCKSTEP_PREDICT_FUNCTION`: from here on a lane is waited for where the function of that name begins.
    BeginsCalls,
}

/// A mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The instruction before which it stands.
    pub pc: Pc,
    /// What it says.
    pub kind: MarkKind,
    /// How many waiting lanes are enough; none: all.
    pub threshold: Option<usize>,
    /// The name that ties marks together, or that of the function.
    pub name: String,
}

/// The marks in the section of a module that was mapped with this bias. Marks that the linker dropped (without an
/// address) and unknown kinds (from a newer header) are left out.
pub(crate) fn parse(mut section: &[u8], bias: u64) -> Result<Vec<Mark>, String> {
    let mut marks = Vec::new();
    while !section.is_empty() {
        let cut = || format!("its section {SECTION} ends within a mark");
        let (address, rest) = section.split_first_chunk().ok_or_else(cut)?;
        let (kind, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (lanes, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        section = &rest[end + 1..];
        let kind = match u32::from_le_bytes(*kind) {
            1 => MarkKind::Begins,
            2 => MarkKind::Waits,
            3 => MarkKind::BeginsCalls,
            _ => continue,
        };
        let threshold = Some(u32::from_le_bytes(*lanes) as usize).filter(|lanes| *lanes > 0);
        let address = u64::from_le_bytes(*address);
        if address != 0 {
            marks.push(Mark { pc: Pc(address.wrapping_add(bias)), kind, threshold, name });
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(marks: &[(u64, u32, u32, &str)]) -> Vec<u8> {
        let bytes = |&(address, kind, lanes, name): &(u64, u32, u32, &str)| {
            let numbers = [&address.to_le_bytes()[..], &kind.to_le_bytes(), &lanes.to_le_bytes()].concat();
            [numbers, name.as_bytes().to_vec(), vec![0]].concat()
        };
        marks.iter().flat_map(bytes).collect()
    }

    #[test]
    fn marks_are_moved_with_their_module_and_those_without_an_address_are_left_out() {
        let bytes =
            section(&[(0x10, 1, 0, "a"), (0, 2, 0, "a"), (0x20, 2, 0, "a"), (0x30, 9, 0, "b"), (0x40, 1, 8, "")]);
        let bytes = [bytes, section(&[(0x50, 3, 0, "f")])].concat();
        let mark = |pc, kind, threshold, name: &str| Mark { pc: Pc(pc), kind, threshold, name: name.to_owned() };
        let expected = [
            mark(0x1010, MarkKind::Begins, None, "a"),
            mark(0x1020, MarkKind::Waits, None, "a"),
            mark(0x1040, MarkKind::Begins, Some(8), ""),
            mark(0x1050, MarkKind::BeginsCalls, None, "f"),
        ];
        assert_eq!(parse(&bytes, 0x1000).unwrap(), expected);
        for end in [3, 9, 15, 16, bytes.len() - 1] {
            assert!(parse(&bytes[..end], 0).is_err(), "{end}");
        }
    }
}
