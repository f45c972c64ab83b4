; speculative taken: work: inner at ?: here 8 lanes, or all that can come go on together; 2 more places to stop at, 1 ways out
target triple = "amdgcn-amd-amdhsa"

define void @work(i32 %n, ptr %trips, ptr %out) {
entry1:
  br label %join

join:                                             ; preds = %entry1
  br label %turn

entry:                                            ; preds = %stops
  br label %outer.next

outer:                                            ; preds = %stops
  %at = getelementptr i32, ptr %trips, i32 %.04
  %count = load i32, ptr %at, align 4
  %some = icmp sgt i32 %count, 0
  br i1 %some, label %before, label %epilog.next

before:                                           ; preds = %outer, %first
  %.03 = phi i32 [ %.1, %first ], [ %count, %outer ]
  %j = phi i32 [ 0, %outer ], [ %j.next, %first ]
  %s = phi i32 [ %.05, %outer ], [ %s2, %first ]
  br label %first.next

first:                                            ; preds = %place
  %m = mul i32 %.0, %.02
  %s2 = add i32 %m, %.1
  %j.next = add i32 %.02, 1
  %more = icmp slt i32 %j.next, %.1
  br i1 %more, label %before, label %epilog.next

epilog:                                           ; preds = %stops
  %i.next = add i32 %.04, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer.next, label %exit.next

exit:                                             ; preds = %behind
  store i32 %.06, ptr %out, align 4
  ret void

turn:                                             ; preds = %exit.next, %first.next, %epilog.next, %outer.next, %stops, %place, %join
  %.06 = phi i32 [ undef, %join ], [ %.06, %first.next ], [ %6, %epilog.next ], [ %.06, %place ], [ %.06, %stops ], [ %.06, %outer.next ], [ %.06, %exit.next ]
  %.05 = phi i32 [ undef, %join ], [ %.05, %first.next ], [ %.05, %epilog.next ], [ %.05, %place ], [ %.05, %stops ], [ %5, %outer.next ], [ %.05, %exit.next ]
  %.04 = phi i32 [ undef, %join ], [ %.04, %first.next ], [ %.04, %epilog.next ], [ %.04, %place ], [ %.04, %stops ], [ %4, %outer.next ], [ %.04, %exit.next ]
  %.1 = phi i32 [ undef, %join ], [ %.03, %first.next ], [ %.2, %epilog.next ], [ %.1, %place ], [ %.1, %stops ], [ %.1, %outer.next ], [ %.1, %exit.next ]
  %.02 = phi i32 [ undef, %join ], [ %j, %first.next ], [ %.02, %epilog.next ], [ %.02, %place ], [ %.02, %stops ], [ %.02, %outer.next ], [ %.02, %exit.next ]
  %.0 = phi i32 [ undef, %join ], [ %s, %first.next ], [ %.0, %epilog.next ], [ %.0, %place ], [ %.0, %stops ], [ %.0, %outer.next ], [ %.0, %exit.next ]
  %stands = phi i32 [ 0, %join ], [ 1, %outer.next ], [ 2, %epilog.next ], [ 3, %first.next ], [ 4, %exit.next ], [ %stands, %stops ], [ %stands, %place ]
  %0 = icmp eq i32 %stands, 3
  %1 = call i64 @llvm.amdgcn.ballot.i64(i1 %0)
  %2 = call i64 @llvm.ctpop.i64(i64 %1)
  %3 = icmp uge i64 %2, 8
  br i1 %3, label %place, label %few

outer.next:                                       ; preds = %epilog, %entry
  %4 = phi i32 [ 0, %entry ], [ %i.next, %epilog ]
  %5 = phi i32 [ 0, %entry ], [ %.06, %epilog ]
  br label %turn

epilog.next:                                      ; preds = %first, %outer
  %.2 = phi i32 [ %.1, %first ], [ %count, %outer ]
  %6 = phi i32 [ %s2, %first ], [ %.05, %outer ]
  br label %turn

first.next:                                       ; preds = %before
  br label %turn

exit.next:                                        ; preds = %epilog
  br label %turn

stops:                                            ; preds = %few
  switch i32 %stands, label %turn [
    i32 0, label %entry
    i32 1, label %outer
    i32 2, label %epilog
  ]

place:                                            ; preds = %ask, %turn
  %7 = icmp eq i32 %stands, 3
  br i1 %7, label %first, label %turn

behind:                                           ; preds = %ask
  br label %exit

few:                                              ; preds = %turn
  %8 = icmp ult i32 %stands, 3
  %9 = call i64 @llvm.amdgcn.ballot.i64(i1 %8)
  %10 = icmp ne i64 %9, 0
  br i1 %10, label %stops, label %ask

ask:                                              ; preds = %few
  %11 = icmp ne i64 %2, 0
  br i1 %11, label %place, label %behind
}

; Function Attrs: convergent nocallback nofree nounwind willreturn memory(none)
declare i64 @llvm.amdgcn.ballot.i64(i1) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.ctpop.i64(i64) #1

attributes #0 = { convergent nocallback nofree nounwind willreturn memory(none) }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
