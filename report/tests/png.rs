//! Charts as PNG: their size in pixels, and that letters are there, from the font that the program holds.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use report::{Columns, PlotOptions, draw, plot, read_rows};

#[test]
fn a_png_has_300_pixels_to_an_inch_and_letters() {
    let rows =
        read_rows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/width/one-program/rows.csv")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chart.png");
    let options = PlotOptions { columns: Columns::Two, ..PlotOptions::default() };
    plot(&rows, Some("width"), &options, &file).unwrap();
    let picture = draw(&rows, Some("width"), &options).unwrap();
    let mut reader = png::Decoder::new(BufReader::new(File::open(&file).unwrap())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let pixels_of = |points: f64| (points / 72.0 * 300.0).round() as u32;
    assert_eq!((info.width, info.height), (1050, pixels_of(picture.height)));
    for text in picture.texts().filter(|t| !t.upwards) {
        let [left, top, right, bottom] = text.extent().map(|v| pixels_of(v).min(info.width - 1));
        let dark =
            (top..bottom.min(info.height)).flat_map(|y| (left..right).map(move |x| (y * info.width + x) as usize * 3));
        let dark = dark.filter(|at| pixels[*at..at + 3].iter().all(|c| *c < 160)).count();
        assert!(dark > 10, "{:?} has {dark} dark pixels", text.text);
    }
}
