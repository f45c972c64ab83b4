//! Reading and writing the program's memory.

use nix::errno::Errno;
use nix::libc;

use super::{Address, Tid};

const PAGE: u64 = 4096;

/// Reads up to the length of `buffer` and returns how many bytes could be read: fewer at the end of mapped memory.
pub fn read(tid: Tid, address: Address, buffer: &mut [u8]) -> usize {
    // The kernel copies either a whole remote piece or nothing, so the pieces are cut at page borders.
    let mut done = 0;
    while done < buffer.len() {
        let from = address.plus(done as u64);
        let wanted = ((PAGE - from.0 % PAGE) as usize).min(buffer.len() - done);
        let local = libc::iovec { iov_base: buffer[done..].as_mut_ptr().cast(), iov_len: wanted };
        let remote = libc::iovec { iov_base: from.0 as *mut libc::c_void, iov_len: wanted };
        // SAFETY: `local` lies within `buffer` (`wanted` is at most the rest of it); the remote address is checked by
        // the kernel.
        let got = unsafe { libc::process_vm_readv(tid.0, &local, 1, &remote, 1, 0) };
        if got <= 0 {
            break;
        }
        done += got as usize;
        if (got as usize) < wanted {
            break;
        }
    }
    done
}

/// Reads code: like [`read`], but also from pages that may only be executed. The thread must be stopped for us.
pub fn read_code(tid: Tid, address: Address, buffer: &mut [u8]) -> usize {
    let mut done = read(tid, address, buffer);
    while done < buffer.len() {
        // SAFETY: PEEKTEXT takes a number as address and returns the word; nothing of ours is written. The word and an
        // error are told apart by errno.
        let word = unsafe {
            Errno::clear();
            libc::ptrace(libc::PTRACE_PEEKTEXT, tid.0, address.plus(done as u64).0 as usize, 0usize)
        };
        if word == -1 && Errno::last_raw() != 0 {
            break;
        }
        for byte in word.to_le_bytes().into_iter().take(buffer.len() - done) {
            buffer[done] = byte;
            done += 1;
        }
    }
    done
}

/// Reads one 64-bit number.
pub fn read_u64(tid: Tid, address: Address) -> Option<u64> {
    let mut bytes = [0; 8];
    (read(tid, address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
}

/// Writes all the bytes, or says that it could not.
pub fn write(tid: Tid, address: Address, bytes: &[u8]) -> bool {
    let local = libc::iovec { iov_base: bytes.as_ptr() as *mut libc::c_void, iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address.0 as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the kernel only reads from `local`, which is `bytes`; the remote address is checked by the kernel.
    let put = unsafe { libc::process_vm_writev(tid.0, &local, 1, &remote, 1, 0) };
    usize::try_from(put) == Ok(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_reads_back_what_was_written() {
        let me = Tid(std::process::id().cast_signed());
        let mut place = vec![0u8; 3 * PAGE as usize];
        let address = Address(place.as_mut_ptr() as u64);
        let bytes: Vec<u8> = (0..2 * PAGE).map(|i| i as u8).collect();
        assert!(write(me, address.plus(100), &bytes));
        let mut back = vec![0; bytes.len()];
        assert_eq!(read(me, address.plus(100), &mut back), bytes.len());
        assert_eq!(back, bytes);
        assert_eq!(place[100..100 + bytes.len()], bytes[..]);
    }

    #[test]
    fn unmapped_memory_reads_nothing() {
        assert_eq!(read(Tid(std::process::id().cast_signed()), Address(8), &mut [0; 8]), 0);
        assert!(!write(Tid(std::process::id().cast_signed()), Address(8), &[1]));
    }
}
