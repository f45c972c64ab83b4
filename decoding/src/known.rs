//! Where the two decoders are known to differ, and who is right.

/// A difference that is understood.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The instructions' names begin with one of these; an empty list stands for all.
    pub mnemonics: &'static [&'static str],
    /// What differs: `validity`, `length`, `kind`, `target`, `access` (of memory), `size` (of memory),
    /// `memory` (more than one of its operands, or other registers), `stack pointer`.
    pub what: &'static str,
    /// Who is right, and how that is known.
    pub verdict: &'static str,
}

/// The table, in the order in which it stands in `docs/decoding.md`.
pub const KNOWN: &[Known] = &[
    Known {
        mnemonics: &["mov", "vmov", "cmpxchg", "fnst", "fst", "fist", "fbst", "stmxcsr", "vstmxcsr", "set"],
        what: "access",
        verdict: "iced-x86: these write memory (the judge finds it changed); capstone says of forms with memory as destination that they only read it",
    },
    Known {
        mnemonics: &["pextr", "vpextr", "extractps", "vextract", "rcl", "rcr", "rol", "ror"],
        what: "access",
        verdict: "iced-x86, by the manual: as above",
    },
    Known {
        mnemonics: &["test"],
        what: "access",
        verdict: "iced-x86: memory is only read (the judge runs it where memory cannot be written); capstone says that it is written too",
    },
    Known {
        mnemonics: &["cmps", "ins", "outs", "rounds", "call", "jmp", "wrss", "v"],
        what: "access",
        verdict: "iced-x86, by the manual: capstone says of some that what they read is written too, or the reverse (of AVX-512 those with masks)",
    },
    Known {
        mnemonics: &["comis", "ucomis", "vcomis", "vucomis"],
        what: "size",
        verdict: "iced-x86: one number is read (the judge runs it 8 bytes in front of a page that cannot be read); capstone says 16 bytes",
    },
    Known {
        mnemonics: &["xsave", "xrstor", "fxsave", "fxrstor"],
        what: "size",
        verdict: "neither: the size hangs on the processor and on eax and edx; iced-x86 says 0 for that, capstone 8",
    },
    Known {
        mnemonics: &["call", "jmp", "lfs", "lgs", "lss", "fldenv", "fnsave", "fnstenv", "frstor"],
        what: "size",
        verdict: "iced-x86, by the manual: far pointers have 4, 6 or 10 bytes, and the state of the x87 14, 28, 94 or 108",
    },
    Known {
        mnemonics: &["clflush", "clwb", "maskmov", "xlat", "xsave", "frstor", "reservednop", "ins", "outs", "or"],
        what: "memory",
        verdict: "iced-x86, by the manual: capstone leaves out operands that are not written down (maskmov, xlat), takes a reserved nop for an access, and \
                  lets a segment prefix without meaning hide the one before it; a cache line that is flushed is left out on capstone's side",
    },
    Known {
        mnemonics: &["bswap", "call", "enter", "iret", "pop", "push", "ret", "sysenter", "sysexit", "vmwrite"],
        what: "stack pointer",
        verdict: "iced-x86, by the manual: capstone does not list rsp among what far calls and returns, enter, iret, and push and pop of fs and gs write, and \
                  takes rsp for written where vmwrite reads it",
    },
    Known {
        mnemonics: &["pause", "rsm", "seamcall", "vm"],
        what: "kind",
        verdict: "iced-x86 for pause with a REX prefix; the others are instructions of hypervisors, which no traced program runs",
    },
    Known {
        mnemonics: &["j", "ret", "ud0", "ud1"],
        what: "length",
        verdict: "iced-x86 for Intel's processors, which ignore the operand-size prefix of near branches; capstone for AMD's. Compilers write none. Of ud0 and ud1 \
                  both lengths are right: they end the program",
    },
    Known { mnemonics: &["j"], what: "target", verdict: "as for the length" },
    Known {
        mnemonics: &[],
        what: "validity",
        verdict: "iced-x86: capstone does not know newer instructions (Key Locker, AVX-VNNI, CMPccXADD, parts of AVX512-FP16), and takes prefixes that the \
                  processor refuses (lock without a memory destination, 66 and f3 before SHA and fxsave). A trace has the code of what ran only",
    },
];

/// The entry of the table that explains a difference.
#[must_use]
pub fn explained(mnemonic: &str, what: &str) -> Option<&'static Known> {
    let is_named =
        |known: &Known| known.mnemonics.is_empty() || known.mnemonics.iter().any(|m| mnemonic.starts_with(m));
    KNOWN.iter().find(|known| known.what == what && is_named(known))
}
