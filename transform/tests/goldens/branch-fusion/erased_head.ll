; The arm of one diamond is the head of another, which was fused before: it goes with its diamond.
define i32 @f(i1 %c, i1 %d, i32 %a, i32 %b) {
entry:
  br label %outer
inner:
  br i1 %d, label %x, label %y
x:
  %x1 = sdiv i32 %a, 3
  br label %join
y:
  %y1 = sdiv i32 %b, 3
  br label %join
outer:
  br i1 %c, label %inner, label %other
other:
  %o1 = sdiv i32 %a, 5
  %o2 = add i32 %o1, %b
  %o3 = sdiv i32 %o2, 5
  br label %join
join:
  %r = phi i32 [ %x1, %x ], [ %y1, %y ], [ %o3, %other ]
  ret i32 %r
}
