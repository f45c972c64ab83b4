; meld taken: apart: subgraphs at ? and ?: blocks, score 23%: 7 pairs, 1 selects, 3 branches; lanes that part need about 68 instructions, melded 64; 18 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 25 are lost, 0 more for each iteration of a loop

declare void @note(i32)

define i32 @apart(ptr %in, ptr %out, i32 %x, i32 %y, i1 %c) {
entry:
  %0 = select i1 %c, ptr %in, ptr %out
  br label %melded

melded:                                           ; preds = %entry
  %a = load i32, ptr %0, align 4
  %a1 = mul i32 %a, 77
  %a2 = xor i32 %a1, 12
  %a3 = udiv i32 %a2, 10
  br i1 %c, label %only.then, label %next

only.then:                                        ; preds = %melded
  %a4 = udiv i32 %x, %y
  br label %next

next:                                             ; preds = %melded, %only.then
  %.0 = phi i32 [ %a4, %only.then ], [ undef, %melded ]
  %a5 = mul i32 %a3, %a3
  br i1 %c, label %only.then3, label %only.else

only.then3:                                       ; preds = %next
  call void @note(i32 %.0)
  br label %next2

only.else:                                        ; preds = %next
  %far = getelementptr i32, ptr %in, i32 %a
  %v = load i32, ptr %far, align 4
  br label %next2

next2:                                            ; preds = %only.else, %only.then3
  %1 = phi i32 [ %.0, %only.then3 ], [ %v, %only.else ]
  %a6 = mul i32 %a5, %1
  store i32 %a6, ptr %out, align 4
  br i1 %c, label %join, label %only.else5

only.else5:                                       ; preds = %next2
  store i32 %a5, ptr %in, align 4
  br label %join

join:                                             ; preds = %next2, %only.else5
  ret i32 %a6
}
