//! Packed batches in a temporary file that has no name: it goes when the last of them goes, and with the process.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
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
            None => file.insert((Arc::new(make(&std::env::temp_dir())?), 0)),
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

fn make(folder: &Path) -> Result<File> {
    tempfile::tempfile_in(folder).map_err(|source| failed_in(folder, source))
}

fn failed(source: std::io::Error) -> Error {
    failed_in(&std::env::temp_dir(), source)
}

/// The file has no name, so errors name its folder: that of `TMPDIR`.
fn failed_in(folder: &Path, source: std::io::Error) -> Error {
    let way_out = "lockstep keeps streams there that do not fit into memory; set TMPDIR to a folder with more room";
    let source = std::io::Error::new(source.kind(), format!("{source} ({way_out})"));
    Error::Write { path: folder.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::super::Packing;
    use super::*;
    use crate::Batch;

    fn packed() -> Packed {
        Packing::default().pack(&Batch { sps: vec![1, 2, 3], ..Batch::default() }).unwrap()
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_folder_and_a_way_out() {
        let full = Arc::new(File::options().write(true).open("/dev/full").unwrap());
        let spill = Spill(Mutex::new(Some((full, 0))));
        for _ in 0..2 {
            let Err(error) = spill.write(packed()) else { panic!("it was written") };
            assert!(matches!(error, Error::Write { .. }), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("{}: cannot write: ", std::env::temp_dir().display())), "{text}");
            assert!(text.contains("No space left on device") && text.contains("set TMPDIR"), "{text}");
        }
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_it() {
        let Err(error) = make(Path::new("/nowhere/at/all")) else { panic!("there is no such folder") };
        let text = error.to_string();
        assert!(text.starts_with("/nowhere/at/all: cannot write: No such file"), "{text}");
        assert!(matches!(error, Error::Write { .. }) && text.contains("set TMPDIR"), "{text}");
    }

    #[test]
    fn what_was_written_before_a_fault_is_still_read() {
        let spill = Spill::default();
        let written = spill.write(packed()).unwrap();
        spill.0.lock().unwrap().as_mut().unwrap().0 = Arc::new(File::open("/dev/null").unwrap());
        assert!(spill.write(packed()).is_err(), "it is open for reading only");
        assert!(written.read().unwrap().bytes == packed().bytes);
    }
}
