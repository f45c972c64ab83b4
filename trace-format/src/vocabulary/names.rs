//! Functions as users name them: by the symbol's name, or demangled, with or without parameters.

use std::borrow::Cow;

/// The most names that are given as similar ones.
const MOST: usize = 5;

/// Whether a symbol is what the user calls `wanted`.
#[must_use]
pub fn is_called(symbol: &str, wanted: &str) -> bool {
    if symbol == wanted || !is_mangled(symbol) {
        return symbol == wanted;
    }
    // A mangled name holds the last part of the plain one as it is: few symbols have to be demangled.
    let plain = without_parameters(wanted);
    let last = plain.rsplit("::").next().unwrap_or(plain);
    let last = last.split('<').next().unwrap_or(last);
    let is_plain = last.chars().all(|c| c.is_alphanumeric() || c == '_') && !last.starts_with("operator");
    if plain.is_empty() || is_plain && !symbol.contains(last) {
        return false;
    }
    let name = demangled(symbol);
    name == wanted || without_parameters(&name) == wanted
}

fn is_mangled(symbol: &str) -> bool {
    symbol.starts_with("_Z") || symbol.starts_with("_R")
}

/// The name as the source has it.
#[must_use]
pub fn demangled(symbol: &str) -> Cow<'_, str> {
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
