//! The formats that a chart can be written in.

use std::path::Path;

use plotters::prelude::SVGBackend;

use crate::{Error, Picture, Result};

/// A format of picture files.
#[derive(Debug)]
pub struct Format {
    /// The extension of its files, without the dot.
    pub extension: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Makes the file's content.
    pub render: fn(&Picture) -> String,
}

/// Every format.
pub const FORMATS: [Format; 1] = [Format { extension: "svg", about: "scalable vector graphics", render: svg }];

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

/// The picture as SVG. Its size is in points, and its own units are hundredths of one, since plotters' units are whole numbers.
fn svg(picture: &Picture) -> String {
    const UNITS: f64 = 100.0;
    let size = [picture.width, picture.height].map(|v| (v * UNITS).round() as u32);
    let mut text = String::new();
    let mut backend = SVGBackend::with_string(&mut text, (size[0], size[1]));
    // A string takes all that is written to it: there is no error to pass on.
    let painted = picture.paint(&mut backend, UNITS);
    debug_assert!(painted.is_ok(), "painting into a string cannot fail");
    drop(backend);
    let units = format!("width=\"{}\" height=\"{}\"", size[0], size[1]);
    let points = format!("width=\"{}pt\" height=\"{}pt\"", picture.width, f64::from(size[1]) / UNITS);
    text.replacen(&units, &points, 1)
}
