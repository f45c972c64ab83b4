; fcs taken: crossed: work at ? and ?: the callee costs about 42 instructions, the fusion 5; guarded by the branch's condition; lanes that stay together lose 5 each time

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

define i32 @crossed(i1 %c, i32 %x) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.work

then:                                             ; preds = %fused.work
  %b1 = call i32 @other(i32 %2)
  br label %join

before.call1:                                     ; preds = %entry
  %b2 = call i32 @other(i32 %x)
  br label %fused.work

fused.work:                                       ; preds = %before.call1, %before.call
  %0 = phi i32 [ %x, %before.call ], [ %b2, %before.call1 ]
  %1 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  %2 = call i32 @work(i32 %0, i32 %1) #1
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.work
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %b1, %then ], [ %2, %else ]
  ret i32 %r
}

attributes #0 = { noinline }
attributes #1 = { noduplicate }
