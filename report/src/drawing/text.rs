//! How wide text is, and where it is broken.
//!
//! A chart is drawn before its font is known. Widths are those of DejaVu Sans, the widest of the usual sans-serif fonts
//! (Arial and Helvetica are about a tenth narrower), so that what fits here fits everywhere.

use attribution::table::grouped;

use crate::drawing::axis;

/// The fonts asked for, best first.
pub(crate) const FONTS: &str = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// How much wider bold text is than plain text, at most.
const BOLD: f64 = 1.16;

/// The height of a line of text, in text sizes.
pub(crate) const LINE: f64 = 1.25;

/// Widths of the characters from the space to the tilde, in thousandths of the text size.
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 637, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337, 637, 637, 637, 637, 637, 637, 637,
    637, 637, 637, 337, 337, 838, 838, 838, 531, 1000, 685, 687, 699, 771, 632, 576, 775, 752, 295, 295, 656, 558, 863,
    749, 788, 604, 788, 695, 635, 611, 732, 685, 989, 686, 611, 686, 391, 337, 391, 838, 500, 500, 613, 635, 550, 635,
    616, 353, 635, 634, 278, 278, 580, 278, 975, 634, 612, 635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637,
    337, 637, 838,
];

/// The width of a character, in thousandths of the text size.
fn char_width(c: char) -> u16 {
    match c {
        ' '..='~' => WIDTHS[c as usize - ' ' as usize],
        '·' => 318,
        // Latin, Greek and Cyrillic letters are at most about this wide; all others may be as wide as they are high.
        '\u{a0}'..='\u{52f}' => 860,
        _ => 1050,
    }
}

/// The width of a line of text, in the unit of `size`.
pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let thousandths: u64 = text.chars().map(|c| u64::from(char_width(c))).sum();
    thousandths as f64 / 1000.0 * size * if bold { BOLD } else { 1.0 }
}

/// Breaks text into lines that are at most `room` wide: at spaces and after `:`, `,` and `/` where that is possible,
/// anywhere where it is not. A line has one character at least, however little room there is.
pub(crate) fn wrap(text: &str, size: f64, bold: bool, room: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for piece in text.split_inclusive([' ', ':', ',', '/']) {
        if !line.is_empty() && width((line.clone() + piece).trim_end(), size, bold) > room {
            lines.push(std::mem::take(&mut line));
        }
        for c in piece.chars() {
            line.push(c);
            if c != ' ' && line.chars().nth(1).is_some() && width(&line, size, bold) > room {
                line.pop();
                lines.push(std::mem::replace(&mut line, c.to_string()));
            }
        }
    }
    lines.push(line);
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Text that is at most `room` wide: where it is wider its middle gives way to an ellipsis, since both ends of a name
/// tell it from others.
pub(crate) fn shortened(text: &str, size: f64, room: f64) -> String {
    let chars: Vec<char> = text.chars().collect();
    let cut = |kept: usize| -> String {
        let (front, back) = (kept.div_ceil(2), kept / 2);
        chars[..front].iter().chain(['…'].iter()).chain(&chars[chars.len() - back..]).collect()
    };
    if width(text, size, false) <= room {
        return text.to_owned();
    }
    (1..chars.len()).rev().map(cut).find(|text| width(text, size, false) <= room).unwrap_or_else(|| "…".to_owned())
}

/// How many characters of a function's name are shown whole.
const FUNCTION: usize = 60;

/// The name of a function of C++ or Rust, where it is long: without what it is a template of, its parameters and its
/// outer namespaces, `start routine Evaluator::evaluate` of `start routine long geometry::Evaluator<unsigned,
/// std::allocator<int> >::evaluate<main::{lambda()#1}>(main::{lambda()#1} const&, int)`.
pub(crate) fn short_function(name: &str) -> String {
    if name.chars().count() <= FUNCTION || !name.contains("::") {
        return name.to_owned();
    }
    let (mut bare, mut depth, mut last) = (String::new(), 0, ' ');
    for c in name.chars() {
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' if last == '-' => {}
            '>' | ')' | '}' | ']' => depth -= 1,
            _ if depth == 0 => bare.push(c),
            _ => {}
        }
        last = c;
    }
    let (prefix, path) = match bare.strip_prefix("start routine ") {
        Some(path) => ("start routine ", path),
        None => ("", bare.as_str()),
    };
    // A type that is returned stands before the name, `const` behind it.
    let path = path.split(' ').find(|word| word.contains("::")).unwrap_or(path);
    let parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
    match &parts[parts.len().saturating_sub(2)..] {
        [] => name.to_owned(),
        inner => format!("{prefix}{}", inner.join("::")),
    }
}

/// Text without characters that cannot stand in a picture: a line break or tab becomes a space, another control
/// character the replacement character.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// A count with commas between the thousands: `1,234,567`. From a million millions on it is rounded, since it would be
/// too wide for the narrow charts.
pub(crate) fn count(n: u64) -> String {
    if n >= 1_000_000_000_000 { axis::short(n as f64) } else { grouped(n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_break_at_their_parameters() {
        let name = "rd-minsp-pc:hysteresis=4,threshold=0,decrement=no";
        assert_eq!(wrap(name, 10.0, false, 80.0), ["rd-minsp-pc:", "hysteresis=4,", "threshold=0,", "decrement=no"]);
        assert_eq!(wrap(name, 10.0, false, 1000.0), [name]);
    }

    #[test]
    fn a_word_wider_than_the_room_is_cut_and_nothing_is_lost() {
        let lines = wrap("a/very_long_name_without_any_break in it", 10.0, false, 50.0);
        assert!(lines.iter().all(|l| width(l, 10.0, false) <= 50.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), "a/very_long_name_without_any_breakinit");
    }

    #[test]
    fn a_name_that_is_too_wide_keeps_both_ends() {
        let short = shortened("hanoi:placement=structured,predicate=4", 10.0, 100.0);
        assert!(short.starts_with("hanoi:") && short.ends_with("cate=4") && short.contains('…'), "{short}");
        assert!(width(&short, 10.0, false) <= 100.0);
        assert_eq!([shortened("ipdom", 10.0, 100.0), shortened("ipdom", 10.0, 0.0)], ["ipdom", "…"]);
    }

    #[test]
    fn no_room_at_all_still_ends() {
        assert_eq!(wrap("ab", 10.0, false, 0.0), ["a", "b"]);
        assert!(wrap("  ", 10.0, false, 0.0).is_empty());
    }

    #[test]
    fn counts_have_commas_between_thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(1_234_567_890_123), "1.235 T");
    }

    #[test]
    fn control_characters_do_not_reach_the_picture() {
        assert_eq!(printable("a\nb\u{1}c\tß"), "a b\u{fffd}c ß");
    }

    #[test]
    fn of_long_names_of_functions_the_inner_parts_are_left() {
        let cpp = "start routine long geometry::detail::Evaluator<unsigned int, std::allocator<std::pair<int, long> > >::evaluate<main::{lambda()#1}>(main::{lambda()#1} const&, int)";
        assert_eq!(short_function(cpp), "start routine Evaluator::evaluate");
        let rust = "<names::Evaluator<core::option::Option<u64>> as names::quadrature::Evaluate<u64>>::evaluate_until";
        assert_eq!(short_function(rust), "evaluate_until");
        assert_eq!(short_function("start routine worker"), "start routine worker");
        let path = "a part of the run with a long name that is no function of any language at all";
        assert_eq!(short_function(path), path);
    }
}
