//! What is known about functions that a module only declares: library functions, runtimes, intrinsics.

use divergence::{Fact, Form};

/// What a call gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    /// A thread's number, or what is computed from it.
    Fact(Fact),
    /// The same for all threads that call together.
    Uniform,
    /// A function of the arguments, which reads nothing.
    Pure,
    /// A function of the arguments and of the memory that they point at.
    Reads,
    /// A product of the first two arguments, plus the third where there is one (`mul24`, `mad24`: OpenCL says what they
    /// give for numbers of 24 bits only).
    Product,
    /// Anything.
    Divergent,
}

/// A thread's number in a dimension, plus an unknown that is the same for all threads of a group.
fn thread(dimension: u8, base: Form) -> Known {
    Known::Fact(Fact::of_thread(dimension, Form::number(1), base).exact(true, true))
}

/// Functions of the C library and its like that read and write nothing and always give the same for the same.
const PURE: &[&str] = &[
    "abs",
    "labs",
    "llabs",
    "acos",
    "acosf",
    "asin",
    "asinf",
    "atan",
    "atanf",
    "atan2",
    "atan2f",
    "ceil",
    "ceilf",
    "cos",
    "cosf",
    "cosh",
    "coshf",
    "erf",
    "erff",
    "exp",
    "expf",
    "exp2",
    "exp2f",
    "expm1",
    "expm1f",
    "fabs",
    "fabsf",
    "floor",
    "floorf",
    "fma",
    "fmaf",
    "fmax",
    "fmaxf",
    "fmin",
    "fminf",
    "fmod",
    "fmodf",
    "hypot",
    "hypotf",
    "ldexp",
    "ldexpf",
    "log",
    "logf",
    "log10",
    "log10f",
    "log1p",
    "log1pf",
    "log2",
    "log2f",
    "lrint",
    "lrintf",
    "lround",
    "lroundf",
    "nearbyint",
    "nearbyintf",
    "pow",
    "powf",
    "remainder",
    "rint",
    "rintf",
    "round",
    "roundf",
    "sin",
    "sinf",
    "sinh",
    "sinhf",
    "sqrt",
    "sqrtf",
    "tan",
    "tanf",
    "tanh",
    "tanhf",
    "tgamma",
    "trunc",
    "truncf",
    "cbrt",
    "cbrtf",
    "toupper",
    "tolower",
    "isalpha",
    "isdigit",
    "isspace",
    "isupper",
    "islower",
    "isalnum",
    "ispunct",
    "isxdigit",
];

/// Functions that only read what their arguments point at.
const READS: &[&str] =
    &["strlen", "strnlen", "strcmp", "strncmp", "memcmp", "strchr", "strrchr", "memchr", "strstr", "atoi", "atol"];

/// The same for all threads that call together.
const UNIFORM: &[&str] = &[
    "omp_get_num_threads",
    "omp_get_max_threads",
    "omp_get_num_procs",
    "omp_in_parallel",
    "omp_get_level",
    "omp_get_num_teams",
    "omp_get_team_num",
    "getpid",
    "sysconf",
    "llvm.amdgcn.readfirstlane",
    "llvm.amdgcn.readlane",
    "llvm.amdgcn.ballot",
    "llvm.amdgcn.icmp",
    "llvm.amdgcn.fcmp",
    "llvm.amdgcn.if.break",
    "llvm.amdgcn.workgroup.id.x",
    "llvm.amdgcn.workgroup.id.y",
    "llvm.amdgcn.workgroup.id.z",
    "llvm.amdgcn.dispatch.ptr",
    "llvm.amdgcn.implicitarg.ptr",
    "llvm.amdgcn.kernarg.segment.ptr",
    "llvm.amdgcn.dispatch.id",
    "llvm.amdgcn.queue.ptr",
    "llvm.amdgcn.s.getpc",
    "llvm.amdgcn.wavefrontsize",
    "llvm.nvvm.read.ptx.sreg.ctaid",
    "llvm.nvvm.read.ptx.sreg.ntid",
    "llvm.nvvm.read.ptx.sreg.nctaid",
    "llvm.nvvm.read.ptx.sreg.warpsize",
    "llvm.nvvm.read.ptx.sreg.warpid",
    "get_group_id",
    "get_global_size",
    "get_local_size",
    "get_enqueued_local_size",
    "get_num_groups",
    "get_work_dim",
    "get_global_offset",
];

/// Intrinsics whose result depends on more than their arguments, though they say that they read nothing.
const LANES: &[&str] = &[
    "llvm.amdgcn.",
    "llvm.nvvm.shfl",
    "llvm.nvvm.read.ptx.sreg",
    "llvm.threadlocal.address",
    "llvm.returnaddress",
    "llvm.frameaddress",
    "llvm.addressofreturnaddress",
    "llvm.sponentry",
    "llvm.stacksave",
    "llvm.readcyclecounter",
    "llvm.readsteadycounter",
    "llvm.thread.pointer",
];

/// Intrinsics of AMD's that are plain arithmetic on their arguments.
const AMD_PURE: &[&str] = &[
    "rcp",
    "rsq",
    "sqrt",
    "sin",
    "cos",
    "log",
    "exp2",
    "fract",
    "ldexp",
    "frexp",
    "class",
    "fmed3",
    "ubfe",
    "sbfe",
    "sad",
    "msad",
    "qsad",
    "mqsad",
    "lerp",
    "perm",
    "cvt",
    "cubeid",
    "cubema",
    "cubesc",
    "cubetc",
    "fmul.legacy",
    "fma.legacy",
    "div",
    "trig",
    "mul.i24",
    "mul.u24",
    "mulhi",
    "fdot2",
    "sdot",
    "udot",
    "alignbyte",
    "sffbh",
    "fmad",
    "bitreplicate",
];

/// Functions of OpenCL's that depend on their arguments alone.
const OPENCL: &[&str] = &[
    "clamp",
    "mix",
    "mad",
    "mad_sat",
    "mad_hi",
    "mul_hi",
    "min",
    "max",
    "abs_diff",
    "hadd",
    "rhadd",
    "rotate",
    "clz",
    "popcount",
    "select",
    "bitselect",
    "dot",
    "cross",
    "length",
    "distance",
    "normalize",
    "fast_length",
    "fast_distance",
    "fast_normalize",
    "step",
    "smoothstep",
    "sign",
    "degrees",
    "radians",
    "powr",
    "pown",
    "rootn",
    "rsqrt",
    "exp10",
    "sinpi",
    "cospi",
    "tanpi",
    "isnan",
    "isinf",
    "isfinite",
    "isnormal",
    "isequal",
    "isgreater",
    "isless",
    "signbit",
    "any",
    "all",
    "copysign",
    "nan",
    "maxmag",
    "minmag",
    "upsample",
    "add_sat",
    "sub_sat",
    "nextafter",
    "fdim",
    "ilogb",
    "logb",
];

/// What is known about a declared function, by its name and the arguments that are numbers.
pub(super) fn known(name: &str, number: &dyn Fn(usize) -> Option<i64>) -> Option<Known> {
    let dimension = |letter: &str| ["x", "y", "z"].iter().position(|d| *d == letter).map(|d| d as u8);
    if let Some(d) = name.strip_prefix("llvm.amdgcn.workitem.id.").and_then(dimension) {
        return Some(thread(d, Form::ZERO));
    }
    if let Some(d) = name.strip_prefix("llvm.nvvm.read.ptx.sreg.tid.").and_then(dimension) {
        return Some(thread(d, Form::ZERO));
    }
    let plain = demangled(name);
    let by_argument = |base: Form| match number(0) {
        Some(d @ 0..=2) => thread(d as u8, base),
        // There are three dimensions; others are constant.
        Some(_) => Known::Uniform,
        None => Known::Divergent,
    };
    match plain {
        "__translate_sampler_initializer" => return Some(Known::Pure),
        "get_local_id" => return Some(by_argument(Form::ZERO)),
        "get_global_id" => return Some(by_argument(Form::UNKNOWN)),
        "omp_get_thread_num" => return Some(thread(0, Form::ZERO)),
        "__kmpc_global_thread_num" => return Some(Known::Divergent),
        _ => {}
    }
    if UNIFORM.iter().any(|u| plain == *u || name.strip_prefix(u).is_some_and(|rest| rest.starts_with('.'))) {
        return Some(Known::Uniform);
    }
    if let Some(rest) = name.strip_prefix("llvm.amdgcn.") {
        let pure = AMD_PURE.iter().any(|p| rest.starts_with(p));
        return Some(if pure { Known::Pure } else { Known::Divergent });
    }
    // What is declared under a mangled name is OpenCL's own.
    if name.starts_with("_Z") && plain != name {
        match plain {
            "mul24" | "mad24" => return Some(Known::Product),
            _ if plain.starts_with("read_image") || plain.starts_with("vload") => return Some(Known::Reads),
            _ if PURE.contains(&plain) || OPENCL.contains(&plain) => return Some(Known::Pure),
            _ if ["native_", "half_", "convert_", "as_", "get_image_"].iter().any(|p| plain.starts_with(p)) => {
                return Some(Known::Pure);
            }
            _ => {}
        }
    }
    if LANES.iter().any(|lanes| name.starts_with(lanes)) {
        return Some(Known::Divergent);
    }
    if PURE.contains(&name) {
        return Some(Known::Pure);
    }
    READS.contains(&name).then_some(Known::Reads)
}

/// A name of C++'s or OpenCL's function without its parameters: `_Z13get_global_idj` is `get_global_id`.
pub(super) fn demangled(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("_Z") else { return name };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let length: Option<usize> = rest[..digits].parse().ok();
    length.and_then(|length| rest.get(digits..digits + length)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_lose_their_parameters() {
        assert_eq!(demangled("_Z13get_global_idj"), "get_global_id");
        assert_eq!(demangled("_Z99x"), "_Z99x");
        assert_eq!(demangled("sin"), "sin");
    }

    #[test]
    fn a_dimension_that_is_no_number_is_divergent() {
        assert_eq!(known("_Z13get_global_idj", &|_| None), Some(Known::Divergent));
        assert!(matches!(known("_Z13get_global_idj", &|_| Some(1)), Some(Known::Fact(_))));
        assert_eq!(known("_Z13get_global_idj", &|_| Some(3)), Some(Known::Uniform));
        assert_eq!(known("mystery", &|_| None), None);
    }
}
