//! Where a trace's bytes come from: a file, read at any place without a position of its own, or memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{Action, Result};

/// The bytes of a trace.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    File { file: File, len: u64 },
    Memory(Vec<u8>),
}

impl Source {
    /// A regular file. What is appended later is not seen.
    pub fn file(path: PathBuf, file: File, len: u64) -> Source {
        Source { path, bytes: Bytes::File { file, len } }
    }

    /// Bytes in memory; `path` is their name in messages.
    pub fn memory(path: PathBuf, bytes: Vec<u8>) -> Source {
        Source { path, bytes: Bytes::Memory(bytes) }
    }

    /// The name in messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::File { len, .. } => *len,
            Bytes::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Reads as many bytes as `buffer` has.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        match &self.bytes {
            Bytes::File { file, .. } => file.read_exact_at(buffer, offset).map_err(|e| {
                if e.kind() == io::ErrorKind::UnexpectedEof {
                    return self.damaged(offset, "the file became shorter while it was read".into());
                }
                self.io(Action::Read, e)
            }),
            Bytes::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let source = bytes.get(start..).and_then(|rest| rest.get(..buffer.len()));
                buffer.copy_from_slice(source.ok_or_else(|| self.damaged(offset, "the file ends here".into()))?);
                Ok(())
            }
        }
    }
}
