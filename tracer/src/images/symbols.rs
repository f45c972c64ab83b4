//! The functions of an ELF file, found by address or by name.

use std::ops::Range;

/// A symbol as the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSymbol<'a> {
    /// Its address in the file (without bias).
    pub address: u64,
    /// Its size in bytes, 0 when the file does not tell.
    pub size: u64,
    /// Its name (mangled), without a version.
    pub name: &'a str,
    /// Whether it is declared to be a function; a plain label of hand-written code is not.
    pub function: bool,
    /// Whether it is the resolver of an indirect function, which bears the function's name but does not do its work.
    pub resolver: bool,
    /// Whether it is known in its own file only.
    pub local: bool,
}

/// A symbol in few bytes: programs have hundreds of thousands.
#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    size: u64,
    /// Where its name lies among all names, and how long it is.
    name_at: u32,
    name_len: u32,
    function: bool,
    resolver: bool,
    local: bool,
}

impl Entry {
    fn symbol<'a>(&self, names: &'a str) -> FileSymbol<'a> {
        let &Entry { address, size, function, resolver, local, .. } = self;
        let name = &names[self.name_at as usize..][..self.name_len as usize];
        FileSymbol { address, size, name, function, resolver, local }
    }
}

/// All functions of a file, sorted by address.
#[derive(Debug, Default)]
pub struct SymbolTable {
    names: String,
    entries: Vec<Entry>,
    /// The address of each, close together for searches.
    addresses: Vec<u64>,
}

impl SymbolTable {
    /// Makes room for so many more symbols, whose names take so many bytes.
    pub fn reserve(&mut self, symbols: usize, names: usize) {
        self.names.reserve(names);
        self.entries.reserve(symbols);
    }

    /// Adds a symbol. [`SymbolTable::sort`] comes after the last one.
    pub fn add(&mut self, symbol: &FileSymbol<'_>) {
        let &FileSymbol { address, size, name, function, resolver, local } = symbol;
        let (Ok(name_at), Ok(name_len)) = (u32::try_from(self.names.len()), u32::try_from(name.len())) else { return };
        self.names.push_str(name);
        self.entries.push(Entry { address, size, name_at, name_len, function, resolver, local });
    }

    /// Sorts the symbols. Of several at one address the one that says most comes first: a function before a label, with
    /// a size before without, global before local, a plain name before one with underscores in front.
    pub fn sort(&mut self) {
        let SymbolTable { names, entries, addresses } = self;
        let rank = |entry: &Entry| {
            let s = entry.symbol(names);
            let underscores = s.name.len() - s.name.trim_start_matches('_').len();
            (!s.function, s.size == 0, s.local, underscores, s.name, s.size, s.resolver)
        };
        // Most are in order already: the file's, or all but the stubs that were added last.
        entries.sort_by(|a, b| a.address.cmp(&b.address).then_with(|| rank(a).cmp(&rank(b))));
        entries.dedup_by(|a, b| a.symbol(names) == b.symbol(names));
        *addresses = entries.iter().map(|entry| entry.address).collect();
    }

    /// Sets the ends of symbols without a size: at the next symbol, or where their part of the code ends. To be called
    /// after sorting.
    pub fn bound(&mut self, code: &[Range<u64>]) {
        for at in 0..self.entries.len() {
            let Entry { address, size: 0, .. } = self.entries[at] else { continue };
            let next = self.addresses[at..].partition_point(|&start| start <= address) + at;
            let next = self.addresses.get(next).copied().unwrap_or(u64::MAX);
            let end = code.iter().find(|part| part.contains(&address)).map(|part| part.end);
            self.entries[at].size = end.map_or(0, |end| next.min(end) - address);
        }
    }

    /// The function that contains the address, if there is one, and the addresses around it for which the answer is the
    /// same.
    #[must_use]
    pub fn containing(&self, address: u64) -> (Option<FileSymbol<'_>>, Range<u64>) {
        // Functions can lie inside others (hand-written code with local entry points), so the nearest below that
        // reaches the address is wanted. The search back is short: it passes symbols at one address, and inner ones
        // that have ended.
        let after = self.addresses.partition_point(|&start| start <= address);
        let next = self.addresses.get(after).copied().unwrap_or(u64::MAX);
        let Some(&nearest) = self.addresses[..after].last() else { return (None, 0..next) };
        let reaches = |s: &Entry| {
            if s.size == 0 { s.address == nearest } else { address - s.address < s.size }
        };
        let Some(best) = self.entries[..after].iter().rev().take(64).find(|s| reaches(s)) else {
            return (None, address..next);
        };
        let first = self.addresses[..after].iter().rposition(|&a| a < best.address).map_or(0, |before| before + 1);
        let found = self.entries[first..after].iter().find(|s| reaches(s)).unwrap_or(best);
        // Behind the address the answer may change where another function begins or this one ends; before it, where one
        // that lies inside ended.
        let end = if found.size == 0 { next } else { next.min(found.address.saturating_add(found.size)) };
        let start = if found.address == nearest { nearest } else { address };
        (Some(found.symbol(&self.names)), start..end)
    }

    /// A function of that name.
    #[cfg(test)]
    pub fn named(&self, name: &str) -> Option<FileSymbol<'_>> {
        self.iter().find(|s| s.name == name)
    }

    /// All symbols by address.
    pub fn iter(&self) -> impl Iterator<Item = FileSymbol<'_>> {
        self.entries.iter().map(|entry| entry.symbol(&self.names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &SymbolTable, address: u64) -> Option<&str> {
        table.containing(address).0.map(|symbol| symbol.name)
    }

    fn symbol(address: u64, size: u64, name: &str) -> FileSymbol<'_> {
        FileSymbol { address, size, name, function: true, resolver: false, local: false }
    }

    fn table(symbols: &[FileSymbol<'_>]) -> SymbolTable {
        let mut table = SymbolTable::default();
        symbols.iter().for_each(|symbol| table.add(symbol));
        table.sort();
        table
    }

    #[test]
    fn the_plain_name_wins_over_its_aliases() {
        let table = table(&[symbol(16, 8, "__lock"), symbol(16, 8, "lock"), symbol(16, 8, "_lock")]);
        assert_eq!(name(&table, 20), Some("lock"));
        assert_eq!(table.iter().count(), 3);
    }

    #[test]
    fn a_gap_between_functions_belongs_to_none() {
        let table = table(&[symbol(16, 8, "a"), symbol(32, 8, "b")]);
        assert_eq!(name(&table, 15), None);
        assert_eq!(name(&table, 24), None);
        assert_eq!(name(&table, 39), Some("b"));
    }

    #[test]
    fn behind_an_inner_function_the_outer_goes_on() {
        let table = table(&[symbol(16, 64, "outer"), symbol(32, 8, "inner")]);
        assert_eq!(name(&table, 35), Some("inner"));
        assert_eq!(name(&table, 45), Some("outer"));
    }

    #[test]
    fn a_symbol_without_size_reaches_to_the_next() {
        let table = table(&[symbol(16, 0, "_start"), symbol(32, 8, "main")]);
        assert_eq!(name(&table, 31), Some("_start"));
        assert_eq!(name(&table, 40), None);
    }

    #[test]
    fn a_symbol_without_size_ends_with_its_part_of_the_code() {
        let mut table =
            table(&[symbol(16, 0, "_init"), symbol(64, 0, "label"), symbol(64, 4, "sized"), symbol(80, 4, "main")]);
        table.bound(&[16..32, 48..100]);
        assert_eq!([name(&table, 31), name(&table, 40), name(&table, 79)], [Some("_init"), None, Some("label")]);
    }

    #[test]
    fn the_answer_is_the_same_in_all_of_the_range_and_not_behind_it() {
        let table = table(&[
            symbol(16, 64, "outer"),
            symbol(32, 8, "inner"),
            symbol(90, 0, "label"),
            symbol(100, 4, "last"),
            symbol(100, 6, "alias"),
        ]);
        for address in 0..120 {
            let (symbol, range) = table.containing(address);
            assert!(range.contains(&address));
            let mut same = range.clone().take(200).map(|other| name(&table, other) == symbol.map(|symbol| symbol.name));
            assert!(same.all(|same| same), "{address} in {range:?}");
        }
        assert_eq!(table.containing(20).1, 16..32);
        assert_eq!(table.containing(50).1, 50..80);
        assert_eq!(table.containing(91).1, 90..100);
    }
}
