//! Memory that the program and this process both see.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::libc;

use super::Tid;

const PAGE: usize = 4096;

/// A memory file of the program, mapped here too. Places in it are given as offsets in bytes; all are checked.
///
/// The program's threads read and write it while we do. Numbers that both sides use are loaded and stored in one piece;
/// ranges of bytes are copied only where no thread of the program is at work: code before it is linked, buffers of
/// stopped threads.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<u8>,
    len: usize,
    /// The number of the memory file, as memory maps show it.
    pub inode: u64,
}

// SAFETY: the mapping belongs to the whole process and is unmapped by its only owner.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Takes the memory file `descriptor` of a process (its first thread's number), gives it `len` bytes and maps it.
    pub fn take(process: Tid, descriptor: i32, len: usize) -> Result<SharedMemory, Errno> {
        // SAFETY: both calls take numbers only and return new descriptors, which nobody else owns.
        let file = unsafe {
            let pidfd = Errno::result(libc::syscall(libc::SYS_pidfd_open, process.0, 0))?;
            let pidfd = OwnedFd::from_raw_fd(pidfd as i32);
            let file = Errno::result(libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), descriptor, 0))?;
            OwnedFd::from_raw_fd(file as i32)
        };
        let inode = nix::sys::stat::fstat(&file)?.st_ino;
        // SAFETY: a new shared mapping at a place of the kernel's choice; the pointer is checked before use. The file's
        // length is set first, and nobody shortens it: the program's side closes its descriptor.
        unsafe {
            without_file_limit(|| Errno::result(libc::ftruncate(file.as_raw_fd(), len as i64)))?;
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let base = libc::mmap(std::ptr::null_mut(), len, protection, flags, file.as_raw_fd(), 0);
            if base == libc::MAP_FAILED {
                return Err(Errno::last());
            }
            let base = NonNull::new(base.cast()).ok_or(Errno::ENOMEM)?;
            Ok(SharedMemory { base, len, inode })
        }
    }

    fn check(&self, offset: usize, len: usize) {
        assert!(offset <= self.len && len <= self.len - offset, "within the shared memory");
    }

    /// Copies 32-bit words out.
    pub fn read_words(&self, offset: usize, words: &mut Vec<u32>, count: usize) {
        self.check(offset, count * 4);
        words.clear();
        words.reserve(count);
        // SAFETY: the range was checked; `words` has room for `count` numbers, all of which are written.
        unsafe {
            let from = self.base.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, words.as_mut_ptr().cast(), count * 4);
            words.set_len(count);
        }
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.check(offset, bytes.len());
        // SAFETY: the range was checked, and `bytes` is memory of ours, so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        // SAFETY: the range was checked, and `bytes` is memory of ours, so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(offset), bytes.len()) }
    }

    /// Copies bytes from other shared memory, from and to the same place.
    pub fn copy_from(&self, other: &SharedMemory, offset: usize, len: usize) {
        self.check(offset, len);
        other.check(offset, len);
        // SAFETY: both ranges were checked; two mappings of ours do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(other.base.as_ptr().add(offset), self.base.as_ptr().add(offset), len);
        }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8);
        assert!(offset.is_multiple_of(8), "an aligned word");
        // SAFETY: in range and aligned (mappings start at pages); the mapping lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Loads an aligned number.
    #[must_use]
    pub fn load(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Stores an aligned number.
    pub fn store(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Stores a number that lies within one cache line, at once for all threads that may execute it.
    pub fn patch(&self, offset: usize, value: u32) {
        self.check(offset, 4);
        assert!(offset % 64 <= 60, "within a cache line");
        // SAFETY: in range. The processor writes four bytes within a line in one piece, so that a thread sees the old
        // or the new.
        unsafe { self.base.as_ptr().add(offset).cast::<u32>().write_unaligned(value) }
    }

    /// Makes memory ready that will soon be written and run: pages that are made together cost less than those made one
    /// by one when they are touched, and the program finds several of them at once.
    pub fn prepare(&self, offset: usize, len: usize) {
        self.check(offset, len);
        // SAFETY: the range was checked; the pages keep what they hold. A kernel that cannot do it makes them when they
        // are touched.
        unsafe { libc::madvise(self.base.as_ptr().add(offset).cast(), len, libc::MADV_POPULATE_WRITE) };
    }

    /// Gives memory that is not needed back to the system, as far as it fills pages. It holds zeros, or what it held.
    pub fn give_back(&self, offset: usize, len: usize) {
        self.check(offset, len);
        let (start, end) = (offset.next_multiple_of(PAGE), (offset + len) / PAGE * PAGE);
        if start < end {
            // SAFETY: whole pages of the mapping, in range; their contents change as if they were written, which nobody
            // relies on not to happen. It fails where files cannot have holes: then the memory stays.
            unsafe { libc::madvise(self.base.as_ptr().add(start).cast(), end - start, libc::MADV_REMOVE) };
        }
    }

    /// Takes memory out of this process's own until it is next used. It keeps what it holds.
    pub fn look_away(&self, offset: usize, len: usize) {
        self.check(offset, len);
        let (start, end) = (offset.next_multiple_of(PAGE), (offset + len) / PAGE * PAGE);
        if start < end {
            // SAFETY: whole pages of a shared mapping, in range: they stay in the file, and are mapped again when they
            // are touched.
            unsafe { libc::madvise(self.base.as_ptr().add(start).cast(), end - start, libc::MADV_DONTNEED) };
        }
    }

    /// Stores one byte.
    pub fn patch_byte(&self, offset: usize, value: u8) {
        self.check(offset, 1);
        // SAFETY: in range; one byte is written in one piece.
        unsafe { self.base.as_ptr().add(offset).write_volatile(value) }
    }
}

/// Does something while files may be as long as the hard limit of this process says: a memory file counts as a file,
/// but the limit is there for those on disks.
fn without_file_limit<T>(what: impl FnOnce() -> T) -> T {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls are given one valid structure; the first one fills it in.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut before) != 0 {
            return what();
        }
        libc::setrlimit(libc::RLIMIT_FSIZE, &libc::rlimit { rlim_cur: before.rlim_max, ..before });
        let result = what();
        libc::setrlimit(libc::RLIMIT_FSIZE, &before);
        result
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `take`, which nobody else unmaps; no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// The processor's clock, which the program's threads read too. It runs at the same rate and time on all cores.
#[must_use]
pub fn timestamp() -> u64 {
    // SAFETY: `rdtsc` exists on every 64-bit processor and has no effect but its result.
    unsafe {
        std::arch::x86_64::_mm_lfence();
        std::arch::x86_64::_rdtsc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> SharedMemory {
        let file = nix::sys::memfd::memfd_create(c"test", nix::sys::memfd::MFdFlags::empty()).unwrap();
        SharedMemory::take(Tid(std::process::id().cast_signed()), file.as_raw_fd(), 8192).unwrap()
    }

    #[test]
    fn words_and_numbers_are_the_same_memory() {
        let memory = memory();
        memory.store(64, 0x1122_3344_5566_7788);
        memory.patch(66, 0xaabb_ccdd);
        assert_eq!(memory.load(64), 0x1122_aabb_ccdd_7788);
        memory.write(4096, &[1, 0, 0, 0, 2, 0, 0, 0]);
        let mut words = Vec::new();
        memory.read_words(4096, &mut words, 2);
        assert_eq!(words, [1, 2]);
    }

    #[test]
    fn a_copy_is_memory_of_its_own() {
        let (from, to) = (memory(), memory());
        from.store(64, 7);
        to.copy_from(&from, 64, 8);
        from.store(64, 8);
        assert_eq!((to.load(56), to.load(64)), (0, 7));
        assert_ne!(from.inode, to.inode);
    }

    #[test]
    fn only_whole_pages_are_given_back() {
        let memory = memory();
        memory.store(4088, 1);
        memory.store(4096, 2);
        memory.give_back(8, 8184);
        assert_eq!((memory.load(4088), memory.load(4096)), (1, 0));
        memory.look_away(0, 8192);
        assert_eq!(memory.load(4088), 1, "out of sight is not gone");
    }

    #[test]
    #[should_panic(expected = "within the shared memory")]
    fn nothing_outside_is_written() {
        memory().write(8190, &[1, 2, 3]);
    }

    #[test]
    #[should_panic(expected = "within a cache line")]
    fn a_patch_does_not_cross_a_line() {
        memory().patch(62, 1);
    }
}
