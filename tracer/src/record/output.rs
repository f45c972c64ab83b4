//! The file that a trace is written to, which may be a named pipe.
//!
//! The writer of a pipe waits for its reader: until one opens it, and until it reads on when the pipe is full. Both may
//! take for ever, so both waits end when the program is asked to end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::kernel::interrupt::Interrupt;

/// How often it is looked whether the program was asked to end.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long a reader may read nothing after the program was asked to end. The rest of the trace is only for a reader
/// that reads.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file that is being written.
pub struct Output {
    file: File,
    /// Who asks the program to end.
    interrupt: Interrupt,
}

impl Output {
    /// Creates the file. Where it is a named pipe, waits until somebody opens it to read, unless the program is asked
    /// to end.
    pub fn create(path: &Path, interrupt: &Interrupt) -> io::Result<Output> {
        let output = |file| Output { file, interrupt: interrupt.clone() };
        if !fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
            return File::create(path).map(output);
        }
        loop {
            match File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                    if interrupt.is_asked() {
                        return Err(interrupted(
                            "the program was asked to end before anyone opened this named pipe for reading",
                        ));
                    }
                    std::thread::sleep(INTERVAL);
                }
                opened => return opened.map(output),
            }
        }
    }

    /// How long it is, if it is a plain file.
    pub fn len(&self) -> Option<u64> {
        self.file.metadata().ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len())
    }

    /// Waits until a full pipe takes more.
    fn wait(&self) -> io::Result<()> {
        let mut asked: Option<Instant> = None;
        loop {
            let interval = PollTimeout::try_from(INTERVAL).unwrap_or(PollTimeout::ZERO);
            if poll(&mut [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)], interval).is_ok_and(|ready| ready > 0) {
                return Ok(());
            }
            if self.interrupt.is_asked() && asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(interrupted(
                    "the program was asked to end while the reader of this named pipe read nothing more",
                ));
            }
        }
    }
}

fn interrupted(reason: &str) -> io::Error {
    // Writers try again after `Interrupted`.
    io::Error::new(io::ErrorKind::TimedOut, reason)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait()?,
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
