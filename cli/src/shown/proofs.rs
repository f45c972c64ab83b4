//! What `lockstep analyze --json` proved, attached to the lines of a page: beside what the trace showed.

use std::path::Path;

use report::page::{Program, Proved};
use rustc_hash::FxHashMap;
use serde::Deserialize;

/// The file of `analyze --json`, as far as a page shows it.
#[derive(Deserialize)]
struct Found {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    file: Option<String>,
    line: Option<u32>,
    what: String,
    class: String,
    fact: String,
    name: String,
    stride: Option<i64>,
}

/// Attaches the rows of these files to the lines that they are about.
///
/// # Errors
/// When a file cannot be read, or is not what `analyze --json` writes.
pub(crate) fn add(program: &mut Program, files: &[impl AsRef<Path>]) -> report::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    // By line number: the lines of all files.
    let mut by_number: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for (index, line) in program.lines.iter().enumerate() {
        by_number.entry(line.number).or_default().push(index);
    }
    for path in files.iter().map(AsRef::as_ref) {
        let text = std::fs::read_to_string(path).map_err(|source| report::Error::Io {
            path: path.to_owned(),
            action: report::Action::Read,
            source,
            way_out: ": name a file that `lockstep analyze --json` wrote",
        })?;
        let found: Found = serde_json::from_str(&text).map_err(|error| report::Error::Line {
            path: path.to_owned(),
            line: error.line() as u64,
            fault: format!(
                "column {}: this is not what `lockstep analyze --json` prints; write the file again",
                error.column()
            ),
        })?;
        let mut put = 0;
        for row in found.rows {
            let (Some(file), Some(number)) = (&row.file, row.line) else { continue };
            let is_in =
                |index: &usize| program.lines[*index].file.is_some_and(|f| is_same(&program.files[f].path, file));
            let line = by_number.get(&number).and_then(|lines| lines.iter().copied().find(is_in));
            let Some(line) = line else { continue };
            let proved =
                Proved { what: row.what, class: row.class, fact: row.fact, name: row.name, stride: row.stride };
            program.lines[line].proved.push(proved);
            put += 1;
        }
        if put == 0 {
            program.notes.push(format!("{}: none of its lines ran in the trace", path.display()));
        }
    }
    Ok(())
}

/// Whether two paths name one file, as far as the shorter one says: compilers are given `fft.c` or all of its path.
fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (Path::new(a.trim_start_matches("./")), Path::new(b.trim_start_matches("./")));
    a.ends_with(b) || b.ends_with(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_with_whole_names() {
        assert!(is_same("/a/b/fft.c", "b/fft.c") && is_same("fft.c", "./fft.c"));
        assert!(!is_same("/a/my_fft.c", "fft.c"));
    }
}
