//! Functions as users name them: by the symbol's name, or demangled, with or without parameters.

use std::borrow::Cow;

/// The most names that are given as similar ones.
const MOST: usize = 5;

/// What compilers add to the name of a function that they made a copy or a part of: with a number behind, or without.
const CLONES: [&str; 10] = [
    ".constprop",
    ".isra",
    ".part",
    ".lto_priv",
    ".llvm",
    ".localalias",
    ".argprom",
    ".specialized",
    ".retelim",
    ".__uniq",
];

/// Whether a symbol is what the user calls `wanted`: by its own name, or as the source has it, with parameters or
/// without, with the arguments of templates or without. A copy that the compiler made of a function is called as that
/// is.
#[must_use]
pub fn is_called(symbol: &str, wanted: &str) -> bool {
    if symbol == wanted {
        return true;
    }
    if let Some(region) = TargetRegion::of(symbol) {
        return region.is_called(wanted);
    }
    let original = without_clone(symbol);
    if !is_mangled(symbol) {
        return original == wanted;
    }
    // A mangled name holds the last part of the plain one as it is: few symbols have to be demangled.
    let plain = without_templates(without_parameters(wanted));
    let last = plain.rsplit([':', ' ']).next().unwrap_or(&plain);
    let is_plain = last.chars().all(|c| c.is_alphanumeric() || c == '_') && !last.starts_with("operator");
    if plain.is_empty() || is_plain && !symbol.contains(last) {
        return false;
    }
    if original != symbol && demangled(symbol) == wanted {
        return true;
    }
    let name = demangled(original);
    let bare = without_parameters(&name);
    let mut forms = [&name[..], bare, without_result(&name), without_result(bare)].into_iter();
    forms.any(|form| form == wanted) || without_templates(without_result(bare)) == wanted
}

/// The name of the function that a symbol is a copy or a part of; its own, if it is none. What was moved out of a
/// function since it hardly runs (`.cold`) is no copy.
fn without_clone(symbol: &str) -> &str {
    let mut name = symbol;
    loop {
        let numberless = name.rsplit_once('.').filter(|(_, number)| number.chars().all(|c| c.is_ascii_digit()));
        let kind = numberless.map_or(name, |(rest, _)| rest);
        match CLONES.iter().find_map(|clone| kind.strip_suffix(clone)) {
            Some(original) if !original.is_empty() => name = original,
            _ => return name,
        }
    }
}

/// Without the type of the result, which instances of C++'s templates have before their name.
#[must_use]
pub fn without_result(name: &str) -> &str {
    let (mut depth, mut begin) = (0u32, 0);
    for (at, c) in name.char_indices() {
        match c {
            '(' if depth == 0 => break,
            '<' | '{' | '(' | '[' => depth += 1,
            '>' | '}' | ')' | ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && name[begin..at].ends_with("operator") => break,
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    &name[begin..]
}

/// Without the arguments of templates and generic functions. Operators, and Rust's `<T as Trait>`, are left as they
/// are.
fn without_templates(name: &str) -> Cow<'_, str> {
    if !name.contains('<') || name.starts_with('<') || name.contains("operator") {
        return Cow::Borrowed(name);
    }
    let (mut plain, mut depth) = (String::new(), 0u32);
    for c in name.chars() {
        match c {
            '<' => {
                depth += 1;
                if depth == 1 && plain.ends_with("::") {
                    plain.truncate(plain.len() - 2);
                }
            }
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    Cow::Owned(plain)
}

/// A function that clang makes for a target region, or inside of one. Its symbol has the numbers of a device and of a
/// file there, which differ from build to build: `__omp_offloading_fd00_51a0df_main_l6_debug__.omp_outlined`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRegion<'s> {
    /// The function of the source that holds the region, mangled.
    pub function: &'s str,
    /// The line of the directive.
    pub line: u32,
    /// What tells the functions of one region apart: `.omp_outlined`.
    pub part: String,
}

impl TargetRegion<'_> {
    /// The target region of this symbol, if it is one's.
    #[must_use]
    pub fn of(symbol: &str) -> Option<TargetRegion<'_>> {
        let (device, rest) = symbol.strip_prefix("__omp_offloading_")?.split_once('_')?;
        let (file, rest) = rest.split_once('_')?;
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
        if !is_number(device) || !is_number(file) {
            return None;
        }
        rest.rmatch_indices("_l").find_map(|(at, _)| {
            let behind = &rest[at + 2..];
            let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
            let line = behind[..end].parse().ok()?;
            let is_end = matches!(behind[end..].chars().next(), None | Some('_' | '.'));
            // The functions with `_debug__` are those without, made for debuggers.
            is_end.then(|| TargetRegion { function: &rest[..at], line, part: behind[end..].replace("_debug__", "") })
        })
    }

    /// For people, with the file that it is in, if that is known; else with the function.
    #[must_use]
    pub fn name(&self, file: Option<&str>) -> String {
        let function = demangled(self.function);
        let within = file.unwrap_or_else(|| without_parameters(&function));
        format!("{TARGET_REGION}{within}:{}{}", self.line, self.part)
    }

    /// Its file is not looked at: the trace does not have it.
    fn is_called(&self, wanted: &str) -> bool {
        let behind = wanted.strip_prefix(TARGET_REGION).and_then(|place| place.rsplit_once(':'));
        behind.is_some_and(|(_, line)| line == format!("{}{}", self.line, self.part))
    }
}

/// How names of target regions begin.
const TARGET_REGION: &str = "target region at ";

fn is_mangled(symbol: &str) -> bool {
    symbol.starts_with("_Z") || symbol.starts_with("_R")
}

/// The name as the source has it.
#[must_use]
pub fn demangled(symbol: &str) -> Cow<'_, str> {
    if let Some(region) = TargetRegion::of(symbol) {
        return region.name(None).into();
    }
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}").into();
    }
    // Without a prefix it would be taken for a type: `a` for a signed char.
    let symbol_of_cpp = is_mangled(symbol).then(|| cpp_demangle::Symbol::new(symbol).ok()).flatten();
    let name = symbol_of_cpp.and_then(|name| name.demangle().ok());
    name.map_or(Cow::Borrowed(symbol), Cow::Owned)
}

/// What comes before the list of parameters, where a name has one: `(anonymous namespace)::f(int)` has it at its end.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0u32;
    for (at, c) in name.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 1 => return &name[..at],
            '(' => depth = depth.saturating_sub(1),
            _ if depth == 0 && !matches!(c, ' ' | '&' | 'a'..='z') => return name,
            _ => {}
        }
    }
    name
}

/// Up to five of the names that are most like the one wanted.
#[must_use]
pub fn similar(wanted: &str, names: &[&str]) -> Vec<String> {
    let lower = wanted.to_lowercase();
    let most = (wanted.len() / 3).max(2);
    let mut ranked: Vec<(usize, usize, &str)> = Vec::new();
    for &symbol in names {
        // A mangled name is compared as the source has it.
        let plain = if is_mangled(symbol) { demangled(symbol) } else { Cow::Borrowed(symbol) };
        let name = without_parameters(&plain);
        let contains = name.to_lowercase().contains(&lower) || name.len() > 2 && wanted.contains(name);
        if !contains && name.len().abs_diff(wanted.len()) > most {
            continue;
        }
        let distance = strsim::levenshtein(wanted, name);
        if contains || distance <= most {
            ranked.push((distance, name.len(), symbol));
        }
    }
    ranked.sort_unstable();
    ranked.dedup();
    let shown = |(_, _, name): (usize, usize, &str)| match demangled(name) {
        plain if plain == name => name.to_owned(),
        plain => format!("{name} ({plain})"),
    };
    ranked.into_iter().take(MOST).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_called_by_any_of_their_names() {
        for wanted in ["_ZN4tree6insertEi", "tree::insert", "tree::insert(int)"] {
            assert!(is_called("_ZN4tree6insertEi", wanted), "{wanted}");
        }
        assert!(is_called("_ZN12_GLOBAL__N_16workerEPv", "(anonymous namespace)::worker"));
        assert!(is_called("_Z6workerPv", "worker") && is_called("main", "main"));
        for wanted in ["insert", "tree", "tree::insert(long)", ""] {
            assert!(!is_called("_ZN4tree6insertEi", wanted), "{wanted}");
        }
        assert!(!is_called("main2", "main"));
        // The last parts of these names do not occur in the mangled ones.
        let lambda = "_ZZ4mainENKUlvE_clEv";
        assert!(is_called(lambda, &demangled(lambda)) && is_called("_ZN3addclEii", "add::operator()"));
    }

    #[test]
    fn copies_and_instances_are_called_as_the_source_has_them() {
        for wanted in ["work", "work.constprop.0", "work.constprop.0.isra.1"] {
            assert_eq!(is_called("work.constprop.0.isra.1", wanted), wanted != "work.constprop.0", "{wanted}");
        }
        for (symbol, wanted) in [("main._omp_fn.0", "main"), ("work.cold", "work"), ("a.b", "a"), (".part.0", "")] {
            assert!(!is_called(symbol, wanted), "{symbol}");
        }
        for wanted in ["clone_me", "clone_me(long, int)", "clone_me(long, int) [clone .constprop.0]"] {
            assert!(is_called("_ZL8clone_meli.constprop.0", wanted), "{wanted}");
        }
        for wanted in ["work", "work<long>", "work<long>(long)", "long work<long>", "long work<long>(long)"] {
            assert!(is_called("_Z4workIlET_S0_", wanted), "{wanted}");
        }
        for wanted in ["Pool::run", "Pool<long>::run", "Pool<long>::run(long, int)"] {
            assert!(is_called("_ZN4PoolIlE3runEli.isra.0", wanted), "{wanted}");
        }
        for wanted in ["work<int>", "long", "run", "Pool"] {
            assert!(!is_called("_Z4workIlET_S0_", wanted) && !is_called("_ZN4PoolIlE3runEli", wanted), "{wanted}");
        }
    }

    #[test]
    fn target_regions_are_named_by_their_place() {
        let symbol = "__omp_offloading_fd00_51a0df_main_l6_debug__.omp_outlined_debug__.omp_outlined";
        let region = TargetRegion::of(symbol).unwrap();
        assert_eq!(region.name(Some("tg.c")), "target region at tg.c:6.omp_outlined.omp_outlined");
        assert_eq!(demangled(symbol), "target region at main:6.omp_outlined.omp_outlined");
        assert_eq!(demangled("__omp_offloading_2f_1c_two_l3_loops_l12"), "target region at two_l3_loops:12");
        for wanted in [symbol, &demangled(symbol), "target region at tg.c:6.omp_outlined.omp_outlined"] {
            assert!(is_called(symbol, wanted), "{wanted}");
        }
        assert!(!is_called(symbol, "target region at tg.c:6") && !is_called(symbol, "main"));
        assert!(is_called("__omp_offloading_fd00_51a0df__Z4workv_l6", "target region at a.cpp:6"));
        assert!(TargetRegion::of("__omp_offloading_entries_begin").is_none());
    }

    #[test]
    fn names_of_c_stay_as_they_are() {
        assert_eq!(["a", "x", "main"].map(demangled), ["a", "x", "main"]);
    }

    #[test]
    fn similar_names_have_a_slip_or_a_part_in_common() {
        let names = ["slave_sort", "main", "_Z6workerPv", "transpose", "transpose"];
        assert_eq!(similar("transpsoe", &names), ["transpose"]);
        assert_eq!(similar("work", &names), ["_Z6workerPv (worker(void*))"]);
        assert_eq!(similar("Pool::rnu", &["_ZN4Pool3runEi", "main"]), ["_ZN4Pool3runEi (Pool::run(int))"]);
        assert!(similar("quicksort", &names).is_empty());
    }
}
