; fcs taken: two: work at ? and ?: the callee costs about 42 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time
; fcs taken: two: other at ? and ?: the callee costs about 40 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time

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

declare i32 @other(i32)

define i32 @two(i1 %c, i32 %x) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.work

before.call2:                                     ; preds = %fused.work
  br label %fused.other

then:                                             ; preds = %fused.other
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.work

fused.work:                                       ; preds = %before.call1, %before.call
  %0 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  %1 = call i32 @work(i32 %x, i32 %0) #1
  br i1 %c, label %before.call2, label %before.call3

before.call3:                                     ; preds = %fused.work
  %y = xor i32 %1, 5
  br label %fused.other

fused.other:                                      ; preds = %before.call3, %before.call2
  %2 = phi i32 [ %1, %before.call2 ], [ %y, %before.call3 ]
  %3 = call i32 @other(i32 %2) #1
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.other
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %3, %then ], [ %3, %else ]
  ret i32 %r
}

attributes #0 = { noinline }
attributes #1 = { noduplicate }
