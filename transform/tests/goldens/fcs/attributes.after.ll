; fcs taken: joined: f at ? and ?: the callee costs about 40 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time
; fcs left: left: f at ? and ?: the calls differ in the attribute byval
; fcs taken: fast: f at ? and ?: the callee costs about 40 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time

declare double @f(ptr, double)

define double @joined(i1 %c, ptr %p) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.f

then:                                             ; preds = %fused.f
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.f

fused.f:                                          ; preds = %before.call1, %before.call
  %0 = phi double [ 1.000000e+00, %before.call ], [ 2.000000e+00, %before.call1 ]
  %1 = call nnan ninf double @f(ptr noundef %p, double noundef %0) #0
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.f
  br label %join

join:                                             ; preds = %else, %then
  %r = phi double [ %1, %then ], [ %1, %else ]
  ret double %r
}

define double @left(i1 %c, ptr %p) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %r1 = call double @f(ptr byval(i64) %p, double 1.000000e+00)
  br label %join

else:                                             ; preds = %entry
  %r2 = call double @f(ptr %p, double 2.000000e+00)
  br label %join

join:                                             ; preds = %else, %then
  %r = phi double [ %r1, %then ], [ %r2, %else ]
  ret double %r
}

define double @fast(i1 %c, ptr %p) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.f

then:                                             ; preds = %fused.f
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.f

fused.f:                                          ; preds = %before.call1, %before.call
  %0 = phi double [ 1.000000e+00, %before.call ], [ 2.000000e+00, %before.call1 ]
  %1 = call double @f(ptr %p, double %0) #1
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.f
  br label %join

join:                                             ; preds = %else, %then
  %r = phi double [ %1, %then ], [ %1, %else ]
  ret double %r
}

attributes #0 = { noduplicate nounwind }
attributes #1 = { noduplicate }
