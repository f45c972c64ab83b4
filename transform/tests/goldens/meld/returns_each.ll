; Arms that return each by itself: what both do before that is melded, and each returns as it did.
define i32 @returns(ptr %in, ptr %out, i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a = load i32, ptr %in, align 4
  %a1 = mul i32 %a, %x
  %a2 = sdiv i32 %a1, %a
  store i32 %a2, ptr %in, align 4
  ret i32 %a1

else:
  %b = load i32, ptr %out, align 4
  %b1 = mul i32 %b, %x
  %b2 = sdiv i32 %b1, %b
  store i32 %b2, ptr %out, align 4
  %r = musttail call i32 @returns(ptr %in, ptr %out, i32 %b1, i1 %c)
  ret i32 %r
}
