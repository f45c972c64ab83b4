; meld taken: carried: subgraphs at ? and ?: regions, score 50%: 6 pairs, 1 selects, 0 branches; lanes that part need about 186 instructions, melded 105, on a GPU; 2 accesses go to two places, as many transactions as before; 116 cycles are saved; 1 blocks in loops, 1 phis at the exit, 1 values carried; where lanes agree at most 15 are lost, 0 more for each iteration of a loop

define i32 @carried(ptr %in, ptr %out, i32 %x, i64 %n, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %early = mul i32 %x, %x
  br label %0

0:                                                ; preds = %then
  br label %meet

after:                                            ; preds = %left
  %late = sub i32 %.0, %w
  br label %join

else:                                             ; preds = %entry
  br label %1

1:                                                ; preds = %else
  br label %meet

meet:                                             ; preds = %1, %0
  %.0 = phi i32 [ %early, %0 ], [ undef, %1 ]
  %2 = phi ptr [ %in, %0 ], [ %out, %1 ]
  br label %melded

melded:                                           ; preds = %meet, %melded
  %3 = phi i64 [ %i.next, %melded ], [ 0, %meet ]
  %p = getelementptr inbounds i32, ptr %2, i64 %3
  %v = load i32, ptr %p, align 4
  %w = mul i32 %v, 3
  store i32 %w, ptr %p, align 4
  %i.next = add i64 %3, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %left, label %melded

left:                                             ; preds = %melded
  br i1 %c, label %after, label %apart1

apart1:                                           ; preds = %left
  br label %join

join:                                             ; preds = %apart1, %after
  %4 = phi i32 [ %late, %after ], [ %w, %apart1 ]
  ret i32 %4
}
