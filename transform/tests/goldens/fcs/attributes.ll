; Attributes and metadata are intersected; so are promises about floating point; calls that pass values in different ways are left.
declare double @f(ptr, double)

define double @joined(i1 %c, ptr %p) {
entry:
  br i1 %c, label %then, label %else
then:
  %r1 = tail call nnan ninf double @f(ptr nonnull noundef align 8 %p, double noundef 1.0) nounwind willreturn, !annotation !0
  br label %join
else:
  %r2 = call nnan ninf double @f(ptr noundef align 4 %p, double noundef 2.0) nounwind, !annotation !1
  br label %join
join:
  %r = phi double [ %r1, %then ], [ %r2, %else ]
  ret double %r
}

define double @left(i1 %c, ptr %p) {
entry:
  br i1 %c, label %then, label %else
then:
  %r1 = call double @f(ptr byval(i64) %p, double 1.0)
  br label %join
else:
  %r2 = call double @f(ptr %p, double 2.0)
  br label %join
join:
  %r = phi double [ %r1, %then ], [ %r2, %else ]
  ret double %r
}

define double @fast(i1 %c, ptr %p) {
entry:
  br i1 %c, label %then, label %else
then:
  %r1 = call nnan double @f(ptr %p, double 1.0)
  br label %join
else:
  %r2 = call ninf double @f(ptr %p, double 2.0)
  br label %join
join:
  %r = phi double [ %r1, %then ], [ %r2, %else ]
  ret double %r
}

!0 = !{!"first"}
!1 = !{!"second"}
