; Two pairs of subgraphs that choose the same addresses choose them once, before the first.
define void @f(i1 %c, ptr %p, ptr %q, i32 %n) {
entry:
  br i1 %c, label %then, label %else

then:
  %a0 = load i32, ptr %p
  %a1 = mul i32 %a0, %n
  store i32 %a1, ptr %p
  %at = icmp sgt i32 %a1, 7
  br i1 %at, label %then.more, label %then.end

then.more:
  %a2 = udiv i32 %a1, %n
  store i32 %a2, ptr %p
  br label %then.end

then.end:
  %a3 = load i32, ptr %p
  %a4 = xor i32 %a3, 99
  store i32 %a4, ptr %p
  br label %join

else:
  %b0 = load i32, ptr %q
  %b1 = mul i32 %b0, %n
  store i32 %b1, ptr %q
  %bt = icmp sgt i32 %b1, 7
  br i1 %bt, label %else.more, label %else.end

else.more:
  %b2 = udiv i32 %b1, %n
  store i32 %b2, ptr %q
  br label %else.end

else.end:
  %b3 = load i32, ptr %q
  %b4 = xor i32 %b3, 99
  store i32 %b4, ptr %q
  br label %join

join:
  ret void
}
