//! The page: one HTML file that holds everything, data, styles and scripts, and asks for nothing from anywhere.
//!
//! The files in `report/templates` are put together as they are: `page.html` is the frame, the styles and scripts go
//! where it has their marks, and the data ([`Page`]) goes in as JSON. [`program`] makes the data of one trace.

mod data;
mod export;
mod layout;
mod plan;
mod program;

pub use data::*;
pub use export::time_line;
pub use layout::{NODE, lay_out};
pub use plan::{Request, program, sample};
pub use program::{causes, page};

/// The frame.
const FRAME: &str = include_str!("../../templates/page.html");
/// The styles.
const STYLES: [&str; 2] = [include_str!("../../templates/page.css"), include_str!("../../templates/parts.css")];
/// The scripts, in the order in which they run; the last begins.
const SCRIPTS: [&str; 13] = [
    include_str!("../../templates/elements.js"),
    include_str!("../../templates/switch.js"),
    include_str!("../../templates/verdict.js"),
    include_str!("../../templates/as_lanes.js"),
    include_str!("../../templates/models.js"),
    include_str!("../../templates/divergent.js"),
    include_str!("../../templates/lane_map.js"),
    include_str!("../../templates/lane_map_view.js"),
    include_str!("../../templates/flame.js"),
    include_str!("../../templates/source.js"),
    include_str!("../../templates/graph.js"),
    include_str!("../../templates/compare.js"),
    include_str!("../../templates/main.js"),
];

/// The page as HTML.
#[must_use]
pub fn render(page: &Page) -> String {
    // All keys are strings and all numbers are finite, so this cannot fail.
    let data = serde_json::to_string(page).unwrap_or_default();
    let title = page.programs.iter().map(Program::command).collect::<Vec<_>>().join(" and ");
    FRAME
        .replacen("{{title}}", &escaped(&title), 1)
        .replacen("{{styles}}", &STYLES.concat(), 1)
        .replacen("{{scripts}}", &SCRIPTS.concat(), 1)
        // The data comes last: nothing in it is taken for a mark. No text in it can end the element that it stands in.
        .replacen("{{data}}", &data.replace('<', "\\u003c"), 1)
}

impl Program {
    /// The command that was traced, or else the trace's name.
    #[must_use]
    pub fn command(&self) -> &str {
        let setting = &self.replayed.results.setting;
        [&*setting.command, &*setting.trace].into_iter().find(|name| !name.is_empty()).unwrap_or("a trace")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Bytes as text (RFC 4648, section 4).
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().chain([&0, &0]).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for digit in 0..4 {
            let known = digit <= three.len();
            text.push(if known { DIGITS[(bits >> (18 - 6 * digit) & 63) as usize].into() } else { '=' });
        }
    }
    text
}

/// The bytes of [`base64`]'s text.
fn bytes(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.as_bytes().chunks(4) {
        let known = four.iter().filter(|c| **c != b'=').count();
        let bits = four.iter().fold(0u32, |bits, c| bits << 6 | u32::from(if *c == b'=' { 0 } else { digit(*c) }));
        bytes.extend(bits.to_be_bytes().get(1..known).unwrap_or_default());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let examples =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (plain, coded) in examples {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(bytes(coded), plain.as_bytes());
        }
    }

    #[test]
    fn no_text_of_a_program_ends_the_script_that_holds_it() {
        let note = "</script><script>alert(1)</script>{{styles}}".to_owned();
        let page = Page { programs: vec![Program { notes: vec![note], ..Program::default() }], ..Page::default() };
        let html = render(&page);
        assert_eq!(html.matches("</script>").count(), FRAME.matches("</script>").count());
        assert!(html.contains("{{styles}}") && !FRAME.replace("{{styles}}", "").contains("{{styles}}"));
    }

    #[test]
    fn nothing_on_the_page_is_fetched_from_anywhere() {
        // Arrow heads of the graph are referred to inside the page.
        let page = render(&Page::default()).replace("url(#", "");
        for mark in ["src=", "href=\"http", "@import", "url(", "fetch(", "XMLHttpRequest"] {
            assert!(!page.contains(mark), "the page has {mark:?}");
        }
        assert!(page.contains("default-src 'none'"), "the page forbids itself all requests");
    }
}
