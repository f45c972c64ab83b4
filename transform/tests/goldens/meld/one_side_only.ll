; What may trap or has effects (a division, a load, a store, a call) runs for its own side's lanes only.
declare void @note(i32) willreturn

define i32 @apart(ptr %in, ptr %out, i32 %x, i32 %y, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a = load i32, ptr %in, align 4
  %a1 = mul i32 %a, 77
  %a2 = xor i32 %a1, 12
  %a3 = udiv i32 %a2, 10
  %a33 = udiv i32 %a3, 7
  %a4 = udiv i32 %x, %y
  %a5 = mul i32 %a33, %a3
  call void @note(i32 %a4)
  %a6 = mul i32 %a5, %a4
  store i32 %a6, ptr %out, align 4
  br label %join

else:
  %b = load i32, ptr %out, align 4
  %b1 = mul i32 %b, 77
  %b2 = xor i32 %b1, 12
  %b3 = udiv i32 %b2, 10
  %b33 = udiv i32 %b3, 7
  %b5 = mul i32 %b33, %b3
  %far = getelementptr i32, ptr %in, i32 %b
  %v = load i32, ptr %far, align 4
  %b6 = mul i32 %b5, %v
  store i32 %b6, ptr %out, align 4
  store i32 %b5, ptr %in, align 4
  br label %join

join:
  %r = phi i32 [ %a6, %then ], [ %b6, %else ]
  ret i32 %r
}
