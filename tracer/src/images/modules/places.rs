//! Where code lies in the files that it comes from.

use std::ops::Range;

use trace_format::ModuleRole;

use super::ModuleMap;

/// A piece of a module's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home<'a> {
    /// What tells the module from others, wherever it lies.
    pub build_id: &'a [u8],
    /// What is added to addresses in its file.
    pub bias: u64,
    /// The addresses of the piece.
    pub code: Range<u64>,
}

impl ModuleMap {
    /// Whether the code at these addresses is of one file.
    #[must_use]
    pub fn are_of_one_file(&self, one: u64, other: u64) -> bool {
        let file = |pc| self.code_at(pc).map(|region| &region.file);
        file(one).is_some_and(|own| file(other) == Some(own))
    }

    /// The piece of code with this address. None where it belongs to no file, or to one without a build id.
    #[must_use]
    pub fn home(&self, pc: u64) -> Option<Home<'_>> {
        let module = &self.loaded_at(pc)?.module;
        let mapping = module.mappings.iter().find(|m| m.executable && m.start.0 <= pc && pc < m.end.0)?;
        let build_id = module.build_id.as_deref().filter(|_| module.role != ModuleRole::Kernel)?;
        Some(Home { build_id, bias: module.bias, code: mapping.start.0..mapping.end.0 })
    }

    /// The bias of the module with this build id.
    #[must_use]
    pub fn bias_of(&self, build_id: &[u8]) -> Option<u64> {
        let with_id = self.modules.iter().map(|loaded| &loaded.module);
        with_id.filter(|module| module.build_id.as_deref() == Some(build_id)).map(|module| module.bias).next()
    }
}

#[cfg(test)]
mod tests {
    use crate::images::modules::{Images, ModuleMap};
    use crate::kernel::ptrace::Tid;

    #[test]
    fn code_has_a_home_that_is_found_again() {
        let me = Tid(std::process::id().cast_signed());
        let mut map = ModuleMap::default();
        map.refresh(me, &mut Images::default());
        let libc = map.modules.iter().find(|m| m.module.name() == "libc.so.6").unwrap();
        let address = libc.known.as_ref().unwrap().image.symbols.named("malloc").unwrap().address;
        let home = map.home(libc.module.bias + address).unwrap();
        assert!(home.code.contains(&(libc.module.bias + address)));
        assert_eq!(map.bias_of(home.build_id), Some(libc.module.bias));
        assert_eq!(map.home(libc.module.bias), None, "its header is no code");
        assert_eq!(map.bias_of(b"none"), None);
    }
}
