; fcs taken: either: work at ? and ?: the callee costs about 42 instructions, the fusion 5; guarded by a phi; lanes that stay together lose 5 each time

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

define i32 @either(i1 %a, i1 %b) {
entry:
  br i1 %a, label %before.call, label %second

second:                                           ; preds = %entry
  br i1 %b, label %before.call, label %before.call1

before.call:                                      ; preds = %entry, %second
  br label %fused.work

then:                                             ; preds = %fused.work
  %s1 = add i32 %1, 1
  br label %join

before.call1:                                     ; preds = %second
  br label %fused.work

fused.work:                                       ; preds = %before.call1, %before.call
  %from.first = phi i1 [ true, %before.call ], [ false, %before.call1 ]
  %0 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  %1 = call i32 @work(i32 %0, i32 3) #1
  br i1 %from.first, label %then, label %else

else:                                             ; preds = %fused.work
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %s1, %then ], [ %1, %else ]
  ret i32 %r
}

attributes #0 = { noinline }
attributes #1 = { noduplicate }
