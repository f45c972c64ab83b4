//! What is read from an ELF file: its kind, its segments, its build id, its symbols.
//!
//! Only the parts needed are read, not the whole file: programs with debug information can have gigabytes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use goblin::container::{Container, Ctx};
use goblin::elf::header::{EM_X86_64, Header};
use goblin::elf::note::NT_GNU_BUILD_ID;
use goblin::elf::program_header::{PT_INTERP, PT_LOAD, PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, SectionHeader};
use goblin::elf::sym::{STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Symtab};

use crate::symbols::{FileSymbol, SymbolTable};

/// The largest part of a file that is read in one piece: more than any symbol table, less than what would hurt.
const MAX_PART: u64 = 1 << 30;

/// Where the bytes of an ELF image come from.
pub enum Source<'a> {
    /// A file.
    File(&'a File),
    /// An image in memory (the kernel's vdso).
    Bytes(&'a [u8]),
}

impl Source<'_> {
    fn read(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        if length > MAX_PART {
            return None;
        }
        match self {
            Source::File(file) => {
                // The length is checked against the file before it is believed.
                let end = file.metadata().ok()?.len();
                if offset.checked_add(length)? > end {
                    return None;
                }
                let mut bytes = vec![0; length as usize];
                file.read_exact_at(&mut bytes, offset).ok()?;
                Some(bytes)
            }
            Source::Bytes(bytes) => {
                bytes.get(offset as usize..offset.checked_add(length)? as usize).map(<[u8]>::to_vec)
            }
        }
    }
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A 64-bit x86 ELF file.
    X86_64,
    /// A 32-bit ELF file.
    Bits32,
    /// An ELF file for another processor.
    OtherMachine,
    /// No ELF file.
    NotElf,
}

/// Tells the kind from the first bytes of a file (64, if it has so many).
#[must_use]
pub fn classify(start: &[u8]) -> Class {
    if start.len() < 20 || start[..4] != *b"\x7fELF" {
        return Class::NotElf;
    }
    let machine = u16::from_le_bytes([start[18], start[19]]);
    match (start[4], start[5]) {
        (2, 1) if machine == EM_X86_64 => Class::X86_64,
        (1, _) => Class::Bits32,
        _ => Class::OtherMachine,
    }
}

/// A part of the file that is mapped to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    address: u64,
    file_size: u64,
}

/// What is known of an ELF image.
#[derive(Debug, Default)]
pub struct Image {
    segments: Vec<Segment>,
    /// The GNU build id, where it has one.
    pub build_id: Option<Vec<u8>>,
    /// The path of its loader, for a dynamic program.
    pub interpreter: Option<String>,
    /// Its functions, by address in the file.
    pub symbols: SymbolTable,
}

impl Image {
    /// Reads an image; none when it is not a 64-bit x86 ELF file or too damaged to be of use.
    #[must_use]
    pub fn read(source: &Source<'_>) -> Option<Image> {
        let start = source.read(0, 64)?;
        if classify(&start) != Class::X86_64 {
            return None;
        }
        let header = goblin::elf::Elf::parse_header(&start).ok()?;
        let context = Ctx::new(Container::Big, goblin::container::Endian::Little);
        let mut image = Image::default();
        let size = u64::from(header.e_phnum) * u64::from(header.e_phentsize);
        let table = source.read(header.e_phoff, size)?;
        for segment in ProgramHeader::parse(&table, 0, usize::from(header.e_phnum), context).ok()? {
            let contents = || source.read(segment.p_offset, segment.p_filesz.min(1 << 16));
            match segment.p_type {
                PT_LOAD => image.segments.push(Segment {
                    offset: segment.p_offset,
                    address: segment.p_vaddr,
                    file_size: segment.p_filesz,
                }),
                PT_NOTE if image.build_id.is_none() => {
                    image.build_id = contents().and_then(|notes| build_id(&notes, segment.p_align));
                }
                PT_INTERP => {
                    image.interpreter = contents().map(|path| {
                        String::from_utf8_lossy(path.split(|&b| b == 0).next().unwrap_or(&[])).into_owned()
                    });
                }
                _ => {}
            }
        }
        image.symbols = read_symbols(source, &header, context).unwrap_or_default();
        Some(image)
    }

    /// What was added to the file's addresses, when the file's bytes from `offset` on are mapped at `start`.
    #[must_use]
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let page = |x: u64| x & !4095;
        let segment =
            self.segments.iter().find(|s| page(s.offset) <= offset && offset < s.offset + s.file_size.max(1))?;
        Some(start.wrapping_sub(segment.address.wrapping_add(offset).wrapping_sub(segment.offset)))
    }
}

fn build_id(notes: &[u8], align: u64) -> Option<Vec<u8>> {
    let align = if align == 8 { 8 } else { 4 };
    let padded = |n: usize| n.div_ceil(align) * align;
    let word = |at: usize| Some(u32::from_le_bytes(notes.get(at..at + 4)?.try_into().ok()?));
    let mut at = 0;
    loop {
        let (name, size, kind) = (word(at)? as usize, word(at + 4)? as usize, word(at + 8)?);
        let description = (at + 12).checked_add(padded(name))?;
        if kind == NT_GNU_BUILD_ID && notes.get(at + 12..at + 16)? == b"GNU\0" {
            return notes.get(description..description.checked_add(size)?).map(<[u8]>::to_vec);
        }
        at = description.checked_add(padded(size))?;
    }
}

/// The zero-ended string at that place of a string table.
fn name_at(names: &[u8], at: usize) -> Option<&str> {
    let end = names.get(at..)?.iter().position(|&b| b == 0)? + at;
    std::str::from_utf8(&names[at..end]).ok()
}

fn read_symbols(source: &Source<'_>, header: &Header, context: Ctx) -> Option<SymbolTable> {
    let size = u64::from(header.e_shnum) * u64::from(header.e_shentsize);
    if header.e_shnum == 0 {
        return None;
    }
    let table = source.read(header.e_shoff, size)?;
    let sections = SectionHeader::parse_from(&table, 0, usize::from(header.e_shnum), context).ok()?;
    let mut symbols = SymbolTable::default();
    for section in sections.iter().filter(|s| matches!(s.sh_type, SHT_SYMTAB | SHT_DYNSYM)) {
        let Some(names) = sections.get(section.sh_link as usize) else { continue };
        let Some(entries) = source.read(section.sh_offset, section.sh_size) else { continue };
        let Some(names) = source.read(names.sh_offset, names.sh_size) else { continue };
        let Ok(entries) = Symtab::parse(&entries, 0, entries.len() / 24, context) else { continue };
        for entry in &entries {
            let kind = entry.st_type();
            if entry.st_shndx == SHN_UNDEF as usize || !matches!(kind, STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE) {
                continue;
            }
            let in_code = sections.get(entry.st_shndx).is_some_and(SectionHeader::is_executable);
            let Some(name) = name_at(&names, entry.st_name) else { continue };
            if !in_code || name.is_empty() {
                continue;
            }
            symbols.add(&FileSymbol {
                address: entry.st_value,
                size: entry.st_size,
                // `name@VERSION` stands in the full table for versioned symbols.
                name: name.split('@').next().unwrap_or(name),
                function: kind == STT_FUNC,
                resolver: kind == STT_GNU_IFUNC,
                local: entry.st_bind() == STB_LOCAL,
            });
        }
    }
    symbols.sort();
    Some(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_files_are_told_by_their_start() {
        let mut elf = [0u8; 64];
        elf[..4].copy_from_slice(b"\x7fELF");
        (elf[4], elf[5], elf[18]) = (2, 1, 62);
        assert_eq!(classify(&elf), Class::X86_64);
        elf[18] = 183;
        assert_eq!(classify(&elf), Class::OtherMachine);
        elf[4] = 1;
        assert_eq!(classify(&elf), Class::Bits32);
        assert_eq!(classify(b"#!/bin/sh\n"), Class::NotElf);
        assert_eq!(classify(b""), Class::NotElf);
    }

    #[test]
    fn this_test_program_is_read() {
        let file = File::open("/proc/self/exe").unwrap();
        let image = Image::read(&Source::File(&file)).unwrap();
        assert!(image.interpreter.is_some_and(|path| path.contains("ld-linux")));
        assert!(image.symbols.named("main").is_some());
    }

    #[test]
    fn a_build_id_is_found_behind_another_note() {
        let mut notes = Vec::new();
        for (kind, description) in [(1u32, &[9u8, 9, 9, 9][..]), (3, &[1, 2, 3])] {
            notes.extend(4u32.to_le_bytes());
            notes.extend((description.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(b"GNU\0");
            notes.extend(description);
        }
        assert_eq!(build_id(&notes, 4), Some(vec![1, 2, 3]));
        assert_eq!(build_id(&notes[..20], 4), None);
    }

    #[test]
    fn the_bias_follows_from_the_segment_mapped() {
        let segments = vec![
            Segment { offset: 0, address: 0, file_size: 0x600 },
            Segment { offset: 0x1040, address: 0x2040, file_size: 0x100 },
        ];
        let image = Image { segments, ..Image::default() };
        assert_eq!(image.bias(0x7000_0000, 0), Some(0x7000_0000));
        assert_eq!(image.bias(0x7000_2000, 0x1000), Some(0x7000_0000));
        assert_eq!(image.bias(0x7000_2000, 0x9000), None);
    }
}
