; speculative taken: work: inner at ?: here all that can come go on together; 1 more places to stop at, 1 ways out
target triple = "nvptx64-nvidia-cuda"

define void @work(i32 %n, ptr %trips, ptr %out) {
entry1:
  br label %join

join:                                             ; preds = %entry1
  %0 = call i32 @llvm.nvvm.activemask()
  br label %turn

entry:                                            ; preds = %stops
  br label %outer.next

outer:                                            ; preds = %stops
  %at = getelementptr i32, ptr %trips, i32 %.08
  %count = load i32, ptr %at, align 4
  %some = icmp sgt i32 %count, 0
  br i1 %some, label %first.preheader, label %epilog

first.preheader:                                  ; preds = %outer
  br label %before

before:                                           ; preds = %first, %first.preheader
  %.04 = phi i32 [ %.4, %first ], [ %.26, %first.preheader ]
  %.03 = phi i32 [ %.2, %first ], [ %count, %first.preheader ]
  %j = phi i32 [ %j.next, %first ], [ 0, %first.preheader ]
  %s = phi i32 [ %s2, %first ], [ %.09, %first.preheader ]
  br label %first.next

first:                                            ; preds = %place
  %m = mul i32 %.0, %.02
  %s2 = add i32 %m, %.2
  %j.next = add i32 %.02, 1
  %more = icmp slt i32 %j.next, %.2
  br i1 %more, label %before, label %epilog.loopexit

epilog.loopexit:                                  ; preds = %first
  %s2.lcssa = phi i32 [ %s2, %first ]
  br label %epilog

epilog:                                           ; preds = %epilog.loopexit, %outer
  %.15 = phi i32 [ %.4, %epilog.loopexit ], [ %.26, %outer ]
  %.1 = phi i32 [ %.2, %epilog.loopexit ], [ %count, %outer ]
  %acc2 = phi i32 [ %.09, %outer ], [ %s2.lcssa, %epilog.loopexit ]
  %i.next = add i32 %.08, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer.next, label %exit.next

exit:                                             ; preds = %behind
  store i32 %.010, ptr %out, align 4
  ret void

turn:                                             ; preds = %exit.next, %first.next, %outer.next, %stops, %place, %join
  %.010 = phi i32 [ undef, %join ], [ %.010, %first.next ], [ %.010, %outer.next ], [ %6, %exit.next ], [ %.010, %place ], [ %.010, %stops ]
  %.09 = phi i32 [ undef, %join ], [ %.09, %first.next ], [ %5, %outer.next ], [ %.09, %exit.next ], [ %.09, %place ], [ %.09, %stops ]
  %.08 = phi i32 [ undef, %join ], [ %.08, %first.next ], [ %4, %outer.next ], [ %.08, %exit.next ], [ %.08, %place ], [ %.08, %stops ]
  %.26 = phi i32 [ %0, %join ], [ %.04, %first.next ], [ %.37, %outer.next ], [ %.15, %exit.next ], [ %.4, %place ], [ %.26, %stops ]
  %.2 = phi i32 [ undef, %join ], [ %.03, %first.next ], [ %.3, %outer.next ], [ %.1, %exit.next ], [ %.2, %place ], [ %.2, %stops ]
  %.02 = phi i32 [ undef, %join ], [ %j, %first.next ], [ %.02, %outer.next ], [ %.02, %exit.next ], [ %.02, %place ], [ %.02, %stops ]
  %.0 = phi i32 [ undef, %join ], [ %s, %first.next ], [ %.0, %outer.next ], [ %.0, %exit.next ], [ %.0, %place ], [ %.0, %stops ]
  %stands = phi i32 [ 0, %join ], [ 1, %outer.next ], [ 2, %first.next ], [ 3, %exit.next ], [ %stands, %stops ], [ %stands, %place ]
  %1 = icmp eq i32 %stands, 2
  %2 = call i32 @llvm.nvvm.vote.ballot.sync(i32 %0, i1 %1)
  %3 = icmp eq i32 %2, %.26
  br i1 %3, label %place, label %few

outer.next:                                       ; preds = %epilog, %entry
  %.37 = phi i32 [ %.15, %epilog ], [ %.26, %entry ]
  %.3 = phi i32 [ %.1, %epilog ], [ %.2, %entry ]
  %4 = phi i32 [ 0, %entry ], [ %i.next, %epilog ]
  %5 = phi i32 [ 0, %entry ], [ %acc2, %epilog ]
  br label %turn

first.next:                                       ; preds = %before
  br label %turn

exit.next:                                        ; preds = %epilog
  %6 = phi i32 [ %acc2, %epilog ]
  br label %turn

stops:                                            ; preds = %few
  switch i32 %stands, label %turn [
    i32 0, label %entry
    i32 1, label %outer
  ]

place:                                            ; preds = %ask, %turn
  %.4 = phi i32 [ %.26, %turn ], [ %2, %ask ]
  %7 = icmp eq i32 %stands, 2
  br i1 %7, label %first, label %turn

behind:                                           ; preds = %ask
  br label %exit

few:                                              ; preds = %turn
  %8 = icmp ult i32 %stands, 2
  %9 = call i1 @llvm.nvvm.vote.any.sync(i32 %0, i1 %8)
  br i1 %9, label %stops, label %ask

ask:                                              ; preds = %few
  %10 = icmp ne i32 %2, 0
  br i1 %10, label %place, label %behind
}

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.activemask() #0

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) #0

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1) #0

attributes #0 = { convergent nocallback nounwind memory(inaccessiblemem: readwrite) }
