//! The heap of this process, in pages that suit it.
//!
//! What is known of a program's code takes up to some hundred megabytes, in small pieces that are looked at in no
//! order. In pages of 4 KiB the first touch of each is a stop in the kernel, and most looks miss the processor's table
//! of addresses: recording clang's compilation of a file of 400 lines, or Python's start, took up to 6% more time so.

/// Lets the heap of this process grow in large pages. For programs of ours that record and do little else; where the
/// kernel or the C library does not have them, nothing changes.
#[cfg(target_env = "gnu")]
pub fn use_large_pages() {
    use nix::libc;

    /// The heap grows by so much at once: room for what is known of most programs. It takes no memory until it is
    /// touched.
    const ROOM: usize = 256 << 20;
    /// The part of it in pages of the usual size. Numeric programs need no more, and clearing large pages costs them
    /// time: with 8 MiB, recording fft took 3% more.
    const IN_SMALL_PAGES: usize = 24 << 20;
    /// The part of these that every recording needs: pages that are made together cost less than those that are made
    /// one by one when they are touched.
    const NEEDED: usize = 2 << 20;
    /// Pieces from this size on are mapped by themselves, as the C library does in a heap that has been used for long.
    const MAPPED_APART: usize = 32 << 20;
    /// The size of a large page.
    const LARGE: usize = 2 << 20;
    // SAFETY: these calls change how the C library's heap grows, not what it holds.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_APART as i32);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, ROOM as i32);
    }
    // It grows when a piece is asked for that does not fit.
    let first = std::hint::black_box(Vec::<u8>::with_capacity(NEEDED));
    let first = (first.as_ptr() as usize).next_multiple_of(4096);
    // SAFETY: with 0 this says where the heap ends. The advice changes no contents, whatever lies there.
    unsafe {
        libc::madvise(first as *mut libc::c_void, NEEDED - 4096, libc::MADV_POPULATE_WRITE);
        libc::mallopt(libc::M_TOP_PAD, LARGE as i32);
        let end = libc::sbrk(0) as usize;
        let start = (end.saturating_sub(ROOM) + IN_SMALL_PAGES).next_multiple_of(LARGE);
        if start < end {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
        }
    }
}

/// The C library's heap is as it is.
#[cfg(not(target_env = "gnu"))]
pub fn use_large_pages() {}
