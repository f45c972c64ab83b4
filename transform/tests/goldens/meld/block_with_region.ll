; A block melds with the conditional block of the other side: its lanes follow that side's branch by a constant.
define void @steered(ptr %in, ptr %out, i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %hit = icmp sgt i32 %x, 9
  br i1 %hit, label %deep, label %join

deep:
  %a = load i32, ptr %in, align 4
  %a1 = mul i32 %a, %x
  %a2 = mul i32 %a1, %a1
  %a3 = xor i32 %a2, %x
  %a4 = mul i32 %a3, %a2
  store i32 %a4, ptr %in, align 4
  br label %join

else:
  %b = load i32, ptr %out, align 4
  %b1 = mul i32 %b, %x
  %b2 = mul i32 %b1, %b1
  %b3 = xor i32 %b2, %x
  %b4 = mul i32 %b3, %b2
  store i32 %b4, ptr %out, align 4
  br label %join

join:
  ret void
}
