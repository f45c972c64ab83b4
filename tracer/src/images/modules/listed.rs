//! Modules that another tool has listed: no process is there to be asked.

use trace_format::{Mapping, Module, Pc};

use super::{Images, Loaded, ModuleMap, Region};
use crate::images::elf::Source;

/// A module as it was listed, and the bytes of its image where it has no file.
pub type Listed = (Module, Option<Vec<u8>>);

impl ModuleMap {
    /// The modules of a program that has ended. Their files are read where they still are.
    #[must_use]
    pub fn listed(modules: Vec<Listed>, images: &mut Images) -> ModuleMap {
        let mut map = ModuleMap::default();
        for (number, (mut module, image)) in modules.into_iter().enumerate() {
            let known = match image {
                Some(bytes) => Images::read(&images.window, &Source::Bytes(&bytes)),
                None => images.of_file(&module.path),
            };
            module.build_id = known.as_ref().and_then(|known| known.image.build_id.clone());
            map.code.extend(module.mappings.iter().map(|mapping| Region {
                start: mapping.start.0,
                end: mapping.end.0,
                writable: false,
                executable: true,
                shared: false,
                offset: mapping.offset,
                file: (String::new(), number as u64 + 1),
                path: module.path.clone(),
            }));
            map.modules.push(Loaded { id: None, module, known });
        }
        map.code.sort_by_key(|region| region.start);
        map
    }

    /// The module with this address of code, where it has no number yet: its place in the map.
    #[must_use]
    pub fn new_at(&self, pc: u64) -> Option<usize> {
        self.modules
            .iter()
            .position(|loaded| loaded.module.contains(Pc(pc)))
            .filter(|&at| self.modules[at].id.is_none())
    }

    /// The place of the module with this address, and where the address lies in its file.
    #[must_use]
    pub fn in_file(&self, pc: u64) -> Option<(usize, u64)> {
        let holds = |mapping: &&Mapping| mapping.start.0 <= pc && pc < mapping.end.0;
        let found = |(place, loaded): (usize, &Loaded)| {
            let mapping = loaded.module.mappings.iter().find(holds)?;
            Some((place, (pc - mapping.start.0).wrapping_add(mapping.offset)))
        };
        self.modules.iter().enumerate().find_map(found)
    }

    /// Whether the file of the module at that place was read.
    #[must_use]
    pub fn is_known(&self, place: usize) -> bool {
        self.modules[place].known.is_some()
    }

    /// The file of the module at that place is another one than ran: what it says is of no use.
    pub fn forget_file(&mut self, place: usize) {
        self.modules[place].known = None;
        self.modules[place].module.build_id = None;
    }
}
