//! The stubs of a file's linkage table, named as objdump does: `sin@plt` jumps on to `sin`.
//!
//! They have no symbols of their own. A stub jumps to the address that the loader writes into its slot, and the file's
//! relocations say for each slot what that is. A slot that is not bound yet can lead back into the table, to code that
//! pushes the number of its relocation.

use std::collections::HashMap;

use machine::{Operation, Register, Table};
use trace_format::{Kind, Pc, STUB_NAME};

/// What the header of the table jumps to.
const BINDER: &str = "_dl_runtime_resolve";

/// What is to be written into a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The address of the symbol of this name.
    Symbol(String),
    /// What the resolver at this address in the file answers.
    Resolver(u64),
}

/// A relocation that fills a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The slot's address in the file.
    pub address: u64,
    /// What is written there.
    pub target: Target,
}

/// A stub and what it jumps to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stub {
    /// Its address in the file.
    pub address: u64,
    /// Its size in bytes, with the padding behind it.
    pub size: u64,
    /// Its name: that of its target with the ending of stubs.
    pub name: String,
}

/// The parts of `.rela.plt` that the processor's ABI names.
const GLOB_DAT: u32 = 6;
const JUMP_SLOT: u32 = 7;
const IRELATIVE: u32 = 37;
/// The register through which some stubs jump.
const R11: Register = Register(11);
/// The size of a relocation with an addend.
const RELOCATION: usize = 24;

/// The slots that these relocations fill (the bytes of a section of type RELA); `symbol` gives names by the symbols'
/// numbers.
pub(crate) fn slots(relocations: &[u8], symbol: impl Fn(usize) -> Option<String>) -> Vec<Slot> {
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let slot = |bytes: &[u8]| {
        let info = word(bytes, 8);
        let target = match info as u32 {
            GLOB_DAT | JUMP_SLOT => {
                Target::Symbol(symbol((info >> 32) as usize).unwrap_or_else(|| "*unknown".to_owned()))
            }
            IRELATIVE => Target::Resolver(word(bytes, 16)),
            _ => return None,
        };
        Some(Slot { address: word(bytes, 0), target })
    };
    relocations.chunks_exact(RELOCATION).filter_map(slot).collect()
}

/// The stubs in the sections of the linkage table: of each its address and bytes. `name` gives the name of the indirect
/// function with the resolver at an address. `numbered` are the slots in the order of their relocations in `.rela.plt`.
pub(crate) fn stubs(
    sections: &[(u64, Vec<u8>)],
    slots: &[Slot],
    numbered: &[Slot],
    name: impl Fn(u64) -> Option<String>,
) -> Vec<Stub> {
    let by_address: HashMap<u64, &Target> =
        slots.iter().chain(numbered).map(|slot| (slot.address, &slot.target)).collect();
    let named = |target: &Target| match target {
        Target::Symbol(symbol) => symbol.clone(),
        Target::Resolver(at) => name(*at).unwrap_or_else(|| format!("*{at:#x}")),
    };
    let mut stubs: Vec<Stub> = Vec::new();
    for (start, bytes) in sections {
        let mut entry = *start;
        let mut pushed: Option<u64> = None;
        let mut is_header = false;
        let mut loaded: Option<u64> = None;
        let mut next = *start;
        for instruction in Table::row(Pc(*start), bytes).all().iter() {
            let at = next;
            next += instruction.map_or(1, |instruction| instruction.length() as u64);
            if at == entry && instruction.is_none_or(|instruction| instruction.operation() == Operation::Nothing) {
                // What stands between two stubs belongs to the one before.
                entry = next;
                if let Some(last) = stubs.last_mut().filter(|last| last.address + last.size == at) {
                    last.size += next - at;
                }
                continue;
            }
            let Some(instruction) = instruction else { continue };
            let through_memory = instruction.place();
            let is_r11 = instruction.register(0).is_some_and(|part| part.is_whole(R11));
            match (instruction.operation(), instruction.kind()) {
                (Operation::Push, _) => match (instruction.constant(0), through_memory) {
                    (Some(number), _) => pushed = Some(number.cast_unsigned()),
                    (None, Some(_)) => is_header = true,
                    (None, None) => {}
                },
                (Operation::Move, _) if is_r11 => loaded = through_memory,
                (_, Kind::Jump | Kind::IndirectJump) => {
                    let slot = if is_r11 { loaded } else { through_memory };
                    let target = match (slot, pushed) {
                        (Some(slot), _) => by_address.get(&slot).map(|target| named(target)),
                        (None, Some(number)) => numbered.get(number as usize).map(|slot| named(&slot.target)),
                        (None, None) => None,
                    };
                    let target = target.or_else(|| is_header.then(|| BINDER.to_owned()));
                    let name = target.map(|target| target + STUB_NAME).unwrap_or_default();
                    let size = next - entry;
                    match stubs.last_mut().filter(|last| last.name == name && last.address + last.size == entry) {
                        Some(last) => last.size += size,
                        None if name.is_empty() => {}
                        None => stubs.push(Stub { address: entry, size, name }),
                    }
                    entry = next;
                    (pushed, loaded, is_header) = (None, None, false);
                }
                _ => {}
            }
        }
    }
    stubs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(address: u64, name: &str) -> Slot {
        Slot { address, target: Target::Symbol(name.to_owned()) }
    }

    fn found(sections: &[(u64, Vec<u8>)], slots: &[Slot]) -> Vec<(u64, u64, String)> {
        let stubs = stubs(sections, slots, slots, |at| (at == 0x99).then(|| "memcpy".to_owned()));
        stubs.into_iter().map(|stub| (stub.address, stub.size, stub.name)).collect()
    }

    #[test]
    fn a_lazy_table_is_a_header_and_an_entry_for_each_slot() {
        // The header pushes and jumps through 0x4010; then two entries that jump through their slots, push their
        // numbers, jump to the header.
        let header = [&[0xff, 0x35, 0xe2, 0x2f, 0, 0][..], &[0xff, 0x25, 0xe4, 0x2f, 0, 0], &[0x0f, 0x1f, 0x40, 0]];
        let entry = |number: u8, slot: u8| {
            let back = 0xe0 - 16 * number;
            [&[0xff, 0x25, slot, 0x2f, 0, 0][..], &[0x68, number, 0, 0, 0], &[0xe9, back, 0xff, 0xff, 0xff]].concat()
        };
        let table = [header.concat(), entry(0, 0xe2), entry(1, 0xda)].concat();
        let slots = [slot(0x1026 + 0x2fe2 - 0x10, "puts"), slot(0x1036 + 0x2fda - 0x10, "sin")];
        assert_eq!(
            found(&[(0x1000, table)], &slots),
            [
                (0x1000, 16, "_dl_runtime_resolve@plt".to_owned()),
                (0x1010, 16, "puts@plt".to_owned()),
                (0x1020, 16, "sin@plt".to_owned())
            ]
        );
    }

    #[test]
    fn a_table_in_two_parts_names_both() {
        let first = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0x68, 0, 0, 0, 0], &[0xf2, 0xe9, 0, 0, 0, 0], &[0x90]].concat();
        let second = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0xf2, 0xff, 0x25, 0xf5, 0x2f, 0, 0], &[0x0f, 0x1f, 0x44, 0, 0]];
        let slots = [slot(0x200b + 0x2ff5, "puts")];
        assert_eq!(
            found(&[(0x1000, first), (0x2000, second.concat())], &slots),
            [(0x1000, 16, "puts@plt".to_owned()), (0x2000, 16, "puts@plt".to_owned())]
        );
    }

    #[test]
    fn an_indirect_function_is_named_by_its_resolver() {
        let slots = [Slot { address: 0x1016, target: Target::Resolver(0x99) }];
        let table = vec![0xff, 0x25, 0x10, 0, 0, 0, 0x66, 0x90];
        assert_eq!(found(&[(0x1000, table)], &slots), [(0x1000, 8, "memcpy@plt".to_owned())]);
    }

    #[test]
    fn relocations_are_read() {
        let mut bytes = Vec::new();
        for (offset, info, addend) in [(0x4000u64, (2u64 << 32) | 7, 0u64), (0x4008, 8, 5), (0x4010, 37, 0x99)] {
            bytes.extend([offset, info, addend].iter().flat_map(|word| word.to_le_bytes()));
        }
        let slots = slots(&bytes, |number| (number == 2).then(|| "puts".to_owned()));
        assert_eq!(slots, [slot(0x4000, "puts"), Slot { address: 0x4010, target: Target::Resolver(0x99) }]);
    }
}
