//! Charts drawn from stored rows, compared byte by byte with stored pictures.
//!
//! `golden/KIND/CASE/` holds `rows.csv`, `shows.txt` (one sentence: what the case shows) and the pictures for papers
//! with one and two columns, and with shares where the kind has them. The rows are made up, so that each case shows one
//! thing; they measure no program. `BLESS=1 cargo test -p report` writes the pictures again; look at them before they
//! are committed.

use std::fs;
use std::path::{Path, PathBuf};

use report::{CHARTS, Columns, Mark, Picture, PlotOptions, draw, plot, read_rows};

/// The pictures of a case: their files, and what they are drawn for.
fn pictures(kind: &str) -> Vec<(&'static str, PlotOptions)> {
    let counts = |columns| PlotOptions { columns, shares: false };
    let mut pictures = vec![("one-column.svg", counts(Columns::One)), ("two-columns.svg", counts(Columns::Two))];
    if CHARTS.iter().any(|c| c.name() == kind && c.has_shares()) {
        pictures.push(("shares.svg", PlotOptions { columns: Columns::One, shares: true }));
    }
    pictures
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(of)
        .unwrap_or_else(|e| panic!("{}: {e}: make it, with a folder for each case (docs/add-a-chart.md)", of.display()))
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
        for (file, options) in pictures(kind) {
            let picture = draw(&rows, Some(kind), &options).unwrap();
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
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/report.md")).unwrap();
    for kind in kinds {
        assert!(page.contains(&format!("`{kind}`")), "docs/report.md does not tell what `{kind}` shows");
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
        for (file, options) in pictures(kind) {
            let drawn = folder.path().join(file);
            plot(&rows, Some(kind), &options, &drawn).unwrap();
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

/// A bar's first part is as long, of the whole, as divergent instructions are of all; the second is stacked on it.
#[test]
fn divergent_parts_are_as_long_as_they_are_many() {
    let rows = read_rows(&golden().join("divergent/all-heuristics/rows.csv")).unwrap();
    for (file, options) in pictures("divergent") {
        let picture = draw(&rows, Some("divergent"), &options).unwrap();
        let mut judged = 0;
        for row in &rows {
            // Long names are broken into lines, and are not looked for.
            let Some(label) = picture.texts().find(|t| t.text == row.label()) else { continue };
            // Each part has a dark edge as large as itself below it: that of the second part is drawn first.
            let beside = |b: &[f64; 4]| b[1] < label.y && label.y < b[3] && b[0] > label.x;
            let edges = picture.marks.iter().filter_map(|mark| match mark {
                Mark::Box(b, (0x22, 0x22, 0x22)) => Some(*b),
                _ => None,
            });
            let [others, divergent] = edges.filter(beside).collect::<Vec<_>>()[..] else { panic!("two parts") };
            let counts = row.counts().unwrap();
            let expected = counts.divergent_instructions as f64 / counts.thread_instructions as f64;
            let drawn = (divergent[2] - divergent[0]) / (others[2] - divergent[0]);
            assert!((drawn - expected).abs() < 1e-9, "{file}, {}: {drawn} is not {expected}", row.heuristic);
            assert!((others[0] - divergent[2]).abs() < 1e-9, "{file}, {}: the parts do not touch", row.heuristic);
            judged += 1;
        }
        assert!(judged > 15, "{file}: {judged} bars were judged");
    }
}
