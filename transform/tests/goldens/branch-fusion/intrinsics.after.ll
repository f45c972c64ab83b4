; branch-fusion taken: polynomial: arms at ? and ?: 5 pairs; lanes that part need about 99 instructions, fused 52
; branch-fusion taken: copies: arms at ? and ?: 2 pairs; lanes that part need about 45 instructions, fused 35

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.fmuladd.f64(double, double, double) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.fabs.f64(double) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.abs.i32(i32, i1 immarg) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.pow.f64(double, double) #0

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #2

define double @polynomial(i1 %c, double %a, double %b) {
entry:
  %0 = select i1 %c, double %a, double %b
  %1 = select i1 %c, double %b, double %a
  %x1 = fdiv double %0, %1
  %x2 = call double @llvm.fmuladd.f64(double %x1, double %x1, double %a)
  %x3 = call double @llvm.fmuladd.f64(double %x2, double %x1, double %a)
  %x4 = call double @llvm.fabs.f64(double %x3)
  %x5 = call double @llvm.pow.f64(double %x4, double %0)
  br label %join

join:                                             ; preds = %entry
  %2 = phi double [ %x5, %entry ]
  ret double %2
}

define void @copies(i1 %c, ptr %p, ptr %q, i32 %a, i32 %b) {
entry:
  %v = alloca [64 x i8], align 1
  %w = alloca [64 x i8], align 1
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %entry
  call void @llvm.lifetime.start.p0(i64 64, ptr %v)
  br label %next

only.else:                                        ; preds = %entry
  call void @llvm.lifetime.start.p0(i64 64, ptr %w)
  br label %next

next:                                             ; preds = %only.else, %only.then
  %0 = phi ptr [ %q, %only.then ], [ %p, %only.else ]
  %1 = phi ptr [ %p, %only.then ], [ %q, %only.else ]
  %2 = phi ptr [ %v, %only.then ], [ %w, %only.else ]
  call void @llvm.memcpy.p0.p0.i64(ptr %2, ptr %1, i64 64, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %0, ptr %2, i64 64, i1 false)
  br i1 %c, label %only.then2, label %only.else3

only.then2:                                       ; preds = %next
  call void @llvm.lifetime.end.p0(i64 64, ptr %v)
  %m = call i32 @llvm.smax.i32(i32 %a, i32 7)
  %n = call i32 @llvm.abs.i32(i32 %m, i1 true)
  br label %next1

only.else3:                                       ; preds = %next
  call void @llvm.lifetime.end.p0(i64 64, ptr %w)
  %m2 = call i32 @llvm.smax.i32(i32 %b, i32 7)
  %n2 = call i32 @llvm.abs.i32(i32 %m2, i1 false)
  br label %next1

next1:                                            ; preds = %only.else3, %only.then2
  %3 = phi i32 [ %n, %only.then2 ], [ %n2, %only.else3 ]
  br label %join

join:                                             ; preds = %next1
  %4 = phi i32 [ %3, %next1 ]
  store i32 %4, ptr %p, align 4
  ret void
}

attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #1 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
