; meld taken: steered: subgraphs at ? and ?: block-with-region, score 48%: 6 pairs, 1 selects, 0 branches; lanes that part need about 24 instructions, melded 16, on a GPU; 2 accesses go to two places, as many transactions as before; 18 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 14 are lost, 0 more for each iteration of a loop

define void @steered(ptr %in, ptr %out, i32 %x, i1 %c) {
entry:
  %0 = select i1 %c, ptr %in, ptr %out
  br label %melded

melded:                                           ; preds = %entry
  %hit = icmp sgt i32 %x, 9
  %1 = select i1 %c, i1 %hit, i1 true
  br i1 %1, label %melded2, label %join

melded2:                                          ; preds = %melded
  %a = load i32, ptr %0, align 4
  %a1 = mul i32 %a, %x
  %a2 = mul i32 %a1, %a1
  %a3 = xor i32 %a2, %x
  %a4 = mul i32 %a3, %a2
  store i32 %a4, ptr %0, align 4
  br label %join

join:                                             ; preds = %melded, %melded2
  ret void
}
