//! Where a long test is, in a file: broken off, it goes on there.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

/// What was counted, by what it shows.
pub(crate) type Counts = BTreeMap<String, usize>;

/// The parts of a test that are done, and what was counted in them: a line each, with the first number, the one behind
/// the last, and the counts.
pub(crate) struct Progress {
    done: Vec<(Range<u64>, Counts)>,
    file: Mutex<File>,
}

impl Progress {
    /// Of the test of this name. What another build of the tests did does not count, so that nothing is taken for right
    /// that was not tried with the code as it is.
    pub(crate) fn of(test: &str) -> Progress {
        let mut hasher = DefaultHasher::new();
        let myself = std::env::current_exe().expect("a path");
        hasher.write(&fs::read(myself).expect("the test's own program"));
        let name = format!("{test}-{:016x}.progress", hasher.finish());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let done: Vec<_> = text.split_inclusive('\n').filter_map(part).collect();
        if !done.is_empty() {
            println!("{test} goes on with what {} has; delete it to begin again", path.display());
        }
        let file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
        Progress { done, file: Mutex::new(file) }
    }

    /// What was counted in a part, if it was done.
    pub(crate) fn known(&self, part: &Range<u64>) -> Option<Counts> {
        self.done.iter().find(|(known, _)| known == part).map(|(_, counts)| counts.clone())
    }

    /// Notes that a part is done.
    pub(crate) fn note(&self, part: &Range<u64>, counts: &Counts) {
        let counts: Vec<String> = counts.iter().map(|(what, count)| format!("\t{what}={count}")).collect();
        let line = format!("{}\t{}{}\n", part.start, part.end, counts.concat());
        self.file.lock().unwrap().write_all(line.as_bytes()).expect("a file that takes a line");
    }
}

/// One whole line of the file.
fn part(line: &str) -> Option<(Range<u64>, Counts)> {
    let mut fields = line.strip_suffix('\n')?.split('\t');
    let range = fields.next()?.parse().ok()?..fields.next()?.parse().ok()?;
    let of = |field: &str| field.split_once('=').and_then(|(what, count)| Some((what.to_owned(), count.parse().ok()?)));
    Some((range, fields.map(of).collect::<Option<Counts>>()?))
}

/// Adds counts to others.
pub(crate) fn add(to: &mut Counts, counts: Counts) {
    counts.into_iter().for_each(|(what, count)| *to.entry(what).or_default() += count);
}
