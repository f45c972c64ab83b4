; Intrinsics that become calls of the library are fused as calls are: a power, and a copy of unknown length; those with an instruction are not looked at.
declare double @llvm.pow.f64(double, double)
declare double @llvm.sqrt.f64(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)
define double @power(i1 %c, double %a, double %b) {
entry:
  br i1 %c, label %then, label %else
then:
  %x1 = call fast double @llvm.pow.f64(double %a, double %b)
  %x2 = call fast double @llvm.sqrt.f64(double %x1)
  br label %join
else:
  %y1 = call fast double @llvm.pow.f64(double %b, double 3.5)
  %y2 = call fast double @llvm.sqrt.f64(double %y1)
  br label %join
join:
  %r = phi double [ %x2, %then ], [ %y2, %else ]
  ret double %r
}
define void @copy(i1 %c, ptr %a, ptr %b, i64 %n) {
entry:
  br i1 %c, label %then, label %else
then:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %a, ptr %b, i64 %n, i1 false)
  br label %join
else:
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 %n, i1 false)
  br label %join
join:
  ret void
}
define void @volatile(i1 %c, ptr %a, ptr %b, i64 %n) {
entry:
  br i1 %c, label %then, label %else
then:
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 true)
  br label %join
else:
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 %n, i1 false)
  br label %join
join:
  ret void
}
