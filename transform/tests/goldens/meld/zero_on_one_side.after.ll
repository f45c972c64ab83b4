; meld taken: f: subgraphs at ? and ?: block-with-region, score 42%: 6 pairs, 4 selects, 1 branches; lanes that part need about 1151 instructions, melded 1014, on a GPU; 345 cycles are saved; 2 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 45 are lost, 23 more for each iteration of a loop
; meld left: f: subgraphs at ? and ?: lanes leave a part of an arm early, to a block that other code leads to as well

define i32 @f(i32 %a, i32 %b) {
entry:
  %c = icmp eq i32 %a, 0
  br i1 %c, label %9, label %t

t:                                                ; preds = %entry
  br label %0

0:                                                ; preds = %t, %g
  %.0 = phi i32 [ %.2, %g ], [ undef, %t ]
  %1 = phi i32 [ 0, %t ], [ %i2, %g ]
  %2 = phi i32 [ %b, %t ], [ %8, %g ]
  br label %melded

melded:                                           ; preds = %9, %0
  %.05 = phi i32 [ undef, %9 ], [ %1, %0 ]
  %.04 = phi i32 [ undef, %9 ], [ %2, %0 ]
  %.1 = phi i32 [ undef, %9 ], [ %.0, %0 ]
  %3 = phi i32 [ 31, %9 ], [ 15, %0 ]
  %4 = phi i32 [ 7, %9 ], [ 3, %0 ]
  br i1 %c, label %next, label %only.else

only.else:                                        ; preds = %melded
  %q = urem i32 %.04, %a
  %z = icmp ugt i32 %q, 2
  br label %next

next:                                             ; preds = %melded, %only.else
  %.03 = phi i32 [ undef, %melded ], [ %q, %only.else ]
  %5 = phi i1 [ true, %melded ], [ %z, %only.else ]
  br i1 %5, label %melded2, label %left

melded2:                                          ; preds = %next
  %6 = select i1 %c, i32 %b, i32 %.03
  %w1 = mul i32 %6, %b
  %w0 = or i32 %b, 1
  %7 = select i1 %c, i32 %w0, i32 %a
  %w2 = udiv i32 %w1, %7
  %w5a = or i32 %w1, 1
  %w3 = udiv i32 %w2, %w5a
  %w4 = xor i32 %w3, %3
  %w5 = sdiv i32 %w4, %4
  br label %left

left:                                             ; preds = %melded2, %next
  %.2 = phi i32 [ %w5, %melded2 ], [ %.1, %next ]
  %8 = phi i32 [ %.04, %next ], [ %w5, %melded2 ]
  br i1 %c, label %apart, label %g

g:                                                ; preds = %left
  %i2 = add nuw nsw i32 %.05, 1
  %k = icmp ult i32 %i2, 4
  br i1 %k, label %0, label %join

9:                                                ; preds = %entry
  br label %melded

apart:                                            ; preds = %left
  br label %join

join:                                             ; preds = %apart, %g
  %10 = phi i32 [ %8, %g ], [ %.2, %apart ]
  ret i32 %10
}
