; fcs taken: three: work at ? and ?: the callee costs about 42 instructions, the fusion 5; guarded by the branch's condition; lanes that stay together lose 5 each time
; fcs taken: three: work at ? and ?: the callee costs about 42 instructions, the fusion 6; guarded by a phi; lanes that stay together lose 6 each time

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

define i32 @three(i32 %k, i1 %c) {
entry:
  switch i32 %k, label %join [
    i32 0, label %zero
    i32 1, label %before.call3
  ]

zero:                                             ; preds = %entry
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %zero
  br label %before.call2

yes:                                              ; preds = %fused.work
  br label %join

before.call1:                                     ; preds = %zero
  br label %before.call2

before.call2:                                     ; preds = %before.call, %before.call1
  %0 = phi i32 [ %k, %before.call ], [ 7, %before.call1 ]
  %1 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  br label %fused.work4

fused.work:                                       ; preds = %fused.work4
  br i1 %c, label %yes, label %no

no:                                               ; preds = %fused.work
  br label %join

before.call3:                                     ; preds = %entry
  br label %fused.work4

fused.work4:                                      ; preds = %before.call3, %before.call2
  %from.first = phi i1 [ true, %before.call2 ], [ false, %before.call3 ]
  %2 = phi i32 [ %0, %before.call2 ], [ 9, %before.call3 ]
  %3 = phi i32 [ %1, %before.call2 ], [ 3, %before.call3 ]
  %4 = call i32 @work(i32 %2, i32 %3) #1
  br i1 %from.first, label %fused.work, label %one

one:                                              ; preds = %fused.work4
  br label %join

join:                                             ; preds = %one, %no, %yes, %entry
  %r = phi i32 [ 0, %entry ], [ %4, %yes ], [ %4, %no ], [ %4, %one ]
  ret i32 %r
}

attributes #0 = { noinline }
attributes #1 = { noduplicate }
