//! The functions of an ELF file, found by address or by name.

use std::ops::Range;

/// A symbol as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSymbol {
    /// Its address in the file (without bias).
    pub address: u64,
    /// Its size in bytes, 0 when the file does not tell.
    pub size: u64,
    /// Its name (mangled), without a version.
    pub name: String,
    /// Whether it is declared to be a function; a plain label of hand-written code is not.
    pub function: bool,
    /// Whether it is the resolver of an indirect function, which bears the function's name but does not do its work.
    pub resolver: bool,
    /// Whether it is known in its own file only.
    pub local: bool,
}

/// All functions of a file, sorted by address.
#[derive(Debug, Default)]
pub struct SymbolTable {
    symbols: Vec<FileSymbol>,
}

impl SymbolTable {
    /// Sorts the symbols. Of several at one address the one that says most comes first: a function before a label, with
    /// a size before without, global before local, a plain name before one with underscores in front.
    #[must_use]
    pub fn new(mut symbols: Vec<FileSymbol>) -> SymbolTable {
        fn rank(s: &FileSymbol) -> (u64, bool, bool, bool, usize, &str) {
            let underscores = s.name.len() - s.name.trim_start_matches('_').len();
            (s.address, !s.function, s.size == 0, s.local, underscores, &s.name)
        }
        symbols.sort_by(|a, b| rank(a).cmp(&rank(b)));
        symbols.dedup();
        SymbolTable { symbols }
    }

    /// The function that contains the address, and the addresses around it for which the answer is the same.
    #[must_use]
    pub fn containing(&self, address: u64) -> Option<(&FileSymbol, Range<u64>)> {
        // Functions can lie inside others (hand-written code with local entry points), so the nearest below that reaches
        // the address is wanted. Few steps back suffice: symbols at one address, and inner ones that have ended.
        let after = self.symbols.partition_point(|s| s.address <= address);
        let nearest = self.symbols[..after].last()?.address;
        let reaches = |s: &FileSymbol| {
            if s.size == 0 { s.address == nearest } else { address - s.address < s.size }
        };
        let best = self.symbols[..after].iter().rev().take(64).find(|s| reaches(s))?.address;
        let first = self.symbols[..after].iter().rposition(|s| s.address < best).map_or(0, |before| before + 1);
        let found = self.symbols[first..after].iter().find(|s| reaches(s))?;
        // Behind the address the answer may change where another function begins or this one ends; before it, where one that lies inside ended.
        let next = self.symbols.get(after).map_or(u64::MAX, |s| s.address);
        let end = if found.size == 0 { next } else { next.min(found.address.saturating_add(found.size)) };
        let start = if found.address == nearest { nearest } else { address };
        Some((found, start..end))
    }

    /// A function of that name.
    #[cfg(test)]
    pub fn named(&self, name: &str) -> Option<&FileSymbol> {
        self.symbols.iter().find(|s| s.name == name)
    }

    /// All symbols by address.
    pub fn iter(&self) -> impl Iterator<Item = &FileSymbol> {
        self.symbols.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &SymbolTable, address: u64) -> Option<&str> {
        table.containing(address).map(|(symbol, _)| &*symbol.name)
    }

    fn symbol(address: u64, size: u64, name: &str) -> FileSymbol {
        FileSymbol { address, size, name: name.to_owned(), function: true, resolver: false, local: false }
    }

    #[test]
    fn the_plain_name_wins_over_its_aliases() {
        let table = SymbolTable::new(vec![symbol(16, 8, "__lock"), symbol(16, 8, "lock"), symbol(16, 8, "_lock")]);
        assert_eq!(name(&table, 20), Some("lock"));
        assert_eq!(table.iter().count(), 3);
    }

    #[test]
    fn a_gap_between_functions_belongs_to_none() {
        let table = SymbolTable::new(vec![symbol(16, 8, "a"), symbol(32, 8, "b")]);
        assert!(table.containing(15).is_none());
        assert!(table.containing(24).is_none());
        assert_eq!(name(&table, 39), Some("b"));
    }

    #[test]
    fn behind_an_inner_function_the_outer_goes_on() {
        let table = SymbolTable::new(vec![symbol(16, 64, "outer"), symbol(32, 8, "inner")]);
        assert_eq!(name(&table, 35), Some("inner"));
        assert_eq!(name(&table, 45), Some("outer"));
    }

    #[test]
    fn a_symbol_without_size_reaches_to_the_next() {
        let table = SymbolTable::new(vec![symbol(16, 0, "_start"), symbol(32, 8, "main")]);
        assert_eq!(name(&table, 31), Some("_start"));
        assert!(table.containing(40).is_none());
    }

    #[test]
    fn the_answer_is_the_same_in_all_of_the_range_and_not_behind_it() {
        let table = SymbolTable::new(vec![
            symbol(16, 64, "outer"),
            symbol(32, 8, "inner"),
            symbol(90, 0, "label"),
            symbol(100, 4, "last"),
            symbol(100, 6, "alias"),
        ]);
        for address in 0..120 {
            let Some((symbol, range)) = table.containing(address) else { continue };
            assert!(range.contains(&address));
            assert!(range.clone().all(|other| name(&table, other) == Some(&*symbol.name)), "{address} in {range:?}");
        }
        assert_eq!(table.containing(20).map(|(_, range)| range), Some(16..32));
        assert_eq!(table.containing(50).map(|(_, range)| range), Some(50..80));
        assert_eq!(table.containing(91).map(|(_, range)| range), Some(90..100));
    }
}
