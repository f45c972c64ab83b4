//! Packed batches in a temporary file that has no name: it goes when the last of them goes, and with the process.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Lengths, Packed};
use crate::{Error, Result};

/// The file; made when something is written to it first.
#[derive(Default)]
pub(crate) struct Spill(Mutex<Option<(Arc<File>, u64)>>);

/// A packed batch that is in the file.
pub(crate) struct Spilled {
    file: Arc<File>,
    offset: u64,
    bytes: usize,
    lengths: Lengths,
}

impl Spill {
    /// Adds it to the file.
    pub(super) fn write(&self, packed: Packed) -> Result<Spilled> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, end) = match &mut *file {
            Some(open) => open,
            None => file.insert((Arc::new(tempfile::tempfile().map_err(failed)?), 0)),
        };
        file.write_all_at(&packed.bytes, *end).map_err(failed)?;
        let offset = *end;
        *end += packed.bytes.len() as u64;
        Ok(Spilled { file: Arc::clone(file), offset, bytes: packed.bytes.len(), lengths: packed.lengths })
    }
}

impl Spilled {
    /// Reads it back.
    pub(super) fn read(&self) -> Result<Packed> {
        let mut bytes = vec![0; self.bytes];
        self.file.read_exact_at(&mut bytes, self.offset).map_err(failed)?;
        Ok(Packed { bytes, lengths: self.lengths })
    }
}

/// The file has no name, so errors name its folder: that of `TMPDIR`.
fn failed(source: std::io::Error) -> Error {
    let way_out = "streams that do not fit into memory are kept there; set TMPDIR to a folder with more room";
    let source = std::io::Error::new(source.kind(), format!("{source} ({way_out})"));
    Error::Write { path: std::env::temp_dir(), source }
}
