; meld left: f: subgraphs at ? and ?: no profit: blocks, score 36%: 3 pairs, 1 selects, 0 branches; lanes that part need about 8 instructions, melded 7, on a GPU; 2 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 10 are lost, 0 more for each iteration of a loop

define i32 @f(i1 %c, i32 %x, i32 %y) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %a0 = mul i32 %x, %y
  %a1 = xor i32 %a0, %y
  %a2 = ashr i32 %a1, 3
  %a3 = sub i32 %a2, 7
  br label %join

else:                                             ; preds = %entry
  %b0 = mul i32 %x, %y
  %b1 = xor i32 %b0, %y
  %b2 = ashr i32 %b1, 3
  %b3 = mul i32 %b2, 7
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %a3, %then ], [ %b3, %else ]
  ret i32 %r
}
