; fcs taken: round: work at ? and ?: the callee costs about 42 instructions, the fusion 7; guarded by the branch's condition; lanes that stay together lose 7 each time

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

declare void @note(i32)

define i32 @round(i32 %id) {
entry:
  %even = trunc i32 %id to i1
  br i1 %even, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  %m = mul i32 %id, 1000
  br label %fused.work

then:                                             ; preds = %fused.work
  br label %join

before.call1:                                     ; preds = %entry
  %n = mul i32 %id, 2000
  %product = mul i32 %n, %id
  br label %fused.work

fused.work:                                       ; preds = %before.call1, %before.call
  %.0 = phi i32 [ undef, %before.call ], [ %product, %before.call1 ]
  %0 = phi i32 [ %m, %before.call ], [ %n, %before.call1 ]
  %1 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  %2 = call i32 @work(i32 %0, i32 %1) #1
  br i1 %even, label %then, label %else

else:                                             ; preds = %fused.work
  call void @note(i32 %.0)
  br label %join

join:                                             ; preds = %else, %then
  %q = phi i32 [ %2, %then ], [ %2, %else ]
  ret i32 %q
}

attributes #0 = { noinline }
attributes #1 = { noduplicate }
