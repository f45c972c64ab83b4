//! The lists beside a trace: which modules were mapped where, and which functions were recorded.

use rustc_hash::FxHashMap;
use trace_format::{Mapping, Module, ModuleRole, Pc};

use crate::drmemtrace::fault::Fault;
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
    let refused =
        |what: &str| Fault::of(format!("{what}. Copy it again, or remove it to convert without names and lines"));
    let mut left = list;
    let first = String::from_utf8_lossy(until(&mut left, b'\n'));
    let Some(version) = first.strip_prefix("Module Table: version ").and_then(|rest| rest.split(',').next()) else {
        return Err(refused("its first line is no module table's"));
    };
    if version != "5" {
        return Err(refused(&format!("it is a module table of version {version}; only version 5 is known")));
    }
    until(&mut left, b'\n');
    let mut modules: Vec<Listed> = Vec::new();
    let mut places: FxHashMap<u64, usize> = FxHashMap::default();
    while !left.trim_ascii_start().is_empty() {
        let at = list.len() - left.len();
        let entry = Entry::take(&mut left).ok_or_else(|| refused(&format!("what stands at byte {at} is no module")))?;
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
        let (start, end, preferred) = (start?, end?, preferred?);
        // Of a segment that begins within a page, whose beginning is mapped, too.
        let offset = offset? & !0xfff;
        Some(Entry { id, containing, start, end, offset, preferred, image, path })
            .filter(|entry| entry.start < entry.end && !entry.path.is_empty())
    }
}

/// A function that was recorded.
#[derive(Clone, Debug)]
pub struct Function {
    /// Where it begins.
    pub start: u64,
    /// What it is to a trace, if anything.
    pub role: Option<Role>,
}

/// The recorded functions by their numbers. A line is a number, how many arguments, the address, and behind other
/// words MODULE!NAME.
pub fn functions(list: &str) -> FxHashMap<u64, Function> {
    let entry = |line: &str| {
        let mut fields = line.splitn(4, ',');
        let (number, _arguments, start) = (fields.next()?, fields.next()?, fields.next()?.trim());
        let start = u64::from_str_radix(start.strip_prefix("0x").unwrap_or(start), 16).ok()?;
        let role = sync_functions::by_name(fields.next()?.rsplit_once('!')?.1.trim());
        Some((number.trim().parse().ok()?, Function { start, role }))
    };
    list.lines().filter_map(entry).collect()
}

/// The functions whose arguments a trace needs, as the value of drmemtrace's option `-record_function`. Its options
/// have room for 2,048 characters, so functions that few programs call are left out.
pub fn wanted() -> String {
    const RARE: [&str; 9] = ["timed", "clock", "_start", "mtx_", "cnd_", "thrd_", "call_once", "_ull", "file"];
    const OF_LIBRARIES: [&str; 2] = ["g_", "__kmpc_omp_"];
    let is_rare = |name: &str| {
        RARE.iter().any(|part| name.contains(part)) && name != "GOMP_critical_name_start"
            || OF_LIBRARIES.iter().any(|start| name.starts_with(start))
    };
    let wanted = sync_functions::TABLE.iter().filter(|(name, role)| role.words().is_none() && !is_rare(name));
    let counted = wanted.filter_map(|(name, role)| {
        let last = (0..6).rev().find(|number| role.names(*number))?;
        Some(format!("{name}|{}", last + 1))
    });
    counted.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_to_be_recorded_have_room_in_the_options() {
        let wanted = wanted();
        assert!(wanted.len() < 1700, "{}", wanted.len());
        for one in ["pthread_create|3", "pthread_mutex_lock|1", "pthread_cond_wait|2", "GOMP_parallel|3"] {
            assert!(wanted.split('&').any(|name| name == one), "{one}: {wanted}");
        }
    }

    #[test]
    fn a_list_of_modules_may_hold_an_image_with_ends_of_lines() {
        let list = b"Module Table: version 5, count 4\nColumns: id, containing_id, start, end, entry, offset, \
            preferred_base, (custom fields), path\n\
            0, 0, 0x0000000000400000, 0x0000000000401000, 0, 0000000000000000, 0x400000, v#1,0, /bin/own program\n\
            1, 0, 0x0000000000401000, 0x0000000000402000, 0, 0000000000000123, 0x401000, v#1,0, /bin/own program\n\
            2, 2, 0x7000, 0x8000, 0, 0, 0, v#1,5,a\nb\nc [vdso]\n\
            3, 3, 0x9000, 0xa000, 0, 0, 0, v#1,0, /x/libdynamorio.so\n";
        let modules = modules(list, "own program").unwrap();
        let paths: Vec<_> =
            modules.iter().map(|one| (&one.module.path[..], one.module.role, one.module.bias)).collect();
        assert_eq!(paths, [("[vdso]", ModuleRole::Kernel, 0x7000), ("/bin/own program", ModuleRole::Main, 0)]);
        assert_eq!(modules[0].image.as_deref(), Some(&b"a\nb\nc"[..]));
        assert_eq!(modules[1].module.mappings.iter().map(|m| m.offset).collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn a_list_of_modules_that_is_none_is_refused() {
        let words = |list: &[u8]| modules(list, "").unwrap_err().0;
        assert!(words(b"").contains("no module table"));
        assert!(words(b"").contains("remove it to convert without names"));
        assert!(words(b"Module Table: version 6, count 1\n\n").contains("version 6"));
        assert!(words(b"Module Table: version 5, count 1\n\n0, 0, 0x10").contains("no module"));
        assert!(
            words(b"Module Table: version 5, count 1\n\n0,0,1,2,0,0,0,v#1,99999999999999999999, a")
                .contains("no module")
        );
        assert!(
            words(b"Module Table: version 5, count 1\n\n0,0,1,2,0,0,0,v#1,18446744073709551615, a")
                .contains("no module")
        );
    }
}
