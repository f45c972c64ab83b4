//! Source files in pieces: the lines that ran, with some around them.

use std::fs;

use crate::page::{Line, Piece, SourceFile};

use attribution::is_of_library;

/// Lines shown before and after one that ran.
const AROUND: u32 = 3;
/// Larger files are not read: they are no source that a person wrote.
const MOST_BYTES: u64 = 16 << 20;

/// The files with the text of their lines that ran; a note per file that is not there, one for all of libraries.
pub(crate) fn files(paths: &[String], lines: &[Line], notes: &mut Vec<String>) -> Vec<SourceFile> {
    let mut of_libraries: Vec<String> = Vec::new();
    let mut file = |(index, path): (usize, &String)| {
        let ran = lines.iter().filter(|l| l.file == Some(index) && l.fetches > 0).map(|l| l.number);
        let text = text(path);
        if text.is_none() && ran.clone().next().is_some() {
            match is_of_library(path) {
                true => of_libraries.push(path.clone()),
                false => notes.push(format!("the text of {path} was not found; only its line numbers are shown")),
            }
        }
        SourceFile { path: path.clone(), pieces: text.map_or_else(Vec::new, |text| pieces(&text, ran.collect())) }
    };
    let files = paths.iter().enumerate().map(&mut file).collect();
    match &of_libraries[..] {
        [] => {}
        [path] => notes.push(format!("the text of {path} was not found; only its line numbers are shown")),
        [first, ..] => notes.push(format!(
            "the texts of {} files of libraries were not found; only their line numbers are shown; the first is \
             {first}",
            of_libraries.len()
        )),
    }
    files
}

fn text(path: &str) -> Option<String> {
    let size = fs::metadata(path).ok().filter(|m| m.is_file())?.len();
    let bytes = (size <= MOST_BYTES).then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text around these lines, in pieces that do not touch.
fn pieces(text: &str, mut ran: Vec<u32>) -> Vec<Piece> {
    let all: Vec<&str> = text.lines().collect();
    ran.sort_unstable();
    let mut pieces: Vec<(u32, u32)> = Vec::new();
    for line in ran {
        let (first, last) = (line.saturating_sub(AROUND).max(1), (line + AROUND).min(all.len() as u32));
        match pieces.last_mut() {
            Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
            _ if first <= last => pieces.push((first, last)),
            _ => {}
        }
    }
    let piece = |(first, last): (u32, u32)| Piece {
        first,
        text: all[first as usize - 1..last as usize].iter().map(|l| (*l).to_owned()).collect(),
    };
    pieces.into_iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_of_libraries_have_one_note() {
        let paths = ["/rustc/0/library/a.rs", "/no-such/main.rs", "/rustc/0/library/b.rs", "/rustc/0/library/idle.rs"];
        let line = |(file, fetches)| Line { number: 7, file: Some(file), fetches, ..Line::default() };
        let lines: Vec<Line> = [(0, 5), (1, 5), (2, 5), (3, 0)].map(line).into();
        let mut notes = Vec::new();
        assert_eq!(files(&paths.map(str::to_owned), &lines, &mut notes).len(), 4);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("/no-such/main.rs"), "{notes:?}");
        assert!(notes[1].contains("2 files of libraries") && notes[1].contains("/rustc/0/library/a.rs"), "{notes:?}");
    }

    #[test]
    fn pieces_that_would_touch_are_one() {
        let text = (1..=40).map(|n| format!("line {n}\n")).collect::<String>();
        let found = pieces(&text, vec![9, 2, 30, 99]);
        let spans: Vec<(u32, usize)> = found.iter().map(|p| (p.first, p.text.len())).collect();
        assert_eq!(spans, [(1, 12), (27, 7)]);
        assert_eq!(found[1].text[0], "line 27");
    }
}
