//! A picture as PDF: lines, boxes and letters, with the letters' outlines in the file, as journals ask for.
//!
//! Letters are those of `report/fonts`, whichever a reader has. Text can be searched and copied.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use subsetter::GlyphRemapper;
use ttf_parser::{Face, GlyphId};

use crate::drawing::format::{BOLD, REGULAR};
use crate::drawing::palette::PAPER;
use crate::{Anchor, Colour, Mark, Picture, Text};

/// Half of the height of a small letter, in text sizes: [`Text::y`] is so far above the line that letters stand on.
const HALF_OF_SMALL: f32 = 0.26;

/// A font, reduced to the letters in use.
struct Letters {
    face: Face<'static>,
    bytes: &'static [u8],
    /// Its name in the page's resources, and in the file.
    name: &'static str,
    full_name: &'static str,
    used: GlyphRemapper,
    /// What each used letter stands for, by its new number.
    meaning: BTreeMap<u16, char>,
}

impl Letters {
    fn new(bytes: &'static [u8], name: &'static str, full_name: &'static str) -> Option<Letters> {
        let face = Face::parse(bytes, 0).ok()?;
        Some(Letters { face, bytes, name, full_name, used: GlyphRemapper::new(), meaning: BTreeMap::new() })
    }

    /// The numbers of a text's letters in the file, high byte first, and its width in text sizes.
    fn encode(&mut self, text: &str) -> (Vec<u8>, f32) {
        let units = f32::from(self.face.units_per_em());
        let (mut codes, mut width) = (Vec::new(), 0.0);
        for c in text.chars() {
            let glyph = self.face.glyph_index(c).unwrap_or(GlyphId(0));
            let code = self.used.remap(glyph.0);
            self.meaning.entry(code).or_insert(c);
            codes.extend(code.to_be_bytes());
            width += f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0)) / units;
        }
        (codes, width)
    }

    /// Writes the font: a composite one whose letters' numbers are those that [`Letters::encode`] gave.
    fn write(&self, pdf: &mut Pdf, first: i32) {
        let [font, descendant, descriptor, data, cmap] = [0, 1, 2, 3, 4].map(|i| Ref::new(first + i));
        let base = Name(self.full_name.as_bytes());
        let mut type0 = pdf.type0_font(font);
        type0.base_font(base).encoding_predefined(Name(b"Identity-H")).descendant_font(descendant).to_unicode(cmap);
        type0.finish();
        let scale = 1000.0 / f32::from(self.face.units_per_em());
        let scaled = |value: i16| f32::from(value) * scale;
        let mut cid = pdf.cid_font(descendant);
        let info = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };
        cid.subtype(CidFontType::Type2).base_font(base).system_info(info).font_descriptor(descriptor);
        cid.cid_to_gid_map_predefined(Name(b"Identity"));
        let advance = |old: u16| f32::from(self.face.glyph_hor_advance(GlyphId(old)).unwrap_or(0)) * scale;
        cid.widths().consecutive(0, self.used.remapped_gids().map(advance));
        cid.finish();
        let bounds = self.face.global_bounding_box();
        let mut about = pdf.font_descriptor(descriptor);
        about.name(base).flags(FontFlags::NON_SYMBOLIC).font_file2(data).italic_angle(0.0).stem_v(80.0);
        about.bbox(Rect::new(scaled(bounds.x_min), scaled(bounds.y_min), scaled(bounds.x_max), scaled(bounds.y_max)));
        about.ascent(scaled(self.face.ascender())).descent(scaled(self.face.descender()));
        about.cap_height(scaled(self.face.capital_height().unwrap_or(self.face.ascender())));
        about.finish();
        // Without the subset the whole font would do; it is one that can be read, so there always is one.
        let subset = subsetter::subset(self.bytes, 0, &self.used).unwrap_or_else(|_| self.bytes.to_vec());
        pdf.stream(data, &deflated(&subset)).filter(Filter::FlateDecode);
        let mut meanings = UnicodeCmap::new(base, info);
        self.meaning.iter().for_each(|(code, c)| meanings.pair(*code, *c));
        pdf.cmap(cmap, &meanings.finish());
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Memory takes all that is written to it: there is no error to pass on.
    let written = encoder.write_all(bytes);
    debug_assert!(written.is_ok(), "writing into memory cannot fail");
    encoder.finish().unwrap_or_default()
}

/// The picture as a page of its size.
pub(crate) fn pdf(picture: &Picture) -> Vec<u8> {
    let regular = Letters::new(REGULAR, "F1", "LOCKSA+LiberationSans");
    let bold = Letters::new(BOLD, "F2", "LOCKSB+LiberationSans-Bold");
    let (Some(mut regular), Some(mut bold)) = (regular, bold) else {
        debug_assert!(false, "the fonts are fonts");
        return Vec::new();
    };
    let mut content = Content::new();
    let height = picture.height as f32;
    boxed(&mut content, height, [0.0, 0.0, picture.width, picture.height], PAPER);
    for mark in &picture.marks {
        match mark {
            Mark::Box(extent, colour) => boxed(&mut content, height, *extent, *colour),
            Mark::Line { from, to, width, colour } => {
                let [r, g, b] = rgb(*colour);
                content.set_stroke_rgb(r, g, b).set_line_width(*width as f32);
                content.move_to(from.0 as f32, height - from.1 as f32).line_to(to.0 as f32, height - to.1 as f32);
                content.stroke();
            }
            Mark::Text(text) => written(&mut content, height, text, if text.bold { &mut bold } else { &mut regular }),
        }
    }
    let [catalog, tree, page, contents] = [1, 2, 3, 4].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(tree);
    pdf.pages(tree).kids([page]).count(1);
    let mut of_page = pdf.page(page);
    of_page.parent(tree).media_box(Rect::new(0.0, 0.0, picture.width as f32, height)).contents(contents);
    let mut resources = of_page.resources();
    let mut fonts = resources.fonts();
    let all = [(&regular, 10), (&bold, 20)];
    let used = || all.iter().filter(|(letters, _)| !letters.meaning.is_empty());
    used().for_each(|(letters, first)| {
        fonts.pair(Name(letters.name.as_bytes()), Ref::new(*first));
    });
    fonts.finish();
    resources.finish();
    of_page.finish();
    pdf.stream(contents, &deflated(&content.finish())).filter(Filter::FlateDecode);
    used().for_each(|(letters, first)| letters.write(&mut pdf, *first));
    pdf.finish()
}

fn rgb((r, g, b): Colour) -> [f32; 3] {
    [r, g, b].map(|channel| f32::from(channel) / 255.0)
}

/// A filled box; on paper y grows upwards.
fn boxed(content: &mut Content, height: f32, extent: [f64; 4], colour: Colour) {
    let [left, top, right, bottom] = extent.map(|v| v as f32);
    let [r, g, b] = rgb(colour);
    content.set_fill_rgb(r, g, b).rect(left, height - bottom, right - left, bottom - top).fill_nonzero();
}

fn written(content: &mut Content, height: f32, text: &Text, letters: &mut Letters) {
    let (codes, width) = letters.encode(&text.text);
    let size = text.size as f32;
    let before = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width * size / 2.0,
        Anchor::End => width * size,
    };
    let (x, y) = (text.x as f32, height - text.y as f32);
    let below = HALF_OF_SMALL * size;
    let [r, g, b] = rgb(text.colour);
    content.begin_text().set_fill_rgb(r, g, b).set_font(Name(letters.name.as_bytes()), size);
    if text.upwards {
        content.set_text_matrix([0.0, 1.0, -1.0, 0.0, x + below, y - before]);
    } else {
        content.set_text_matrix([1.0, 0.0, 0.0, 1.0, x - before, y - below]);
    }
    content.show(Str(&codes)).end_text();
}
