; fcs taken: power: llvm.pow.f64 at ? and ?: the callee costs about 40 instructions, the fusion 5; guarded by the branch's condition; lanes that stay together lose 5 each time
; fcs taken: copy: llvm.memcpy.p0.p0.i64 at ? and ?: the callee costs about 40 instructions, the fusion 5; guarded by the branch's condition; lanes that stay together lose 5 each time
; fcs left: volatile: llvm.memcpy.p0.p0.i64 at ? and ?: the calls differ in an argument that must be a constant

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.pow.f64(double, double) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.sqrt.f64(double) #0

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg) #1

define double @power(i1 %c, double %a, double %b) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.llvm.pow.f64

then:                                             ; preds = %fused.llvm.pow.f64
  %x2 = call fast double @llvm.sqrt.f64(double %2)
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.llvm.pow.f64

fused.llvm.pow.f64:                               ; preds = %before.call1, %before.call
  %0 = phi double [ %a, %before.call ], [ %b, %before.call1 ]
  %1 = phi double [ %b, %before.call ], [ 3.500000e+00, %before.call1 ]
  %2 = call fast double @llvm.pow.f64(double %0, double %1) #2
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.llvm.pow.f64
  %y2 = call fast double @llvm.sqrt.f64(double %2)
  br label %join

join:                                             ; preds = %else, %then
  %r = phi double [ %x2, %then ], [ %y2, %else ]
  ret double %r
}

define void @copy(i1 %c, ptr %a, ptr %b, i64 %n) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.llvm.memcpy.p0.p0.i64

then:                                             ; preds = %fused.llvm.memcpy.p0.p0.i64
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.llvm.memcpy.p0.p0.i64

fused.llvm.memcpy.p0.p0.i64:                      ; preds = %before.call1, %before.call
  %0 = phi ptr [ %a, %before.call ], [ %b, %before.call1 ]
  %1 = phi ptr [ %b, %before.call ], [ %a, %before.call1 ]
  call void @llvm.memcpy.p0.p0.i64(ptr %0, ptr %1, i64 %n, i1 false) #2
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.llvm.memcpy.p0.p0.i64
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

define void @volatile(i1 %c, ptr %a, ptr %b, i64 %n) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 true)
  br label %join

else:                                             ; preds = %entry
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 %n, i1 false)
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #1 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { noduplicate }
