//! Charts drawn from stored rows, compared byte by byte with stored pictures.
//!
//! `golden/KIND/CASE/` holds `rows.csv`, `shows.txt` (one sentence: what the case shows) and the pictures for papers with one
//! and two columns. The rows are made up, so that each case shows one thing; they measure no program.
//! `BLESS=1 cargo test -p report` writes the pictures anew; look at them before they are committed.

use std::fs;
use std::path::{Path, PathBuf};

use report::{CHARTS, Columns, Picture, PlotOptions, draw, plot, read_rows};

const PICTURES: [(&str, Columns); 2] = [("one-column.svg", Columns::One), ("two-columns.svg", Columns::Two)];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(of)
        .unwrap_or_else(|e| panic!("{}: {e}", of.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Every case: its kind of chart and its folder.
fn cases() -> Vec<(&'static str, PathBuf)> {
    CHARTS.iter().flat_map(|c| folders(&golden().join(c.name())).into_iter().map(|case| (c.name(), case))).collect()
}

fn each_picture(mut judge: impl FnMut(&str, Picture)) {
    for (kind, case) in cases() {
        let rows = read_rows(&case.join("rows.csv")).unwrap();
        for (file, columns) in PICTURES {
            let picture = draw(&rows, Some(kind), &PlotOptions { columns }).unwrap();
            judge(&format!("{kind}/{}/{file}", name(&case)), picture);
        }
    }
}

#[test]
fn every_kind_has_goldens_and_every_golden_folder_is_a_kind() {
    let kinds: Vec<&str> = CHARTS.iter().map(|c| c.name()).collect();
    for folder in folders(&golden()) {
        assert!(kinds.contains(&name(&folder)), "{} is no kind of chart", folder.display());
    }
    for kind in kinds {
        assert!(!folders(&golden().join(kind)).is_empty(), "golden/{kind} has no case");
    }
}

#[test]
fn every_golden_says_what_it_shows() {
    for (_, case) in cases() {
        let path = case.join("shows.txt");
        let sentence = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(sentence.trim_end().ends_with('.') && sentence.len() > 20, "{}: {sentence:?}", path.display());
    }
}

#[test]
fn charts_are_those_that_were_blessed() {
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    let folder = tempfile::tempdir().unwrap();
    for (kind, case) in cases() {
        let rows = read_rows(&case.join("rows.csv")).unwrap();
        for (file, columns) in PICTURES {
            let drawn = folder.path().join(file);
            plot(&rows, Some(kind), &PlotOptions { columns }, &drawn).unwrap();
            let drawn = fs::read_to_string(&drawn).unwrap();
            let path = case.join(file);
            if bless {
                fs::write(&path, &drawn).unwrap();
            }
            let way_out = "look at what BLESS=1 cargo test -p report draws";
            let blessed = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}: {way_out}", path.display()));
            assert!(drawn == blessed, "{} is drawn differently: {way_out}", path.display());
        }
    }
}

#[test]
fn no_text_is_cut_off() {
    each_picture(|case, picture| {
        for text in picture.texts() {
            let [left, top, right, bottom] = text.extent();
            assert!(
                left >= 0.0 && top >= 0.0 && right <= picture.width && bottom <= picture.height,
                "{case}: {:?} is cut off",
                text.text
            );
        }
    });
}

#[test]
fn no_text_covers_another() {
    each_picture(|case, picture| {
        let texts: Vec<_> = picture.texts().collect();
        for (i, a) in texts.iter().enumerate() {
            for b in &texts[i + 1..] {
                let ([al, at, ar, ab], [bl, bt, br, bb]) = (a.extent(), b.extent());
                assert!(
                    ar <= bl || br <= al || ab <= bt || bb <= at,
                    "{case}: {:?} and {:?} cover each other",
                    a.text,
                    b.text
                );
            }
        }
    });
}
