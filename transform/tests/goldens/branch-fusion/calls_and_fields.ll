; Arms with calls are left; fields of a structure are constants, which no select may choose.
declare i32 @f(i32)

define i32 @calls(i1 %c, i32 %a) {
entry:
  br i1 %c, label %then, label %else
then:
  %x1 = sdiv i32 %a, 7
  %y1 = call i32 @f(i32 %x1)
  br label %join
else:
  %x2 = sdiv i32 %a, 9
  %y2 = call i32 @f(i32 %x2)
  br label %join
join:
  %r = phi i32 [ %y1, %then ], [ %y2, %else ]
  ret i32 %r
}

define i32 @fields(i1 %c, ptr %p) {
entry:
  br i1 %c, label %then, label %else
then:
  %p1 = getelementptr { i32, i32, i32 }, ptr %p, i64 0, i32 1
  %v1 = load i32, ptr %p1
  %r1 = udiv i32 %v1, 10
  br label %join
else:
  %p2 = getelementptr { i32, i32, i32 }, ptr %p, i64 0, i32 2
  %v2 = load i32, ptr %p2
  %r2 = udiv i32 %v2, 10
  br label %join
join:
  %r = phi i32 [ %r1, %then ], [ %r2, %else ]
  ret i32 %r
}
