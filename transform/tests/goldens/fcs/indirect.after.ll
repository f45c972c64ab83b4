; fcs taken: same: a function pointer at ? and ?: the callee costs about 40 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time

define i32 @same(i1 %c, ptr %f) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.f

then:                                             ; preds = %fused.f
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.f

fused.f:                                          ; preds = %before.call1, %before.call
  %0 = phi i32 [ 1, %before.call ], [ 2, %before.call1 ]
  %1 = call i32 %f(i32 %0) #0
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.f
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %1, %then ], [ %1, %else ]
  ret i32 %r
}

define i32 @two(i1 %c, ptr %f, ptr %g) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %r1 = call i32 %f(i32 1)
  br label %join

else:                                             ; preds = %entry
  %r2 = call i32 %g(i32 2)
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %r1, %then ], [ %r2, %else ]
  ret i32 %r
}

attributes #0 = { noduplicate }
