; meld taken: nearly: subgraphs at ? and ?: nearly-alike, score 33%: 5 pairs, 2 selects, 1 branches; lanes that part need about 47 instructions, melded 44, on a GPU; 2 accesses go to two places, as many transactions as before; 13 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 16 are lost, 0 more for each iteration of a loop

define i32 @nearly(ptr %in, ptr %out, i32 %x, i1 %c) {
entry:
  %0 = select i1 %c, ptr %in, ptr %out
  br label %melded

melded:                                           ; preds = %entry
  %a = load i32, ptr %0, align 4
  %a1 = mul i32 %a, %x
  %hit = icmp sgt i32 %a1, 9
  br i1 %hit, label %melded2, label %melded3

melded2:                                          ; preds = %melded
  %a2 = mul i32 %a1, %a1
  store i32 %a2, ptr %0, align 4
  br label %join

melded3:                                          ; preds = %melded
  br i1 %c, label %only.then, label %next

only.then:                                        ; preds = %melded3
  %a3 = sdiv i32 %a1, %x
  br label %next

next:                                             ; preds = %melded3, %only.then
  %.0 = phi i32 [ %a3, %only.then ], [ undef, %melded3 ]
  br label %join

join:                                             ; preds = %melded2, %next
  %1 = phi i32 [ %a2, %melded2 ], [ %a1, %next ]
  %2 = phi i32 [ %a2, %melded2 ], [ %.0, %next ]
  %3 = select i1 %c, i32 %2, i32 %1
  ret i32 %3
}
