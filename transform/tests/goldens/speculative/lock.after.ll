; speculative left: work: locked at ?: lanes could wait for each other there: memory is compared and exchanged
target triple = "nvptx64-nvidia-cuda"

define void @work(ptr %lock, i32 %n) {
entry1:
  br label %entry

entry:                                            ; preds = %entry1
  br label %spin.outer

spin.outer:                                       ; preds = %locked, %entry
  %i.ph = phi i32 [ %i.next, %locked ], [ 0, %entry ]
  br label %spin

spin:                                             ; preds = %spin.outer, %spin
  %found = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic, align 4
  %is.free = extractvalue { i32, i1 } %found, 1
  br i1 %is.free, label %locked, label %spin

locked:                                           ; preds = %spin
  store atomic i32 0, ptr %lock release, align 4
  %i.next = add i32 %i.ph, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %spin.outer, label %exit

exit:                                             ; preds = %locked
  ret void
}
