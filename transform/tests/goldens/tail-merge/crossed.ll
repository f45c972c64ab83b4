; Two values that both arms make go to two phis crosswise: no phi has both halves of a pair, so nothing is merged.
define i32 @f(i1 %c, i32 %p, i32 %q) {
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
  %r = phi i32 [ %x, %then ], [ %y2, %else ]
  %s = phi i32 [ %y, %then ], [ %x2, %else ]
  %t = sub i32 %r, %s
  ret i32 %t
}
