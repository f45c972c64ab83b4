//! The records of a thread's file, 12 bytes each: kind (u16), size (u16), value (u64), little-endian.

use std::io::{self, Read};

use crate::drmemtrace::fault::Fault;

/// The bytes of a record.
const SIZE: usize = 12;
/// The newest version of the format that is known.
const NEWEST: u64 = 7;
/// Whether the file holds the bytes of instructions: this bit of the type of the file.
const ENCODINGS: u64 = 0x200;
/// The bit that says that memory addresses were not recorded.
const INSTRUCTIONS_ONLY: u64 = 0x4;
/// The bits that say that instructions or addresses are missing: all or some were filtered out.
const FILTERED: u64 = 0x1 | 0x80 | 0x100 | 0x2000;
/// Bits that name a processor.
const PROCESSORS: [(u64, &str); 5] =
    [(0x8, "AArch64"), (0x10, "32-bit ARM"), (0x20, "32-bit x86"), (0x40, "x86-64"), (0x2_0000, "no real processor")];
/// Bits of traces that are of another kind: processors, templates, whole systems.
const OTHER_KINDS: [(u64, &str); 3] = [
    (0x1_0000, "its files are those of cores, between which threads move; convert the trace that it was made from"),
    (0x4000, "it holds templates of the kernel's code, no program"),
    (0x4_0000, "it is of a whole system; record one process, with drrun -t drmemtrace -offline"),
];

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// An instruction ran; `again` is a later round of a `rep` instruction.
    Instruction {
        /// Its address.
        pc: u64,
        /// Its bytes.
        len: u8,
        /// Whether it was fetched before.
        again: bool,
    },
    /// The instruction before accessed memory.
    Access {
        /// Where.
        address: u64,
        /// Whether it wrote.
        writes: bool,
    },
    /// Bytes of the next instruction.
    Encoding {
        /// How many.
        count: u8,
        /// The bytes; those behind the count have no meaning.
        bytes: [u8; 8],
    },
    /// Something that stands between instructions: its type and value.
    Marker(u16, u64),
    /// The records that follow are of this thread.
    Thread(u64),
    /// They are of this process.
    Process(u64),
    /// The thread has ended.
    Exit,
    /// Of no meaning here.
    Other,
}

/// The types of markers that are looked at.
pub mod marker {
    /// A handler of the kernel's events comes next; value: the address that it interrupts.
    pub const KERNEL_EVENT: u16 = 0;
    /// The kernel has set where the thread goes on: a handler has returned.
    pub const KERNEL_TRANSFER: u16 = 1;
    /// Microseconds.
    pub const TIME: u16 = 2;
    /// The number of the function that the markers after it are of.
    pub const FUNCTION: u16 = 4;
    /// Its return address: it is entered.
    pub const RETURN_ADDRESS: u16 = 5;
    /// An argument.
    pub const ARGUMENT: u16 = 6;
    /// What it returned.
    pub const RESULT: u16 = 7;
    /// Bits that say what the file holds.
    pub const FILE_TYPE: u16 = 9;
    /// The version of the format.
    pub const VERSION: u16 = 12;
    /// The kernel's event is the abort of a restartable sequence.
    pub const SEQUENCE_ABORT: u16 = 13;
    /// The number of a window; something may be missing before it.
    pub const WINDOW: u16 = 14;
    /// A system call.
    pub const SYSTEM_CALL: u16 = 25;
    /// The kernel's instructions begin, and end.
    pub const KERNEL_BEGINS: [u16; 2] = [27, 35];
    /// See [`KERNEL_BEGINS`].
    pub const KERNEL_ENDS: [u16; 2] = [28, 36];
    /// The number of the signal whose handler comes next.
    pub const SIGNAL: u16 = 40;
}

/// Reads the records of a file.
pub struct Records<R> {
    input: R,
    /// How many were read.
    count: u64,
    version: u64,
    file_type: Option<u64>,
    ended: bool,
}

impl<R: Read> Records<R> {
    /// Reads what stands before the first instruction's records: the header.
    pub fn new(input: R) -> Result<Records<R>, Fault> {
        let mut records = Records { input, count: 0, version: 0, file_type: None, ended: false };
        let first = records.take()?.ok_or_else(|| Fault::of("it is empty: copy it again"))?;
        let (kind, size, value) = parts(first);
        if (kind, size) != (25, 0) {
            return Err(Fault::of(
                "its first record is no header of drmemtrace's: give the folder of an offline trace",
            ));
        }
        records.set_version(value)?;
        Ok(records)
    }

    /// Whether it is known what the file holds.
    pub fn has_type(&self) -> bool {
        self.file_type.is_some()
    }

    /// Whether the file has memory addresses.
    pub fn has_addresses(&self) -> bool {
        self.file_type.is_some_and(|bits| bits & INSTRUCTIONS_ONLY == 0)
    }

    /// The next record; none behind the last.
    pub fn next(&mut self) -> Result<Option<Record>, Fault> {
        if self.ended {
            return Ok(None);
        }
        let Some(bytes) = self.take()? else {
            return Err(Fault::of(format!(
                "it is cut off: it ends behind record {} without a footer. Copy it again, or end the program by itself \
                 when it is recorded",
                self.count
            )));
        };
        let (kind, size, value) = parts(bytes);
        let record = match kind {
            10..=16 | 31 | 48 | 49 | 29 | 30 => self.instruction(kind, size, value)?,
            0 | 2..=9 | 20 | 32..=46 => Record::Access { address: value, writes: false },
            1 => Record::Access { address: value, writes: true },
            47 if size <= 8 => Record::Encoding { count: size as u8, bytes: value.to_le_bytes() },
            22 => Record::Thread(value),
            23 => Record::Exit,
            24 => Record::Process(value),
            // Traces can be packed one behind another.
            25 => Record::Other,
            26 => {
                if self.take()?.is_some() {
                    return Err(self.fault("something follows the footer: it holds more than one trace"));
                }
                self.ended = true;
                return Ok(None);
            }
            28 => self.marker(size, value)?,
            18 | 19 | 21 | 27 => Record::Other,
            17 => return Err(self.fault("several instructions in one record: this is a trace of 32-bit ARM")),
            other => {
                let what = format!("kind {other}, size {size}: no record of format version {}", self.version);
                return Err(self.fault(what));
            }
        };
        Ok(Some(record))
    }

    fn instruction(&self, kind: u16, size: u16, pc: u64) -> Result<Record, Fault> {
        if self.file_type.is_none_or(|bits| bits & ENCODINGS == 0) {
            return Err(Fault::of(format!(
                "it has no encodings: the bytes of its instructions are missing (format version {}). Record it with a \
                 DynamoRIO of 2022 or newer, or make its folder trace/ again from raw/ with such a one",
                self.version
            )));
        }
        if size == 0 || size > 15 {
            return Err(self.fault(format!("an instruction of {size} bytes")));
        }
        Ok(Record::Instruction { pc, len: size as u8, again: kind == 29 })
    }

    fn marker(&mut self, kind: u16, value: u64) -> Result<Record, Fault> {
        match kind {
            marker::VERSION => self.set_version(value)?,
            marker::FILE_TYPE => self.set_file_type(value)?,
            _ => {}
        }
        Ok(Record::Marker(kind, value))
    }

    fn set_version(&mut self, version: u64) -> Result<(), Fault> {
        if version == 0 || version > NEWEST {
            return Err(Fault::of(format!(
                "it has format version {version}; this program knows versions up to {NEWEST}. Post-process raw/ with \
                 an older DynamoRIO, or take a newer lockstep"
            )));
        }
        self.version = version;
        Ok(())
    }

    fn set_file_type(&mut self, bits: u64) -> Result<(), Fault> {
        if let Some((_, name)) = PROCESSORS.iter().find(|(bit, name)| bits & bit != 0 && *name != "x86-64") {
            return Err(Fault::of(format!("it is of {name}, and only x86-64 can be replayed")));
        }
        if let Some((_, why)) = OTHER_KINDS.iter().find(|(bit, _)| bits & bit != 0) {
            return Err(Fault::of(*why));
        }
        if bits & FILTERED != 0 {
            return Err(Fault::of(
                "it was filtered when it was recorded: instructions are missing. Record it without -L0I_filter, \
                 -L0D_filter and the like",
            ));
        }
        self.file_type = Some(bits);
        Ok(())
    }

    /// What is wrong with the record that was read last.
    pub fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::of(format!("record {}: {}. The file is damaged: copy it again", self.count, what.into()))
    }

    /// The bytes of the next record; none at the end.
    fn take(&mut self) -> Result<Option<[u8; SIZE]>, Fault> {
        let mut bytes = [0; SIZE];
        let mut filled = 0;
        while filled < SIZE {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => {
                    return Err(Fault::of(format!(
                        "it is cut off in record {}: copy it again, or the folder that it is from",
                        self.count + 1
                    )));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Fault::of(format!("it cannot be read behind record {}: {error}", self.count)));
                }
            }
        }
        self.count += 1;
        Ok(Some(bytes))
    }
}

fn parts(bytes: [u8; SIZE]) -> (u16, u16, u64) {
    let [a, b, c, d, value @ ..] = bytes;
    (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]), u64::from_le_bytes(value))
}
