//! Which files of a folder are of an offline trace, and what they hold, decompressed.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::vec;

use flate2::read::{DeflateDecoder, MultiGzDecoder};
use zip::{CompressionMethod, ZipArchive};

use crate::drmemtrace::fault::Fault;
use crate::error::{Error, Result};

/// What is read of a file at once. Files are not held open in between: a program may have thousands of threads.
const PIECE: usize = 32 << 10;

/// The files of a trace.
#[derive(Debug)]
pub struct Files {
    /// One for each thread.
    pub threads: Vec<PathBuf>,
    /// The list of modules, where it is there.
    pub modules: Option<PathBuf>,
    /// The list of recorded functions.
    pub functions: Option<PathBuf>,
}

/// The folder in which a run's raw files lie, and the one with what is made of them.
const RAW: &str = "raw";
const MADE: &str = "trace";
/// Where the first window of a run lies that was recorded in several.
const FIRST_WINDOW: &str = "window.0000";

impl Files {
    /// Those of a folder: that of a run, or its folder of post-processed files; or one thread's file.
    pub fn find(from: &Path) -> Result<Files> {
        let refused = |reason: String| Error::Foreign { path: from.to_owned(), reason };
        let kind = fs::metadata(from).map_err(|error| refused(format!("it cannot be read: {error}")))?;
        let (folder, threads) = if kind.is_dir() {
            let made = from.join(MADE);
            let folder = if made.is_dir() { made } else { from.to_owned() };
            let threads = thread_files(&folder).map_err(|error| refused(format!("it cannot be read: {error}")))?;
            (folder, threads)
        } else {
            let folder = from.parent().filter(|folder| !folder.as_os_str().is_empty());
            (folder.unwrap_or(Path::new(".")).to_owned(), vec![from.to_owned()])
        };
        let is_raw = |path: &PathBuf| name(path).contains(".raw");
        let is_thread = |path: &PathBuf| [".trace", ".memtrace"].iter().any(|part| name(path).contains(part));
        // What lies beside raw/, and bears no name of theirs, are files of the program.
        if threads.iter().any(is_raw) || from.join(RAW).is_dir() && folder == from && !threads.iter().any(is_thread) {
            let run = if name(from) == RAW { from.parent().unwrap_or(from) } else { from };
            return Err(refused(format!(
                "only what was recorded is there, in raw/, and not what DynamoRIO makes of it. Run \
                 `drrun -t drmemtrace -indir {} -tool basic_counts` once: it writes the folder trace/",
                run.display()
            )));
        }
        if threads.is_empty() && folder.join(FIRST_WINDOW).is_dir() {
            return Err(refused(format!(
                "it was recorded in windows: convert each by itself, beginning with {}",
                folder.join(FIRST_WINDOW).display()
            )));
        }
        if threads.is_empty() {
            return Err(refused("it holds no file of an offline trace, as NAME.trace.zip".to_owned()));
        }
        let above = [".", "..", "../.."].map(|up| folder.join(up).join(RAW));
        let places: Vec<PathBuf> = [folder.clone()].into_iter().chain(above).collect();
        let log = |name| places.iter().map(|place| place.join(name)).find(|path| path.is_file());
        Ok(Files { threads, modules: log("modules.log"), functions: log("funclist.log") })
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files of threads in a folder: all but those that are known to be something else.
fn thread_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    const OTHERS: [&str; 7] =
        ["modules.log", "funclist.log", "encodings.bin", "serial_schedule.bin", "cpu_schedule.bin", "v2p.", "README"];
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = name(&path);
        let is_other = name.starts_with('.') || OTHERS.iter().any(|other| name.starts_with(other));
        if !is_other && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What a file holds, decompressed.
pub type Contents = BufReader<Box<dyn Read>>;

/// Opens a file.
pub fn open(path: &Path) -> std::result::Result<Contents, Fault> {
    let unreadable = |error: io::Error| Fault::of(format!("it cannot be read: {error}"));
    let whole = |file: &File| Ok::<_, io::Error>(Part { path: path.to_owned(), at: 0, end: file.metadata()?.len() });
    let file = File::open(path).map_err(unreadable)?;
    let contents: Box<dyn Read> = match path.extension().and_then(|e| e.to_str()) {
        Some("zip") => Box::new(Parts { left: parts(path, file)?.into_iter(), now: None }),
        Some("gz") => Box::new(MultiGzDecoder::new(BufReader::with_capacity(PIECE, whole(&file).map_err(unreadable)?))),
        Some(other @ ("sz" | "lz4" | "zst")) => {
            return Err(Fault::of(format!(
                "files with the ending {other} are not read here: let DynamoRIO write zip or gzip (-compress gzip), or \
                 decompress it"
            )));
        }
        _ => Box::new(whole(&file).map_err(unreadable)?),
    };
    Ok(BufReader::with_capacity(PIECE, contents))
}

/// The parts of an archive, in order: the trace is cut at every so many instructions.
fn parts(path: &Path, file: File) -> std::result::Result<Vec<(Part, CompressionMethod)>, Fault> {
    let bad = |error: zip::result::ZipError| Fault::of(format!("it is no whole zip archive: {error}. Copy it again"));
    let mut archive = ZipArchive::new(file).map_err(bad)?;
    let mut parts = Vec::new();
    for number in 0..archive.len() {
        let entry = archive.by_index_raw(number).map_err(bad)?;
        let at = entry.data_start().unwrap_or(0);
        let end = at.saturating_add(entry.compressed_size());
        parts.push((Part { path: path.to_owned(), at, end }, entry.compression()));
    }
    if let Some((_, method)) =
        parts.iter().find(|(_, m)| !matches!(*m, CompressionMethod::Stored | CompressionMethod::Deflated))
    {
        return Err(Fault::of(format!("its archive is compressed by {method}, which is not read here")));
    }
    Ok(parts)
}

/// Bytes of a file.
struct Part {
    path: PathBuf,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let read = File::open(&self.path)?.read_at(&mut buffer[..most], self.at)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive names bytes behind its end"));
        }
        self.at += read as u64;
        Ok(read)
    }
}

/// Parts one after another.
struct Parts {
    left: vec::IntoIter<(Part, CompressionMethod)>,
    now: Option<Box<dyn Read>>,
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(part) = &mut self.now {
                let read = part.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
            }
            let Some((part, method)) = self.left.next() else { return Ok(0) };
            let part = BufReader::with_capacity(PIECE, part);
            self.now = Some(match method {
                CompressionMethod::Deflated => Box::new(DeflateDecoder::new(part)),
                _ => Box::new(part),
            });
        }
    }
}
