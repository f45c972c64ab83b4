; Calls of one function pointer are fused, calls of two are not.
define i32 @same(i1 %c, ptr %f) {
entry:
  br i1 %c, label %then, label %else
then:
  %r1 = call i32 %f(i32 1)
  br label %join
else:
  %r2 = call i32 %f(i32 2)
  br label %join
join:
  %r = phi i32 [ %r1, %then ], [ %r2, %else ]
  ret i32 %r
}

define i32 @two(i1 %c, ptr %f, ptr %g) {
entry:
  br i1 %c, label %then, label %else
then:
  %r1 = call i32 %f(i32 1)
  br label %join
else:
  %r2 = call i32 %g(i32 2)
  br label %join
join:
  %r = phi i32 [ %r1, %then ], [ %r2, %else ]
  ret i32 %r
}
