; meld taken: sum: subgraphs at ? and ?: regions, score 50%: 5 pairs, 2 selects, 0 branches; lanes that part need about 146 instructions, melded 74, on a GPU; 1 accesses go to two places, as many transactions as before; 91 cycles are saved; 1 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 16 are lost, 0 more for each iteration of a loop

define i32 @sum(ptr %in, ptr %other, i64 %n, i64 %m, i1 %c) {
entry:
  %0 = select i1 %c, ptr %in, ptr %other
  %1 = select i1 %c, i64 %n, i64 %m
  %2 = select i1 %c, i32 1, i32 2
  br label %meet

meet:                                             ; preds = %entry
  br label %melded

melded:                                           ; preds = %meet, %melded
  %3 = phi i64 [ %i.next, %melded ], [ 0, %meet ]
  %4 = phi i32 [ %s.next, %melded ], [ %2, %meet ]
  %p = getelementptr i32, ptr %0, i64 %3
  %v = load i32, ptr %p, align 4
  %s.next = add i32 %4, %v
  %i.next = add nuw nsw i64 %3, 1
  %done = icmp eq i64 %i.next, %1
  br i1 %done, label %join, label %melded

join:                                             ; preds = %melded
  ret i32 %s.next
}
