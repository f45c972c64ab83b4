; fcs taken: crossed: heavy at ? and ?: the callee costs about 452 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time

declare void @step(i32)

; Function Attrs: noinline
define internal void @light(i32 %a) #0 {
  call void @step(i32 %a)
  ret void
}

; Function Attrs: noinline
define internal void @heavy(i32 %a) #0 {
entry:
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void @step(i32 %i)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %a
  br i1 %more, label %loop, label %end

end:                                              ; preds = %loop
  ret void
}

define void @crossed(i1 %c, i32 %a, i32 %b) {
entry:
  br i1 %c, label %then, label %before.call1

then:                                             ; preds = %entry
  call void @light(i32 %a)
  br label %before.call

before.call:                                      ; preds = %then
  br label %fused.heavy

then.rest:                                        ; preds = %fused.heavy
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.heavy

fused.heavy:                                      ; preds = %before.call1, %before.call
  %0 = phi i32 [ %b, %before.call ], [ %a, %before.call1 ]
  call void @heavy(i32 %0) #1
  br i1 %c, label %then.rest, label %else

else:                                             ; preds = %fused.heavy
  br label %else.rest

else.rest:                                        ; preds = %else
  call void @light(i32 %b)
  br label %join

join:                                             ; preds = %else.rest, %then.rest
  ret void
}

attributes #0 = { noinline }
attributes #1 = { noduplicate }
