; meld taken: f: subgraphs at ? and ?: blocks, score 50%: 4 pairs, 5 selects, 0 branches; lanes that part need about 436 instructions, melded 269, on a GPU; 157 cycles are saved; 1 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 38 are lost, 14 more for each iteration of a loop
; meld left: f: subgraphs at ? and ?: lanes leave a part of an arm early, to a block that other code leads to as well

define i32 @f(i32 %a, i32 %b) {
entry:
  %c = icmp slt i32 %a, %b
  br i1 %c, label %0, label %3

0:                                                ; preds = %entry, %tx
  %1 = phi i32 [ 0, %entry ], [ %i2, %tx ]
  %2 = phi i32 [ %a, %entry ], [ %s4, %tx ]
  br label %left

tx:                                               ; preds = %left
  %s4 = add i32 %s3, %.0
  %i2 = add i32 %.0, 1
  %k = icmp ult i32 %i2, 5
  br i1 %k, label %0, label %join

3:                                                ; preds = %entry
  br label %left

left:                                             ; preds = %0, %3
  %.0 = phi i32 [ %1, %0 ], [ undef, %3 ]
  %4 = phi i32 [ %2, %0 ], [ %b, %3 ]
  %5 = phi i32 [ 77, %0 ], [ 99, %3 ]
  %6 = phi i32 [ %1, %0 ], [ %a, %3 ]
  %7 = phi i32 [ 3, %0 ], [ 5, %3 ]
  %8 = phi i32 [ %b, %0 ], [ %a, %3 ]
  %s1 = mul i32 %4, %5
  %d1 = or i32 %6, %7
  %s2 = udiv i32 %s1, %d1
  %s3 = xor i32 %s2, %8
  br i1 %c, label %tx, label %apart1

apart1:                                           ; preds = %left
  br label %join

join:                                             ; preds = %apart1, %tx
  %9 = phi i32 [ %s4, %tx ], [ %s3, %apart1 ]
  ret i32 %9
}
