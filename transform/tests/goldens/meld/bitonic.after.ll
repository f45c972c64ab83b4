; meld taken: swap: subgraphs at ? and ?: regions, score 50%: 5 pairs, 2 selects, 0 branches; lanes that part need about 18 instructions, melded 10, on a GPU; 15 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 11 are lost, 0 more for each iteration of a loop

define void @swap(ptr %at, ptr %with, i1 %up) {
entry:
  br label %melded

melded:                                           ; preds = %entry
  %a = load i32, ptr %at, align 4
  %b = load i32, ptr %with, align 4
  %0 = select i1 %up, i32 %a, i32 %b
  %1 = select i1 %up, i32 %b, i32 %a
  %less = icmp slt i32 %0, %1
  br i1 %less, label %melded2, label %join

melded2:                                          ; preds = %melded
  store i32 %b, ptr %at, align 4
  store i32 %a, ptr %with, align 4
  br label %join

join:                                             ; preds = %melded, %melded2
  ret void
}
