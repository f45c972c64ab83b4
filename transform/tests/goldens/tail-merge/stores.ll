; Two stores that end both arms are done once; what differs before them stays, and results are joined.
declare void @note(i32)

define i32 @ends(i1 %c, i32 %x, ptr %p, ptr %q) {
entry:
  br i1 %c, label %then, label %else
then:
  %a = mul i32 %x, 3
  call void @note(i32 1)
  %s = add i32 %x, 7
  store i32 %s, ptr %p
  store i32 1, ptr %q
  br label %join
else:
  %b = sub i32 %x, 3
  %t = add i32 %x, 7
  store i32 %t, ptr %p
  store i32 1, ptr %q
  br label %join
join:
  %v = phi i32 [ %a, %then ], [ %b, %else ]
  %w = phi i32 [ %s, %then ], [ %t, %else ]
  %r = add i32 %v, %w
  ret i32 %r
}
