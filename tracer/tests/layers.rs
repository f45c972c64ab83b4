//! The parts of the engine `translate` know only those above them, as docs/ARCHITECTURE.md draws it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The parts, each with its line in the picture, the first one at the top.
fn picture() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let behind = text.split_once("<!-- layers of tracer/src/translate -->").expect("the picture").1;
    let drawn = behind.split("```").nth(1).expect("a picture in a block of code");
    let rows = drawn.lines().skip(1).enumerate();
    let names = rows.flat_map(|(row, line)| {
        let names = line.split("  ").next().unwrap_or_default();
        names.split(", ").map(|name| (name.trim().to_owned(), row)).collect::<Vec<_>>()
    });
    names.filter(|(name, _)| !name.is_empty()).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn each_part_of_translate_knows_only_those_above_it() {
    let (picture, folder) = (picture(), root().join("tracer/src/translate"));
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let mut known = 0;
    for file in &files {
        let relative = file.strip_prefix(&folder).unwrap();
        let part = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let Some(&own) = picture.get(part) else {
            assert_eq!(part, "mod", "{} is in no part of the picture", relative.display());
            continue;
        };
        let text = fs::read_to_string(file).unwrap();
        for rest in text.split("crate::translate::").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            if let Some(&other) = picture.get(&name) {
                assert!(other < own || name == part, "{} uses {name}, which lies below {part}", relative.display());
                known += 1;
            }
        }
    }
    assert!(known > 100, "{known} imports were found in {} files", files.len());
    for part in picture.keys() {
        assert!(files.iter().any(|f| f.starts_with(folder.join(part)) || f.ends_with(format!("{part}.rs"))), "{part}");
    }
}
