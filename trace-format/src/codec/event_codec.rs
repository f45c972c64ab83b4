//! Events as bytes: a code, then the fields in the order in which [`Event`] declares them.
//!
//! Addresses, numbers and results are varints, signed numbers zigzag varints, a thread or module that may be absent
//! is its number plus one (0: absent), and `seq` is the zigzag difference to the `seq` before it in the stream. The
//! object of a function that is entered is, from version 4 on, the zigzag difference to the object before it in the
//! chunk: what is locked is mostly unlocked next.

use crate::codec::bytes::{Cursor, MAX_VARINT, write_varint, zigzag};
use crate::layout::{MAX_THREADS, Version};
use crate::{BlockId, Chunk, Event, ModuleId, Pc, Seq, SyncFunction, ThreadExit, ThreadId};

/// Every event in the file: the name of its variant of [`Event`], its code, and the first version of the format that
/// has it.
pub const EVENT_CODES: [(&str, u8, Version); 16] = [
    ("ThreadStart", 0, Version::V1),
    ("ThreadEnd", 1, Version::V1),
    ("SetSp", 2, Version::V1),
    ("Partial", 3, Version::V1),
    ("Enter", 4, Version::V1),
    ("Leave", 5, Version::V1),
    ("WarpBarrier", 6, Version::V1),
    ("FutexWait", 7, Version::V1),
    ("Signal", 8, Version::V1),
    ("SignalReturn", 9, Version::V1),
    ("ModuleLoaded", 10, Version::V1),
    ("ModuleUnloaded", 11, Version::V1),
    ("Fork", 12, Version::V1),
    ("Exec", 13, Version::V1),
    ("Gap", 14, Version::V1),
    ("Chunk", 15, Version::V4),
];

impl Event {
    /// Its code in the file.
    #[inline(always)]
    fn code(&self) -> u8 {
        match self {
            Event::ThreadStart { .. } => 0,
            Event::ThreadEnd { .. } => 1,
            Event::SetSp(_) => 2,
            Event::Partial { .. } => 3,
            Event::Enter { .. } => 4,
            Event::Leave { .. } => 5,
            Event::WarpBarrier => 6,
            Event::FutexWait { .. } => 7,
            Event::Signal { .. } => 8,
            Event::SignalReturn => 9,
            Event::ModuleLoaded(_) => 10,
            Event::ModuleUnloaded(_) => 11,
            Event::Fork { .. } => 12,
            Event::Exec => 13,
            Event::Gap => 14,
            Event::Chunk(_) => 15,
        }
    }

    /// Whether this version of the format has such an event.
    #[must_use]
    pub fn is_of(&self, version: Version) -> bool {
        let (_, _, since) = EVENT_CODES[usize::from(self.code())];
        let since = match self {
            Event::Enter { function, .. } | Event::Leave { function, .. } => since.max(function.since()),
            _ => since,
        };
        version >= since
    }
}

impl SyncFunction {
    /// The first version of the format that has it. `DoacrossWait` and those behind it came later than version 4: a
    /// lockstep that is older refuses a trace that has them.
    #[must_use]
    pub fn since(self) -> Version {
        if self >= SyncFunction::TaskCreate { Version::V4 } else { Version::V1 }
    }
}

/// The code of every way a thread can end, by the name of its variant of [`ThreadExit`].
pub const EXIT_CODES: [(&str, u8); 4] = [("Exited", 0), ("Killed", 1), ("Replaced", 2), ("StillRunning", 3)];

fn thread(cursor: &mut Cursor) -> Result<Option<ThreadId>, String> {
    let number = cursor.varint32()?;
    if number > MAX_THREADS {
        return Err(format!("an event names thread {}, over the limit of {}", number - 1, MAX_THREADS - 1));
    }
    Ok(number.checked_sub(1).map(ThreadId))
}

/// How an event is written: the version, and the base of its differences.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// The `seq` before it in the stream.
    pub seq: u64,
    /// The object before it in the chunk. Before version 4 objects are not differences.
    pub object: u64,
    /// That of the chunk.
    pub version: Version,
}

impl Before {
    /// At the start of a chunk of that version.
    #[must_use]
    pub fn chunk(version: Version, seq: u64) -> Before {
        Before { seq, object: 0, version }
    }
}

/// Appends an event, in the version of the chunk that `before` began with. Its `seq` and object become the base of the
/// next one.
#[inline]
pub fn put_event(out: &mut Vec<u8>, event: &Event, before: &mut Before) {
    let mut bytes = EventBytes { bytes: [0; MOST_BYTES + MAX_VARINT], len: 0 };
    bytes.put(event, before);
    out.extend_from_slice(&bytes.bytes[..bytes.len]);
}

/// The most bytes of an event: code, function and three numbers, or code and five.
const MOST_BYTES: usize = 1 + 5 * MAX_VARINT;

/// An event under construction, with room for one more number than it takes.
struct EventBytes {
    bytes: [u8; MOST_BYTES + MAX_VARINT],
    len: usize,
}

impl EventBytes {
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline(always)]
    fn number(&mut self, number: u64) {
        match number {
            0..0x80 => self.byte(number as u8),
            _ => self.len += write_varint(&mut self.bytes[self.len..], number),
        }
    }

    #[inline(always)]
    fn difference(&mut self, from: u64, to: u64) {
        self.number(zigzag(to.wrapping_sub(from).cast_signed()));
    }

    #[inline(always)]
    fn seq(&mut self, before: &mut Before, seq: Seq) {
        self.difference(std::mem::replace(&mut before.seq, seq.0), seq.0);
    }

    fn thread(&mut self, thread: Option<ThreadId>) {
        self.number(thread.map_or(0, |t| u64::from(t.0) + 1));
    }

    #[inline(always)]
    fn put(&mut self, event: &Event, before: &mut Before) {
        self.byte(event.code());
        match *event {
            Event::Enter { function, object, argument, seq } => {
                self.byte(function as u8);
                if before.version >= Version::V4 {
                    self.difference(std::mem::replace(&mut before.object, object), object);
                } else {
                    self.number(object);
                }
                self.number(argument);
                self.seq(before, seq);
            }
            Event::Leave { function, result, seq } => {
                self.byte(function as u8);
                self.number(result);
                self.seq(before, seq);
            }
            // Of the others there are few.
            _ => self.put_other(event, before),
        }
    }

    #[cold]
    fn put_other(&mut self, event: &Event, before: &mut Before) {
        match *event {
            Event::Enter { .. } | Event::Leave { .. } => unreachable!("they are put elsewhere"),
            Event::ThreadStart { parent, os_tid, sp, seq } => {
                self.thread(parent);
                self.number(u64::from(os_tid));
                self.number(sp);
                self.seq(before, seq);
            }
            Event::ThreadEnd { exit, seq } => {
                match exit {
                    ThreadExit::Exited(status) => {
                        self.byte(0);
                        self.number(zigzag(status.into()));
                    }
                    ThreadExit::Killed(signal) => {
                        self.byte(1);
                        self.number(zigzag(signal.into()));
                    }
                    ThreadExit::Replaced => self.byte(2),
                    ThreadExit::StillRunning => self.byte(3),
                }
                self.seq(before, seq);
            }
            Event::SetSp(sp) => self.number(sp),
            Event::Partial { block, executed } => {
                self.number(block.0.into());
                self.number(executed.into());
            }
            Event::WarpBarrier | Event::SignalReturn | Event::Exec | Event::Gap => {}
            Event::FutexWait { address, seq } => {
                self.number(address);
                self.seq(before, seq);
            }
            Event::Signal { number, handler } => {
                self.number(zigzag(number.into()));
                self.number(handler.0);
            }
            Event::ModuleLoaded(module) | Event::ModuleUnloaded(module) => self.number(module.0.into()),
            Event::Fork { child, thread } => {
                self.number(child.into());
                self.thread(thread);
            }
            Event::Chunk(Chunk { site, lower, upper, step, stride }) => {
                self.number(site.0);
                self.number(zigzag(lower));
                // A chunk is short even where its bounds are large.
                for number in [upper.wrapping_sub(lower), step, stride] {
                    self.number(zigzag(number));
                }
            }
        }
    }
}

fn function(cursor: &mut Cursor, version: Version) -> Result<SyncFunction, String> {
    let code = cursor.byte()?;
    let known = SyncFunction::from_code(code).filter(|function| version >= function.since());
    known.ok_or_else(|| format!("function code {code} is unknown to this version"))
}

fn module(cursor: &mut Cursor, modules: usize) -> Result<ModuleId, String> {
    let id = ModuleId(cursor.varint32()?);
    if id.index() >= modules {
        return Err(format!("an event names module {}, but there are {modules}", id.0));
    }
    Ok(id)
}

/// Reads an event; the counterpart of [`put_event`]. `modules` is the number of modules of the trace.
///
/// Blocks of [`Event::Partial`] are not checked here.
pub fn event(cursor: &mut Cursor, before: &mut Before, modules: usize) -> Result<Event, String> {
    let Before { seq: last_seq, object: last_object, version } = before;
    let mut seq = |cursor: &mut Cursor| -> Result<Seq, String> {
        *last_seq = cursor.delta(*last_seq)?;
        Ok(Seq(*last_seq))
    };
    let code = cursor.byte()?;
    if EVENT_CODES.get(usize::from(code)).is_none_or(|(_, _, since)| *version < *since) {
        return Err(format!("event code {code} is unknown to this version"));
    }
    Ok(match code {
        0 => {
            let (parent, os_tid, sp) = (thread(cursor)?, cursor.varint32()?, cursor.varint()?);
            Event::ThreadStart { parent, os_tid, sp, seq: seq(cursor)? }
        }
        1 => {
            let exit = match cursor.byte()? {
                0 => ThreadExit::Exited(cursor.signed32()?),
                1 => ThreadExit::Killed(cursor.signed32()?),
                2 => ThreadExit::Replaced,
                3 => ThreadExit::StillRunning,
                code => return Err(format!("a thread's end has code {code}, unknown to this version")),
            };
            Event::ThreadEnd { exit, seq: seq(cursor)? }
        }
        2 => Event::SetSp(cursor.varint()?),
        3 => Event::Partial { block: BlockId(cursor.varint32()?), executed: cursor.varint32()? },
        4 => {
            let function = function(cursor, *version)?;
            let object = if *version >= Version::V4 { cursor.delta(*last_object)? } else { cursor.varint()? };
            *last_object = object;
            Event::Enter { function, object, argument: cursor.varint()?, seq: seq(cursor)? }
        }
        5 => {
            let (function, result) = (function(cursor, *version)?, cursor.varint()?);
            Event::Leave { function, result, seq: seq(cursor)? }
        }
        6 => Event::WarpBarrier,
        7 => {
            let address = cursor.varint()?;
            Event::FutexWait { address, seq: seq(cursor)? }
        }
        8 => Event::Signal { number: cursor.signed32()?, handler: Pc(cursor.varint()?) },
        9 => Event::SignalReturn,
        10 => Event::ModuleLoaded(module(cursor, modules)?),
        11 => Event::ModuleUnloaded(module(cursor, modules)?),
        12 => Event::Fork { child: cursor.varint32()?, thread: thread(cursor)? },
        13 => Event::Exec,
        14 => Event::Gap,
        15 => {
            let site = Pc(cursor.varint()?);
            let [lower, length, step, stride] =
                [cursor.delta(0)?, cursor.delta(0)?, cursor.delta(0)?, cursor.delta(0)?].map(u64::cast_signed);
            Event::Chunk(Chunk { site, lower, upper: lower.wrapping_add(length), step, stride })
        }
        code => unreachable!("EVENT_CODES has {code}, which nothing reads"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest() -> Before {
        Before::chunk(Version::NEWEST, 0)
    }

    #[test]
    fn objects_are_differences_from_version_4_on() {
        let enter = |object| Event::Enter { function: SyncFunction::MutexLock, object, argument: 0, seq: Seq(0) };
        let events = [enter(0x7000_0000_0000), enter(0x7000_0000_0000), enter(0x6fff_ffff_fff8)];
        let mut bytes = Vec::new();
        let mut before = newest();
        events.iter().for_each(|event| put_event(&mut bytes, event, &mut before));
        assert_eq!(bytes.len(), 4 * 3 + 7 + 1 + 1, "{bytes:x?}");
        let (mut cursor, mut before) = (Cursor::new(&bytes), newest());
        assert_eq!(events.map(|_| event(&mut cursor, &mut before, 0).unwrap()), events);
        let mut old = Before::chunk(Version::V3, 0);
        let whole = [4, 0, 0x10, 0, 0];
        assert_eq!([0; 2].map(|_| event(&mut Cursor::new(&whole), &mut old, 0).unwrap()), [enter(0x10); 2]);
    }

    /// The name of a variant, as `Debug` writes it.
    fn name(value: impl std::fmt::Debug) -> String {
        let text = format!("{value:?}");
        text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    }

    #[test]
    fn every_code_is_that_of_the_event_of_its_name() {
        for (at, (expected, code, since)) in EVENT_CODES.into_iter().enumerate() {
            let mut bytes = [0; 12];
            bytes[0] = code;
            assert_eq!(at, usize::from(code), "{expected}");
            for version in Version::ALL {
                let read = event(&mut Cursor::new(&bytes), &mut Before::chunk(version, 0), 1);
                assert_eq!(read.is_ok(), version >= since, "{expected}");
                assert!(read.is_ok_and(|event| event.is_of(version)) == (version >= since), "{expected}");
            }
            let decoded = event(&mut Cursor::new(&bytes), &mut newest(), 1).unwrap();
            assert_eq!(name(decoded), expected);
            let mut encoded = Vec::new();
            put_event(&mut encoded, &decoded, &mut newest());
            assert_eq!(encoded, bytes[..encoded.len()]);
        }
        let of_version_4 = SyncFunction::ALL.into_iter().filter(|function| function.since() == Version::V4);
        for function in of_version_4 {
            for code in [4, 5] {
                let bytes = [code, function as u8, 0, 0, 0];
                let read = |version| event(&mut Cursor::new(&bytes), &mut Before::chunk(version, 0), 1);
                let read = read(Version::V4).map(|found| (found.is_of(Version::V3), read(Version::V3).is_err()));
                assert_eq!(read, Ok((false, true)), "{function:?}");
            }
        }
        let next = EVENT_CODES.len() as u8;
        assert!(
            event(&mut Cursor::new(&[next, 0, 0, 0, 0, 0]), &mut newest(), 1).is_err(),
            "code {next} is not in the list"
        );
    }

    #[test]
    fn every_code_of_a_thread_s_end_is_that_of_its_name() {
        for (expected, code) in EXIT_CODES {
            let Ok(Event::ThreadEnd { exit, .. }) = event(&mut Cursor::new(&[1, code, 0, 0]), &mut newest(), 1) else {
                panic!("code {code} is no thread's end");
            };
            assert_eq!(name(exit), expected);
        }
        let next = EXIT_CODES.len() as u8;
        assert!(event(&mut Cursor::new(&[1, next, 0, 0]), &mut newest(), 1).is_err(), "code {next} is not in the list");
    }
}
