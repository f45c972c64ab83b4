//! Where our memory lies in the program, and what lies where in it.
//!
//! Three kinds of memory are mapped into the program: the *tables*, in the low 2 GiB, so that code reaches them without
//! a register; the *slots*, one per thread, to which the thread's gs points; and the code caches.

/// Bytes in a page.
pub const PAGE: u64 = 4096;

/// Where the tables may lie, first choice first. Programs that are not position-independent lie below.
pub const TABLE_BASES: [u64; 6] = [0x6000_0000, 0x5000_0000, 0x7000_0000, 0x4000_0000, 0x3000_0000, 0x2000_0000];

/// Entries of the first lookup table: the bits of an address that choose one.
pub const FIRST_BITS: u32 = 19;
/// Without BMI2 the lowest 16 bits choose.
pub const FIRST_BITS_PLAIN: u32 = 16;
/// The address bits that `pext` takes: function entries and return addresses differ from bit 2 on more than in bits 0
/// and 1.
pub const FIRST_MASK: u64 = ((1 << FIRST_BITS) - 1) << 2;

/// Entries of the second lookup table.
pub const SECOND_ENTRIES: u64 = 1 << 16;

/// The first lookup table: 8-byte code addresses.
pub const FIRST: u64 = 0;
/// The second: pairs of application address and code address, hashed, no address twice.
pub const SECOND: u64 = FIRST + (8 << FIRST_BITS);
/// One byte for each entry of the first table: whether a known return address of a synchronisation function goes there.
pub const RETURNS: u64 = SECOND + 16 * SECOND_ENTRIES;
/// The same for routines that were handed to a function that runs them.
pub const ROUTINES: u64 = RETURNS + (1 << FIRST_BITS);
/// The mask, as the memory operand of `pext`.
pub const MASK: u64 = ROUTINES + (1 << FIRST_BITS);
/// Searches in the second table begin at an entry up to this number: as long as few addresses are there, they lie close
/// together.
pub const SECOND_MASK: u64 = MASK + 16;
/// One byte for each number of a system call, by its lowest 16 bits: how it is made, see [`call`].
pub const CALLS: u64 = MASK + PAGE;
/// One byte for each number of a system call that the program makes, in the same way: what is done before, see
/// [`look`].
pub const LOOKS: u64 = CALLS + (1 << 16);
/// The length of the tables.
pub const TABLES_LEN: u64 = LOOKS + (1 << 16);

/// What is done before a system call that the program makes by itself; nothing: 0.
pub mod look {
    /// We look at it.
    pub const STOP: u8 = 1;
    /// It returns from a signal handler, by a way of its own.
    pub const RETURN: u8 = 2;
}

/// How system calls are made that the program does not make by itself, which is 0.
pub mod call {
    /// We look at it first, and perhaps make it in its place.
    pub const TAKEN: u8 = 1;
    /// By the program itself, and recorded when it is done: it may wait for others.
    pub const FUTEX: u8 = 2;
}

/// Where the slots may lie, first choice first: right below where the kernel puts position-independent programs, which
/// no runtime takes for itself. docs/tracing.md has the places that are known to be taken.
pub const SLOT_BASES: [u64; 6] =
    [0x5550_0000_0000, 0x554e_0000_0000, 0x7e90_0000_0000, 0x1000_0000_0000, 0x0f00_0000_0000, 0x0060_0000_0000];
/// Where caches may lie that need not be near anything, 64 of them at this distance from each other.
pub const FAR_CACHES: u64 = 0x5548_0000_0000;
/// See [`FAR_CACHES`].
pub const FAR_CACHES_APART: u64 = 0x1000_0000;
/// How many threads a process can have at once.
pub const SLOTS: u64 = 16384;
/// The bytes of records that fit into a slot. A quarter of a level-2 cache: what is written is still there when it is
/// read.
pub const BUFFER_LEN: u64 = 256 << 10;
/// The same where records have values, and are longer: with stops four times as often, radix sort of `workloads` takes
/// a tenth longer.
pub const VALUES_BUFFER_LEN: u64 = 1 << 20;
/// Only so many threads at once use more than [`BUFFER_LEN`], or two buffers.
pub const LONG_BUFFERS: u32 = 64;
/// Where a slot lies, from the first one on. A slot is a page of saved values, and buffers, each with a page behind it
/// that may not be touched. The first [`LONG_BUFFERS`] slots have two buffers of this length: a thread goes on in the
/// one while the other is read. The others have one, of [`BUFFER_LEN`].
#[must_use]
pub const fn slot_offset(slot: u64, buffer_len: u64) -> u64 {
    let long = if slot < LONG_BUFFERS as u64 { slot } else { LONG_BUFFERS as u64 };
    long * (PAGE + 2 * (buffer_len + PAGE)) + (slot - long) * (PAGE + BUFFER_LEN + PAGE)
}

/// The length of all slots.
#[must_use]
pub const fn slots_len(buffer_len: u64) -> u64 {
    slot_offset(SLOTS, buffer_len)
}

/// Values in the first page of a slot, as offsets.
pub mod slot {
    /// Where the next record goes, while r11 is the program's.
    pub const POINTER: u32 = 0;
    /// The program's r11, while r11 is where the next record goes.
    pub const R11: u32 = 8;
    /// The program's rax in a lookup.
    pub const RAX: u32 = 16;
    /// The program's rcx in a lookup.
    pub const RCX: u32 = 24;
    /// The program's rdx in a lookup.
    pub const RDX: u32 = 32;
    /// What a lookup looks for.
    pub const TARGET: u32 = 40;
    /// The flags during a lookup.
    pub const FLAGS: u32 = 48;
    /// What a lookup found.
    pub const FOUND: u32 = 56;
    /// A register that an expansion borrows.
    pub const BORROWED: u32 = 64;
    /// Where the program goes on after a system call, or from rest.
    pub const NEXT: u32 = 72;
    /// The code that goes on there after a system call.
    pub const AFTER: u32 = 80;
    /// The number of the system call that is made.
    pub const NUMBER: u32 = 88;
    /// Whether a system call is being made at a landing: 1 from before the call until behind it, else 0.
    pub const CALLING: u32 = 96;
    /// Whether a system call is being made at a landing: 1 from before the call until after it, else 0.
    pub const HANDLER: u32 = 104;
    /// The program's stack pointer when the signal came.
    pub const SIGNAL_SP: u32 = 112;
    /// Where the program goes on when it has returned from a handler.
    pub const RETURN_TO: u32 = 120;
    /// Whether we have to look at returns from handlers: 0 or 1.
    pub const LOOK_AT_RETURN: u32 = 128;
    /// With which stack pointer, negated, the thread leaves the call that gives it iterations of a loop: see
    /// `loop_code`. 0: it is in none.
    pub const CHUNK_DUE: u32 = 136;
    /// The form of that function, and above it what it shares out: see `LoopCall::form` and `LoopCall::KIND_AT`.
    pub const CHUNK_FORM: u32 = 144;
    /// Three addresses, of the numbers that the call gives.
    pub const CHUNK_AT: u32 = 152;
    /// The step, where it is an argument.
    pub const CHUNK_STEP: u32 = 176;
    /// The loop's last iteration, of a static one.
    pub const CHUNK_LAST: u32 = 184;
    /// Room for arguments of system calls that we make.
    pub const SCRATCH: u32 = 1024;
    /// With which stack pointers the synchronisation functions are left that the thread is inside of: [`DUE_ENTRIES`]
    /// entries of 8 bytes, chosen by bits 4 to 11 of the stack pointer (without BMI2 by bits 0 to 7). An entry is 0
    /// when it is free, else the stack pointer's negative, less [`UNTIMED`] where it does not matter when the function
    /// returns, or [`ANY_DUE`].
    pub const DUE: u32 = 2048;
    /// How many entries there are.
    pub const DUE_ENTRIES: u32 = 256;
    /// Two stack pointers share the entry, or did: whoever asks is told that a function may be left.
    pub const ANY_DUE: u64 = 1;
    /// See [`DUE`].
    pub const UNTIMED: u8 = 1;
}

/// The length of a code cache.
pub const CACHE_LEN: u64 = 32 << 20;
/// Where the seldom executed half of a cache starts.
pub const COLD_START: u64 = 18 << 20;

/// The records of a thread's buffer: words that are no path numbers, and lengths in bytes.
pub mod record {
    /// A function is entered whose role names no register and no word of memory; with one, two, … up to eight, the word
    /// is so much more: see [`enter_len`].
    pub const ENTER: u32 = 0xffff_fff0;
    /// The last of these words.
    pub const ENTER_MOST: u32 = ENTER + 8;
    /// A function has returned, or may have: see [`LEAVE_LEN`].
    pub const LEAVE: u32 = 0xffff_fffd;
    /// A futex system call is done: see [`FUTEX_LEN`].
    pub const FUTEX: u32 = 0xffff_fffc;

    /// A signal handler is entered: see [`SIGNAL_LEN`].
    pub const SIGNAL: u32 = 0xffff_fffb;
    /// The program has returned from a signal handler: see [`RETURN_LEN`].
    pub const RETURN: u32 = 0xffff_fffa;

    /// A thread has got iterations of a loop, or none: see [`CHUNK_LEN`].
    pub const CHUNK: u32 = 0xffff_fff9;
    /// Escape, form of the function (4), the numbers at three addresses, the step, the result, where the thread goes
    /// on, the loop's last iteration (8 each).
    pub const CHUNK_LEN: u32 = 64;

    /// A function is entered whose role names one register, and when it is does not matter: escape, hook number (4),
    /// the register (8).
    pub const UNTIMED_ENTER: u32 = 0xffff_ffef;
    /// See [`UNTIMED_ENTER`].
    pub const UNTIMED_ENTER_LEN: u32 = 16;
    /// A function has returned, and when does not matter: escape, rax (8).
    pub const UNTIMED_LEAVE: u32 = 0xffff_fffe;
    /// See [`UNTIMED_LEAVE`].
    pub const UNTIMED_LEAVE_LEN: u32 = 12;

    /// The bytes before the registers of a function that is entered: escape, hook number, time (8).
    pub const ENTER_HEAD: u32 = 16;
    /// Escape, time (8), rax (8).
    pub const LEAVE_LEN: u32 = 20;
    /// Escape, operation (4), time (8), futex address (8), result (8).
    pub const FUTEX_LEN: u32 = 32;
    /// Escape, signal (4), time (8), stack pointer of the handler (8), the handler (8), stack pointer of what was
    /// interrupted (8), start and length of the alternate stack (8 each).
    pub const SIGNAL_LEN: u32 = 56;
    /// Escape, unused, stack pointer (8).
    pub const RETURN_LEN: u32 = 16;

    /// The length of the record of a function that is entered, with so many of rdi, rsi, rdx, rcx, r8 and r9, in this
    /// order, and words of memory behind them, of 8 bytes each: those that its role names.
    #[must_use]
    pub const fn enter_len(registers: u32) -> u32 {
        ENTER_HEAD + 8 * registers
    }

    /// The length of a record that is no path.
    #[must_use]
    pub const fn other_len(word: u32) -> Option<u32> {
        match word {
            ENTER..=ENTER_MOST => Some(enter_len(word - ENTER)),
            LEAVE => Some(LEAVE_LEN),
            UNTIMED_ENTER => Some(UNTIMED_ENTER_LEN),
            UNTIMED_LEAVE => Some(UNTIMED_LEAVE_LEN),
            FUTEX => Some(FUTEX_LEN),
            SIGNAL => Some(SIGNAL_LEN),
            RETURN => Some(RETURN_LEN),
            CHUNK => Some(CHUNK_LEN),
            _ => None,
        }
    }

    /// The record of a path: its number, then its values (8 bytes each). The values are written one after another while
    /// the path runs, and the number at its end. So where the path is left early, the number says how many values
    /// count.
    #[must_use]
    pub const fn path_len(values: u16) -> u32 {
        4 + 8 * values as u32
    }
}
