; meld taken: f: subgraphs at ? and ?: regions, score 50%: 10 pairs, 3 selects, 0 branches; lanes that part need about 80 instructions, melded 57, on a GPU; 35 cycles are saved; 0 blocks in loops, 1 phis at the exit, 1 values carried; where lanes agree at most 31 are lost, 0 more for each iteration of a loop

; Function Attrs: willreturn
declare i32 @only(i32) #0

define i32 @f(i32 %a, i32 %b) {
entry:
  %c = icmp sgt i32 %a, %b
  br i1 %c, label %t, label %2

t:                                                ; preds = %entry
  %t1 = call i32 @only(i32 %a)
  %tz = icmp eq i32 %t1, 0
  br i1 %tz, label %0, label %t2

t2:                                               ; preds = %t
  %tq = udiv i32 %a, %t1
  br label %0

0:                                                ; preds = %t, %t2
  %1 = phi i32 [ %b, %t ], [ %tq, %t2 ]
  br label %melded

tm:                                               ; preds = %left
  br label %join

2:                                                ; preds = %entry
  br label %melded

melded:                                           ; preds = %0, %2
  %.0 = phi i32 [ %1, %0 ], [ undef, %2 ]
  %3 = phi i32 [ %1, %0 ], [ %b, %2 ]
  %4 = phi i32 [ %t1, %0 ], [ %a, %2 ]
  %tw = icmp ult i32 %3, 9
  br i1 %tw, label %melded2, label %left

melded2:                                          ; preds = %melded
  %tn0 = or i32 %3, 1
  %tn1 = udiv i32 %4, %tn0
  %tx0 = mul i32 %tn1, 7
  %tx1 = udiv i32 %tx0, 8
  %tx2 = mul i32 %tx1, 9
  %tx3 = udiv i32 %tx2, 10
  %tx4 = mul i32 %tx3, 11
  %tx5 = udiv i32 %tx4, 12
  %tn2 = mul i32 %tx5, %tn1
  br label %left

left:                                             ; preds = %melded2, %melded
  %5 = phi i32 [ %a, %melded ], [ %tn2, %melded2 ]
  %6 = phi i32 [ %.0, %melded ], [ %tn2, %melded2 ]
  br i1 %c, label %tm, label %em

em:                                               ; preds = %left
  br label %join

join:                                             ; preds = %em, %tm
  %r = phi i32 [ %6, %tm ], [ %5, %em ]
  ret i32 %r
}

attributes #0 = { willreturn }
