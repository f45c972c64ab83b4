; What has no partner runs under a branch of its own between the pairs.
define i32 @rest(i1 %c, i32 %a, i32 %b, ptr %p) {
entry:
  br i1 %c, label %then, label %else
then:
  %x1 = sdiv i32 %a, 7
  %only1 = xor i32 %x1, 5
  store i32 %only1, ptr %p
  %y1 = srem i32 %x1, 11
  br label %join
else:
  %x2 = sdiv i32 %b, 7
  %y2 = srem i32 %x2, 11
  br label %join
join:
  %r = phi i32 [ %y1, %then ], [ %y2, %else ]
  ret i32 %r
}
