//! Where the two decoders are known to differ, and who is right. The table is the file: it has more than 500 lines, and
//! nothing to divide it by.
//!
//! An entry holds for named instructions, or a named kind of encoding, and for one way in which the two differ: any
//! other difference about an instruction in the table is still reported.

use std::fmt;

use crate::opinion::{Aspect, Opinion};

/// How an instruction is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In any way.
    Any,
    /// By EVEX, as those of AVX-512 are.
    Evex,
    /// With at least one of these prefixes in front.
    Behind(&'static [u8]),
    /// With at least one of the first prefixes and one of the second.
    Both(&'static [u8], &'static [u8]),
    /// With two segment prefixes or more.
    Segments,
}

/// A difference that is understood.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The instructions' names, with spaces between them, as iced-x86 has them, or capstone where that has none; none
    /// stands for all of the form and the extensions.
    pub names: &'static str,
    /// The extensions of the processor that they belong to, as iced-x86 names them; none stands for any.
    pub extensions: &'static str,
    /// Their encoding.
    pub form: Form,
    /// See [`Aspect::what`].
    pub what: &'static str,
    /// What iced-x86 says against what capstone says, one of these; `N` stands for any number.
    pub sides: &'static [&'static str],
    /// An instruction with this difference.
    pub example: &'static [u8],
    /// Who is right, and how that is known.
    pub verdict: &'static str,
}

/// What the entries of the table have in common.
const ENTRY: Known = Known {
    names: "",
    extensions: "",
    form: Form::Any,
    what: "access",
    sides: &[],
    example: &[],
    verdict: "iced-x86, by the manual",
};

/// The prefixes by which an instruction works on 8 bytes.
const WIDE: &[u8] = &[0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f];
const RUN: &str = "iced-x86: the processor was asked";

/// The table, in the order in which it stands in `docs/decoding.md`.
pub const KNOWN: &[Known] = &[
    Known {
        names: "extractps fist fistp fisttp fnstcw fst fstp movd movhpd movhps movlpd movlps movntdq movnti movntpd \
                movntps movntq movq movupd movups pextrb pextrd pextrq pextrw seta setae setb setbe setg setge \
                setl setle setno setnp setns seto setp sets stmxcsr vcvtps2ph vextractf128 vextracti128 \
                vextractps vmaskmovpd vmaskmovps vmovapd vmovaps vmovd vmovdqa vmovdqu vmovhpd vmovhps vmovlpd \
                vmovlps vmovntdq vmovntpd vmovntps vmovq vmovsd vmovss vmovupd vmovups vpextrb vpextrd vpextrq \
                vpextrw vpmaskmovd vpmaskmovq vstmxcsr",
        sides: &["writes against reads"],
        example: &[0x0f, 0x11, 0x07],
        verdict: RUN,
        ..ENTRY
    },
    Known {
        names: "kmovb kmovd kmovq kmovw movntsd movntss",
        sides: &["writes against reads"],
        example: &[0xc5, 0xf8, 0x91, 0x07],
        ..ENTRY
    },
    Known {
        names: "cmpxchg cmpxchg16b cmpxchg8b rcl rcr rol ror",
        sides: &["reads and writes against reads"],
        example: &[0x0f, 0xb1, 0x0f],
        verdict: RUN,
        ..ENTRY
    },
    Known {
        names: "roundsd roundss test vbroadcasti128 vcvtpd2ps vroundsd vroundss",
        sides: &["reads against reads and writes"],
        example: &[0x84, 0x07],
        verdict: RUN,
        ..ENTRY
    },
    Known {
        names: "call cmpsd jmp outsb outsd outsw vpermil2pd vpermil2ps",
        sides: &["reads against reads and writes"],
        example: &[0xa7],
        ..ENTRY
    },
    Known {
        names: "insb insd insw wrssd wrssq",
        sides: &["writes against reads and writes"],
        example: &[0x6c],
        ..ENTRY
    },
    Known {
        form: Form::Evex,
        sides: &["reads against reads and writes", "writes against reads and writes"],
        example: &[0x62, 0xf1, 0x7c, 0x49, 0x58, 0x07],
        verdict: "iced-x86: LLVM's table of instructions says the same of what writes memory; behind the operands that \
                  its table has, capstone 0.14 tells what lies on its stack",
        ..ENTRY
    },
    Known { names: "frstor", sides: &["reads against writes"], example: &[0xdd, 0x27], ..ENTRY },
    Known {
        names: "xsave xsave64 xsaveopt xsaveopt64",
        sides: &["reads and writes against writes"],
        example: &[0x0f, 0xae, 0x27],
        ..ENTRY
    },
    Known {
        names: "comisd ucomisd vcomisd vucomisd",
        what: "size",
        sides: &["8 against 16"],
        example: &[0x66, 0x0f, 0x2f, 0x07],
        verdict: RUN,
        ..ENTRY
    },
    Known {
        names: "vgatherdpd vgatherdps vgatherqpd vgatherqps vpgatherdd vpgatherdq vpgatherqd vpgatherqq vpscatterdd \
                vpscatterdq vpscatterqd vpscatterqq vscatterdpd vscatterdps vscatterqpd vscatterqps",
        what: "size",
        sides: &[
            "4 against 8",
            "4 against 16",
            "4 against 32",
            "4 against 64",
            "8 against 16",
            "8 against 32",
            "8 against 64",
        ],
        example: &[0xc4, 0xe2, 0xd9, 0x91, 0x1c, 0x7c],
        verdict: "both: iced-x86 has the size of one element, capstone that of all",
        ..ENTRY
    },
    Known {
        names: "xrstor xrstor64 xrstors xrstors64 xsave xsave64 xsavec xsavec64 xsaveopt xsaveopt64 xsaves xsaves64",
        what: "size",
        sides: &["0 against 8"],
        example: &[0x0f, 0xae, 0x27],
        verdict: "neither: the size hangs on the processor and on eax and edx; 0 stands for that",
        ..ENTRY
    },
    Known {
        names: "fxrstor fxrstor64 fxsave fxsave64",
        what: "size",
        sides: &["512 against 8"],
        example: &[0x0f, 0xae, 0x07],
        verdict: RUN,
        ..ENTRY
    },
    Known {
        names: "fldenv fnstenv",
        what: "size",
        sides: &["14 against 28"],
        example: &[0x66, 0xd9, 0x37],
        verdict: RUN,
        ..ENTRY
    },
    Known {
        names: "fnsave frstor",
        what: "size",
        sides: &["108 against 4", "94 against 4"],
        example: &[0xdd, 0x37],
        verdict: RUN,
        ..ENTRY
    },
    Known {
        names: "call jmp lfs lgs lss",
        what: "size",
        sides: &["4 against 8", "6 against 8", "10 against 8", "4 against 10"],
        example: &[0xff, 0x2a],
        verdict: "iced-x86, by the manual: far pointers have 4, 6 or 10 bytes",
        ..ENTRY
    },
    Known {
        names: "insd outsd",
        form: Form::Behind(&[0x66]),
        what: "size",
        sides: &["4 against 2"],
        example: &[0x66, 0x48, 0x6f],
        ..ENTRY
    },
    Known {
        form: Form::Both(&[0x66], WIDE),
        what: "size",
        sides: &["8 against 2"],
        example: &[0x66, 0x48, 0xff, 0x37],
        verdict: "iced-x86: the processor was asked; REX.W overrides 66",
        ..ENTRY
    },
    Known {
        form: Form::Both(&[0x66], &[0xf2, 0xf3]),
        what: "size",
        sides: &["2 against 4"],
        example: &[0x66, 0xf2, 0x0f, 0x4b, 0x07],
        verdict: "iced-x86: the processor was asked; f2 means nothing in front of these",
        ..ENTRY
    },
    Known {
        form: Form::Both(&[0x66], &[0xf2, 0xf3]),
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0x66, 0xf2, 0xf3, 0x90],
        verdict: "iced-x86: the processor was asked; of f2 and f3 the last one counts, and in front of others than SSE they mean nothing",
        ..ENTRY
    },
    Known { names: "rstorssp", what: "size", sides: &["8 against 4"], example: &[0xf3, 0x0f, 0x01, 0x2f], ..ENTRY },
    Known {
        names: "pop",
        what: "memory",
        sides: &[
            "writes 8 bytes against writes 8 bytes that lie in front of them",
            "writes 2 bytes against writes 2 bytes that lie in front of them",
        ],
        example: &[0x8f, 0x44, 0x24, 0x10],
        verdict: "iced-x86, by the manual: an address by `rsp` is that of the register behind the pop",
        ..ENTRY
    },
    Known {
        names: "vgf2p8affineinvqb vgf2p8affineqb",
        form: Form::Evex,
        what: "size",
        sides: &["8 against 1"],
        example: &[0x62, 0xf3, 0xfd, 0x58, 0xce, 0x07, 0x00],
        verdict: "iced-x86, by the manual: what is read once for all lanes has 8 bytes",
        ..ENTRY
    },
    Known {
        names: "vgf2p8affineinvqb vgf2p8affineqb",
        form: Form::Evex,
        what: "memory",
        sides: &["reads 8 bytes against reads and writes 1 bytes at an eighth of the displacement"],
        example: &[0x62, 0xf3, 0xfd, 0x58, 0xce, 0x47, 0x01, 0x00],
        verdict: "iced-x86, by the manual: so its short displacements count eights",
        ..ENTRY
    },
    Known {
        names: "clflush clflushopt clwb",
        what: "memory",
        sides: &["reads 1 bytes against no memory"],
        example: &[0x0f, 0xae, 0x3f],
        verdict: "both: a line of the cache is written back; capstone lists no access",
        ..ENTRY
    },
    Known {
        names: "maskmovdqu maskmovq vmaskmovdqu xlatb",
        what: "memory",
        sides: &[
            "writes 16 bytes against no memory",
            "writes 8 bytes against no memory",
            "reads 1 bytes against no memory",
        ],
        example: &[0x66, 0x0f, 0xf7, 0xc1],
        verdict: "iced-x86: the processor was asked; capstone leaves out what the assembler's text does not name",
        ..ENTRY
    },
    Known {
        names: "reservednop",
        what: "memory",
        sides: &["no memory against reads 16 bytes", "no memory against writes 16 bytes"],
        example: &[0x0f, 0x1a, 0x07],
        verdict: "iced-x86: the processor was asked; capstone takes them for MPX's, which processors have no more",
        ..ENTRY
    },
    Known {
        form: Form::Segments,
        what: "segment",
        sides: &["fs against none", "gs against none"],
        example: &[0x64, 0x3e, 0x8a, 0x07],
        verdict: "iced-x86: the processor was asked; es, cs, ss and ds mean nothing, and do not hide the fs or gs before them",
        ..ENTRY
    },
    Known {
        names: "iret iretd iretq sysenter sysexit sysexitq",
        what: "stack pointer",
        sides: &["Recorded against Add(0)"],
        example: &[0xcf],
        verdict: "iced-x86, by the manual: they set it",
        ..ENTRY
    },
    Known {
        names: "bswap enter",
        what: "stack pointer",
        sides: &["Recorded against Add(0)"],
        example: &[0xc8, 0x10, 0x00, 0x00],
        verdict: "iced-x86: the processor was asked",
        ..ENTRY
    },
    Known {
        names: "call retf",
        what: "stack pointer",
        sides: &["Add(N) against Add(0)"],
        example: &[0xcb],
        verdict: "iced-x86, by the manual: far calls and returns push and pop",
        ..ENTRY
    },
    Known {
        names: "pop push",
        what: "stack pointer",
        sides: &["Add(-8) against Add(0)", "Add(8) against Add(0)", "Add(-2) against Add(0)", "Add(2) against Add(0)"],
        example: &[0x0f, 0xa0],
        verdict: "iced-x86: the processor was asked; these push and pop fs and gs",
        ..ENTRY
    },
    Known {
        names: "pop popfq push pushfq",
        form: Form::Behind(&[0x66]),
        what: "stack pointer",
        sides: &["Add(-8) against Add(-2)", "Add(8) against Add(2)"],
        example: &[0x66, 0x48, 0x50],
        verdict: "iced-x86: the processor was asked; REX.W overrides 66",
        ..ENTRY
    },
    Known {
        names: "vmwrite",
        what: "stack pointer",
        sides: &["Add(0) against Recorded"],
        example: &[0x0f, 0x79, 0xe0],
        verdict: "iced-x86, by the manual: it reads its operands",
        ..ENTRY
    },
    Known {
        names: "pause",
        what: "kind",
        sides: &["Pause against Plain"],
        example: &[0xf3, 0x40, 0x4a, 0x90],
        verdict: "iced-x86, by the manual: the REX prefix has nothing to say here",
        ..ENTRY
    },
    Known {
        names: "rsm seamcall vmcall vmgexit vmlaunch vmmcall vmresume",
        what: "kind",
        sides: &["Call against Plain", "Return against Plain"],
        example: &[0x0f, 0x01, 0xc1],
        verdict: "both: these are hypervisors' instructions, which no traced program runs",
        ..ENTRY
    },
    Known {
        names: "jno jo",
        form: Form::Behind(&[0x66]),
        what: "length",
        sides: &["2 bytes more"],
        example: &[0x66, 0x0f, 0x81, 0x26, 0x00, 0x00, 0x00],
        verdict: "iced-x86 for Intel's processors, which ignore 66 in front of near branches; capstone for AMD's, of \
                  these two branches alone. Compilers write none",
        ..ENTRY
    },
    Known {
        names: "jno jo",
        form: Form::Behind(&[0x66]),
        what: "target",
        sides: &["a target against a target"],
        example: &[0x66, 0x0f, 0x81, 0x26, 0x00, 0x00, 0x00],
        verdict: "as for the length",
        ..ENTRY
    },
    Known {
        names: "ret",
        form: Form::Behind(&[0x66]),
        what: "length",
        sides: &["2 bytes fewer"],
        example: &[0x66, 0x48, 0xc2, 0x08, 0x00, 0x00, 0x00],
        verdict: "as for the validity",
        ..ENTRY
    },
    Known {
        names: "ret",
        form: Form::Both(&[0x66], WIDE),
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0x66, 0x48, 0xc2, 0x08, 0x00],
        verdict: "iced-x86: the processor was asked; the number that a return pops has 2 bytes, here too",
        ..ENTRY
    },
    Known {
        names: "ud0 ud1",
        what: "length",
        sides: &["N bytes more"],
        example: &[0x0f, 0xff, 0xc1],
        verdict: "both: these end the program, whatever is behind them",
        ..ENTRY
    },
    Known {
        extensions: "AESKLE AMX_BF16 AMX_COMPLEX AMX_FP16 AMX_INT8 AMX_TILE AVX512_BF16 AVX512_FP16 AVX512_VP2INTERSECT \
                AVX_IFMA AVX_NE_CONVERT AVX_VNNI AVX_VNNI_INT16 AVX_VNNI_INT8 CMPCCXADD ENQCMD HRESET INVLPGB KL \
                LKGS PADLOCK_ACE PADLOCK_GMI PADLOCK_RNG RAO_INT RDPRU RMPQUERY SEV_SNP SHA512 SM3 SM4 TDX TSE \
                TSXLDTRK UINTR WIDE_KL",
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0xc4, 0xe2, 0x79, 0x50, 0xc1],
        verdict: "iced-x86: capstone does not know these extensions, or not all of their forms",
        ..ENTRY
    },
    Known {
        names: "kaddb kaddd kaddq kaddw kandb kandd kandnb kandnd kandnq kandnw kandq kandw kmovb kmovd kmovq kmovw \
                knotb knotd knotq knotw korb kord korq kortestb kortestd kortestq kortestw korw kshiftlb kshiftld \
                kshiftlq kshiftlw kshiftrb kshiftrd kshiftrq kshiftrw ktestb ktestd ktestq ktestw kunpckbw kunpckdq \
                kunpckwd kxnorb kxnord kxnorq kxnorw kxorb kxord kxorq kxorw",
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0xc4, 0xc1, 0x7d, 0x4a, 0xc6],
        verdict: "iced-x86, by the manual: bits that would choose among more registers than there are mean nothing",
        ..ENTRY
    },
    Known {
        names: "v4fmaddss v4fnmaddss vcmpsd vcmpss vcvtdq2pd vcvtudq2pd vfpclasssd vfpclassss vgetexpsd vgetexpss vpalignr vpsllw vpsraw vpsrlw vrcp14sd \
                vrcp14ss vrcp28sd vrcp28ss vrndscalesd vrndscaless vrsqrt14sd vrsqrt14ss vrsqrt28sd vrsqrt28ss \
                vscalefsd vscalefss",
        form: Form::Evex,
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0x62, 0xf2, 0x2d, 0x2e, 0x4d, 0x07],
        verdict: "iced-x86, by the manual: they ignore bits (W, or the length of vectors) that capstone wants to be 0",
        ..ENTRY
    },
    Known {
        names: "vpackusdw vpcmpestri64 vpcmpestrm64 vpcmpistri vpcmpistrm vpextrb vpextrw vphsubd vpinsrb vpinsrw",
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0xc4, 0xe1, 0xb1, 0xc4, 0xc0, 0x01],
        verdict: "iced-x86: the processor was asked; they ignore W, and capstone wants it to be 0",
        ..ENTRY
    },
    Known {
        names: "fcom fcomp fstp fxch movsxd",
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0xdc, 0xd1],
        verdict: "iced-x86: the processor was asked; second encodings that no assembler writes",
        ..ENTRY
    },
    Known {
        names: "lfence mfence prefetch prefetchw reservednop sfence",
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0x0f, 0xae, 0xe9],
        verdict: "iced-x86: the processor was asked; as above",
        ..ENTRY
    },
    Known {
        names: "bsf bsr",
        form: Form::Behind(&[0xf2, 0xf3]),
        what: "validity",
        sides: &["an instruction against none"],
        example: &[0xf2, 0x0f, 0xbd, 0xc1],
        verdict: "iced-x86: the processor was asked; these prefixes mean nothing here",
        ..ENTRY
    },
    Known {
        form: Form::Behind(&[0x66, 0xf0, 0xf2, 0xf3]),
        what: "validity",
        sides: &["none against an instruction"],
        example: &[0xf0, 0x03, 0x07],
        verdict: "iced-x86: the processor was asked, and refuses these prefixes here; a trace has what ran only",
        ..ENTRY
    },
    Known {
        form: Form::Evex,
        what: "validity",
        sides: &["none against an instruction"],
        example: &[0x62, 0x61, 0xad, 0x7a, 0x58, 0x16],
        verdict: "iced-x86, by the manual: bits of the prefix that must not be set; a trace has what ran only",
        ..ENTRY
    },
    Known {
        names: "mov vgatherqps vpgatherqd",
        what: "validity",
        sides: &["none against an instruction"],
        example: &[0x0f, 0x20, 0xc8],
        verdict: "iced-x86: the processor was asked; there is no cr1, and a gather's registers must differ",
        ..ENTRY
    },
    Known {
        names: "xcryptcbc xcryptcfb xcryptctr xcryptecb xcryptofb",
        what: "validity",
        sides: &["none against an instruction"],
        example: &[0x0f, 0xa7, 0xd0],
        verdict: "iced-x86, by the manual of their maker: they want f3",
        ..ENTRY
    },
];

/// The entry of the table that explains a difference between two opinions of this code.
#[must_use]
pub fn explained(
    aspect: &Aspect,
    iced: Option<&Opinion>,
    capstone: Option<&Opinion>,
    code: &[u8],
) -> Option<&'static Known> {
    let opinion = iced.or(capstone)?;
    KNOWN.iter().find(|known| {
        known.what == aspect.what
            && known.sides.iter().any(|sides| is_like(&aspect.sides, sides))
            && (known.names.is_empty() || known.names.split(' ').any(|name| name == opinion.mnemonic))
            && (known.extensions.is_empty()
                || known.extensions.split(' ').any(|e| opinion.extensions.iter().any(|o| o == e)))
            && known.form.is_of(code)
    })
}

impl Form {
    pub(crate) fn is_of(self, code: &[u8]) -> bool {
        let prefixes = code.iter().take_while(|byte| is_prefix(**byte)).count();
        let (prefixes, rest) = code.split_at(prefixes);
        match self {
            Form::Any => true,
            Form::Evex => rest.first() == Some(&0x62),
            Form::Behind(some) => prefixes.iter().any(|byte| some.contains(byte)),
            Form::Both(some, others) => [some, others].iter().all(|all| prefixes.iter().any(|byte| all.contains(byte))),
            Form::Segments => prefixes.iter().filter(|byte| is_segment(**byte)).count() > 1,
        }
    }
}

fn is_segment(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65)
}

/// Prefixes that come before any opcode, REX among them.
pub(crate) fn is_prefix(byte: u8) -> bool {
    is_segment(byte) || matches!(byte, 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f)
}

/// Whether a text is like this pattern, in which `N` stands for any number.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((before, after)) = pattern.split_once('N') else { return text == pattern };
    let Some(rest) = text.strip_prefix(before) else { return false };
    rest.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()) == after
}

impl fmt::Display for Known {
    /// What the entry is about, in the words of the document.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |all: &[u8]| all.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(", ");
        let mut parts: Vec<String> = Vec::new();
        if !self.names.is_empty() {
            parts.push(format!("`{}`", self.names.replace(' ', "`, `")));
        }
        if !self.extensions.is_empty() {
            parts.push(format!("those of {}", self.extensions.replace(' ', ", ")));
        }
        if parts.is_empty() {
            parts.push("all".to_owned());
        }
        match self.form {
            Form::Any => {}
            Form::Evex => parts.push("encoded by EVEX".to_owned()),
            Form::Behind(some) => parts.push(format!("behind {}", bytes(some))),
            Form::Both(some, WIDE) => parts.push(format!("behind {} and REX.W", bytes(some))),
            Form::Both(some, others) => parts.push(format!("behind {} and one of {}", bytes(some), bytes(others))),
            Form::Segments => parts.push("behind two segment prefixes".to_owned()),
        }
        f.write_str(&parts.join(" "))
    }
}
