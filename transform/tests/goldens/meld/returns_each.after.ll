; meld taken: returns: subgraphs at ? and ?: blocks, score 50%: 4 pairs, 1 selects, 0 branches; lanes that part need about 62 instructions, melded 37, on a GPU; 2 accesses go to two places, as many transactions as before; 21 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 10 are lost, 0 more for each iteration of a loop
; meld left: returns: subgraphs at ? and ?: a part of an arm ends the function, or never ends, so it has no exit

define i32 @returns(ptr %in, ptr %out, i32 %x, i1 %c) {
entry:
  %0 = select i1 %c, ptr %in, ptr %out
  br label %left

then:                                             ; preds = %left
  ret i32 %a1

left:                                             ; preds = %entry
  %a = load i32, ptr %0, align 4
  %a1 = mul i32 %a, %x
  %a2 = sdiv i32 %a1, %a
  store i32 %a2, ptr %0, align 4
  br i1 %c, label %then, label %else

else:                                             ; preds = %left
  %r = musttail call i32 @returns(ptr %in, ptr %out, i32 %a1, i1 %c)
  ret i32 %r
}
