//! Two versions of a program's source: which line of the one is which of the other.
//!
//! Files are matched by name, and those that are left by their text. In files that differ, lines are matched as `diff
//! --patience` matches them: by their text, in order. Where lines were replaced by others, those with nearly the same
//! text are the same, edited.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use similar::{Algorithm, DiffOp, capture_diff_slices, get_diff_ratio};

use crate::Line;

/// Larger files are not compared: they are no source that a person wrote.
const MOST_BYTES: u64 = 4 << 20;

/// Two files of other names are versions of one if they share this part of the shorter one's lines.
const LEAST_SHARED: f64 = 0.5;

/// Of the characters of two lines that stand for one.
const LEAST_ALIKE: f64 = 0.7;

/// Where a line of the version after was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Was {
    /// Under this label, which may be its own.
    At(String),
    /// Nowhere.
    New,
}

/// What the lines of the version after were before.
#[derive(Debug, Default)]
pub struct Versions {
    /// By path after: the name before, and by line the number before.
    files: HashMap<String, (String, HashMap<u32, u32>)>,
}

impl Versions {
    /// Of the files that ran, by path.
    #[must_use]
    pub fn of(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Versions {
        let apart = |own: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<(String, Vec<String>)> {
            own.difference(other).filter_map(|path| Some((path.clone(), lines_of(path)?))).collect()
        };
        let (before, after) = (apart(before, after), apart(after, before));
        let mut versions = Versions::default();
        let mut taken = BTreeSet::new();
        // Comparing takes time: of files with other names only those that no name has matched, and that can be alike.
        for by_name in [true, false] {
            let mut found = Vec::new();
            for (was, old) in before.iter().filter(|(was, _)| !taken.contains(was)) {
                for (is, new) in after.iter().filter(|(is, _)| !versions.files.contains_key(is)) {
                    let has_name = name_of(was) == name_of(is);
                    if has_name != by_name || !(by_name || most_shared(old, new) >= LEAST_SHARED) {
                        continue;
                    }
                    let same = matched(old, new);
                    let is_shared = |(is, was): &(&u32, &u32)| new[**is as usize - 1] == old[**was as usize - 1];
                    let share = of_shorter(same.iter().filter(is_shared).count(), old, new);
                    if by_name || share >= LEAST_SHARED {
                        found.push((share, was, is, same));
                    }
                }
            }
            found.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (_, was, is, same) in found {
                if !versions.files.contains_key(is) && taken.insert(was) {
                    versions.files.insert(is.clone(), (name_of(was).to_owned(), same));
                }
            }
        }
        versions
    }

    /// Where a line of the version after was before.
    #[must_use]
    pub fn was(&self, line: &Line) -> Was {
        let Some((name, same)) = self.files.get(&line.file) else { return Was::At(line.short()) };
        same.get(&line.line).map_or(Was::New, |number| Was::At(format!("{name}:{number}")))
    }
}

/// So many lines, as a part of the shorter text.
fn of_shorter(lines: usize, old: &[String], new: &[String]) -> f64 {
    lines as f64 / old.len().min(new.len()).max(1) as f64
}

/// The part of the shorter text that both share at most: lines that stand in both, in whatever order.
fn most_shared(old: &[String], new: &[String]) -> f64 {
    let mut left = HashMap::<&String, usize>::new();
    old.iter().for_each(|line| *left.entry(line).or_default() += 1);
    let mut shared = 0;
    for line in new {
        if let Some(left) = left.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            shared += 1;
        }
    }
    of_shorter(shared, old, new)
}

fn name_of(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

fn lines_of(path: &str) -> Option<Vec<String>> {
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    let bytes = (size <= MOST_BYTES).then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(|line| line.trim().to_owned()).collect())
}

/// By line of the new text, from 1, the line of the old one.
fn matched(old: &[String], new: &[String]) -> HashMap<u32, u32> {
    let mut same = HashMap::new();
    for op in capture_diff_slices(Algorithm::Patience, old, new) {
        match op {
            DiffOp::Equal { old_index, new_index, len } => {
                same.extend((1..=len).map(|line| ((new_index + line) as u32, (old_index + line) as u32)));
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                let mut left = old_index..old_index + old_len;
                for (is, text) in new.iter().enumerate().skip(new_index).take(new_len) {
                    let likeness = |was: &usize| likeness(&old[*was], text);
                    // The first of those that are most alike.
                    let most = left.clone().rev().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
                    if let Some(was) = most.filter(|was| likeness(was) >= LEAST_ALIKE) {
                        same.insert(is as u32 + 1, was as u32 + 1);
                        left.start = was + 1;
                    }
                }
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => {}
        }
    }
    same
}

/// The share of two lines' characters that are in both, in order.
fn likeness(old: &str, new: &str) -> f64 {
    let [old, new] = [old, new].map(|line| line.chars().collect::<Vec<char>>());
    // All of the shorter one may be in the longer at most.
    let most = 2 * old.len().min(new.len());
    if (most as f64) < LEAST_ALIKE * (old.len() + new.len()) as f64 {
        return 0.0;
    }
    f64::from(get_diff_ratio(&capture_diff_slices(Algorithm::Myers, &old, &new), old.len(), new.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(file: &str, line: u32) -> Line {
        Line { file: file.to_owned(), line, functions: Vec::new() }
    }

    #[test]
    fn lines_are_found_again_by_their_text() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let old = write("a/main.c", "one\ntwo\nthree, written\nfour\nfive\n");
        let new = write("b/main.c", "zero\none\n  two\nthree, edited\nnothing of it\nfour\nmore\nfive\n");
        let other = write("b/other.c", "nothing\nalike\n");
        let renamed = write("c/copy.c", "one\ntwo\nthird\nfour\nmore\n");
        let set = |paths: &[&String]| paths.iter().map(|path| (*path).clone()).collect::<BTreeSet<_>>();
        let versions = Versions::of(&set(&[&old]), &set(&[&new, &other]));
        let was = |versions: &Versions, path: &str, number| versions.was(&line(path, number));
        let at = |number: u32| Was::At(format!("main.c:{number}"));
        let found: Vec<Was> = (1..=8).map(|number| was(&versions, &new, number)).collect();
        assert_eq!(found, [Was::New, at(1), at(2), at(3), Was::New, at(4), Was::New, at(5)]);
        assert_eq!(was(&versions, &other, 2), Was::At("other.c:2".to_owned()), "it has no version before");
        let versions = Versions::of(&set(&[&old]), &set(&[&other, &renamed]));
        assert_eq!([1, 4, 5].map(|number| was(&versions, &renamed, number)), [at(1), at(4), Was::New]);
        let versions = Versions::of(&set(&[&old]), &set(&[&old]));
        assert_eq!(was(&versions, &old, 3), at(3), "one file has one text");
    }
}
