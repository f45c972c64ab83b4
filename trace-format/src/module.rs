//! Modules, symbols, and what is known of the run as a whole.

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
    /// What was added to the file's virtual addresses: pc = bias + address in the file.
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

    /// Whether the address lies in one of its mappings.
    #[must_use]
    pub fn contains(&self, pc: Pc) -> bool {
        self.mappings.iter().any(|m| m.start <= pc && pc < m.end)
    }
}

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

/// What is known of a run before it starts.
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
    /// Whether memory addresses were recorded.
    pub memory: bool,
    /// Which part of the run was to be recorded, in words; none for all of it.
    #[serde(default)]
    pub window: Option<String>,
}

/// What is known of a run at its end.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Finish {
    /// The program's exit status, if it exited.
    pub exit_status: Option<i32>,
    /// The signal that killed the program, if one did.
    pub signal: Option<i32>,
    /// Why the recording ended before the program did, if so.
    pub stopped_early: Option<String>,
}
