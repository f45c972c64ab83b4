//! How our memory is mapped into the program: system calls that one of its threads makes for us, and where the memory
//! may lie.

use nix::errno::Errno;
use nix::libc;

use crate::kernel::ptrace::{SharedMemory, Tid};
use crate::translate::layout::{CACHE_LEN, FAR_CACHES, FAR_CACHES_APART};
use crate::translate::remote::{self, Lost};

/// Returned by `mmap` and its kin: everything from here on is an error.
const FIRST_ERROR: u64 = (-4095i64).cast_unsigned();
/// `MAP_FIXED_NOREPLACE`: at this place or not at all.
const IF_FREE: u64 = libc::MAP_SHARED as u64 | 0x10_0000;

/// Why no memory could be had in the program.
#[derive(Debug)]
pub enum SetUpError {
    /// The thread was lost.
    Lost(Lost),
    /// The kernel refused.
    Refused(&'static str, Errno),
}

impl From<Lost> for SetUpError {
    fn from(lost: Lost) -> SetUpError {
        SetUpError::Lost(lost)
    }
}

fn kernel<T>(what: &'static str, result: i64, value: impl FnOnce(u64) -> T) -> Result<T, SetUpError> {
    let result = result.cast_unsigned();
    if result >= FIRST_ERROR {
        return Err(SetUpError::Refused(what, Errno::from_raw((result as i32).wrapping_neg())));
    }
    Ok(value(result))
}

/// Where a cache could lie, so that code in it reaches code and data around `pc`.
pub fn near(pc: u64) -> Vec<u64> {
    let around = pc & !0xf_ffff;
    let mut places = Vec::new();
    if around < 0x5000_0000 {
        places.extend([0x6800_0000, 0x5800_0000, 0x4800_0000, 0x7800_0000]);
    }
    for step in 1..24u64 {
        let distance = step * 0x400_0000;
        places.push(around.wrapping_sub(0x2000_0000 + distance));
        places.push(around.wrapping_add(0x2000_0000 + distance));
    }
    places.retain(|place| (0x10000..0x7fff_ffff_f000 - CACHE_LEN).contains(place));
    places
}

/// Where a cache could lie that need not be near anything.
pub fn far() -> Vec<u64> {
    (0..64).map(|step| FAR_CACHES + step * FAR_CACHES_APART).collect()
}

/// Where tables could lie when their usual places are taken.
pub fn low() -> impl Iterator<Item = u64> {
    (1..0x7f).rev().map(|step| step << 24)
}

/// Makes the calls that map memory into the program.
pub struct Mapper {
    /// The thread that makes them.
    pub process: Tid,
    /// Where a `syscall` instruction lies.
    pub syscall_at: u64,
    /// Where the name of memory files lies.
    pub name: u64,
}

impl Mapper {
    fn call(&self, number: i64, arguments: [u64; 6]) -> Result<i64, Lost> {
        remote::call(self.process, self.syscall_at, number, arguments)
    }

    /// Maps new memory of the process that makes the calls.
    pub fn map(&self, places: &[u64], len: u64, protection: i32) -> Result<(SharedMemory, u64), SetUpError> {
        self.map_of(self.process, places, len, protection)
    }

    /// Maps new memory at the first of the places that is free.
    pub fn map_of(
        &self,
        process: Tid,
        places: &[u64],
        len: u64,
        protection: i32,
    ) -> Result<(SharedMemory, u64), SetUpError> {
        let (file, memory) = self.memory_of(process, len)?;
        let flags = IF_FREE | libc::MAP_NORESERVE as u64;
        let mut result = Err(SetUpError::Refused("no room for lockstep's memory", Errno::ENOMEM));
        for &place in places {
            let mapped = self.call(libc::SYS_mmap, [place, len, protection as u64, flags, file, 0])?;
            if mapped.cast_unsigned() == place {
                result = Ok(place);
                break;
            }
        }
        self.call(libc::SYS_close, [file, 0, 0, 0, 0, 0])?;
        result.map(|place| (memory, place))
    }

    /// Maps new memory where there is memory of ours already, after it got its contents.
    pub fn replace(
        &self,
        place: u64,
        len: u64,
        protection: i32,
        fill: impl FnOnce(&SharedMemory),
    ) -> Result<SharedMemory, SetUpError> {
        let (file, memory) = self.memory_of(self.process, len)?;
        fill(&memory);
        let flags = (libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE) as u64;
        let mapped = self.call(libc::SYS_mmap, [place, len, protection as u64, flags, file, 0])?;
        self.call(libc::SYS_close, [file, 0, 0, 0, 0, 0])?;
        kernel("cannot map lockstep's memory", mapped, |_| memory)
    }

    /// A new memory file, open in the program under this number.
    fn memory_of(&self, process: Tid, len: u64) -> Result<(u64, SharedMemory), SetUpError> {
        let made = self.call(libc::SYS_memfd_create, [self.name, u64::from(libc::MFD_CLOEXEC), 0, 0, 0, 0])?;
        let file = kernel("cannot make a memory file", made, |f| f)?;
        match SharedMemory::take(process, file as i32, len as usize) {
            Ok(memory) => Ok((file, memory)),
            Err(errno) => {
                self.call(libc::SYS_close, [file, 0, 0, 0, 0, 0])?;
                Err(SetUpError::Refused("cannot share memory", errno))
            }
        }
    }
}
