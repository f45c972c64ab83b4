; A lane that holds a lock must not wait for one that spins at it: the code stays, and the marks go.
target triple = "nvptx64-nvidia-cuda"

define void @work(ptr %lock, i32 %n) {
entry:
  call void asm sideeffect "// .lockstep.marks 1, 0, locked", ""()
  br label %spin

spin:
  %i = phi i32 [ 0, %entry ], [ %i, %spin ], [ %i.next, %locked ]
  %found = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %is.free = extractvalue { i32, i1 } %found, 1
  br i1 %is.free, label %locked, label %spin

locked:
  call void asm sideeffect "// .lockstep.marks 2, 0, locked", ""()
  store atomic i32 0, ptr %lock release, align 4
  %i.next = add i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %spin, label %exit

exit:
  ret void
}
