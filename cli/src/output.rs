//! Where results go: files, written whole or not at all, and standard output.

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// A file for results, or standard output for the name `-`. The file appears under its name only when it is finished, so that a full disk
/// or a killed command leaves what was there before.
pub(crate) struct Output {
    out: BufWriter<Box<dyn Write + Send>>,
    path: PathBuf,
    unfinished: Option<PathBuf>,
}

impl Output {
    pub(crate) fn create(path: &Path) -> replay::Result<Output> {
        if path.as_os_str() == "-" {
            let out = BufWriter::new(Box::new(stdout()) as Box<dyn Write + Send>);
            return Ok(Output { out, path: "standard output".into(), unfinished: None });
        }
        // Devices and pipes are written directly: nothing may be renamed over them.
        let direct = path.metadata().is_ok_and(|m| !m.is_file());
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".unfinished-{}", std::process::id()));
        let unfinished = (!direct).then(|| PathBuf::from(name));
        let target = unfinished.as_deref().unwrap_or(path);
        let file = if direct { File::options().write(true).open(target) } else { File::create(target) };
        let file = file.map_err(|source| replay::Error::Write { path: path.to_owned(), source })?;
        Ok(Output { out: BufWriter::new(Box::new(file)), path: path.to_owned(), unfinished })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Writes the rest and gives the file its name.
    pub(crate) fn finish(mut self) -> replay::Result<()> {
        let finished = self.out.flush().and_then(|()| match &self.unfinished {
            Some(unfinished) => std::fs::rename(unfinished, &self.path),
            None => Ok(()),
        });
        if finished.is_ok() {
            self.unfinished = None;
        }
        finished.map_err(|source| replay::Error::Write { path: self.path.clone(), source })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // A file that could not be finished: nothing more can be done about it here.
            let _ = std::fs::remove_file(unfinished);
        }
    }
}
