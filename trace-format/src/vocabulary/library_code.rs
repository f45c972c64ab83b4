//! Whose code is whose.

use std::ops::Range;

use super::ids::Pc;
use super::module::{Module, ModuleRole, Symbol};

/// Where the code is of the C library, of OpenMP's runtimes, of the dynamic loader and of the kernel: their locks are
/// known by their functions, and what their atomic instructions do, or loops wait for, tells nobody anything. Where the
/// C library is linked into the program, and none of those is a module of its own, it lies behind the program's code.
#[derive(Clone, Debug)]
pub struct LibraryCode<'a> {
    modules: &'a [Module],
    linked: Option<Range<Pc>>,
}

impl<'a> LibraryCode<'a> {
    /// How names begin that only the C library has.
    const NAMES: [&'static str; 4] = ["__libc_", "_IO_", "__lll_", "__stdio_"];

    /// That of the modules and symbols of a trace.
    #[must_use]
    pub fn new(modules: &'a [Module], symbols: &[Symbol]) -> LibraryCode<'a> {
        let is_apart = modules.iter().any(|module| module.role != ModuleRole::Kernel && module.has_known_locks());
        let main = modules.iter().find(|module| module.role == ModuleRole::Main).filter(|_| !is_apart);
        let code = main.iter().flat_map(|main| &main.mappings).filter(|mapping| mapping.executable);
        let linked = code.filter_map(|mapping| {
            // What is seldom run lies elsewhere.
            let is_its = |symbol: &&Symbol| {
                (mapping.start..mapping.end).contains(&symbol.pc)
                    && LibraryCode::NAMES.iter().any(|begin| symbol.name.starts_with(begin))
                    && !symbol.name.contains(".cold")
            };
            Some(symbols.iter().filter(is_its).map(|symbol| symbol.pc).min()?..mapping.end)
        });
        LibraryCode { modules, linked: linked.min_by_key(|linked| linked.start) }
    }

    /// Whether the C library is linked into the program.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.linked.is_some()
    }

    /// Whether the instruction at this address is the dynamic loader's, which others come by where they call a function
    /// of a library for the first time.
    #[must_use]
    pub fn has_loader(&self, pc: Pc) -> bool {
        self.modules.iter().any(|module| module.role == ModuleRole::Loader && module.contains(pc))
    }

    /// Whether the instruction at this address is a part of it, or of no module.
    #[must_use]
    pub fn has(&self, pc: Pc) -> bool {
        let module = self.modules.iter().rev().find(|module| module.contains(pc));
        self.linked.as_ref().is_some_and(|linked| linked.contains(&pc)) || module.is_none_or(Module::has_known_locks)
    }
}

#[cfg(test)]
mod tests {
    use super::super::module::Mapping;
    use super::*;

    #[test]
    fn the_c_library_lies_behind_the_program_that_it_is_linked_into() {
        let mappings = vec![Mapping { start: Pc(0x1000), end: Pc(0x9000), offset: 0, executable: true }];
        let (path, role) = ("/bin/program".into(), ModuleRole::Main);
        let main = Module { path, role, bias: 0, build_id: None, mappings };
        let symbol = |pc, name: &str| Symbol { pc: Pc(pc), size: 16, name: name.into() };
        let symbols = [
            symbol(0x1000, "_IO_fputs.cold"),
            symbol(0x2000, "work"),
            symbol(0x3000, "_IO_fputs"),
            symbol(0x4000, "malloc"),
        ];
        let modules = [main.clone()];
        let linked = LibraryCode::new(&modules, &symbols);
        let has = |code: &LibraryCode| [0x1000, 0x2000, 0x3000, 0x4008, 0x9000].map(|pc| code.has(Pc(pc)));
        assert_eq!(has(&linked), [false, false, true, true, true]);
        assert!(linked.is_linked());
        let library = |role, path: &str| Module { role, path: path.into(), mappings: Vec::new(), ..main.clone() };
        for other in [library(ModuleRole::Loader, "/lib/ld.so"), library(ModuleRole::Library, "/lib/libc.so.6")] {
            let modules = [main.clone(), other];
            let code = LibraryCode::new(&modules, &symbols);
            assert_eq!(has(&code), [false, false, false, false, true]);
            assert!(!code.is_linked() && !code.has_loader(Pc(0x2000)));
        }
    }
}
