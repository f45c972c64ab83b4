; meld taken: f: subgraphs at ? and ?: blocks, score 36%: 3 pairs, 1 selects, 0 branches; lanes that part need about 8 instructions, melded 7; 2 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 10 are lost, 0 more for each iteration of a loop

define i32 @f(i1 %c, i32 %x, i32 %y) {
entry:
  br label %join

join:                                             ; preds = %entry
  %a0 = mul i32 %x, %y
  %a1 = xor i32 %a0, %y
  %a2 = ashr i32 %a1, 3
  %a3 = sub i32 %a2, 7
  %b3 = mul i32 %a2, 7
  %0 = select i1 %c, i32 %a3, i32 %b3
  ret i32 %0
}
