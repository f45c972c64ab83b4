//! The mathematical functions of the C library: on a GPU they are other code, which parts no lanes.
//!
//! A call of one is one step of so many of a GPU's instructions, and what it runs inside is left out. The numbers are
//! differences of counts on an NVIDIA H200 (CUDA 13), for operands in (0, 1]. Some were not counted, and have what they
//! are made of there: `acosh`, `asinh` and `atanh` a logarithm, `fmin` what `fmax` has, and a few instructions `fdim`,
//! `frexp`, `ldexp`, `modf`, `nearbyint`, `scalbn` and what rounds to integers. Functions that are not in the list cost
//! their call alone.

use trace_format::{Module, ModuleRole};

/// By name without the letter of its type: instructions of its `float` and its `double`.
const FUNCTIONS: [(&str, u32, u32); 51] = [
    ("acos", 22, 61),
    ("acosh", 23, 79),
    ("asin", 21, 56),
    ("asinh", 23, 79),
    ("atan", 14, 69),
    ("atan2", 43, 111),
    ("atanh", 23, 60),
    ("cbrt", 11, 39),
    ("ceil", 1, 1),
    ("copysign", 1, 1),
    ("cos", 24, 41),
    ("cosh", 11, 56),
    ("erf", 25, 118),
    ("erfc", 43, 155),
    ("exp", 5, 44),
    ("exp10", 5, 50),
    ("exp2", 3, 43),
    ("expm1", 24, 60),
    ("fabs", 1, 1),
    ("fdim", 2, 4),
    ("floor", 1, 1),
    ("fma", 1, 1),
    ("fmax", 1, 7),
    ("fmin", 1, 7),
    ("fmod", 20, 59),
    ("frexp", 8, 8),
    ("hypot", 25, 44),
    ("ldexp", 8, 8),
    ("lgamma", 39, 123),
    ("llrint", 2, 2),
    ("llround", 4, 4),
    ("log", 23, 79),
    ("log10", 24, 85),
    ("log1p", 23, 60),
    ("log2", 25, 85),
    ("lrint", 2, 2),
    ("lround", 4, 4),
    ("modf", 4, 4),
    ("nearbyint", 1, 1),
    ("pow", 88, 194),
    ("remainder", 27, 66),
    ("rint", 1, 1),
    ("round", 3, 4),
    ("scalbn", 8, 8),
    ("sin", 23, 40),
    ("sincos", 28, 71),
    ("sinh", 20, 27),
    ("sqrt", 5, 13),
    ("tan", 20, 70),
    ("tanh", 12, 48),
    ("tgamma", 27, 90),
];

/// What the library's names end with for kinds of processors, and a fast compiler's.
const VARIANTS: [&str; 8] = ["_fma", "_fma4", "_avx", "_avx2", "_sse2", "_sse41", "_c", "_finite"];

/// What a GPU has for a call of such a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Mathematics {
    pub instructions: u32,
    /// Loads of 16 bytes from a table in global memory.
    pub table_loads: u8,
}

/// The functions of `double` that have their coefficients in a table, of which a lane reads one of two parts by its
/// operand, and how many loads that is. In `kepler` of workloads/twins an H200 has 19,758 requests for 6,586 calls.
const WITH_TABLE: [(&str, u8); 3] = [("sin", 3), ("cos", 3), ("sincos", 6)];

/// What a GPU has for the function of this name, if it is one of these.
pub(super) fn of_function(name: &str) -> Option<Mathematics> {
    let table_loads = WITH_TABLE.iter().find(|(own, _)| bare(name) == *own).map_or(0, |(_, loads)| *loads);
    instructions(name).map(|instructions| Mathematics { instructions, table_loads })
}

/// A function's name without what the library writes around it.
fn bare(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let bare = name.trim_start_matches('_');
    let bare = bare.strip_prefix("GI_").unwrap_or(bare).trim_start_matches('_');
    let bare = bare.strip_prefix("ieee754_").unwrap_or(bare);
    // Only the library's own names have underlines in front.
    let variant = VARIANTS.iter().find_map(|end| bare.strip_suffix(end)).filter(|_| bare != name);
    variant.unwrap_or(bare)
}

/// How many instructions a GPU has for the function of this name, if it is one of these.
fn instructions(name: &str) -> Option<u32> {
    let name = bare(name);
    let of = |name: &str| FUNCTIONS.iter().find(|(own, ..)| *own == name);
    let by_type = |end: char| name.strip_suffix(end).and_then(of);
    of(name).map(|(_, _, double)| *double).or_else(|| by_type('f').map(|(_, float, _)| *float)).or_else(|| {
        // A GPU has no wider type than `double`.
        by_type('l').map(|(_, _, double)| *double)
    })
}

/// Whether a function of this name is one of these.
pub(super) fn is_one(name: &str) -> bool {
    instructions(name).is_some()
}

/// Whether code is of the library's mathematical functions; `name` is its symbol's.
pub(super) fn is_of_library(module: Option<&Module>, is_static: bool, name: &str) -> bool {
    let Some(module) = module else { return false };
    let begins = |names: &[&str]| names.iter().any(|one| module.name().starts_with(one));
    // musl has one library for all, and so has a program without a loader; glibc's libc has `ldexp` and its like.
    let is_among_others =
        begins(&["libc.so", "libc-", "libc.musl", "ld-musl"]) || module.role == ModuleRole::Main && is_static;
    begins(&["libm.so", "libm-", "libmvec"]) || is_among_others && is_one(name)
}

#[cfg(test)]
mod tests {
    use super::instructions;

    #[test]
    fn functions_are_known_by_all_their_names() {
        for (name, expected) in [
            ("sinf", Some(23)),
            ("sin@@GLIBC_2.2.5", Some(40)),
            ("sin_fma", None),
            ("round_robin", None),
            ("__sinf_fma", Some(23)),
            ("__ieee754_pow_fma", Some(194)),
            ("__expf_finite", Some(5)),
            ("erf", Some(118)),
            ("erff", Some(25)),
            ("powl", Some(194)),
            ("sine", None),
            ("main", None),
            ("", None),
        ] {
            assert_eq!(instructions(name), expected, "{name}");
        }
    }
}
