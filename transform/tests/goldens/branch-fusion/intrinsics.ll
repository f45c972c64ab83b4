; Intrinsics are paired as instructions are, except for arguments that must be constants and for markers of a variable's life, which stay with their side.
declare double @llvm.fmuladd.f64(double, double, double)
declare double @llvm.fabs.f64(double)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.abs.i32(i32, i1 immarg)
declare double @llvm.pow.f64(double, double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr)
define double @polynomial(i1 %c, double %a, double %b) {
entry:
  br i1 %c, label %then, label %else
then:
  %x1 = fdiv double %a, %b
  %x2 = call double @llvm.fmuladd.f64(double %x1, double %x1, double %a)
  %x3 = call double @llvm.fmuladd.f64(double %x2, double %x1, double %a)
  %x4 = call double @llvm.fabs.f64(double %x3)
  %x5 = call double @llvm.pow.f64(double %x4, double %a)
  br label %join
else:
  %y1 = fdiv double %b, %a
  %y2 = call double @llvm.fmuladd.f64(double %y1, double %y1, double %a)
  %y3 = call double @llvm.fmuladd.f64(double %y2, double %y1, double %a)
  %y4 = call double @llvm.fabs.f64(double %y3)
  %y5 = call double @llvm.pow.f64(double %y4, double %b)
  br label %join
join:
  %r = phi double [ %x5, %then ], [ %y5, %else ]
  ret double %r
}
define void @copies(i1 %c, ptr %p, ptr %q, i32 %a, i32 %b) {
entry:
  %v = alloca [64 x i8]
  %w = alloca [64 x i8]
  br i1 %c, label %then, label %else
then:
  call void @llvm.lifetime.start.p0(i64 64, ptr %v)
  call void @llvm.memcpy.p0.p0.i64(ptr %v, ptr %p, i64 64, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %q, ptr %v, i64 64, i1 false)
  call void @llvm.lifetime.end.p0(i64 64, ptr %v)
  %m = call i32 @llvm.smax.i32(i32 %a, i32 7)
  %n = call i32 @llvm.abs.i32(i32 %m, i1 true)
  br label %join
else:
  call void @llvm.lifetime.start.p0(i64 64, ptr %w)
  call void @llvm.memcpy.p0.p0.i64(ptr %w, ptr %q, i64 64, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %w, i64 64, i1 false)
  call void @llvm.lifetime.end.p0(i64 64, ptr %w)
  %m2 = call i32 @llvm.smax.i32(i32 %b, i32 7)
  %n2 = call i32 @llvm.abs.i32(i32 %m2, i1 false)
  br label %join
join:
  %r = phi i32 [ %n, %then ], [ %n2, %else ]
  store i32 %r, ptr %p
  ret void
}
