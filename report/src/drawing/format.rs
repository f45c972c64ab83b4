//! The formats that a chart can be written in.

use std::path::Path;
use std::sync::Once;

use plotters::prelude::{BitMapBackend, SVGBackend};
use plotters::style::{FontStyle, register_font};

use crate::drawing::pdf;
use crate::drawing::picture::Lettering;
use crate::drawing::text::FONTS;
use crate::{Error, Picture, Result};

/// The font in the program, plain and bold.
pub(crate) const REGULAR: &[u8] = include_bytes!("../../fonts/LiberationSans-Regular.ttf");
pub(crate) const BOLD: &[u8] = include_bytes!("../../fonts/LiberationSans-Bold.ttf");

/// A format of picture files.
#[derive(Debug)]
pub struct Format {
    /// The extension of its files, without the dot.
    pub extension: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Makes the file's content.
    pub render: fn(&Picture) -> Vec<u8>,
}

/// Every format.
pub const FORMATS: [Format; 3] = [
    Format { extension: "svg", about: "scalable vector graphics", render: svg },
    Format { extension: "pdf", about: "vector graphics with the letters in the file, for papers", render: pdf::pdf },
    Format { extension: "png", about: "pixels, 300 to an inch", render: png },
];

/// Pixels to a point in a picture of pixels: 300 to an inch, as journals ask for.
const PIXELS: f64 = 300.0 / 72.0;

/// Pixels are painted so many times finer each way: plotters rounds the corners of a slanting line to whole ones, so
/// that one 5 pixels wide comes out as 3 or as 6.
const FINE: u32 = 3;

/// plotters' SVG divides the size that it is given by 1.24, and puts the middle of small letters where it is told.
const OF_SVG: Lettering = Lettering { size: 1.24, lower: 0.0 };

/// plotters' pixels take the size for the height from the font's highest letter to its lowest, 1.117 times a page's
/// size for Liberation Sans. The line that letters stand on comes half of that, less half of it divided by 1.24,
/// below the
/// place that is told: 0.108 sizes, where half of a small letter's height is 0.26.
const OF_PIXELS: Lettering = Lettering { size: 1.117, lower: 0.152 };

/// The format that a file's extension says.
///
/// # Errors
/// It says none, or one that cannot be written.
pub(crate) fn of_path(path: &Path) -> Result<&'static Format> {
    static ALL: &[Format] = &FORMATS;
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    ALL.iter().find(|f| extension.as_deref() == Some(f.extension)).ok_or_else(|| Error::Extension {
        path: path.to_owned(),
        fault: match &extension {
            Some(extension) => format!("no chart can be written as .{extension}"),
            None => "the name has no extension, which names the format".to_owned(),
        },
        possible: FORMATS.iter().map(|f| format!(".{}", f.extension)).collect::<Vec<_>>().join(", "),
    })
}

/// The picture as SVG. Its size is in points, and its own units are hundredths of one, since plotters' units are whole
/// numbers.
fn svg(picture: &Picture) -> Vec<u8> {
    const UNITS: f64 = 100.0;
    let size = [picture.width, picture.height].map(|v| (v * UNITS).round() as u32);
    let mut text = String::new();
    let mut backend = SVGBackend::with_string(&mut text, (size[0], size[1]));
    // A string takes all that is written to it: there is no error to pass on.
    let painted = picture.paint(&mut backend, UNITS, OF_SVG);
    debug_assert!(painted.is_ok(), "painting into a string cannot fail");
    drop(backend);
    let units = format!("width=\"{}\" height=\"{}\"", size[0], size[1]);
    let points = format!("width=\"{}pt\" height=\"{}pt\"", picture.width, f64::from(size[1]) / UNITS);
    text.replacen(&units, &points, 1).into_bytes()
}

/// The picture as PNG, with letters of the font in `report/fonts`.
fn png(picture: &Picture) -> Vec<u8> {
    use_own_font();
    let size = [picture.width, picture.height].map(|v| (v * PIXELS).round() as u32);
    let fine_size = size.map(|v| v * FINE);
    // White: a part of a pixel at the edges may lie outside the picture.
    let mut fine = vec![u8::MAX; fine_size[0] as usize * fine_size[1] as usize * 3];
    let mut backend = BitMapBackend::with_buffer(&mut fine, (fine_size[0], fine_size[1]));
    // The buffer has the size of the picture: there is nothing that could fail.
    let painted = picture.paint(&mut backend, PIXELS * f64::from(FINE), OF_PIXELS);
    debug_assert!(painted.is_ok(), "painting into memory cannot fail");
    drop(backend);
    let pixels = means(&fine, fine_size[0] as usize);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size[0], size[1]);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: 11811, yppu: 11811, unit: png::Unit::Meter }));
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    debug_assert!(written.is_ok(), "writing into memory cannot fail");
    file
}

/// The mean of each square of [`FINE`] pixels a side; `width` is that of the fine picture.
fn means(fine: &[u8], width: usize) -> Vec<u8> {
    let side = FINE as usize;
    let mut pixels = Vec::with_capacity(fine.len() / side / side);
    for rows in fine.chunks_exact(width * 3 * side) {
        for x in 0..width / side {
            for channel in 0..3 {
                let at = |row: usize, column: usize| rows[(row * width + x * side + column) * 3 + channel];
                let all = (0..side).flat_map(|row| (0..side).map(move |column| (row, column)));
                let sum: u32 = all.map(|(row, column)| u32::from(at(row, column))).sum();
                pixels.push(((sum + FINE * FINE / 2) / (FINE * FINE)) as u8);
            }
        }
    }
    pixels
}

/// Registers the font once, under the name that pictures ask for.
fn use_own_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, bytes) in [(FontStyle::Normal, REGULAR), (FontStyle::Bold, BOLD)] {
            let registered = register_font(FONTS, style, bytes);
            debug_assert!(registered.is_ok(), "the font is one");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much ink there is in each column between two, in pixels.
    fn ink(picture: &Picture, columns: std::ops::Range<usize>) -> Vec<f64> {
        let file = png(picture);
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let width = reader.next_frame(&mut pixels).unwrap().width as usize;
        let of_column = |x: usize| {
            let column = pixels.chunks_exact(width * 3).map(|row| row[x * 3]);
            column.map(|red| 1.0 - f64::from(red) / 255.0).sum()
        };
        columns.map(of_column).collect()
    }

    #[test]
    fn slanting_lines_are_as_wide_as_level_ones() {
        for slope in [0.0, 0.3, 0.58, 1.0, 1.4] {
            let mut picture = Picture::new(60.0);
            picture.height = 100.0;
            picture.line((5.0, 5.0), (55.0, 5.0 + 50.0 * slope), 1.3, (0, 0, 0));
            let wanted = 1.3 * PIXELS * (1.0 + slope * slope).sqrt();
            for ink in ink(&picture, 60..190) {
                assert!((ink / wanted - 1.0).abs() < 0.2, "slope {slope}: {ink:.2} of {wanted:.2} pixels");
            }
        }
    }

    #[test]
    fn the_edges_of_a_picture_are_paper() {
        let mut picture = Picture::new(60.0);
        picture.height = 33.37;
        assert!(ink(&picture, 0..250).iter().all(|ink| *ink == 0.0));
    }
}
