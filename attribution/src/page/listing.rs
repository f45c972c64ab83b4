//! Source files in pieces: the lines that ran, with some around them.

use std::fs;

use report::page::{Line, Piece, SourceFile};

/// Lines shown before and after one that ran.
const AROUND: u32 = 3;
/// Larger files are not read: they are no source that a person wrote.
const MOST_BYTES: u64 = 16 << 20;

/// The files with the text of their lines that ran; a note per file that is not there.
pub(crate) fn files(paths: &[String], lines: &[Line], notes: &mut Vec<String>) -> Vec<SourceFile> {
    let file = |(index, path): (usize, &String)| {
        let ran = lines.iter().filter(|l| l.file == Some(index) && l.fetches > 0).map(|l| l.number);
        let text = text(path);
        if text.is_none() && ran.clone().next().is_some() {
            notes.push(format!("the text of {path} is not there, only the numbers of its lines"));
        }
        SourceFile { path: path.clone(), pieces: text.map_or_else(Vec::new, |text| pieces(&text, ran.collect())) }
    };
    paths.iter().enumerate().map(file).collect()
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
    fn pieces_that_would_touch_are_one() {
        let text = (1..=40).map(|n| format!("line {n}\n")).collect::<String>();
        let found = pieces(&text, vec![9, 2, 30, 99]);
        let spans: Vec<(u32, usize)> = found.iter().map(|p| (p.first, p.text.len())).collect();
        assert_eq!(spans, [(1, 12), (27, 7)]);
        assert_eq!(found[1].text[0], "line 27");
    }
}
