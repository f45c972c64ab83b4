//! What is mapped where in a process: its modules and its other executable memory.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use trace_format::{Mapping, Module, ModuleId, ModuleRole, Pc, STUB_NAME, Symbol, names};

use crate::images::copies;
use crate::images::elf::{Image, Source};
use crate::images::symbols::FileSymbol;
use crate::images::sync_functions::{self, Role};
use crate::kernel::ptrace::{self, Address, Tid};
use crate::window::{Gate, Window};
mod listed;
mod places;
mod told;

/// The path of what the engine `translate` maps into programs: it is no module of theirs.
pub(crate) const OWN_MEMORY: &str = "/memfd:lockstep (deleted)";

/// The name of the code that the kernel maps into programs.
pub(crate) const KERNEL_CODE: &str = "[vdso]";

/// Room for a memory map: most take less.
const MAP_LEN: usize = 16 << 10;

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first address.
    pub start: u64,
    /// The address after its last.
    pub end: u64,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether it may be executed.
    pub executable: bool,
    /// Whether writes to it are seen by others that map the same file.
    pub shared: bool,
    /// Where in the file it starts, in bytes.
    pub offset: u64,
    /// Device and inode of the file; zeros when there is none.
    pub file: (String, u64),
    /// The path of the file, or a name in brackets, or nothing.
    pub path: String,
}

impl Region {
    /// Whether the address lies in it.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// Whether its code can change without a system call that says so.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.executable && (self.writable || self.shared)
    }
}

/// The regions of a process; empty when it is gone.
#[must_use]
pub fn regions(pid: Tid) -> Vec<Region> {
    // Files of the kernel do not tell how long they are: without room for them, they are read in many small pieces.
    let mut text = Vec::with_capacity(MAP_LEN);
    let read = File::open(format!("/proc/{pid}/maps")).and_then(|map| map.take(u64::MAX).read_to_end(&mut text));
    // A path need not be UTF-8.
    let text = read.map_or(Cow::Borrowed(""), |_| String::from_utf8_lossy(&text));
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Region> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?.as_bytes();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let device = fields.next()?.to_owned();
    let inode = fields.next()?.parse().ok()?;
    Some(Region {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        writable: *permissions.get(1)? == b'w',
        executable: *permissions.get(2)? == b'x',
        shared: *permissions.get(3)? == b's',
        offset,
        file: (device, inode),
        path: fields.next().unwrap_or("").trim_start().to_owned(),
    })
}

/// Whether it bears the name of a function whose work it does: a resolver and a stub of the linkage table do not.
fn is_function(symbol: &FileSymbol<'_>) -> bool {
    !symbol.resolver && !symbol.name.ends_with(STUB_NAME)
}

/// An image and what was found in it for every later use.
#[derive(Debug)]
struct Known {
    image: Image,
    roles: FxHashMap<u64, Role>,
    /// Where the resolvers of indirect functions start, in order.
    resolvers: Vec<u64>,
    /// Where the window may begin or end.
    gates: Vec<(u64, Gate)>,
}

impl Known {
    fn new(image: Image, window: &Window) -> Known {
        let functions = image.symbols.iter().filter(|s| s.function && !s.resolver);
        let roles = functions.filter_map(|s| Some((s.address, sync_functions::by_name(s.name)?))).collect();
        let mut resolvers: Vec<u64> = image.symbols.iter().filter(|s| s.resolver).map(|s| s.address).collect();
        resolvers.dedup();
        let mut gates = Vec::new();
        for (name, gate) in window.functions() {
            let called = image.symbols.iter().filter(|s| is_function(s) && names::is_called(s.name, name));
            gates.extend(called.map(|s| (s.address, gate)));
        }
        Known { image, roles, resolvers, gates }
    }
}

/// The images read so far, so that each file is read once per run. A file is told by device, inode and time of change.
#[derive(Debug, Default)]
pub struct Images {
    window: Window,
    known: FxHashMap<(u64, u64, i64, i64), Option<Rc<Known>>>,
}

impl Images {
    /// Images in which the places of this window are looked for.
    #[must_use]
    pub fn for_window(window: &Window) -> Images {
        Images { window: window.clone(), known: FxHashMap::default() }
    }

    /// The names of all functions of the images, as their files have them.
    #[must_use]
    pub fn function_names(&self) -> Vec<&str> {
        let images = self.known.values().flatten();
        images.flat_map(|known| known.image.symbols.iter().filter(is_function).map(|s| s.name)).collect()
    }

    /// Whether there is a function that is called so.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        self.function_names().into_iter().any(|symbol| names::is_called(symbol, name))
    }

    fn read(window: &Window, source: &Source<'_>) -> Option<Rc<Known>> {
        Image::read(source).map(|image| Rc::new(Known::new(image, window)))
    }

    fn of_file(&mut self, path: &str) -> Option<Rc<Known>> {
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        let key = (metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        let window = &self.window;
        self.known.entry(key).or_insert_with(|| Images::read(window, &Source::File(&file))).clone()
    }
}

/// A module that is mapped now.
#[derive(Clone, Debug)]
struct Loaded {
    id: Option<ModuleId>,
    module: Module,
    known: Option<Rc<Known>>,
}

impl Loaded {
    fn is_same(&self, other: &Loaded) -> bool {
        self.module.path == other.module.path
            && self.module.bias == other.module.bias
            && self.module.build_id == other.module.build_id
    }
}

/// A function where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// Its first address.
    pub start: Pc,
    /// Its size in bytes, 0 when the file does not tell.
    pub size: u64,
    /// Its name, as the file has it.
    pub name: &'a str,
}

impl Function<'_> {
    /// What the trace holds of it, in the program of that number.
    #[must_use]
    pub fn symbol(self, program: u16) -> Symbol {
        Symbol { pc: self.start.in_program(program), size: self.size, name: self.name.to_owned() }
    }
}

/// What changed between two looks at the map.
#[derive(Debug, Default)]
pub struct Changes {
    /// Modules that are gone.
    pub unloaded: Vec<ModuleId>,
    /// Places in the map of modules that are new: the caller gives each its number with [`ModuleMap::set_id`].
    pub loaded: Vec<usize>,
}

/// The modules and the executable memory of one process.
#[derive(Clone, Debug, Default)]
pub struct ModuleMap {
    /// The number of the program that runs, once it has one.
    program: Option<u16>,
    code: Vec<Region>,
    modules: Vec<Loaded>,
    /// Where [`ModuleMap::function_entered`] has given its answer.
    told: told::Told,
}

impl ModuleMap {
    /// Looks at the process again and says what changed.
    pub fn refresh(&mut self, pid: Tid, images: &mut Images) -> Changes {
        self.refresh_from(pid, &regions(pid), images)
    }

    /// The same for who has looked at the process already, and has seen these regions.
    pub fn refresh_from(&mut self, pid: Tid, regions: &[Region], images: &mut Images) -> Changes {
        let mut now = find_modules(pid, regions, images);
        let mut changes = Changes::default();
        for old in &self.modules {
            match now.iter_mut().find(|new| new.is_same(old)) {
                Some(new) => new.id = old.id,
                None => changes.unloaded.extend(old.id),
            }
        }
        changes.loaded = (0..now.len()).filter(|&i| now[i].id.is_none()).collect();
        self.modules = now;
        self.told = told::Told::default();
        self.code = regions.iter().filter(|r| r.executable).cloned().collect();
        changes
    }

    /// The module at that place, as the trace has it.
    #[must_use]
    pub fn module(&self, place: usize) -> Cow<'_, Module> {
        let module = &self.modules[place].module;
        if self.program() == 0 { Cow::Borrowed(module) } else { Cow::Owned(module.in_program(self.program())) }
    }

    /// The program itself.
    #[must_use]
    pub fn main(&self) -> Option<&Module> {
        self.modules.iter().map(|loaded| &loaded.module).find(|module| module.role == ModuleRole::Main)
    }

    /// Whether the program has a number.
    #[must_use]
    pub fn has_program(&self) -> bool {
        self.program.is_some()
    }

    /// Gives the program its number.
    pub fn set_program(&mut self, program: u16) {
        self.program = Some(program);
    }

    /// What the trace has for this address of code.
    #[must_use]
    pub fn pc(&self, address: u64) -> Pc {
        Pc(address).in_program(self.program())
    }

    /// The number of the program.
    #[must_use]
    pub fn program(&self) -> u16 {
        self.program.unwrap_or(0)
    }

    /// Gives the module at that place its number.
    pub fn set_id(&mut self, place: usize, id: ModuleId) {
        self.modules[place].id = Some(id);
    }

    /// The executable region with this address.
    #[must_use]
    pub fn code_at(&self, pc: u64) -> Option<&Region> {
        let after = self.code.partition_point(|r| r.start <= pc);
        self.code[..after].last().filter(|r| r.contains(pc))
    }

    /// Whether a part of this memory is executable.
    #[must_use]
    pub fn has_code_in(&self, start: u64, length: u64) -> bool {
        let end = start.saturating_add(length);
        self.code.iter().any(|r| r.start < end && start < r.end)
    }

    fn loaded_at(&self, pc: u64) -> Option<&Loaded> {
        self.modules.iter().find(|m| m.module.contains(Pc(pc)))
    }

    /// Whether atomic instructions there may be of locks that no known function takes: their addresses are wanted.
    #[must_use]
    pub fn wants_atomics(&self, pc: u64) -> bool {
        self.loaded_at(pc).is_some_and(|loaded| !loaded.module.has_known_locks())
    }

    /// The function that contains this address; none where that was told before, as far as that is remembered.
    #[must_use]
    pub fn function_entered(&self, pc: u64) -> Option<Function<'_>> {
        if self.told.contains(pc) {
            return None;
        }
        let (function, range) = self.function(pc);
        self.told.add(pc, &range);
        function
    }

    /// The function that contains this address, if there is one, and the addresses around it for which the answer is
    /// the same.
    fn function(&self, pc: u64) -> (Option<Function<'_>>, Range<u64>) {
        let Some(loaded) = self.loaded_at(pc) else {
            let borders = || self.modules.iter().flat_map(|m| &m.module.mappings).flat_map(|m| [m.start.0, m.end.0]);
            let start = borders().filter(|&border| border <= pc).max().unwrap_or(0);
            return (None, start..borders().filter(|&border| border > pc).min().unwrap_or(u64::MAX));
        };
        let mapping = loaded.module.mappings.iter().find(|m| m.start.0 <= pc && pc < m.end.0);
        let (start, end) = mapping.map_or((pc, pc + 1), |m| (m.start.0, m.end.0));
        let Some(known) = &loaded.known else { return (None, start..end) };
        let bias = loaded.module.bias;
        let (found, range) = known.image.symbols.containing(pc.wrapping_sub(bias));
        let function = found.map(|s| Function { start: Pc(s.address.wrapping_add(bias)), size: s.size, name: s.name });
        let before = pc.wrapping_sub(bias) - range.start;
        let behind = range.end - pc.wrapping_sub(bias);
        (function, pc.saturating_sub(before).max(start)..pc.saturating_add(behind).min(end))
    }

    /// What is known about places in the images, with the addresses at which they lie.
    fn placed<'a, T>(&'a self, of: impl Fn(&'a Known) -> Vec<(u64, T)>) -> Vec<(u64, T)> {
        let known = self.modules.iter().filter_map(|loaded| Some((loaded.module.bias, loaded.known.as_deref()?)));
        known
            .flat_map(|(bias, known)| of(known).into_iter().map(move |(at, what)| (at.wrapping_add(bias), what)))
            .collect()
    }

    /// The places of functions at which the window may begin or end.
    #[must_use]
    pub fn gates(&self) -> Vec<(u64, Gate)> {
        self.placed(|known| known.gates.clone())
    }

    /// Where the resolvers of the indirect functions of a module start, if one of them starts at this address: a
    /// library's loader calls nearly all of them one after another.
    #[must_use]
    pub fn resolvers_beside(&self, pc: u64) -> Vec<u64> {
        let Some(loaded) = self.loaded_at(pc) else { return Vec::new() };
        let (bias, resolvers) = (loaded.module.bias, loaded.known.as_ref().map_or(&[][..], |known| &known.resolvers));
        match resolvers.binary_search(&pc.wrapping_sub(bias)) {
            Ok(_) => resolvers.iter().map(|address| address.wrapping_add(bias)).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// The synchronisation functions of all modules, with the addresses at which they start.
    #[must_use]
    pub fn roles(&self) -> Vec<(u64, Role)> {
        self.placed(|known| known.roles.iter().map(|(&address, &role)| (address, role)).collect())
    }

    /// The synchronisation function that starts at this address.
    #[must_use]
    pub fn role(&self, pc: u64) -> Option<Role> {
        let loaded = self.loaded_at(pc)?;
        loaded.known.as_ref()?.roles.get(&pc.wrapping_sub(loaded.module.bias)).copied()
    }
}

/// The modules that these regions are the parts of.
fn find_modules(pid: Tid, regions: &[Region], images: &mut Images) -> Vec<Loaded> {
    let program = fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| m.ino());
    let mut modules: Vec<(Loaded, u64)> = Vec::new();
    for file in copies::by_file(regions) {
        let known = known(pid, file[0], images);
        for copy in copies::of(&file, known.as_ref().map(|known| &known.image)) {
            modules.push((loaded(&copy, known.clone(), program), file[0].file.1));
        }
    }
    modules.sort_by_key(|(loaded, _)| loaded.module.mappings[0].start);
    let interpreter = modules
        .iter()
        .find(|(m, _)| m.module.role == ModuleRole::Main)
        .and_then(|(m, _)| m.known.as_ref()?.image.interpreter.clone())
        .and_then(|path| fs::metadata(path).ok())
        .map(|m| m.ino());
    for (loaded, file) in &mut modules {
        if loaded.module.role == ModuleRole::Library && Some(*file) == interpreter {
            loaded.module.role = ModuleRole::Loader;
        }
    }
    modules.into_iter().map(|(loaded, _)| loaded).collect()
}

/// What is known about the file that this region is a part of.
fn known(pid: Tid, region: &Region, images: &mut Images) -> Option<Rc<Known>> {
    if region.path != KERNEL_CODE {
        return images.of_file(&region.path);
    }
    let mut bytes = vec![0; (region.end - region.start) as usize];
    let read = ptrace::read(pid, Address(region.start), &mut bytes);
    Images::read(&images.window, &Source::Bytes(&bytes[..read]))
}

fn loaded(copy: &copies::Copy<'_>, known: Option<Rc<Known>>, program: Option<u64>) -> Loaded {
    let first = copy.regions[0];
    let role = match () {
        () if first.path == KERNEL_CODE => ModuleRole::Kernel,
        () if program == Some(first.file.1) => ModuleRole::Main,
        () => ModuleRole::Library,
    };
    let mapping =
        |r: &&Region| Mapping { start: Pc(r.start), end: Pc(r.end), offset: r.offset, executable: r.executable };
    Loaded {
        id: None,
        module: Module {
            path: first.path.clone(),
            role,
            bias: copy.bias,
            build_id: known.as_ref().and_then(|k| k.image.build_id.clone()),
            mappings: copy.regions.iter().map(mapping).collect(),
        },
        known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_map_is_understood() {
        let region =
            parse("7f0000001000-7f0000003000 r-xp 00001000 fe:01 1234                       /usr/lib/a b.so").unwrap();
        assert_eq!((region.start, region.end, region.offset), (0x7f00_0000_1000, 0x7f00_0000_3000, 0x1000));
        assert!(region.executable && !region.writable && !region.shared && !region.is_volatile());
        assert_eq!((region.file.1, region.path.as_str()), (1234, "/usr/lib/a b.so"));
        let region = parse("00400000-00401000 rwxp 00000000 00:00 0 ").unwrap();
        assert!(region.is_volatile() && region.path.is_empty() && parse("nonsense").is_none());
    }

    #[test]
    fn this_process_has_a_program_a_loader_and_libraries() {
        let me = Tid(std::process::id().cast_signed());
        let (mut map, mut images) = (ModuleMap::default(), Images::default());
        let changes = map.refresh(me, &mut images);
        let roles: Vec<_> = changes.loaded.iter().map(|&i| map.module(i).role).collect();
        for role in [ModuleRole::Main, ModuleRole::Loader, ModuleRole::Library, ModuleRole::Kernel] {
            assert!(roles.contains(&role), "{role:?}");
        }
        for (number, &place) in changes.loaded.iter().enumerate() {
            map.set_id(place, ModuleId(number as u32));
        }
        let again = map.refresh(me, &mut images);
        assert!(again.loaded.is_empty() && again.unloaded.is_empty());
    }

    #[test]
    fn functions_are_found_where_they_lie() {
        let me = Tid(std::process::id().cast_signed());
        let mut map = ModuleMap::default();
        map.refresh(me, &mut Images::default());
        let libc = map.modules.iter().find(|m| m.module.name() == "libc.so.6").unwrap();
        let address = libc.known.as_ref().unwrap().image.symbols.named("pthread_mutex_lock").unwrap().address;
        let pc = address + libc.module.bias;
        assert!(map.function_entered(pc + 4).unwrap().name.contains("pthread_mutex_lock"));
        assert!(map.function_entered(pc + 5).is_none(), "it was told");
        assert!(map.function_entered(0x10).is_none(), "there is none");
        map.refresh(me, &mut Images::default());
        assert!(map.function_entered(pc + 5).is_some(), "what was told before may have changed");
        let lock = sync_functions::by_name("pthread_mutex_lock");
        assert_eq!(map.role(pc), lock);
        assert!(map.role(pc + 4).is_none() && !map.wants_atomics(pc));
        assert!(map.code_at(pc).is_some() && map.has_code_in(pc - 100_000, 100_001));
    }

    #[test]
    fn resolvers_are_found_beside_each_other() {
        let me = Tid(std::process::id().cast_signed());
        let mut map = ModuleMap::default();
        map.refresh(me, &mut Images::default());
        let library = map.modules.iter().find(|m| m.known.as_ref().is_some_and(|known| known.resolvers.len() > 1));
        let library = library.expect("the C library has indirect functions");
        let resolvers = &library.known.as_ref().unwrap().resolvers;
        let beside = map.resolvers_beside(library.module.bias + resolvers[1]);
        assert_eq!((beside.len(), beside[0]), (resolvers.len(), library.module.bias + resolvers[0]));
        assert!(map.resolvers_beside(library.module.bias + resolvers[1] + 1).is_empty());
    }
}
