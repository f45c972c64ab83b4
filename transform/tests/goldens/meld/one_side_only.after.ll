; meld taken: apart: subgraphs at ? and ?: blocks, score 26%: 5 pairs, 2 selects, 1 branches; lanes that part need about 98 instructions, melded 91, on a GPU; 1 accesses go to two places, as many transactions as before; 20 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 19 are lost, 0 more for each iteration of a loop

; Function Attrs: willreturn
declare void @note(i32) #0

define i32 @apart(ptr %in, ptr %out, i32 %x, i32 %y, i1 %c) {
entry:
  %0 = select i1 %c, ptr %in, ptr %out
  br label %melded

melded:                                           ; preds = %entry
  %a = load i32, ptr %0, align 4
  %a1 = mul i32 %a, 77
  %a2 = xor i32 %a1, 12
  %a3 = udiv i32 %a2, 10
  %a33 = udiv i32 %a3, 7
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %melded
  %a4 = udiv i32 %x, %y
  %a5 = mul i32 %a33, %a3
  call void @note(i32 %a4)
  %a6 = mul i32 %a5, %a4
  store i32 %a6, ptr %out, align 4
  br label %join

only.else:                                        ; preds = %melded
  %b5 = mul i32 %a33, %a3
  %far = getelementptr i32, ptr %in, i32 %a
  %v = load i32, ptr %far, align 4
  %b6 = mul i32 %b5, %v
  store i32 %b6, ptr %out, align 4
  store i32 %b5, ptr %in, align 4
  br label %join

join:                                             ; preds = %only.else, %only.then
  %.02 = phi i32 [ %a6, %only.then ], [ undef, %only.else ]
  %.0 = phi i32 [ undef, %only.then ], [ %b6, %only.else ]
  %1 = select i1 %c, i32 %.02, i32 %.0
  ret i32 %1
}

attributes #0 = { willreturn }
