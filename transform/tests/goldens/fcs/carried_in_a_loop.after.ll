; fcs taken: rounds: work at ? and ?: the callee costs about 42 instructions, the fusion 7; guarded by the branch's condition; lanes that stay together lose 7 each time

; Function Attrs: noinline
define internal i32 @work(i32 %a, i32 %b) #0 {
entry:
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ %a, %entry ], [ %more, %loop ]
  %more = add i32 %sum, %b
  %next = add i32 %i, 1
  %done = icmp eq i32 %next, 20
  br i1 %done, label %end, label %loop

end:                                              ; preds = %loop
  ret i32 %more
}

define i32 @rounds(i32 %n) {
entry:
  br label %loop

loop:                                             ; preds = %latch, %entry
  %i = phi i32 [ 0, %entry ], [ %next, %latch ]
  %sum = phi i32 [ 0, %entry ], [ %total, %latch ]
  %odd = trunc i32 %i to i1
  br i1 %odd, label %before.call, label %before.call1

before.call:                                      ; preds = %loop
  %kept = mul i32 %i, %i
  br label %fused.work

then:                                             ; preds = %fused.work
  %s1 = add i32 %2, %.0
  br label %latch

before.call1:                                     ; preds = %loop
  br label %fused.work

fused.work:                                       ; preds = %before.call1, %before.call
  %.0 = phi i32 [ %kept, %before.call ], [ undef, %before.call1 ]
  %0 = phi i32 [ %kept, %before.call ], [ %i, %before.call1 ]
  %1 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  %2 = call i32 @work(i32 %0, i32 %1) #1
  br i1 %odd, label %then, label %else

else:                                             ; preds = %fused.work
  br label %latch

latch:                                            ; preds = %else, %then
  %r = phi i32 [ %s1, %then ], [ %2, %else ]
  %total = add i32 %sum, %r
  %next = add i32 %i, 1
  %done = icmp eq i32 %next, %n
  br i1 %done, label %end, label %loop

end:                                              ; preds = %latch
  ret i32 %total
}

attributes #0 = { noinline }
attributes #1 = { noduplicate }
