//! Whether the files of modules are those that ran: their bytes are compared with the instructions in the trace.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustc_hash::FxHashMap;

use crate::decode::{Decoded, MAX_LENGTH};
use crate::images::modules::ModuleMap;

/// So many places of each module are compared.
const MOST: u32 = 256;

/// What is known of the modules' files, by their places in the map.
#[derive(Default)]
pub struct Origin {
    modules: FxHashMap<usize, Module>,
}

struct Module {
    path: String,
    file: Option<File>,
    left: u32,
    differs: bool,
}

impl Origin {
    /// Compares an instruction with the file that it should be from. A file that differs is not used any more.
    pub fn check(&mut self, pc: u64, decoded: &Decoded, modules: &mut ModuleMap) {
        let Some((place, offset)) = modules.in_file(pc) else { return };
        let module = self.modules.entry(place).or_insert_with(|| {
            let path = modules.module(place).path.clone();
            let file = File::open(&path).ok().filter(|_| modules.is_known(place));
            Module { path, file, left: MOST, differs: false }
        });
        let Some(file) = module.file.as_ref().filter(|_| module.left > 0) else { return };
        module.left -= 1;
        let mut bytes = [0; MAX_LENGTH];
        let bytes = &mut bytes[..decoded.code().len()];
        if file.read_exact_at(bytes, offset).is_err() || bytes != decoded.code() {
            (module.differs, module.file) = (true, None);
            modules.forget_file(place);
        }
    }

    /// The paths of modules that ran and whose files are missing, and of those whose files differ.
    pub fn lacking(&self) -> [Vec<&str>; 2] {
        let is_file = |module: &&Module| module.path.starts_with('/');
        let paths = |differ: bool| {
            let lacking = self.modules.values().filter(is_file).filter(|module| module.file.is_none());
            let mut paths: Vec<&str> =
                lacking.filter(|module| module.differs == differ).map(|module| &module.path[..]).collect();
            paths.sort_unstable();
            paths
        };
        [paths(false), paths(true)]
    }
}
