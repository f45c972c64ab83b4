; A phi takes the sum of one arm and the product of the other: what stands behind the pair that is torn can be merged, the pair itself cannot.
define i32 @torn(i1 %c, i32 %p, i32 %q, ptr %to) {
entry:
  br i1 %c, label %then, label %else
then:
  %x = add i32 %p, 1
  %y = mul i32 %q, 3
  store i32 1, ptr %to
  store i32 2, ptr %to
  br label %join
else:
  %x2 = add i32 %p, 1
  %y2 = mul i32 %q, 3
  store i32 1, ptr %to
  store i32 2, ptr %to
  br label %join
join:
  %r = phi i32 [ %x, %then ], [ %y2, %else ]
  ret i32 %r
}
define i32 @both(i1 %c, i32 %p, i32 %q) {
entry:
  br i1 %c, label %then, label %else
then:
  %x = add i32 %p, 1
  %y = mul i32 %q, 3
  br label %join
else:
  %x2 = add i32 %p, 1
  %y2 = mul i32 %q, 3
  br label %join
join:
  %r = phi i32 [ %x, %then ], [ %x2, %else ]
  %s = phi i32 [ %y2, %else ], [ %y, %then ]
  %t = sub i32 %r, %s
  ret i32 %t
}
