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
  %at = getelementptr i32, ptr %trips, i32 %.04
  %count = load i32, ptr %at, align 4
  %some = icmp sgt i32 %count, 0
  br i1 %some, label %first.preheader, label %epilog

first.preheader:                                  ; preds = %outer
  br label %before

before:                                           ; preds = %first, %first.preheader
  %.03 = phi i32 [ %count, %first.preheader ], [ %.2, %first ]
  %j = phi i32 [ %j.next, %first ], [ 0, %first.preheader ]
  %s = phi i32 [ %s2, %first ], [ %.05, %first.preheader ]
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
  %.1 = phi i32 [ %count, %outer ], [ %.2, %epilog.loopexit ]
  %acc2 = phi i32 [ %.05, %outer ], [ %s2.lcssa, %epilog.loopexit ]
  %i.next = add i32 %.04, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer.next, label %exit.next

exit:                                             ; preds = %behind
  store i32 %.06, ptr %out, align 4
  ret void

turn:                                             ; preds = %exit.next, %first.next, %outer.next, %stops, %place, %join
  %.06 = phi i32 [ undef, %join ], [ %.06, %stops ], [ %.06, %first.next ], [ %.06, %outer.next ], [ %5, %exit.next ], [ %.06, %place ]
  %.05 = phi i32 [ undef, %join ], [ %.05, %stops ], [ %.05, %first.next ], [ %4, %outer.next ], [ %.05, %exit.next ], [ %.05, %place ]
  %.04 = phi i32 [ undef, %join ], [ %.04, %stops ], [ %.04, %first.next ], [ %3, %outer.next ], [ %.04, %exit.next ], [ %.04, %place ]
  %.2 = phi i32 [ undef, %join ], [ %.2, %stops ], [ %.03, %first.next ], [ %.3, %outer.next ], [ %.1, %exit.next ], [ %.2, %place ]
  %.02 = phi i32 [ undef, %join ], [ %.02, %stops ], [ %j, %first.next ], [ %.02, %outer.next ], [ %.02, %exit.next ], [ %.02, %place ]
  %.0 = phi i32 [ undef, %join ], [ %.0, %stops ], [ %s, %first.next ], [ %.0, %outer.next ], [ %.0, %exit.next ], [ %.0, %place ]
  %stands = phi i32 [ 0, %join ], [ 1, %outer.next ], [ 2, %first.next ], [ 3, %exit.next ], [ %stands, %stops ], [ %stands, %place ]
  %1 = icmp ult i32 %stands, 2
  %2 = call i1 @llvm.nvvm.vote.any.sync(i32 %0, i1 %1)
  br i1 %2, label %stops, label %ask

outer.next:                                       ; preds = %epilog, %entry
  %.3 = phi i32 [ %.1, %epilog ], [ %.2, %entry ]
  %3 = phi i32 [ 0, %entry ], [ %i.next, %epilog ]
  %4 = phi i32 [ 0, %entry ], [ %acc2, %epilog ]
  br label %turn

first.next:                                       ; preds = %before
  br label %turn

exit.next:                                        ; preds = %epilog
  %5 = phi i32 [ %acc2, %epilog ]
  br label %turn

stops:                                            ; preds = %turn
  switch i32 %stands, label %turn [
    i32 0, label %entry
    i32 1, label %outer
  ]

place:                                            ; preds = %ask
  %6 = icmp eq i32 %stands, 2
  br i1 %6, label %first, label %turn

behind:                                           ; preds = %ask
  br label %exit

ask:                                              ; preds = %turn
  %7 = icmp eq i32 %stands, 2
  %8 = call i1 @llvm.nvvm.vote.any.sync(i32 %0, i1 %7)
  br i1 %8, label %place, label %behind
}

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.activemask() #0

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1) #0

attributes #0 = { convergent nocallback nounwind memory(inaccessiblemem: readwrite) }
