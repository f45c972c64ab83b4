//! What the kernel builds for a signal handler.

/// Where things lie in the frame that the kernel builds for a handler, from the stack pointer at its first instruction
/// on.
pub const FRAME_STACK: u64 = 24;
pub const FRAME_SP: u64 = 168;
pub const FRAME_PC: u64 = 176;
pub const FRAME_FLAGS: u64 = 184;
pub const FRAME_CS: u64 = 192;
pub const FRAME_MASK: u64 = 304;

/// The flag by which a thread is stepped, by itself or by its tracer: programs see it in r11 behind a call.
pub const STEP_FLAG: u64 = 0x100;

/// The code segment of 64-bit programs.
pub const CODE_64: u64 = 0x33;
