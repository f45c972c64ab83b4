; What both sides make of the same values is made once by code generation: it counts for nothing in what melding saves.
define i32 @f(i1 %c, i32 %x, i32 %y) {
entry:
  br i1 %c, label %then, label %else

then:
  %a0 = mul i32 %x, %y
  %a1 = xor i32 %a0, %y
  %a2 = ashr i32 %a1, 3
  %a3 = sub i32 %a2, 7
  br label %join

else:
  %b0 = mul i32 %x, %y
  %b1 = xor i32 %b0, %y
  %b2 = ashr i32 %b1, 3
  %b3 = mul i32 %b2, 7
  br label %join

join:
  %r = phi i32 [ %a3, %then ], [ %b3, %else ]
  ret i32 %r
}
