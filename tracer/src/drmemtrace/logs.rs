//! The lists beside a trace: which modules were mapped where, and which functions were recorded.

use rustc_hash::FxHashMap;
use trace_format::{Mapping, Module, ModuleRole, Pc};

use crate::drmemtrace::Fault;
use crate::images::sync_functions::{self, Role};

/// The parts of DynamoRIO that lie in the program's memory, and run nothing that is in the trace.
const ITS_OWN: [&str; 2] = ["libdynamorio.so", "libdrmemtrace.so"];

/// A module of the list, and the bytes of its image where the list holds them.
#[derive(Debug)]
pub struct Listed {
    /// The module.
    pub module: Module,
    /// Its image: of the kernel's code, which has no file.
    pub image: Option<Vec<u8>>,
}

/// The modules of a list, by address. `program` is the name of the traced program, as names of files tell it.
pub fn modules(list: &[u8], program: &str) -> Result<Vec<Listed>, Fault> {
    let mut left = list;
    let first = String::from_utf8_lossy(until(&mut left, b'\n'));
    let Some(version) = first.strip_prefix("Module Table: version ").and_then(|rest| rest.split(',').next()) else {
        return Err(Fault::of("its first line is no module table's"));
    };
    if version != "5" {
        return Err(Fault::of(format!("it is a module table of version {version}; only version 5 is known")));
    }
    until(&mut left, b'\n');
    let mut modules: Vec<Listed> = Vec::new();
    let mut places: FxHashMap<u64, usize> = FxHashMap::default();
    while !left.trim_ascii_start().is_empty() {
        let at = list.len() - left.len();
        let entry = Entry::take(&mut left).ok_or_else(|| Fault::of(format!("what stands at byte {at} is no module")))?;
        if ITS_OWN.iter().any(|own| entry.path.ends_with(own)) {
            continue;
        }
        let mapping = Mapping { start: Pc(entry.start), end: Pc(entry.end), offset: entry.offset, executable: true };
        if entry.id != entry.containing
            && let Some(&place) = places.get(&entry.containing)
        {
            modules[place].module.mappings.push(mapping);
            continue;
        }
        places.insert(entry.id, modules.len());
        let module = Module {
            path: entry.path,
            role: ModuleRole::Library,
            bias: entry.start.wrapping_sub(entry.preferred),
            build_id: None,
            mappings: vec![mapping],
        };
        modules.push(Listed { module, image: entry.image });
    }
    set_roles(&mut modules, program);
    modules.sort_by_key(|listed| listed.module.mappings[0].start);
    Ok(modules)
}

/// What stands before the next byte of that value, or the end; both are taken off.
fn until<'a>(left: &mut &'a [u8], end: u8) -> &'a [u8] {
    let at = left.iter().position(|&byte| byte == end).unwrap_or(left.len());
    let found = &left[..at];
    *left = left.get(at + 1..).unwrap_or(&[]);
    found
}

fn set_roles(modules: &mut [Listed], program: &str) {
    let is_program = |module: &Module| !is_loader(module) && !module.name().contains(".so") && !is_kernel(module);
    let main = modules.iter().position(|listed| listed.module.name() == program);
    let main = main.or_else(|| modules.iter().position(|listed| is_program(&listed.module)));
    for (place, Listed { module, .. }) in modules.iter_mut().enumerate() {
        module.role = match () {
            () if Some(place) == main => ModuleRole::Main,
            () if is_kernel(module) => ModuleRole::Kernel,
            () if is_loader(module) => ModuleRole::Loader,
            () => ModuleRole::Library,
        };
    }
}

fn is_loader(module: &Module) -> bool {
    module.name().starts_with("ld-") || module.name() == "ld.so"
}

fn is_kernel(module: &Module) -> bool {
    module.name().contains("vdso") || module.path.starts_with('[')
}

/// One mapped part of a file.
struct Entry {
    id: u64,
    containing: u64,
    start: u64,
    end: u64,
    offset: u64,
    preferred: u64,
    image: Option<Vec<u8>>,
    path: String,
}

impl Entry {
    /// Takes the next one off the list.
    fn take(left: &mut &[u8]) -> Option<Entry> {
        let mut number = |radix| {
            let field = str::from_utf8(until(left, b',')).ok()?.trim();
            u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), radix).ok()
        };
        let (id, containing) = (number(10)?, number(10)?);
        let [start, end, _entry, offset, preferred] = [(); 5].map(|()| number(16));
        *left = left.trim_ascii_start();
        let image = if left.starts_with(b"v#") {
            until(left, b',');
            let length: usize = str::from_utf8(until(left, b',')).ok()?.trim().parse().ok()?;
            let image = left.get(..length)?;
            *left = &left[length..];
            Some(image.to_vec()).filter(|image| !image.is_empty())
        } else {
            None
        };
        let path = String::from_utf8_lossy(until(left, b'\n')).trim().to_owned();
        let (start, end, offset, preferred) = (start?, end?, offset?, preferred?);
        Some(Entry { id, containing, start, end, offset, preferred, image, path })
            .filter(|entry| entry.start < entry.end && !entry.path.is_empty())
    }
}

/// A function that was recorded.
#[derive(Clone, Debug)]
pub struct Function {
    /// What it is to a trace, if anything.
    pub role: Option<Role>,
}

/// The recorded functions by their numbers.
pub fn functions(text: &str) -> FxHashMap<u64, Function> {
    let entry = |line: &str| {
        let (number, rest) = line.split_once(',')?;
        let name = rest.rsplit_once('!')?.1.trim();
        Some((number.trim().parse().ok()?, Function { role: sync_functions::by_name(name) }))
    };
    text.lines().filter_map(entry).collect()
}
