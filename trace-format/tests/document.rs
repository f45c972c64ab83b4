//! docs/trace-format.md says what the code does: its tables and its example are compared with it.

use trace_format::layout::{self, ChunkHeader, ChunkKind, Version};
use trace_format::{
    Block, COMPRESSION_LEVEL, CONTEXTS, EVENT_CODES, EXIT_CODES, Kind, MAX_BUFFERED, MAX_COLUMNS, MAX_NAMED,
    MAX_ROW_VALUES, ModuleRole, NUMBERED, SyncFunction, VALUES_COMPRESSION_LEVEL, read_text,
};

const DOCUMENT: &str = include_str!("../../docs/trace-format.md");

/// The rows of the table with this head, cell by cell.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let mut lines = DOCUMENT.lines().skip_while(|line| *line != head);
    assert_eq!(lines.next(), Some(head), "the document has this table");
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect()).collect()
}

/// The first two cells of each row: a code and its name.
fn codes(head: &str) -> Vec<(String, u8)> {
    table(head).iter().map(|row| (row[1].to_owned(), row[0].parse().expect("a code is a number"))).collect()
}

fn named<T: std::fmt::Debug>(all: &[T]) -> Vec<(String, u8)> {
    all.iter().enumerate().map(|(code, value)| (format!("{value:?}"), code as u8)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_constants_are_those_of_the_code() {
    let expected = [
        ("MAGIC", hex(&layout::MAGIC)),
        ("FOOTER_MAGIC", hex(&layout::FOOTER_MAGIC)),
        ("CHUNK_MARK", hex(&layout::CHUNK_MARK)),
        ("VERSION", (Version::NEWEST as u32).to_string()),
        ("HEADER_LEN", layout::HEADER_LEN.to_string()),
        ("CHUNK_HEADER_LEN", layout::CHUNK_HEADER_LEN.to_string()),
        ("FOOTER_LEN", layout::FOOTER_LEN.to_string()),
        ("STREAM_HEAD_LEN", layout::STREAM_HEAD_LEN.to_string()),
        ("MAX_RAW", layout::MAX_RAW.to_string()),
        ("TARGET_RAW", layout::TARGET_RAW.to_string()),
        ("MAX_ITEMS", layout::MAX_ITEMS.to_string()),
        ("MAX_THREADS", layout::MAX_THREADS.to_string()),
        ("MAX_RATIO", layout::MAX_RATIO.to_string()),
        ("MAX_INDEX_ENTRIES", layout::MAX_INDEX_ENTRIES.to_string()),
        ("MAX_INSTRUCTIONS", Block::MAX_INSTRUCTIONS.to_string()),
        ("ESCAPE", layout::ESCAPE.to_string()),
        ("NO_THREAD", layout::NO_THREAD.to_string()),
        ("NUMBERED", NUMBERED.to_string()),
        ("MAX_NAMED", MAX_NAMED.to_string()),
        ("FLAG_COMPRESSED", layout::FLAG_COMPRESSED.to_string()),
        ("FLAG_SKIPPABLE", layout::FLAG_SKIPPABLE.to_string()),
        ("RECORDED_SP", layout::RECORDED_SP.to_string()),
        ("SUMS", layout::SUMS.to_string()),
        ("CONTEXTS", CONTEXTS.to_string()),
        ("MAX_COLUMNS", MAX_COLUMNS.to_string()),
        ("MAX_ROW_VALUES", MAX_ROW_VALUES.to_string()),
        ("COMPRESSION_LEVEL", COMPRESSION_LEVEL.to_string()),
        ("VALUES_COMPRESSION_LEVEL", VALUES_COMPRESSION_LEVEL.to_string()),
        ("MAX_BUFFERED", MAX_BUFFERED.to_string()),
    ];
    let stated: Vec<(&str, String)> =
        table("| constant | value | what it is |").iter().map(|row| (row[0], row[1].to_owned())).collect();
    assert_eq!(stated, expected);
}

#[test]
fn the_chunk_header_is_as_described() {
    let header = ChunkHeader {
        kind: ChunkKind::Stream as u8,
        flags: 1,
        thread: 0x1_0203,
        raw: 0x1_0405,
        stored: 0x1_0607,
        blocks: 0x809,
        events: 0xa0b,
        instructions: 0xc0d,
    };
    let bytes = header.encode();
    let mut at = 0;
    for row in table("| offset | bytes | field | what it is |") {
        let (offset, len): (usize, usize) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert_eq!(offset, at, "fields follow one another");
        at += len;
        let value = match row[2] {
            "mark" => u32::from(u16::from_le_bytes(layout::CHUNK_MARK)),
            "kind" => header.kind.into(),
            "flags" => header.flags.into(),
            "thread" => header.thread,
            "raw" => header.raw,
            "stored" => header.stored,
            "blocks" => header.blocks,
            "events" => header.events,
            "instructions" => header.instructions,
            "checksum" => {
                assert_eq!(offset, ChunkHeader::ENTRY_LEN);
                continue;
            }
            other => panic!("the header has no field {other}"),
        };
        assert_eq!(bytes[offset..at], value.to_le_bytes()[..len], "{}", row[2]);
    }
    assert_eq!(at, layout::CHUNK_HEADER_LEN);
    assert_eq!(ChunkHeader::decode(&bytes), Ok(header));
}

#[test]
fn every_code_is_listed_with_its_name() {
    let kinds: Vec<(String, u8)> = ChunkKind::ALL.iter().map(|kind| (kind.name().to_owned(), *kind as u8)).collect();
    assert_eq!(codes("| kind | name | payload |"), kinds);
    assert_eq!(codes("| role | name |"), named(&ModuleRole::ALL));
    assert_eq!(codes("| instruction kind | name |"), named(&Kind::ALL));
    assert_eq!(codes("| exit | name | followed by |"), EXIT_CODES.map(|(name, code)| (name.to_owned(), code)));
    assert_eq!(codes("| function | name |"), named(&SyncFunction::ALL));
    let head = "| code | event | fields | since version |";
    let versions: Vec<u32> = table(head).iter().map(|row| row[3].parse().expect("a version is a number")).collect();
    assert_eq!(codes(head), EVENT_CODES.map(|(name, code, _)| (name.to_owned(), code)));
    assert_eq!(versions, EVENT_CODES.map(|(.., since)| since as u32));
}

#[test]
fn the_fields_of_every_event_are_listed_in_their_order() {
    // The declarations themselves: a field has a name and a type, a comment neither.
    let source = include_str!("../src/vocabulary/event.rs");
    let events = source.split("pub enum Event {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    for row in table("| code | event | fields | since version |") {
        let declared = events.lines().skip_while(|line| {
            let name = line.trim_start().split([' ', ',', '(']).next();
            name != Some(row[1])
        });
        let mut declared = declared.peekable();
        let line = declared.peek().unwrap_or_else(|| panic!("{} is declared", row[1]));
        if !line.ends_with('{') {
            assert_eq!(line.contains('('), !row[2].is_empty(), "{}", row[1]);
            continue;
        }
        let fields: Vec<&str> = declared
            .skip(1)
            .take_while(|line| line.trim() != "},")
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(|line| line.trim().split(':').next().unwrap())
            .collect();
        assert_eq!(fields.join(", "), row[2], "{}", row[1]);
    }
}

#[test]
fn the_stream_head_has_the_size_given() {
    let mut at = 0;
    for row in table("| offset | bytes | field |") {
        assert_eq!(row[0], at.to_string());
        at += row[1].parse::<usize>().unwrap();
    }
    assert_eq!(at, layout::STREAM_HEAD_LEN);
}

/// The fenced block that starts with this line, without its fences.
fn fenced(fence: &str) -> &'static str {
    let after = DOCUMENT.split(&format!("{fence}\n")).nth(1).expect("the document has this block");
    after.split("\n```").next().unwrap()
}

#[test]
fn the_example_is_what_the_writer_writes() {
    let text = fenced("The text trace\n\n```");
    let file = read_text(text.as_bytes(), "example".as_ref()).unwrap();
    let mut at = layout::HEADER_LEN;
    let mut seen = Vec::new();
    while let Ok(header) = ChunkHeader::decode(file[at..at + ChunkHeader::ENTRY_LEN].try_into().unwrap()) {
        let stored = &file[at + layout::CHUNK_HEADER_LEN..][..header.stored as usize];
        let kind = ChunkKind::from_code(header.kind).unwrap();
        if matches!(kind, ChunkKind::Table | ChunkKind::Stream) {
            let payload = if header.flags & layout::FLAG_COMPRESSED == 0 {
                stored.to_vec()
            } else {
                zstd::bulk::decompress(stored, header.raw as usize).unwrap()
            };
            let stated: Vec<&str> = fenced(&format!("```{}", kind.name())).split_whitespace().collect();
            assert_eq!(stated.join(" "), hex(&payload), "{}", kind.name());
        }
        seen.push(kind.name());
        at += layout::CHUNK_HEADER_LEN + header.stored as usize;
        if kind == ChunkKind::Index {
            break;
        }
    }
    assert_eq!(seen, ["meta", "meta", "table", "stream", "finish", "index"]);
    assert_eq!(file.len(), at + layout::FOOTER_LEN);
}
