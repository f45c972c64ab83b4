//! Charts as PDF and as PNG: both show the same picture, with letters where the layout put them. poppler's tools
//! (`scripts/setup` installs them) read the PDF; without them the tests say that they were skipped.

#![allow(clippy::disallowed_macros, reason = "remarks of a test go where cargo shows them")]

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use report::{Columns, Mark, PlotOptions, draw, plot, read_rows};

/// An image: pixels in a row, and whether each is dark.
struct Image {
    width: usize,
    dark: Vec<bool>,
}

impl Image {
    fn of_rgb(width: usize, pixels: &[u8]) -> Image {
        Image { width, dark: pixels.chunks(3).map(|p| p.iter().all(|c| *c < 140)).collect() }
    }

    fn of_png(file: &Path) -> Image {
        let mut reader = png::Decoder::new(BufReader::new(File::open(file).unwrap())).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgb);
        Image::of_rgb(info.width as usize, &pixels)
    }

    /// The dark pixels within an extent in points: left, top, right, bottom, in points; none where there are none.
    fn ink(&self, extent: [f64; 4]) -> Option<[f64; 4]> {
        let [left, top, right, bottom] = extent.map(|v| (v / 72.0 * 300.0).round() as usize);
        let rows = || top..bottom.min(self.dark.len() / self.width);
        let found = rows().flat_map(|y| (left..right.min(self.width)).map(move |x| (x, y)));
        let found: Vec<(usize, usize)> = found.filter(|(x, y)| self.dark[y * self.width + x]).collect();
        let points = |pixel: usize| pixel as f64 / 300.0 * 72.0;
        Some([
            points(found.iter().map(|p| p.0).min()?),
            points(found.iter().map(|p| p.1).min()?),
            points(found.iter().map(|p| p.0).max()? + 1),
            points(found.iter().map(|p| p.1).max()? + 1),
        ])
    }
}

fn golden(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case).join("rows.csv")
}

fn poppler() -> bool {
    let is_there = |tool: &str| Command::new(tool).arg("-v").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    let there = is_there("pdftotext") && is_there("pdftoppm");
    if !there {
        eprintln!("skipped: poppler's tools are not installed (scripts/setup installs them)");
    }
    there
}

/// Each text's ink in both pictures lies around the same middle, which is where the layout wants it, to a pixel or two.
#[test]
fn letters_of_a_pdf_and_of_a_png_lie_where_the_layout_puts_them() {
    if !poppler() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (kind, case) in [("efficiency", "efficiency/all-heuristics"), ("speedup", "speedup/all-heuristics")] {
        let rows = read_rows(&golden(case)).unwrap();
        let options = PlotOptions { columns: Columns::One, ..PlotOptions::default() };
        let picture = draw(&rows, Some(kind), &options).unwrap();
        let at = |name: &str| folder.path().join(name);
        plot(&rows, Some(kind), &options, &at("chart.pdf")).unwrap();
        plot(&rows, Some(kind), &options, &at("chart.png")).unwrap();
        let made =
            Command::new("pdftoppm").args(["-r", "300", "-png"]).args([at("chart.pdf"), at("page")]).status().unwrap();
        assert!(made.success());
        let of_pdf = Image::of_png(&at("page-1.png"));
        let of_png = Image::of_png(&at("chart.png"));
        assert_eq!(of_pdf.width, of_png.width, "both have the picture's width at 300 pixels to an inch");
        let mut judged = 0;
        // Texts whose letters all reach from the line up to a capital's height: their middle is known.
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '%');
        for text in picture.texts().filter(|t| plain(&t.text) && t.colour == (0x22, 0x22, 0x22)) {
            // Lines beside it are left out by a margin at its ends; figures are up to a tenth narrower than planned.
            let [left, top, right, bottom] = text.extent();
            let lines = picture.marks.iter().any(|mark| match mark {
                Mark::Line { from, to, .. } => {
                    from.0 < right + 2.0 && to.0 > left - 2.0 && from.1 < bottom + 1.0 && to.1 > top - 1.0
                }
                _ => false,
            });
            if lines {
                continue;
            }
            let inks = [&of_pdf, &of_png].map(|image| image.ink([left, top, right, bottom]).expect("letters"));
            let middle = |ink: [f64; 4]| [(ink[0] + ink[2]) / 2.0, (ink[1] + ink[3]) / 2.0];
            let [one, other] = inks.map(middle);
            let words = format!("{case}: {:?} lies at {one:?} in the PDF and at {other:?} in the PNG", text.text);
            let [along, across] = if text.upwards { [1, 0] } else { [0, 1] };
            assert!((one[along] - other[along]).abs() < 1.0 && (one[across] - other[across]).abs() < 0.6, "{words}");
            // A figure is 0.7 text sizes high and stands 0.26 below the middle of small letters.
            let wanted =
                if text.upwards { text.x + (0.26 - 0.35) * text.size } else { text.y + (0.26 - 0.35) * text.size };
            for found in [one, other] {
                let off = if text.upwards { found[0] - wanted } else { found[1] - wanted };
                assert!(off.abs() < 0.7, "{words}: {off} points off");
            }
            judged += 1;
        }
        assert!(judged >= 5, "{case}: {judged} texts were judged");
    }
}

#[test]
fn a_pdf_has_its_letters_within_it_and_its_text_can_be_read() {
    if !poppler() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chart.pdf");
    let rows = read_rows(&golden("width/one-program")).unwrap();
    plot(&rows, Some("width"), &PlotOptions::default(), &file).unwrap();
    let said = |tool: &str, arguments: &[&str]| {
        let output = Command::new(tool).args(&arguments[..arguments.len() - 1]).arg(&file).arg("-").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = said("pdftotext", &["-layout", ""]);
    let picture = draw(&rows, Some("width"), &PlotOptions::default()).unwrap();
    for part in picture.texts().filter(|t| !t.upwards) {
        assert!(text.contains(&part.text), "{:?} is not in {text}", part.text);
    }
    let fonts = Command::new("pdffonts").arg(&file).output().unwrap();
    let fonts = String::from_utf8(fonts.stdout).unwrap();
    let lines: Vec<&str> = fonts.lines().skip(2).collect();
    assert!(
        !lines.is_empty() && lines.iter().all(|l| l.contains("LiberationSans") && l.contains("yes yes yes")),
        "{fonts}"
    );
    let size = std::fs::metadata(&file).unwrap().len();
    assert!(size < 60_000, "only the letters that are used are in the file: {size} bytes");
}
