; meld taken: last_block_shared: subgraphs at ? and ?: regions, score 50%: 5 pairs, 5 selects, 0 branches; lanes that part need about 22 instructions, melded 15, on a GPU; 2 accesses go to two places, as many transactions as before; 14 cycles are saved; 0 blocks in loops, 3 phis at the exit, 0 values carried; where lanes agree at most 28 are lost, 0 more for each iteration of a loop
; meld taken: returns_early: subgraphs at ? and ?: regions, score 50%: 5 pairs, 2 selects, 0 branches; lanes that part need about 71 instructions, melded 35, on a GPU; 2 accesses go to two places, as many transactions as before; 25 cycles are saved; 0 blocks in loops, 3 phis at the exit, 0 values carried; where lanes agree at most 13 are lost, 0 more for each iteration of a loop

define void @last_block_shared(ptr %p, ptr %q, i32 %k, i1 %c) {
entry:
  %0 = select i1 %c, ptr %p, ptr %q
  %1 = select i1 %c, ptr %q, ptr %p
  %2 = select i1 %c, i32 3, i32 5
  br label %melded

melded:                                           ; preds = %entry
  %a = load i32, ptr %0, align 4
  %b = load i32, ptr %1, align 4
  %a1 = mul i32 %a, %k
  %a2 = xor i32 %a1, %2
  %t = icmp sgt i32 %a2, %b
  br i1 %t, label %melded5, label %melded6

melded5:                                          ; preds = %melded
  br label %out

melded6:                                          ; preds = %melded
  br label %out

out:                                              ; preds = %melded5, %melded6
  %3 = phi i1 [ true, %melded5 ], [ false, %melded6 ]
  %4 = phi i32 [ %b, %melded5 ], [ poison, %melded6 ]
  %5 = phi i32 [ %a2, %melded5 ], [ poison, %melded6 ]
  %6 = select i1 %c, i32 %5, i32 %4
  %7 = select i1 %c, i32 %4, i32 %5
  br i1 %3, label %swap, label %join

swap:                                             ; preds = %out
  %8 = phi i32 [ %7, %out ]
  %9 = phi i32 [ %6, %out ]
  store i32 %8, ptr %p, align 4
  store i32 %9, ptr %q, align 4
  br label %join

join:                                             ; preds = %out, %swap
  ret void
}

define i32 @returns_early(ptr %p, ptr %q, i32 %k, i1 %c) {
entry:
  %0 = select i1 %c, ptr %p, ptr %q
  br label %melded

melded:                                           ; preds = %entry
  %a = load i32, ptr %0, align 4
  %a1 = mul i32 %a, %k
  %a2 = sdiv i32 %a1, %a
  store i32 %a2, ptr %0, align 4
  %t = icmp eq i32 %a2, 7
  br i1 %t, label %melded6, label %melded7

melded6:                                          ; preds = %melded
  br label %out4

melded7:                                          ; preds = %melded
  br label %out4

out4:                                             ; preds = %melded6, %melded7
  %1 = phi i32 [ %a1, %melded6 ], [ poison, %melded7 ]
  %2 = phi i1 [ true, %melded7 ], [ false, %melded6 ]
  %3 = phi i32 [ 0, %melded6 ], [ poison, %melded7 ]
  %4 = phi i32 [ %a2, %melded7 ], [ poison, %melded6 ]
  %5 = select i1 %c, i32 %3, i32 %1
  br i1 %2, label %more, label %out

more:                                             ; preds = %out4
  %6 = phi i32 [ %4, %out4 ]
  %m1 = mul i32 %6, %6
  store i32 %m1, ptr %p, align 4
  br label %out

out:                                              ; preds = %out4, %more
  %7 = phi i32 [ %6, %more ], [ %5, %out4 ]
  ret i32 %7
}

define i32 @little(ptr %p, ptr %q, i32 %k, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %a = mul i32 %k, 9
  store i32 %a, ptr %p, align 4
  %t = icmp eq i32 %a, 7
  br i1 %t, label %out, label %more

else:                                             ; preds = %entry
  %b = load i32, ptr %q, align 4
  %b1 = mul i32 %b, %k
  %u = icmp ugt i32 %b1, %b
  br i1 %u, label %more, label %out

more:                                             ; preds = %then, %else
  %0 = phi i32 [ %b1, %else ], [ %a, %then ]
  store i32 %0, ptr %p, align 4
  br label %out

out:                                              ; preds = %then, %else, %more
  %1 = phi i32 [ %0, %more ], [ %b1, %else ], [ 0, %then ]
  ret i32 %1
}
