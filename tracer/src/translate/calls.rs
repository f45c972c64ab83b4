//! Which system calls the tracer looks at.

use nix::libc;

/// System calls that we look at before they are made, or make for the program, since they change something we have to
/// know.
pub const TAKEN_SYSCALLS: [i64; 24] = [
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_mremap,
    libc::SYS_arch_prctl,
    libc::SYS_rseq,
    libc::SYS_pkey_mprotect,
    libc::SYS_shmat,
    libc::SYS_remap_file_pages,
    libc::SYS_process_madvise,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    libc::SYS_ptrace,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
];

/// Calls that change the program's memory, and are made by the program itself. When one that fills buffers fails
/// half-way, what was to be received may be lost.
pub const FILLING_CALLS: [i64; 10] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_process_vm_writev,
    libc::SYS_madvise,
];

/// Calls that write to a file, and which argument is its descriptor.
pub const WRITING_CALLS: [(i64, usize); 10] = [
    (libc::SYS_write, 0),
    (libc::SYS_pwrite64, 0),
    (libc::SYS_writev, 0),
    (libc::SYS_pwritev, 0),
    (libc::SYS_pwritev2, 0),
    (libc::SYS_ftruncate, 0),
    (libc::SYS_fallocate, 0),
    (libc::SYS_sendfile, 0),
    (libc::SYS_copy_file_range, 2),
    (libc::SYS_splice, 2),
];
