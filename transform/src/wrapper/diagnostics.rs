//! Source places for messages of code generation.
//!
//! The second half of a compile job reads bitcode, which does not say in which column a function stands or where a
//! statement of assembly came from. So its warnings and errors have no source line and no caret, or a line of bitcode.
//! When it prints one, the whole job is done once more without passes and without making code, only for its messages;
//! messages with the same text get their places from there. Figures in them, such as the size of a stack frame, are
//! those of the transformed code.

use std::path::Path;

/// Whether all messages have places in source, so that nothing is to be found out.
pub(super) fn all_have_places(said: &str, folder: &Path) -> bool {
    parts(said).iter().all(|part| match part {
        Part::Message(message) => message.has_place(folder),
        Part::Other(_) => true,
    })
}

/// What code generation said, with places of what the whole job said. Files in `folder` are ours, which the user has
/// never seen.
pub(super) fn placed(said: &str, whole: &str, folder: &Path) -> String {
    let mut known: Vec<Message> = parts(whole).into_iter().filter_map(Part::message).collect();
    let mut text = String::new();
    let mut errors = 0;
    for part in parts(said) {
        let message = match part {
            Part::Other(line) => {
                text += line;
                continue;
            }
            Part::Message(message) => message,
        };
        let same = known.iter().position(|other| message.is_like(other));
        if message.has_place(folder) {
            text += &message.lines.concat();
        } else if let Some(found) = same {
            text += &known.remove(found).with_figures_of(&message);
        } else if message.text == NO_ASSEMBLY && errors > 0 {
            // Only said of bitcode, after the error itself.
        } else {
            text += &message.without_our_files(folder);
        }
        errors += usize::from(message.severity == "error");
    }
    text
}

const SEVERITIES: [&str; 5] = ["error", "warning", "remark", "note", "fatal error"];
const NO_ASSEMBLY: &str = "cannot compile inline asm";
const INCLUDED: &str = "In file included from ";

enum Part<'a> {
    Message(Message<'a>),
    /// A line that belongs to none, such as "1 warning generated."
    Other(&'a str),
}

impl<'a> Part<'a> {
    fn message(self) -> Option<Message<'a>> {
        match self {
            Part::Message(message) => Some(message),
            Part::Other(_) => None,
        }
    }
}

/// A message with its source lines and notes.
struct Message<'a> {
    /// `a.c:3:1`, or empty.
    place: String,
    severity: &'static str,
    /// What it says, and its tag: `… [-Wframe-larger-than]`.
    text: String,
    /// All of it as printed, with line ends.
    lines: Vec<&'a str>,
    /// Which of the lines holds place, severity and text.
    head: usize,
}

/// What clang printed, taken apart.
fn parts(said: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    let mut in_message = false;
    for line in said.split_inclusive('\n') {
        let plain = without_colours(line.trim_end_matches('\n'));
        if plain.starts_with(INCLUDED) {
            before.push(line);
            continue;
        }
        let head = head_of(&plain);
        match (head, parts.last_mut()) {
            (Some(("note", _, _)), Some(Part::Message(message))) if in_message => {
                message.lines.append(&mut before);
                message.lines.push(line);
            }
            (Some((severity, place, text)), _) => {
                let head = before.len();
                let mut lines = std::mem::take(&mut before);
                lines.push(line);
                parts.push(Part::Message(Message {
                    place: place.to_owned(),
                    severity,
                    text: text.to_owned(),
                    lines,
                    head,
                }));
                in_message = true;
            }
            (None, Some(Part::Message(message))) if in_message && !is_tally(&plain) => message.lines.push(line),
            (None, _) => {
                in_message = false;
                parts.extend(before.drain(..).map(Part::Other));
                parts.push(Part::Other(line));
            }
        }
    }
    parts.extend(before.into_iter().map(Part::Other));
    parts
}

/// Severity, place and text, if the line begins a message.
fn head_of(line: &str) -> Option<(&'static str, &str, &str)> {
    let found = SEVERITIES.into_iter().filter_map(|severity| {
        if let Some(text) = line.strip_prefix(severity).and_then(|rest| rest.strip_prefix(": ")) {
            return Some((severity, "", text));
        }
        let at = line.find(&format!(": {severity}: "))?;
        Some((severity, &line[..at], &line[at + severity.len() + 4..]))
    });
    let first = found.min_by_key(|(_, place, _)| place.len());
    // A source line is indented, or has its number and a bar before it.
    first.filter(|(_, place, _)| !place.starts_with(' ') && !place.contains(" | "))
}

/// "2 warnings generated."
fn is_tally(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit()) && line.ends_with(" generated.")
}

impl Message<'_> {
    fn has_place(&self, folder: &Path) -> bool {
        !self.place.is_empty() && !self.place.starts_with('<') && !self.is_in(folder)
    }

    fn is_in(&self, folder: &Path) -> bool {
        Path::new(&self.place).starts_with(folder)
    }

    /// Whether another message says the same, except for figures.
    fn is_like(&self, other: &Message) -> bool {
        let shape = |text: &str| {
            let text = text.replace("in function '", "in '");
            pieces(&text).map(|piece| if is_figure(piece) { "#" } else { piece }).collect::<String>()
        };
        self.severity == other.severity && shape(self.bare()) == shape(other.bare())
    }

    /// The text without the place that code generation puts into it when it has no better: `a.c:4:0: stack frame …`
    fn bare(&self) -> &str {
        let Some((place, rest)) = self.text.split_once(": ") else { return &self.text };
        let is_place = place.contains(':') && place.rsplit(':').take(2).all(is_figure) && !place.contains(' ');
        if is_place { rest } else { &self.text }
    }

    /// As printed, with the figures of a message that is like it.
    fn with_figures_of(&self, other: &Message) -> String {
        let mut figures = pieces(other.bare()).filter(|piece| is_figure(piece));
        let own = self.bare();
        let text: String = pieces(own).map(|p| if is_figure(p) { figures.next().unwrap_or(p) } else { p }).collect();
        let replaced =
            |(i, line): (usize, &&str)| if i == self.head { line.replacen(own, &text, 1) } else { (*line).to_owned() };
        self.lines.iter().enumerate().map(replaced).collect()
    }

    fn without_our_files(&self, folder: &Path) -> String {
        if self.is_in(folder) { format!("{}: {}\n", self.severity, self.text) } else { self.lines.concat() }
    }
}

/// Runs of digits and what is between them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).map({
        let mut at = 0;
        move |piece| {
            at += piece.len();
            &text[at - piece.len()..at]
        }
    })
}

fn is_figure(piece: &str) -> bool {
    !piece.is_empty() && piece.bytes().all(|b| b.is_ascii_digit())
}

/// A line without the escape sequences that set colours.
fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain += before;
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "a.c:1:9: warning: unused variable 'x' [-Wunused-variable]\n    1 | int x;\n      |     ^\n\
        In file included from a.c:2:\na.h:4:5: warning: stack frame size (312) exceeds limit (10) in 'f' [-Wframe-larger-than]\n\
        \x20   4 | int f(int n) {\n      |     ^\n2 warnings generated.\n";

    #[test]
    fn a_message_without_a_place_gets_place_caret_and_includes_and_keeps_its_own_figures() {
        let said = "warning: a.h:4:0: stack frame size (40) exceeds limit (10) in function 'f' [-Wframe-larger-than]\n1 warning generated.\n";
        let expected = "In file included from a.c:2:\n\
            a.h:4:5: warning: stack frame size (40) exceeds limit (10) in 'f' [-Wframe-larger-than]\n\
            \x20   4 | int f(int n) {\n      |     ^\n1 warning generated.\n";
        assert!(!all_have_places(said, Path::new("/t")));
        assert_eq!(placed(said, WHOLE, Path::new("/t")), expected);
    }

    #[test]
    fn lines_of_our_bitcode_are_never_shown() {
        let said = "/t/0.2.bc:3:19: warning: call to 'g' declared with 'warning' attribute: poor [-Wattribute-warning]\n    3 | BC\u{1}\n      | ^\n";
        let expected = "warning: call to 'g' declared with 'warning' attribute: poor [-Wattribute-warning]\n";
        assert_eq!(placed(said, WHOLE, Path::new("/t")), expected);
    }

    #[test]
    fn an_error_in_assembly_has_the_statement_and_is_one_error() {
        let said = "<inline asm>:1:2: error: invalid instruction mnemonic 'no'\n        no %edi\n        ^~\nerror: cannot compile inline asm\n";
        let whole = "a.c:2:20: error: invalid instruction mnemonic 'no'\n    2 |   __asm__(\"no\");\n      |           ^\n\
            <inline asm>:1:2: note: instantiated into assembly here\n    1 |         no %edi\n      |         ^~\n1 error generated.\n";
        assert_eq!(format!("{}1 error generated.\n", placed(said, whole, Path::new("/t"))), whole);
    }

    #[test]
    fn what_has_a_place_and_what_is_no_message_is_left_as_it_is() {
        let said = "a.c:9:16: remark: 2 spills [-Rpass-missed=regalloc]\n    9 | int g;\n      | ^\n===- Time report -===\n  12.5 | : error: x\n";
        assert!(all_have_places(said, Path::new("/t")));
        assert_eq!(placed(said, WHOLE, Path::new("/t")), said);
    }

    #[test]
    fn colours_do_not_hide_a_message() {
        let said =
            "\x1b[0;1;35mwarning: \x1b[0m\x1b[1mstack frame size (40) exceeds limit (10) in function 'f' [-W]\x1b[0m\n";
        let whole = "\x1b[1ma.c:4:5: \x1b[0m\x1b[0;1;35mwarning: \x1b[0m\x1b[1mstack frame size (312) exceeds limit (10) in 'f' [-W]\x1b[0m\n";
        assert_eq!(placed(said, whole, Path::new("/t")), whole.replace("312", "40"));
    }
}
