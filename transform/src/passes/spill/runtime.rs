//! The code that maps the memory for what warps share, before anything else of the program runs.
//!
//! It makes system calls itself: a program need not have a C library, and nobody stands between. It never ends the
//! program:
//!
//! - What is mapped already by other code of ours is taken as mapped. Two libraries that hide their symbols, or a
//!   plugin and its host, have a copy of this code and its table each. A mark in the first bytes tells whose the memory
//!   is; the kernel is asked first whether they can be read.
//! - Where the memory cannot be mapped (`ulimit -v`, a sanitizer whose shadow lies there, an old kernel that puts it
//!   elsewhere), it says so on standard error, and each frame is its own copy.
//! - A frame outside of the 4 TiB below the end of the address space (a stack that the program laid out in its data or
//!   on its heap, one for signals) is its own copy: its distance in the table is 0.

use super::{CHECKED, DISTANCE};

/// The table of distances, of 8 bytes each, by the number of the 4 TiB in which a frame lies.
pub(super) const DISTANCES: &str = "__lockstep_shared_distances";

/// How many there are: a program's addresses have 47 bits.
pub(super) const PARTS: u64 = 32;

/// The bits of an address above these number those parts.
pub(super) const PART_BITS: u64 = 42;

/// How many bytes are mapped from [`CHECKED`] on: those whose addresses tell values, and the copies of 4 TiB of stacks.
const MAPPED: u64 = (1 << 20) + (1 << PART_BITS);

/// What the first bytes hold: text that is no file's name.
const MARK: u64 = u64::from_le_bytes(*b"\x01lks\x02p1\x7f");

/// Private, without a reservation, and at no other place (`mmap`'s flags).
const FLAGS: u32 = 0x10_4022;

const TOLD: &str = "lockstep: warning: mapping memory for values that warps share failed, since its place is taken or \
                    too little memory is allowed; each thread keeps them in its own, which a replay counts as local\\0A";

/// Its IR: a constructor, which does nothing where the table is filled already.
pub(super) fn code() -> String {
    let call = |result: &str, number: u32, arguments: [&str; 6]| {
        let passed: Vec<String> = arguments.iter().map(|argument| format!("i64 {argument}")).collect();
        format!(
            "{result} = call i64 asm sideeffect \"syscall\", \
             \"={{ax}},{{ax}},{{di}},{{si}},{{dx}},{{r10}},{{r8}},{{r9}},~{{rcx}},~{{r11}},~{{memory}},~{{dirflag}},~{{fpsr}},~{{flags}}\"\
             (i64 {number}, {})",
            passed.join(", ")
        )
    };
    let (place, bytes, flags) = (CHECKED.to_string(), MAPPED.to_string(), FLAGS.to_string());
    // The trailing `\0A` stands for one byte.
    let length = TOLD.len() - 2;
    let told = length.to_string();
    let map = call("%at", 9, [&place, &bytes, "3", &flags, "-1", "0"]);
    let unmap = call("%gone", 11, ["%at", &bytes, "0", "0", "0", "0"]);
    let ask = call("%answer", 21, [&place, "0", "0", "0", "0", "0"]);
    let rest = call("%rested", 24, ["0", "0", "0", "0", "0", "0"]);
    let tell = call("%written", 1, ["2", "%text", &told, "0", "0", "0"]);
    let last = PARTS - 1;
    format!(
        r#"
@{DISTANCES} = linkonce_odr hidden global [{PARTS} x i64] zeroinitializer
@__lockstep_shared_message = linkonce_odr hidden constant [{length} x i8] c"{TOLD}"
@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{{ i32, ptr, ptr }} {{ i32 0, ptr @__lockstep_shared_map, ptr null }}]
define linkonce_odr hidden void @__lockstep_shared_map() {{
  %last = getelementptr [{PARTS} x i64], ptr @{DISTANCES}, i64 0, i64 {last}
  %known = load i64, ptr %last
  %first = icmp eq i64 %known, 0
  br i1 %first, label %map, label %end
map:
  {map}
  %mapped = icmp eq i64 %at, {CHECKED}
  br i1 %mapped, label %mark, label %failed
mark:
  store atomic volatile i64 {MARK}, ptr inttoptr (i64 {CHECKED} to ptr) release, align 8
  br label %use
failed:
  %elsewhere = icmp ult i64 %at, -4095
  br i1 %elsewhere, label %back, label %look
back:
  {unmap}
  br label %tell
look:
  %turn = phi i64 [ 0, %failed ], [ %next, %rest ]
  {ask}
  %readable = icmp eq i64 %answer, -2
  br i1 %readable, label %read, label %tell
read:
  %found = load atomic volatile i64, ptr inttoptr (i64 {CHECKED} to ptr) acquire, align 8
  %ours = icmp eq i64 %found, {MARK}
  br i1 %ours, label %use, label %other
other:
  %next = add i64 %turn, 1
  %blank = icmp eq i64 %found, 0
  %soon = icmp ult i64 %next, 1000
  %waits = and i1 %blank, %soon
  br i1 %waits, label %rest, label %tell
rest:
  {rest}
  br label %look
tell:
  %text = ptrtoint ptr @__lockstep_shared_message to i64
  {tell}
  br label %end
use:
  store i64 {DISTANCE}, ptr %last
  br label %end
end:
  ret void
}}
"#
    )
}
