//! Modules, symbols, and what is known about the run as a whole.

use serde::{Deserialize, Serialize};

use crate::Pc;

/// A mapped part of a module's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mapping {
    /// Its first address in the program.
    pub start: Pc,
    /// The address after its last.
    pub end: Pc,
    /// The file offset of `start`, in bytes.
    pub offset: u64,
    /// Whether it is executable.
    pub executable: bool,
}

/// What a module is to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum ModuleRole {
    /// The program itself.
    Main = 0,
    /// The dynamic loader.
    Loader = 1,
    /// A shared library.
    Library = 2,
    /// Code that the kernel supplies (`[vdso]`).
    Kernel = 3,
}

impl ModuleRole {
    /// Every role, in the order of its code in the file.
    pub const ALL: [ModuleRole; 4] = [ModuleRole::Main, ModuleRole::Loader, ModuleRole::Library, ModuleRole::Kernel];

    /// The role with this code in the file, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<ModuleRole> {
        ModuleRole::ALL.get(code as usize).copied()
    }
}

/// An executable or library as it was mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Module {
    /// The path of its file, as the kernel gave it (`[vdso]` for the kernel's).
    pub path: String,
    /// What it is to the program.
    pub role: ModuleRole,
    /// The offset added to the file's virtual addresses: pc = bias + address in the file.
    pub bias: u64,
    /// Its GNU build id, where it has one.
    pub build_id: Option<Vec<u8>>,
    /// Where it lies.
    pub mappings: Vec<Mapping>,
}

impl Module {
    /// The last part of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it is the dynamic loader, the C library, OpenMP's runtime, or the kernel's: their locks are known by
    /// their functions, and what their atomic instructions do, or loops wait for, tells nobody anything.
    #[must_use]
    pub fn has_known_locks(&self) -> bool {
        const LIBRARIES: [&str; 8] =
            ["libc.so", "libc-", "libc.musl", "ld-", "libpthread", "libgomp", "libomp", "libiomp"];
        matches!(self.role, ModuleRole::Loader | ModuleRole::Kernel)
            || LIBRARIES.iter().any(|library| self.name().starts_with(library))
    }

    /// It, mapped into the program of that number: see [`Pc`].
    #[must_use]
    pub fn in_program(&self, program: u16) -> Module {
        let mut module = self.clone();
        for mapping in &mut module.mappings {
            let moved = mapping.start.in_program(program);
            // The end of the last mapping may be the first address that is not a program's.
            let distance = moved.0 - mapping.start.0;
            (mapping.start, mapping.end) = (moved, Pc(mapping.end.0 + distance));
        }
        let start = |module: &Module| module.mappings.first().map_or(0, |mapping| mapping.start.0);
        module.bias = module.bias.wrapping_add(start(&module) - start(self));
        module
    }

    /// Whether the address lies in one of its mappings.
    #[must_use]
    pub fn contains(&self, pc: Pc) -> bool {
        self.mappings.iter().any(|m| m.start <= pc && pc < m.end)
    }
}

/// The end of a symbol's name that marks a stub of the linkage table: `sin@plt` jumps on to `sin`.
pub const STUB_NAME: &str = "@plt";

/// A function's name and place. A trace holds the symbols of the functions that ran.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Symbol {
    /// Its first address in the program (bias included).
    pub pc: Pc,
    /// Its size in bytes; 0 when the symbol table does not tell.
    pub size: u64,
    /// Its name as in the symbol table (mangled).
    pub name: String,
}

/// Whose instructions the code of a trace is. Other architectures can be named, so that an error says which it is.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Architecture {
    /// What Intel's and AMD's processors run in 64-bit mode.
    #[default]
    #[serde(rename = "x86-64")]
    X86_64,
    /// One that this program cannot read.
    #[serde(untagged)]
    Other(String),
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Architecture::X86_64 => "x86-64",
            Architecture::Other(name) => name,
        })
    }
}

/// What is known about a run before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Meta {
    /// Who wrote the trace: `lockstep 0.1.0`.
    pub tool: String,
    /// The engine that recorded it (`step`, `translate`), or `text`.
    pub engine: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// When it was started: seconds since 1970 (UTC).
    pub started: u64,
    /// The processor's name.
    pub cpu: String,
    /// Whose instructions it runs. Traces that do not say it are of x86-64.
    #[serde(default)]
    pub architecture: Architecture,
    /// Whether memory addresses were recorded.
    pub memory: bool,
    /// Which part of the run was to be recorded, in words; none for all of it.
    #[serde(default)]
    pub window: Option<String>,
}

/// What is known about a run at its end.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Finish {
    /// The program's exit status, if it exited.
    pub exit_status: Option<i32>,
    /// The signal that killed the program, if one did.
    pub signal: Option<i32>,
    /// Why the recording ended before the program did, if so.
    pub stopped_early: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_in_another_program_has_the_same_addresses_in_its_file() {
        let mapping = |start, end| Mapping { start: Pc(start), end: Pc(end), offset: 0, executable: true };
        let role = ModuleRole::Library;
        let mappings = vec![mapping(0x5000, 0x6000), mapping(0x8000, 1 << 48)];
        let module = Module { path: "/lib/a".into(), role, bias: 0x4000, build_id: None, mappings };
        let moved = module.in_program(3);
        let pc = Pc(0x5123).in_program(3);
        assert!(moved.contains(pc) && !moved.contains(Pc(0x5123)) && !module.contains(pc));
        assert_eq!(pc.0 - moved.bias, 0x5123 - module.bias);
        assert_eq!(moved.mappings[1].end.0 - moved.bias, (1 << 48) - module.bias);
        assert_eq!(module.in_program(0), module);
    }
}
