; speculative taken: work: one and other at ? and ?: here all that can come go on together; 0 more places to stop at, 1 ways out
target triple = "nvptx64-nvidia-cuda"

define void @work(ptr %a, ptr %b) {
entry1:
  br label %join

join:                                             ; preds = %entry1
  %0 = call i32 @llvm.nvvm.activemask()
  br label %turn

before:                                           ; preds = %stops
  br label %entry

entry:                                            ; preds = %before
  br label %first.next

first:                                            ; preds = %places
  %x = load i32, ptr %a, align 4
  %more = icmp sgt i32 %x, 0
  br i1 %more, label %first.next, label %second.preheader

second.preheader:                                 ; preds = %first
  %x.lcssa = phi i32 [ %x, %first ]
  br label %second.next

second:                                           ; preds = %places
  %y = load i32, ptr %b, align 4
  %again = icmp sgt i32 %y, %.0
  br i1 %again, label %second.next, label %exit.next

exit:                                             ; preds = %behind
  ret void

turn:                                             ; preds = %exit.next, %second.next, %first.next, %stops, %place, %join
  %.0 = phi i32 [ undef, %join ], [ %.0, %stops ], [ %.0, %first.next ], [ %.1, %second.next ], [ %.0, %exit.next ], [ %.0, %place ]
  %stands = phi i32 [ 0, %join ], [ 1, %first.next ], [ 2, %second.next ], [ 3, %exit.next ], [ %stands, %stops ], [ %stands, %place ]
  %1 = icmp ult i32 %stands, 1
  %2 = call i1 @llvm.nvvm.vote.any.sync(i32 %0, i1 %1)
  br i1 %2, label %stops, label %ask

first.next:                                       ; preds = %first, %entry
  br label %turn

second.next:                                      ; preds = %second, %second.preheader
  %.1 = phi i32 [ %.0, %second ], [ %x.lcssa, %second.preheader ]
  br label %turn

exit.next:                                        ; preds = %second
  br label %turn

stops:                                            ; preds = %turn
  switch i32 %stands, label %turn [
    i32 0, label %before
  ]

place:                                            ; preds = %ask
  %3 = icmp eq i32 %stands, %11
  br i1 %3, label %places, label %turn

behind:                                           ; preds = %ask
  br label %exit

ask:                                              ; preds = %turn
  %4 = icmp eq i32 %stands, 1
  %5 = call i32 @llvm.nvvm.vote.ballot.sync(i32 %0, i1 %4)
  %6 = call i32 @llvm.ctpop.i32(i32 %5)
  %7 = icmp eq i32 %stands, 2
  %8 = call i32 @llvm.nvvm.vote.ballot.sync(i32 %0, i1 %7)
  %9 = call i32 @llvm.ctpop.i32(i32 %8)
  %10 = icmp ugt i32 %9, %6
  %11 = select i1 %10, i32 2, i32 1
  %12 = select i1 %10, i32 %9, i32 %6
  %13 = icmp ne i32 %12, 0
  br i1 %13, label %place, label %behind

places:                                           ; preds = %place
  switch i32 %stands, label %second [
    i32 1, label %first
  ]
}

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.activemask() #0

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1) #0

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) #0

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.ctpop.i32(i32) #1

attributes #0 = { convergent nocallback nounwind memory(inaccessiblemem: readwrite) }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
