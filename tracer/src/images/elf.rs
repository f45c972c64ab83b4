//! What is read from an ELF file: its kind, its segments, its build id, its symbols.
//!
//! Only the parts needed are read, not the whole file: programs with debug information can have gigabytes.

use std::cell::RefCell;
use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use goblin::container::{Container, Ctx};
use goblin::elf::header::{EM_X86_64, ET_EXEC, Header};
use goblin::elf::note::NT_GNU_BUILD_ID;
use goblin::elf::program_header::{PF_X, PT_INTERP, PT_LOAD, PT_NOTE, ProgramHeader};
use goblin::elf::section_header::{SHN_UNDEF, SHT_DYNSYM, SHT_RELA, SHT_SYMTAB, SectionHeader};
use goblin::elf::sym::{STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Symtab};
use rustc_hash::FxHashMap;

use crate::images::linkage::{self, Slot};
use crate::images::symbols::{FileSymbol, SymbolTable};

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

/// The sections of an image, each of which is read once: symbols and their names are asked for several times.
struct Sections<'a> {
    source: &'a Source<'a>,
    all: Vec<SectionHeader>,
    read: RefCell<FxHashMap<u64, Rc<Vec<u8>>>>,
}

impl Sections<'_> {
    /// What a section holds.
    fn contents(&self, section: &SectionHeader) -> Option<Rc<Vec<u8>>> {
        if let Some(known) = self.read.borrow().get(&section.sh_offset)
            && known.len() as u64 == section.sh_size
        {
            return Some(known.clone());
        }
        let bytes = Rc::new(self.source.read(section.sh_offset, section.sh_size)?);
        self.read.borrow_mut().insert(section.sh_offset, bytes.clone());
        Some(bytes)
    }

    /// What the section holds that this one names.
    fn linked(&self, section: &SectionHeader) -> Option<Rc<Vec<u8>>> {
        self.contents(self.all.get(section.sh_link as usize)?)
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
    executable: bool,
}

/// A way in which a part of memory can be a part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// What was added to the file's addresses then.
    pub bias: u64,
    /// Whether the segment is executable as the memory is, or neither.
    pub same_protection: bool,
}

/// What is known about an ELF image.
#[derive(Debug, Default)]
pub struct Image {
    /// Whether it lies at the addresses that the file names.
    pub fixed: bool,
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
        let mut image = Image { fixed: header.e_type == ET_EXEC, ..Image::default() };
        let size = u64::from(header.e_phnum) * u64::from(header.e_phentsize);
        let table = source.read(header.e_phoff, size)?;
        for segment in ProgramHeader::parse(&table, 0, usize::from(header.e_phnum), context).ok()? {
            let contents = || source.read(segment.p_offset, segment.p_filesz.min(1 << 16));
            match segment.p_type {
                PT_LOAD => image.segments.push(Segment {
                    offset: segment.p_offset,
                    address: segment.p_vaddr,
                    file_size: segment.p_filesz,
                    executable: segment.p_flags & PF_X != 0,
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

    /// An image of these segments: offset and address, size, whether executable.
    #[cfg(test)]
    pub fn of_segments(fixed: bool, segments: &[(u64, u64, u64, bool)]) -> Image {
        let segment = |&(offset, address, file_size, executable)| Segment { offset, address, file_size, executable };
        Image { fixed, segments: segments.iter().map(segment).collect(), ..Image::default() }
    }

    /// The ways in which memory at `start`, where the file's bytes from `offset` on are mapped, can be a part of this
    /// image. They are several where segments share a page of the file: it is mapped once for each.
    pub fn fits(&self, start: u64, offset: u64, executable: bool) -> impl Iterator<Item = Fit> {
        let page = |x: u64| x & !4095;
        let holds =
            move |s: &&Segment| page(s.offset) <= offset && offset < s.offset.saturating_add(s.file_size.max(1));
        self.segments.iter().filter(holds).map(move |s| Fit {
            bias: start.wrapping_sub(offset).wrapping_sub(s.address.wrapping_sub(s.offset)),
            same_protection: s.executable == executable,
        })
    }
}

fn build_id(notes: &[u8], align: u64) -> Option<Vec<u8>> {
    let align = if align == 8 { 8 } else { 4 };
    let padded = |n: usize| n.div_ceil(align) * align;
    let word = |at: usize| Some(u32::from_le_bytes(notes.get(at..at + 4)?.try_into().ok()?));
    let mut at = 0;
    loop {
        let (name, size, kind) = (word(at)? as usize, word(at + 4)? as usize, word(at + 8)?);
        let description = at.checked_add(padded(name.checked_add(12)?))?;
        if kind == NT_GNU_BUILD_ID && notes.get(at + 12..at + 16)? == b"GNU\0" {
            return notes.get(description..description.checked_add(size)?).map(<[u8]>::to_vec);
        }
        at = description.checked_add(padded(size))?;
    }
}

/// The zero-ended string at that place of a string table.
fn name_at(names: &[u8], at: usize) -> Option<&str> {
    CStr::from_bytes_until_nul(names.get(at..)?).ok()?.to_str().ok()
}

fn read_symbols(source: &Source<'_>, header: &Header, context: Ctx) -> Option<SymbolTable> {
    let size = u64::from(header.e_shnum) * u64::from(header.e_shentsize);
    if header.e_shnum == 0 {
        return None;
    }
    let table = source.read(header.e_shoff, size)?;
    let sections = SectionHeader::parse_from(&table, 0, usize::from(header.e_shnum), context).ok()?;
    let sections = Sections { source, all: sections, read: RefCell::default() };
    let mut symbols = SymbolTable::default();
    for section in sections.all.iter().filter(|s| matches!(s.sh_type, SHT_SYMTAB | SHT_DYNSYM)) {
        let Some(entries) = sections.contents(section) else { continue };
        let Some(names) = sections.linked(section) else { continue };
        let Ok(entries) = Symtab::parse(&entries, 0, entries.len() / 24, context) else { continue };
        symbols.reserve(entries.len(), names.len());
        for entry in &entries {
            let kind = entry.st_type();
            if entry.st_shndx == SHN_UNDEF as usize || !matches!(kind, STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE) {
                continue;
            }
            if !sections.all.get(entry.st_shndx).is_some_and(SectionHeader::is_executable) {
                continue;
            }
            let Some(name) = name_at(&names, entry.st_name) else { continue };
            // Mold names the stubs of the linkage table, without their sizes.
            let is_stub = name.ends_with("$plt") || name.ends_with("$pltgot");
            if name.is_empty() || is_stub {
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
    let code = sections.all.iter().filter(|s| s.is_executable());
    symbols.bound(&code.map(|s| s.sh_addr..s.sh_addr.saturating_add(s.sh_size)).collect::<Vec<_>>());
    add_stubs(&sections, header, context, &mut symbols);
    Some(symbols)
}

/// Adds the stubs of the linkage table, which have no symbols of their own.
fn add_stubs(sections: &Sections<'_>, header: &Header, context: Ctx, symbols: &mut SymbolTable) -> Option<()> {
    let names = sections.contents(sections.all.get(usize::from(header.e_shstrndx))?)?;
    let is_table = |s: &&SectionHeader| {
        let name = name_at(&names, s.sh_name).unwrap_or("");
        s.is_executable() && [".plt", ".iplt"].iter().any(|table| name.starts_with(table))
    };
    let table = |s: &SectionHeader| Some((s.sh_addr, sections.contents(s)?.to_vec()));
    let tables: Vec<(u64, Vec<u8>)> = sections.all.iter().filter(is_table).filter_map(table).collect();
    if tables.is_empty() {
        return None;
    }
    let (mut slots, mut numbered) = (Vec::new(), Vec::new());
    for section in sections.all.iter().filter(|s| s.sh_type == SHT_RELA && s.is_alloc()) {
        let found = slots_of(section, sections, context);
        let is_numbered = name_at(&names, section.sh_name) == Some(".rela.plt");
        if is_numbered { &mut numbered } else { &mut slots }.extend(found.unwrap_or_default());
    }
    let resolver = |at: u64| symbols.iter().find(|s| s.address == at).map(|s| s.name.to_owned());
    let stubs = linkage::stubs(&tables, &slots, &numbered, resolver);
    for linkage::Stub { address, size, name } in &stubs {
        symbols.add(&FileSymbol { address: *address, size: *size, name, function: true, resolver: false, local: true });
    }
    symbols.sort();
    Some(())
}

/// The slots that a section of relocations fills.
fn slots_of(section: &SectionHeader, sections: &Sections<'_>, context: Ctx) -> Option<Vec<Slot>> {
    let table = sections.all.get(section.sh_link as usize).filter(|_| section.sh_link != 0);
    let entries = table.and_then(|table| sections.contents(table)).unwrap_or_default();
    let entries = Symtab::parse(&entries, 0, entries.len() / 24, context).ok()?;
    let names = table.and_then(|table| sections.linked(table)).unwrap_or_default();
    let name = |number: usize| Some(name_at(&names, entries.get(number)?.st_name)?.to_owned());
    Some(linkage::slots(&sections.contents(section)?, name))
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
    fn notes_of_eight_bytes_alignment_begin_their_descriptions_behind_the_padded_head() {
        let mut notes = Vec::new();
        for (kind, description) in [(5u32, &[9u8; 16][..]), (3, &[1; 20])] {
            notes.extend([4, description.len() as u32, kind].iter().flat_map(|word| word.to_le_bytes()));
            notes.extend(b"GNU\0");
            notes.extend(description);
        }
        assert_eq!(build_id(&notes, 8), Some(vec![1; 20]));
    }

    #[test]
    fn a_page_of_two_segments_fits_each_and_the_protection_tells_which() {
        let segments = [(0, 0, 0x600, false), (0x600, 0x1600, 0x100, true), (0x3040, 0x6040, 0x100, false)];
        let image = Image::of_segments(false, &segments);
        let fits = |start, offset, executable| {
            let fits = image.fits(start, offset, executable);
            fits.map(|fit| (fit.bias, fit.same_protection)).collect::<Vec<_>>()
        };
        assert_eq!(fits(0x7000_0000, 0, false), [(0x7000_0000, true), (0x6fff_f000, false)]);
        assert_eq!(fits(0x7000_1000, 0, true), [(0x7000_1000, false), (0x7000_0000, true)]);
        assert_eq!(fits(0x7000_6000, 0x3000, false), [(0x7000_0000, true)]);
        assert!(fits(0x7000_2000, 0x9000, true).is_empty());
    }
}
