//! Which function and which source line an address of the traced program belongs to.
//!
//! Functions come from the symbols in the trace. Lines come from the DWARF of the binary, or of the separate file that
//! holds it, if the binary still exists and is the one that was traced: its build id is the recorded one; a binary
//! without a build id must not be newer than the trace.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use addr2line::Loader;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use trace_format::names::{self, TargetRegion};
use trace_format::{Module, ModuleRole, Pc, STUB_NAME, Trace};

use crate::program::marks::{self, Mark};
use crate::program::separate::debug_file;

/// A source line, and the function that it is a line of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The path of the file, as the compiler was given it.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its function, then those into which that was inlined, the innermost first.
    pub functions: Vec<String>,
}

impl Line {
    /// `fft.c:76`.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{}:{}", name_of(&self.file), self.line)
    }
}

/// The name of a file, without its folders.
fn name_of(file: &str) -> Cow<'_, str> {
    Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy())
}

/// A module's line table; none where it cannot be had.
struct Lines {
    path: String,
    bias: u64,
    loader: Option<Loader>,
}

/// Functions and lines of one trace.
pub struct Source<'t> {
    trace: &'t Trace,
    modules: Vec<Lines>,
    /// Where functions without a symbol begin, in order.
    entries: Vec<Pc>,
    /// The symbols of target regions, with their names by place.
    targets: Vec<(String, String)>,
    notes: Vec<String>,
    /// Where variables lie, by name, as far as that was asked.
    ranges: HashMap<String, Vec<Range<u64>>>,
}

impl<'t> Source<'t> {
    /// Of this trace; binaries are opened when they are asked for.
    #[must_use]
    pub fn new(trace: &'t Trace) -> Source<'t> {
        let (modules, entries, targets, notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut source = Source { trace, modules, entries, targets, notes, ranges: HashMap::new() };
        for symbol in trace.symbols() {
            if let Some(region) = TargetRegion::of(&symbol.name) {
                let line = source.line(symbol.pc);
                let name = region.name(line.as_ref().map(|line| name_of(&line.file)).as_deref());
                source.targets.push((symbol.name.clone(), name));
            }
        }
        source
    }

    /// What clang's target regions are called where their files are not known, and here.
    #[must_use]
    pub fn target_regions(&self) -> Vec<(String, String)> {
        let both = |(symbol, name): &(String, String)| (names::demangled(symbol).into_owned(), name.clone());
        self.targets.iter().map(both).collect()
    }

    fn named(&self, symbol: &str) -> String {
        let target = self.targets.iter().find(|(target, _)| target == symbol);
        target.map_or_else(|| demangled(symbol), |(_, name)| name.clone())
    }

    /// Tells where functions were entered, so that those without a symbol can be named by the address at which they
    /// begin.
    pub fn know_entries(&mut self, entries: impl IntoIterator<Item = Pc>) {
        let nameless = entries.into_iter().filter(|pc| self.trace.symbol_of(*pc).is_none());
        self.entries.extend(nameless);
        self.entries.sort_unstable();
        self.entries.dedup();
        // Most libraries lack the symbols of functions they do not export; if the program itself lacks symbols, the
        // user is told.
        let modules = self.entries.iter().filter_map(|pc| self.trace.module_of(*pc));
        for module in modules.filter(|m| m.role == ModuleRole::Main) {
            let note = format!(
                "{} has no symbols for some functions: they are named by the addresses at which they begin",
                module.path
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Why lines are missing: a sentence per binary that cannot be used.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The function's name, demangled; without one the module's name and the function's first address there.
    #[must_use]
    pub fn function(&self, pc: Pc) -> String {
        if let Some(symbol) = self.trace.symbol_of(pc) {
            return self.named(&symbol.name);
        }
        match self.trace.module_of(pc) {
            Some(module) => match self.function_start(pc) {
                Some(start) => format!("{}+{:#x}", module.name(), start.0.wrapping_sub(module.bias)),
                None => format!("({} without symbol)", module.name()),
            },
            None => "(generated code)".to_owned(),
        }
    }

    /// Where its function begins.
    #[must_use]
    pub fn function_start(&self, pc: Pc) -> Option<Pc> {
        if let Some(symbol) = self.trace.symbol_of(pc) {
            return Some(symbol.pc);
        }
        let start = *self.entries[..self.entries.partition_point(|entry| *entry <= pc)].last()?;
        let module = self.trace.module_of(pc)?;
        module.contains(start).then_some(start)
    }

    /// `function+0x12`: the function and the offset from its beginning.
    #[must_use]
    pub fn place(&self, pc: Pc) -> String {
        match self.trace.symbol_of(pc) {
            Some(symbol) => format!("{}+{:#x}", self.named(&symbol.name), pc.0 - symbol.pc.0),
            None => match self.trace.module_of(pc) {
                Some(module) => format!("{}+{:#x}", module.name(), pc.0.wrapping_sub(module.bias)),
                None => pc.to_string(),
            },
        }
    }

    /// A substitute for the line of an instruction for which [`Source::line`] has none: the function, if its binary has
    /// no line information; the place, if the binary does not exist.
    #[must_use]
    pub fn without_line(&self, pc: Pc) -> String {
        let has_binary = self.trace.module_of(pc).is_some_and(|module| {
            let known = self.modules.iter().find(|m| (m.path.as_str(), m.bias) == (module.path.as_str(), module.bias));
            module.role == ModuleRole::Kernel || known.is_some_and(|m| m.loader.is_some())
        });
        if has_binary { self.function(pc) } else { self.place(pc) }
    }

    /// The source line, where it is known.
    pub fn line(&mut self, pc: Pc) -> Option<Line> {
        let module = self.trace.module_of(pc)?;
        let (lines, address) = self.in_binary(module, pc)?;
        line_in(lines, address)
    }

    /// Whether [`Source::line`] or [`Source::own_line`] is this one, of a file that is named by the end of its path.
    pub fn is_at(&mut self, pc: Pc, file: &str, line: u32) -> bool {
        let binary = self.trace.module_of(pc).and_then(|module| self.in_binary(module, pc));
        let Some((lines, address)) = binary else { return false };
        let is_it = |of: &str, number: u32| number == line && Path::new(of).ends_with(file);
        // What was inlined into what need not be read where the innermost line is known, and the program's own.
        let innermost = lines.find_location(address).ok().flatten();
        match innermost.and_then(|at| Some((at.file?, at.line.filter(|number| *number > 0)?))) {
            Some((of, number)) if is_it(of, number) || !is_of_library(of) => is_it(of, number),
            _ => {
                let all = frames_in(lines, address);
                let own = all.iter().find(|line| !is_of_library(&line.file));
                all.first().into_iter().chain(own).any(|found| is_it(&found.file, found.line))
            }
        }
    }

    /// The line that users know a loop by, which goes back from `back` to `header`: the program's own, if one of them
    /// is of such a line itself, else one into which code of a library was inlined, else that library's. Behind it come
    /// those of the calls through which that was inlined. Empty where lines are not known.
    pub fn loop_lines(&mut self, back: Pc, header: Pc) -> Vec<Line> {
        let both = [self.lines(back), self.lines(header)];
        let is_own = |line: &Line| !is_of_library(&line.file);
        let innermost = both.iter().find(|lines| lines.first().is_some_and(is_own)).map(Vec::as_slice);
        let own = || both.iter().find_map(|lines| lines.iter().position(is_own).map(|first| &lines[first..]));
        let any = || both.iter().find(|lines| !lines.is_empty()).map(Vec::as_slice);
        innermost.or_else(own).or_else(any).unwrap_or_default().to_vec()
    }

    /// The first of [`Source::loop_lines`].
    pub fn loop_line(&mut self, back: Pc, header: Pc) -> Option<Line> {
        self.loop_lines(back, header).into_iter().next()
    }

    /// The line at an address, then those into which the instruction was inlined; of each the first function is the one
    /// that it is a line of. None where lines are not known.
    pub fn lines(&mut self, pc: Pc) -> Vec<Line> {
        let binary = self.trace.module_of(pc).and_then(|module| self.in_binary(module, pc));
        binary.map_or_else(Vec::new, |(lines, address)| frames_in(lines, address))
    }

    /// The innermost line that is not of a language's own libraries or of a package, of those into which the
    /// instruction was inlined, where there is one.
    pub fn own_line(&mut self, pc: Pc) -> Option<Line> {
        self.lines(pc).into_iter().find(|line| !is_of_library(&line.file))
    }

    /// The binary's name for the variable or function at this address: `lock`, or `locks+0x28` inside of one.
    pub fn symbol(&mut self, address: u64) -> Option<String> {
        let pc = Pc(address);
        let holding = self.trace.module_of(pc);
        // Variables that begin as zeros lie behind the mappings of their binary's file, and the heap may lie behind
        // them.
        let end = |module: &Module| module.mappings.iter().map(|m| m.end).max();
        let before = || self.trace.modules().iter().filter(|m| end(m) <= Some(pc)).max_by_key(|m| end(m));
        let (binary, address) = self.in_binary(holding.or_else(before)?, pc)?;
        let symbol = binary.find_symbol_info(address)?;
        let name = demangled(symbol.name());
        match address - symbol.address() {
            0 => Some(name),
            offset => {
                let is_in_it = |variable: &Range<u64>| variable.contains(&pc.0);
                let is_its_own = holding.is_some() || self.ranges(&name).iter().any(is_in_it);
                is_its_own.then(|| format!("{name}+{offset:#x}"))
            }
        }
    }

    /// As [`Source::variables`], looked for once.
    fn ranges(&mut self, name: &str) -> &[Range<u64>] {
        if !self.ranges.contains_key(name) {
            self.ranges.insert(name.to_owned(), self.variables(name));
        }
        &self.ranges[name]
    }

    /// Where the variables of this name lie in memory, in all binaries of the program that are still those that were
    /// traced and have symbols.
    #[must_use]
    pub fn variables(&self, name: &str) -> Vec<Range<u64>> {
        let mut all = Vec::new();
        for module in self.trace.modules().iter().filter(|module| module.role != ModuleRole::Kernel) {
            let Ok(bytes) = bytes_of(module) else { continue };
            let Ok(file) = traced(&bytes, module, self.trace) else { continue };
            let is_it = |symbol: &object::Symbol<'_, '_>| {
                let has_name = symbol.name().is_ok_and(|symbol| symbol == name || demangled(symbol) == name);
                symbol.kind() == SymbolKind::Data && symbol.is_definition() && symbol.size() > 0 && has_name
            };
            all.extend(file.symbols().filter(is_it).map(|symbol| {
                let start = symbol.address().wrapping_add(module.bias);
                start..start.saturating_add(symbol.size())
            }));
        }
        all
    }

    /// The marks of all binaries of the program; the notes say why some are missing.
    pub fn marks(&mut self) -> Vec<Mark> {
        let mut all = Vec::new();
        for module in self.trace.modules().iter().filter(|module| module.role != ModuleRole::Kernel) {
            match marks_in(module, self.trace) {
                Ok(marks) => all.extend(marks),
                Err(why) => self.notes.push(format!("no marks of {}: {why}", module.path)),
            }
        }
        all
    }

    /// The module's binary, where it can be had, and the address in it.
    fn in_binary(&mut self, module: &Module, pc: Pc) -> Option<(&Loader, u64)> {
        let trace = self.trace;
        let known = self.modules.iter().position(|m| (m.path.as_str(), m.bias) == (module.path.as_str(), module.bias));
        let at = known.unwrap_or_else(|| {
            let loader = match load(module, trace) {
                Ok(Some((loader, has_lines))) => {
                    if !has_lines && module.role == ModuleRole::Main {
                        self.notes.push(format!(
                            "{} has no line information: functions are shown instead of lines; build it with -g and \
                             trace it again",
                            module.path
                        ));
                    }
                    Some(loader)
                }
                Ok(None) => None,
                Err(why) => {
                    self.notes.push(format!("no source lines of {}: {why}; addresses are shown instead", module.path));
                    None
                }
            };
            self.modules.push(Lines { path: module.path.clone(), bias: module.bias, loader });
            self.modules.len() - 1
        });
        Some((self.modules[at].loader.as_ref()?, pc.0.wrapping_sub(module.bias)))
    }
}

/// The module's line table, and whether it has lines; none where it never has one.
fn load(module: &Module, trace: &Trace) -> Result<Option<(Loader, bool)>, String> {
    if module.role == ModuleRole::Kernel {
        return Ok(None);
    }
    let bytes = bytes_of(module)?;
    let binary = traced(&bytes, module, trace)?;
    let has_lines = binary.section_by_name(".debug_line").is_some();
    let separate = if has_lines { None } else { debug_file(Path::new(&module.path), &binary) };
    let has_lines = has_lines || separate.is_some();
    let path = separate.unwrap_or_else(|| PathBuf::from(&module.path));
    let loader = Loader::new(path).map_err(|e| format!("its debug information cannot be read ({e})"))?;
    Ok(Some((loader, has_lines)))
}

fn bytes_of(module: &Module) -> Result<Vec<u8>, String> {
    std::fs::read(&module.path).map_err(|e| format!("it cannot be read ({e})"))
}

fn marks_in(module: &Module, trace: &Trace) -> Result<Vec<Mark>, String> {
    let bytes = bytes_of(module)?;
    let file = traced(&bytes, module, trace)?;
    let Some(section) = file.section_by_name(marks::SECTION) else { return Ok(Vec::new()) };
    let bytes = section.uncompressed_data().map_err(|e| format!("it is damaged ({e})"))?;
    marks::parse(&bytes, module.bias)
}

/// The module's binary, if these bytes are the one that was traced.
fn traced<'b>(bytes: &'b [u8], module: &Module, trace: &Trace) -> Result<object::File<'b>, String> {
    let path = Path::new(&module.path);
    let file = object::File::parse(bytes).map_err(|e| format!("it is not a binary ({e})"))?;
    let build_id = file.build_id().map_err(|e| format!("it is damaged ({e})"))?;
    if build_id != module.build_id.as_deref() {
        return Err("it is not the one that was traced (its build id differs)".to_owned());
    }
    if build_id.is_none() && is_newer(path, trace.meta().started) {
        return Err("it has no build id, and has changed since it was traced".to_owned());
    }
    Ok(file)
}

fn is_newer(path: &Path, started: u64) -> bool {
    let modified = File::open(path).and_then(|f| f.metadata()).and_then(|m| m.modified());
    modified.is_ok_and(|time| time > UNIX_EPOCH + Duration::from_secs(started.saturating_add(1)))
}

/// The line at an address of the file.
fn line_in(loader: &Loader, address: u64) -> Option<Line> {
    frames_in(loader, address).into_iter().next()
}

/// The line at an address of the file, then those into which that was inlined.
fn frames_in(loader: &Loader, address: u64) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    let Ok(mut frames) = loader.find_frames(address) else { return all };
    while let Ok(Some(frame)) = frames.next() {
        let location = frame.location.as_ref();
        if let Some((file, line)) = location.and_then(|l| Some((l.file?, l.line?))).filter(|(_, line)| *line > 0) {
            all.push(Line { file: file.to_owned(), line, functions: Vec::new() });
        }
        if let Some(function) = &frame.function {
            let name = function.demangle().map_or_else(|_| "?".to_owned(), |name| name.into_owned());
            let file = location.and_then(|location| location.file).map(name_of);
            let name = TargetRegion::of(&name).map(|region| region.name(file.as_deref())).unwrap_or(name);
            all.iter_mut().for_each(|line| line.functions.push(name.clone()));
        }
    }
    all
}

/// Whether a source file is of a language's own libraries, or of a package that was fetched.
#[must_use]
pub fn is_of_library(file: &str) -> bool {
    const FOLDERS: [&str; 6] =
        ["/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/local/go/", "/usr/share/go", "/rustc/"];
    const INSIDE: [&str; 4] = ["/lib/rustlib/", "/registry/src/", "/include/c++/", "/lib/gcc/"];
    FOLDERS.iter().any(|folder| file.starts_with(folder)) || INSIDE.iter().any(|folder| file.contains(folder))
}

fn demangled(name: &str) -> String {
    if let Some(target) = name.strip_suffix(STUB_NAME) {
        return demangled(target) + STUB_NAME;
    }
    // Without a prefix a name of C would be taken for a type: `a` for a signed char.
    match name.trim_start_matches('_').starts_with(['Z', 'R']) && name.starts_with('_') {
        true => addr2line::demangle_auto(name.into(), None).into_owned(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_and_rust_are_demangled_and_those_of_c_are_not() {
        assert_eq!(demangled("_ZN4tree6insertEi"), "tree::insert(int)");
        assert_eq!(demangled("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(["transpose_rows", "a", "f"].map(demangled), ["transpose_rows", "a", "f"]);
        assert_eq!(demangled("_ZN4tree6insertEi@plt"), "tree::insert(int)@plt");
        assert_eq!(demangled("compute_static._omp_fn.0"), "compute_static._omp_fn.0");
    }

    #[test]
    fn files_of_libraries_and_packages_are_told_by_their_folders() {
        for file in [
            "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h",
            "/usr/lib/gcc/x86_64-linux-gnu/12/include/xmmintrin.h",
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/ops/range.rs",
            "/home/someone/.cargo/registry/src/index.crates.io-6f17d22bba15001f/rayon-1.10.0/src/lib.rs",
            "/usr/lib/go-1.19/src/runtime/proc.go",
        ] {
            assert!(is_of_library(file), "{file}");
        }
        for file in ["src/main.rs", "pool.cpp", "/home/someone/registry/main.c", "/home/someone/bits.h"] {
            assert!(!is_of_library(file), "{file}");
        }
    }

    #[test]
    fn a_file_is_shown_without_its_folder() {
        let line = Line { file: "/a/b/fft.c".into(), line: 76, functions: Vec::new() };
        assert_eq!(line.short(), "fft.c:76");
    }
}
