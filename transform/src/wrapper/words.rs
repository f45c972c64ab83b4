//! Response files: arguments in a file, as GNU's programs and clang read and write them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How deep response files may name response files; clang stops a circle too.
const DEPTH: usize = 16;

/// The words that the driver sees: for `@file` those in the file. As with the driver, an `@file` that cannot be read is
/// a word.
pub(super) fn expanded(words: &[OsString]) -> Vec<OsString> {
    let mut all = Vec::with_capacity(words.len());
    expand(words, DEPTH, &mut all);
    all
}

fn expand(words: &[OsString], depth: usize, all: &mut Vec<OsString>) {
    for word in words {
        let file = word.as_bytes().strip_prefix(b"@").filter(|_| depth > 0);
        match file.and_then(|name| std::fs::read(OsStr::from_bytes(name)).ok()) {
            Some(text) => expand(&split(&text), depth - 1, all),
            None => all.push(word.clone()),
        }
    }
}

/// The words of a response file: between white space, with quotes of both kinds, and a backslash before what is to mean
/// itself.
fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (byte, Some(end)) if byte == end => quote = None,
            (byte, None) if byte.is_ascii_whitespace() => words.extend(word.take().map(OsString::from_vec)),
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

/// The text of a response file with these words, a line each.
pub(super) fn quoted(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        text.push(b'"');
        for &byte in word.as_bytes() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.extend(b"\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_split_into_the_same_words() {
        let words = ["a b", "", "c\"d", "e\\f", "g'h", "two\nlines", "@i"].map(OsString::from);
        assert_eq!(split(&quoted(&words)), words);
    }

    #[test]
    fn words_are_split_as_a_shell_would() {
        let words = split(b"  -DA=\\\"b\\ c\\\" 'd e'\"f\"\n\tg ''");
        assert_eq!(words, ["-DA=\"b c\"", "d ef", "g", ""].map(OsString::from));
    }

    #[test]
    fn response_files_may_name_others_and_a_circle_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("one"), format!("-a @{} -c", path("two").display())).unwrap();
        std::fs::write(path("two"), format!("-b @{}", path("three").display())).unwrap();
        let at = |name: &str| OsString::from(format!("@{}", path(name).display()));
        let words = expanded(&[at("one"), "-d".into()]);
        assert_eq!(words, ["-a".into(), "-b".into(), at("three"), "-c".into(), OsString::from("-d")]);
        std::fs::write(path("three"), format!("@{}", path("three").display())).unwrap();
        assert_eq!(expanded(&[at("three")]), [at("three")]);
    }
}
