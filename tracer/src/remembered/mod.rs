//! Translations are remembered on disk: the next run of the same program translates all that code at once, instead of
//! stopping for each piece.
//!
//! A file holds *what* to translate, never machine code: offsets in modules, each with a checksum of the bytes there;
//! the routes that code which runs often took; and where synchronisation functions return to. All of it is a hint. What
//! it names is translated from the program's own bytes, as if the program had reached it, so a wrong hint costs time
//! and changes nothing.
//!
//! There is a file for each program (by the build id of its main module) and each set of options that decide what is
//! translated. `codec` has its form, `disk` finds, reads and replaces it.

mod codec;
mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub use codec::MAX_ROUTE;
pub use disk::Folder;

/// Heads that did not run in so many runs are forgotten.
const MOST_RUNS_UNUSED: u8 = 8;
/// The most heads that are remembered of a program. Node, which does nothing, has 60,000.
const MOST_HEADS: usize = 1 << 18;
/// The most bytes that all routes of a program take.
const MOST_ROUTE_BYTES: usize = 8 << 20;
/// The most places of a module that synchronisation functions return to. Node has 400.
const MOST_RETURNS: usize = 1 << 13;
/// The most bytes at a head that are compared.
pub const COMPARED: usize = 16;

/// Where translations are remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Remember {
    /// Nowhere.
    #[default]
    Nowhere,
    /// In this folder. Where it is missing, or its parent too, they are made, in a folder that belongs to the user.
    In(PathBuf),
}

impl Remember {
    /// Where users have it: `lockstep` in `$XDG_CACHE_HOME`, or else in `~/.cache`.
    #[must_use]
    pub fn of_user() -> Remember {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        cache.map_or(Remember::Nowhere, |cache| Remember::In(cache.join("lockstep")))
    }
}

/// A place in a program: the number of a module in [`Remembered::modules`], and the distance to its bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The module.
    pub module: u32,
    /// The offset.
    pub offset: u64,
}

/// A superblock that is to be translated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Whether lookups reach it.
    pub looked_up: bool,
    /// How many bytes at it are compared: 1 to [`COMPARED`].
    pub compared: u8,
    /// Their CRC-32.
    pub checksum: u32,
    /// The route that was taken from it, as [`codec::put_route`] writes it; empty if there is none.
    pub route: Box<[u8]>,
    /// In how many runs it was not run since it was last.
    unused: u8,
    /// Whether it was run in this one.
    used: bool,
}

impl Head {
    /// A head that was run, with the bytes there: no more than [`COMPARED`] of them count.
    #[must_use]
    pub fn new(looked_up: bool, bytes: &[u8]) -> Head {
        let bytes = &bytes[..bytes.len().min(COMPARED)];
        Head { looked_up, compared: bytes.len() as u8, checksum: crc32fast::hash(bytes), ..Head::default() }
    }

    /// Whether these bytes are those that were there.
    #[must_use]
    pub fn is_at(&self, bytes: &[u8]) -> bool {
        bytes.get(..self.compared.into()).is_some_and(|bytes| crc32fast::hash(bytes) == self.checksum)
    }
}

/// What is remembered of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// What tells it from others.
    pub build_id: Vec<u8>,
    /// What is to be translated, by offset.
    pub heads: BTreeMap<u64, Head>,
    /// Where synchronisation functions return to, as offsets.
    pub returns: BTreeSet<u64>,
}

/// What is remembered of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Its modules. Their numbers stay as they are.
    modules: Vec<Module>,
    /// Whether it differs from what was read.
    changed: bool,
}

impl Remembered {
    /// Its modules, by number.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The number of the module with this build id.
    #[must_use]
    pub fn find(&self, build_id: &[u8]) -> Option<u32> {
        self.modules.iter().position(|module| module.build_id == build_id).map(|number| number as u32)
    }

    /// The same; adds the module where it is missing.
    pub fn find_or_add(&mut self, build_id: &[u8]) -> u32 {
        self.find(build_id).unwrap_or_else(|| {
            self.modules.push(Module { build_id: build_id.to_vec(), ..Module::default() });
            self.modules.len() as u32 - 1
        })
    }

    /// A superblock was run, along this route if one was found.
    pub fn ran(&mut self, place: Place, head: Head, route: &[Place]) {
        let Some(module) = self.modules.get_mut(place.module as usize).filter(|_| head.compared > 0) else { return };
        let mut bytes = Vec::new();
        if !route.is_empty() {
            codec::put_route(&mut bytes, place, route);
        }
        let known = module.heads.entry(place.offset).or_default();
        let looked_up = head.looked_up || known.looked_up;
        let route = if bytes.is_empty() { known.route.clone() } else { bytes.into() };
        let now = Head { looked_up, route, used: true, unused: 0, ..head };
        let same = |a: &Head, b: &Head| {
            (a.looked_up, a.compared, a.checksum, &a.route, a.unused)
                == (b.looked_up, b.compared, b.checksum, &b.route, b.unused)
        };
        self.changed |= !same(known, &now);
        *known = now;
    }

    /// Synchronisation functions return there.
    pub fn returned(&mut self, place: Place) {
        if let Some(module) = self.modules.get_mut(place.module as usize)
            && module.returns.len() < MOST_RETURNS
        {
            self.changed |= module.returns.insert(place.offset);
        }
    }

    /// The route that is remembered of a head, address by address.
    #[must_use]
    pub fn route(&self, place: Place) -> Option<Vec<Place>> {
        let route = &self.modules.get(place.module as usize)?.heads.get(&place.offset)?.route;
        if route.is_empty() {
            return None;
        }
        codec::take_route(route, place, self.modules.len())
    }

    /// The run is over: what did not run for long is forgotten, and what is too much.
    fn end_run(&mut self) {
        let (mut heads, mut route_bytes) = (0, 0);
        for head in self.modules.iter_mut().flat_map(|module| module.heads.values_mut()) {
            if !std::mem::take(&mut head.used) {
                head.unused += 1;
                self.changed = true;
            }
        }
        for module in &mut self.modules {
            module.heads.retain(|_, head| {
                route_bytes += head.route.len();
                if route_bytes > MOST_ROUTE_BYTES {
                    head.route = Box::default();
                }
                heads += 1;
                head.unused <= MOST_RUNS_UNUSED && heads <= MOST_HEADS
            });
        }
    }
}

/// What decides which superblocks there are, besides the program: it is kept, and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The build id of the program's main module.
    pub program: Vec<u8>,
    /// This version of lockstep, the options that decide, and the processor's features that do.
    pub options: String,
}

impl Key {
    /// The name of the file.
    fn file_name(&self) -> String {
        let mut hashed = self.program.clone();
        hashed.extend_from_slice(self.options.as_bytes());
        let program: String = self.program.iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        format!("{program}-{:08x}", crc32fast::hash(&hashed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(byte: u8) -> Head {
        Head::new(false, &[byte; 20])
    }

    #[test]
    fn what_does_not_run_for_long_is_forgotten() {
        let mut remembered = Remembered::default();
        let module = remembered.find_or_add(b"id");
        let [kept, lost] = [8, 9].map(|offset| Place { module, offset });
        remembered.ran(kept, head(1), &[]);
        remembered.ran(lost, head(2), &[]);
        remembered.end_run();
        for run in 0..=MOST_RUNS_UNUSED {
            assert!(remembered.modules[0].heads.contains_key(&9), "in run {run}");
            remembered.ran(kept, head(1), &[]);
            remembered.end_run();
        }
        assert_eq!(remembered.modules[0].heads.keys().copied().collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn a_run_like_the_last_one_changes_nothing() {
        let mut remembered = Remembered::default();
        let place = Place { module: remembered.find_or_add(b"id"), offset: 8 };
        let way = [place, Place { offset: 11, ..place }];
        for (run, way) in [&way[..], &way, &[]].into_iter().enumerate() {
            remembered.changed = false;
            remembered.ran(place, head(1), way);
            remembered.end_run();
            assert_eq!(remembered.changed, run == 0);
            assert_eq!(remembered.route(place).unwrap(), [place, Place { offset: 11, ..place }]);
        }
    }

    #[test]
    fn only_the_bytes_that_were_there_are_accepted() {
        let head = Head::new(false, &[1, 2, 3]);
        assert!(head.is_at(&[1, 2, 3, 4]) && !head.is_at(&[1, 2, 4, 4]) && !head.is_at(&[1, 2]));
    }

    #[test]
    fn no_more_is_kept_than_a_program_may_have() {
        let mut remembered = Remembered::default();
        let module = remembered.find_or_add(b"id");
        for offset in 0..MOST_HEADS as u64 + 10 {
            remembered.ran(Place { module, offset }, head(1), &[]);
        }
        remembered.end_run();
        assert_eq!(remembered.modules[0].heads.len(), MOST_HEADS);
    }

    #[test]
    fn files_of_other_options_have_other_names() {
        let key = |options: &str| Key { program: vec![0xab; 30], options: options.to_owned() }.file_name();
        assert_ne!(key("1"), key("2"));
        assert_eq!(key("1").split_once('-').unwrap().0, "ab".repeat(20));
    }
}
