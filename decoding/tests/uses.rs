//! What instructions of real programs use, by the tables of the crate `machine`, which analyses of traces believe:
//! judged by capstone, and by what the tables say elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use capstone::arch::BuildsCapstone;
use capstone::arch::x86::ArchMode;
use capstone::{Capstone, RegId};
use machine::{Instruction, Operand, Register, Registers, Step, Table};
use trace_format::{Pc, SpEffect};

/// Compiled code, and code that was written by hand for each of a processor's extensions: the shell, and the libraries
/// that this process has.
fn programs() -> BTreeSet<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let files = maps.lines().filter_map(|line| line.find('/').map(|at| line[at..].to_owned()));
    files.filter(|file| file.contains(".so")).chain(["/bin/bash".to_owned()]).collect()
}

/// The executable sections of an ELF file: their addresses and bytes.
fn code(path: &str) -> Vec<(u64, Vec<u8>)> {
    let Ok(file) = std::fs::read(path) else { return Vec::new() };
    let word = |at: usize, size: usize| (0..size).fold(0u64, |all, i| all | u64::from(file[at + i]) << (8 * i));
    let (begin, count) = (word(0x28, 8) as usize, word(0x3c, 2) as usize);
    let sections = (0..count).map(|index| begin + index * 64);
    let is_code = |at: &usize| word(at + 8, 8) & 4 != 0 && word(at + 4, 4) == 1;
    let bytes = |at: usize| {
        let (offset, size) = (word(at + 24, 8) as usize, word(at + 32, 8) as usize);
        (word(at + 16, 8), file[offset..offset + size].to_vec())
    };
    sections.filter(is_code).map(bytes).collect()
}

/// Shows each instruction of the programs, one after another, with its bytes.
fn each(mut see: impl FnMut(Instruction, &[u8])) {
    for (start, bytes) in programs().iter().flat_map(|path| code(path)) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..(at + 15).min(bytes.len())];
            let table = Table::first(Pc(start + at as u64), rest);
            let length = table.all().get(0).map_or(1, Instruction::length);
            table.all().iter().flatten().for_each(|known| see(known, &rest[..length]));
            at += length;
        }
    }
}

/// The register of this name, of those that both are asked about: general ones, vectors, masks, and the flags as one.
fn named(name: &str) -> Registers {
    const OLD: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    let number = |text: &str| text.parse::<u8>().ok();
    let bit = |first: Register, number: u8| Register(first.0 + number).bit();
    if name == "rflags" || name == "eflags" {
        return Register::ALL_FLAGS;
    }
    let vector = ["xmm", "ymm", "zmm"].iter().find_map(|kind| name.strip_prefix(kind)).and_then(number);
    if let Some(number) = vector {
        return bit(Register::VECTORS, number);
    }
    if let Some(number) = name.strip_prefix('k').and_then(number) {
        return bit(Register::MASKS, number);
    }
    let part = name.trim_start_matches(['r', 'e']);
    if let Some(number) = number(part.trim_end_matches(['d', 'w', 'b'])).filter(|_| name.starts_with('r')) {
        return Register(number).bit();
    }
    let old = OLD.iter().position(|old| part == *old || part == format!("{old}l"));
    let of_bytes = ["al", "cl", "dl", "bl", "ah", "ch", "dh", "bh"].iter().position(|byte| name == *byte);
    old.or(of_bytes.map(|byte| byte % 4)).map_or(0, |number| Register(number as u8).bit())
}

/// Those that both are asked about.
fn asked(all: Registers) -> Registers {
    let whole = (Register::FLAGS.bit() - 1) | 0xff << Register::MASKS.index();
    all & whole | if all & Register::ALL_FLAGS != 0 { Register::ALL_FLAGS } else { 0 }
}

/// Where the table and capstone differ and the manual is with the table, by what differs: instructions' names.
const KNOWN: [(&str, &str); 9] = [
    // An address that is not accessed; `leave` reads the frame pointer.
    ("reads fewer", "nop reservednop leave stosq"),
    // `test` with memory first, both operands of `adox`; what is merged into; all of what is cleared in part.
    ("reads more", "adox cmpxchg test xlatb enter iret iretd iretq movsd pop push retf rdpkru wrpkru vzeroupper cmc"),
    ("reads more", "cvtsd2ss cvtsi2sd cvtsi2ss cvtss2sd incsspq rcl rcr syscall vmwrite"),
    // The accumulator is read alone; a shift by a constant of 0 leaves the flags.
    ("writes fewer", "cdq cqo cwd test stosq int1 rcl rcr rol ror sal sar shl shr vmwrite"),
    ("writes more", "call enter rdsspq movsd pop push retf rdpkru xlatb vbroadcasti128"),
    // What is kept where the condition does not hold.
    (
        "reads more",
        "cmova cmovae cmovb cmovbe cmove cmovg cmovge cmovl cmovle cmovne cmovno cmovnp cmovns cmovo cmovp cmovs",
    ),
    // Flags that capstone has no write of.
    ("writes more", "cli cmpxchg iret iretd iretq lar lsl mov sti syscall test vmread vmwrite xadd"),
    // Masks.
    ("reads more", "ktestd kunpckdq"),
    ("writes more", "ktestd kunpckdq"),
];

#[test]
fn capstone_reads_and_writes_the_same_registers() {
    let capstone = Capstone::new().x86().mode(ArchMode::Mode64).detail(true).build().unwrap();
    let of = |ids: &[RegId]| ids.iter().filter_map(|id| capstone.reg_name(*id)).fold(0, |all, name| all | named(&name));
    let mut different: BTreeMap<(&str, String), (u64, String)> = BTreeMap::new();
    let mut compared = 0u64;
    each(|known, bytes| {
        let Ok(all) = capstone.disasm_count(bytes, known.pc().0, 1) else { return };
        let Some(other) = all.first().filter(|other| other.bytes().len() == bytes.len()) else { return };
        let Ok(detail) = capstone.insn_detail(other) else { return };
        let name = known.mnemonic();
        // Capstone knows neither the status word of x87 nor which vectors EVEX's masks keep, and takes a value for read
        // where the result does not depend on it.
        if name.starts_with('f') || bytes[0] == 0x62 || known.takes_one_twice() {
            return;
        }
        compared += 1;
        let kept = known.uses().iter().filter(|used| used.access.may_keep && used.access.reads);
        let kept = kept.fold(0, |all, used| all | used.part.register.bit());
        let theirs = [of(detail.regs_read()), of(detail.regs_write())];
        let ours = [asked(known.reads()) & !(kept & !theirs[0]), asked(known.writes())];
        for (what, differ) in [
            ("reads more", ours[0] & !theirs[0]),
            ("reads fewer", theirs[0] & !ours[0]),
            ("writes more", ours[1] & !theirs[1]),
            ("writes fewer", theirs[1] & !ours[1]),
        ] {
            let is_known = || KNOWN.iter().any(|(one, names)| *one == what && names.split(' ').any(|of| of == name));
            if differ != 0 && !is_known() {
                let example = || (0, format!("{bytes:02x?}: {differ:#x}"));
                different.entry((what, name.clone())).or_insert_with(example).0 += 1;
            }
        }
    });
    assert!(compared > 300_000, "{compared}");
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn steps_and_stack_effects_are_of_the_registers_that_are_used() {
    let mut steps = 0u64;
    each(|known, bytes| {
        let what = || format!("{} {bytes:02x?}", known.mnemonic());
        let is_still = known.sp() == SpEffect::Add(0);
        assert_eq!(is_still, known.writes() & Register::SP.bit() == 0, "{}", what());
        let bit = |operand| if let Operand::Register(part) = operand { part.register.bit() } else { 0 };
        let (read, written) = match known.step() {
            Step::Copy { from, to, .. } => (bit(from), bit(to)),
            Step::Update { acc, by, to, .. } => (bit(acc) | bit(by), bit(to)),
            Step::Other => return,
        };
        steps += 1;
        // How deep the stack of x87 is, the decoder does not follow.
        let x87 = 0xff << Register::X87.index();
        let kept = known.uses().iter().filter(|used| used.access.may_keep);
        let known_read = kept.fold(known.reads() | x87, |all, used| all | used.part.register.bit());
        assert_eq!(read & !known_read, 0, "{}", what());
        assert_eq!(written & !known.writes() & !x87, 0, "{}", what());
        let others = known.writes() & !written & !Register::SP.bit() & !Register::ALL_FLAGS & !x87;
        assert_eq!(others, 0, "{}: a step says all", what());
    });
    assert!(steps > 200_000, "{steps}");
}

#[test]
fn named_memory_comes_first_and_is_accessed_alike() {
    each(|known, bytes| {
        if !known.operands().any(|operand| operand == Operand::Memory) {
            return;
        }
        let named = known.named_memory();
        let same = named.iter().zip(known.memory()).all(|(named, used)| {
            let place = |memory: &machine::Memory| (memory.index, memory.size, memory.by_pc);
            let alike = |a: machine::Access, b: machine::Access| (a.reads, a.writes) == (b.reads, b.writes);
            place(named) == place(used) && alike(named.access, used.access) && (named.by_pc || named.base == used.base)
        });
        assert!(same && named.len() <= known.memory().len(), "{} {bytes:02x?}: {named:?}", known.mnemonic());
    });
}
