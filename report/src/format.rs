//! The formats that a chart can be written in.

use std::path::Path;
use std::sync::Once;

use plotters::prelude::{BitMapBackend, SVGBackend};
use plotters::style::{FontStyle, register_font};

use crate::picture::Lettering;
use crate::text::FONTS;
use crate::{Error, Picture, Result, pdf};

/// The font in the program, plain and bold.
pub(crate) const REGULAR: &[u8] = include_bytes!("../fonts/LiberationSans-Regular.ttf");
pub(crate) const BOLD: &[u8] = include_bytes!("../fonts/LiberationSans-Bold.ttf");

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
            None => "the name has no extension to say the format".to_owned(),
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
    let mut pixels = vec![0; size[0] as usize * size[1] as usize * 3];
    let mut backend = BitMapBackend::with_buffer(&mut pixels, (size[0], size[1]));
    // The buffer has the size of the picture: there is nothing that could fail.
    let painted = picture.paint(&mut backend, PIXELS, OF_PIXELS);
    debug_assert!(painted.is_ok(), "painting into memory cannot fail");
    drop(backend);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size[0], size[1]);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: 11811, yppu: 11811, unit: png::Unit::Meter }));
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    debug_assert!(written.is_ok(), "writing into memory cannot fail");
    file
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
