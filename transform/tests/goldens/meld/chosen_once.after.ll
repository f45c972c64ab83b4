; meld taken: f: subgraphs at ? and ?: regions, score 50%: 6 pairs, 1 selects, 0 branches; lanes that part need about 61 instructions, melded 30, on a GPU; 3 accesses go to two places, as many transactions as before; 27 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 7 are lost, 0 more for each iteration of a loop
; meld taken: f: subgraphs at ? and ?: blocks, score 50%: 3 pairs, 0 selects, 0 branches; lanes that part need about 6 instructions, melded 3, on a GPU; 2 accesses go to two places, as many transactions as before; 7 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 2 are lost, 0 more for each iteration of a loop

define void @f(i1 %c, ptr %p, ptr %q, i32 %n) {
entry:
  %0 = select i1 %c, ptr %p, ptr %q
  br label %melded

melded:                                           ; preds = %entry
  %a0 = load i32, ptr %0, align 4
  %a1 = mul i32 %a0, %n
  store i32 %a1, ptr %0, align 4
  %at = icmp sgt i32 %a1, 7
  br i1 %at, label %melded2, label %left

melded2:                                          ; preds = %melded
  %a2 = udiv i32 %a1, %n
  store i32 %a2, ptr %0, align 4
  br label %left

left:                                             ; preds = %melded2, %melded
  br label %join

join:                                             ; preds = %left
  %a3 = load i32, ptr %0, align 4
  %a4 = xor i32 %a3, 99
  store i32 %a4, ptr %0, align 4
  ret void
}
