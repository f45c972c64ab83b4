//! pprof's format: a message of Protocol Buffers, compressed by gzip
//! (<https://github.com/google/pprof/blob/main/proto/profile.proto>).
//!
//! A message is a row of fields. Each begins with its number and whether a number follows, or bytes behind their
//! length. The numbers of fields below are those of the schema.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use trace_format::Module;

use super::{Place, PlaceLine, Profile, number};

/// Three values of each stack: lost lane-slots, warp instructions and thread instructions. Labels of lost lane-slots
/// say what they are lost to (`cause`) and where the lanes parted (`parted_at`).
///
/// # Panics
/// Never: memory can be written.
#[must_use]
pub fn pprof(profile: &Profile) -> Vec<u8> {
    let mut tables = Tables::default();
    tables.text("");
    let mut all = Message::default();
    for what in ["lost_lane_slots", "fetches", "thread_instructions"] {
        all.message(1, &Message::of(&[(1, tables.text(what)), (2, tables.text("count"))]));
    }
    let locations: Vec<u64> = profile.places.iter().map(|place| tables.location(place, profile.modules)).collect();
    let sample = |stack: usize, values: [u64; 3], labels: &[(u64, u64)]| {
        let mut sample = Message::default();
        // The innermost comes first.
        sample.packed(1, profile.stacks[stack].iter().rev().map(|place| locations[*place]));
        sample.packed(2, values);
        labels.iter().for_each(|(key, text)| sample.message(3, &Message::of(&[(1, *key), (2, *text)])));
        sample
    };
    let (cause, parted_at) = (tables.text("cause"), tables.text("parted_at"));
    for lost in &profile.lost {
        let mut labels = vec![(cause, tables.text(lost.cause.name()))];
        labels.extend(lost.parted_at.map(|place| (parted_at, tables.text(&profile.places[place].label))));
        all.message(2, &sample(lost.stack, [lost.slots, 0, 0], &labels));
    }
    for (stack, issued) in &profile.issued {
        all.message(2, &sample(*stack, [0, issued.fetches, issued.thread_instructions], &[]));
    }
    for (module, id) in profile.modules.iter().zip(1..) {
        all.message(3, &tables.mapping(module, id));
    }
    tables.locations.iter().for_each(|location| all.message(4, location));
    tables.functions.iter().for_each(|function| all.message(5, function));
    for comment in [&profile.command, &profile.replayed] {
        all.number(13, tables.text(comment));
    }
    all.number(14, tables.text("lost_lane_slots"));
    tables.texts.iter().for_each(|text| all.bytes(6, text.as_bytes()));
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(&all.0).and_then(|()| compressed.finish()).expect("memory can be written")
}

/// What is referred to by its number.
#[derive(Default)]
struct Tables {
    texts: Vec<String>,
    text_numbers: HashMap<String, usize>,
    functions: Vec<Message>,
    function_numbers: HashMap<(String, String), usize>,
    locations: Vec<Message>,
}

impl Tables {
    fn text(&mut self, text: &str) -> u64 {
        number(&mut self.text_numbers, text.to_owned(), || self.texts.push(text.to_owned())) as u64
    }

    /// The function's id, from 1.
    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (text, path) = (self.text(name), self.text(file));
        let functions = &mut self.functions;
        let at = number(&mut self.function_numbers, (name.to_owned(), file.to_owned()), || {
            let id = functions.len() as u64 + 1;
            functions.push(Message::of(&[(1, id), (2, text), (3, text), (4, path)]));
        });
        at as u64 + 1
    }

    /// The place's id, from 1.
    fn location(&mut self, place: &Place, modules: &[Module]) -> u64 {
        let id = self.locations.len() as u64 + 1;
        let mapping = modules.iter().position(|module| module.contains(place.pc)).map_or(0, |at| at as u64 + 1);
        let mut location = Message::of(&[(1, id), (2, mapping), (3, place.pc.0)]);
        let unknown = [PlaceLine { function: place.function.clone(), file: String::new(), line: 0 }];
        let lines = if place.lines.is_empty() { &unknown[..] } else { &place.lines };
        for PlaceLine { function, file, line } in lines {
            location.message(4, &Message::of(&[(1, self.function(function, file)), (2, u64::from(*line))]));
        }
        self.locations.push(location);
        id
    }

    fn mapping(&mut self, module: &Module, id: u64) -> Message {
        let executable = || module.mappings.iter().filter(|mapping| mapping.executable);
        let start = executable().map(|mapping| mapping.start.0).min().unwrap_or(0);
        let end = executable().map(|mapping| mapping.end.0).max().unwrap_or(0);
        let offset = executable().find(|mapping| mapping.start.0 == start).map_or(0, |mapping| mapping.offset);
        let build_id: String = module.build_id.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        let (path, build_id) = (self.text(&module.path), self.text(&build_id));
        // The last four say that functions, files, lines and inlined functions are known: nobody need look for them.
        let known = (7..=10).map(|field| (field, 1));
        let fields = [(1, id), (2, start), (3, end), (4, offset), (5, path), (6, build_id)].into_iter().chain(known);
        Message::of(&fields.collect::<Vec<_>>())
    }
}

/// A message, as bytes.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Of these fields, which are all numbers.
    fn of(fields: &[(u64, u64)]) -> Message {
        let mut message = Message::default();
        fields.iter().for_each(|(field, value)| message.number(*field, *value));
        message
    }

    /// Seven bits a byte, the lowest first; all but the last byte have their highest bit set.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.message(field, &packed);
    }
}
