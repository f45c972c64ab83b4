; meld left: section: subgraphs at ? and ?: lanes of one side would wait here for the other's, which may wait for them in a call before: for a lock, or at a barrier
; meld taken: phases: subgraphs at ? and ?: blocks, score 39%: 7 pairs, 0 selects, 1 branches; lanes that part need about 182 instructions, melded 115, on a GPU; 71 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 10 are lost, 0 more for each iteration of a loop

declare void @lock(ptr)

declare void @unlock(ptr)

declare void @meet()

; Function Attrs: willreturn
declare i32 @counts(i32) #0

; Function Attrs: noinline
define internal void @waits(ptr %m) #1 {
  call void @lock(ptr %m)
  ret void
}

define void @section(ptr %m, ptr %a, i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  call void @waits(ptr %m)
  %a1 = load i32, ptr %a, align 4
  %a2 = udiv i32 %a1, %x
  %a3 = mul i32 %a2, %a1
  store i32 %a3, ptr %a, align 4
  call void @unlock(ptr %m)
  br label %join

else:                                             ; preds = %entry
  %b1 = load i32, ptr %a, align 4
  %b2 = udiv i32 %b1, %x
  %b3 = mul i32 %b2, %b1
  store i32 %b3, ptr %a, align 4
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

define void @phases(ptr %a, i32 %x, i1 %c) {
entry:
  br label %melded

melded:                                           ; preds = %entry
  br i1 %c, label %join, label %only.else

only.else:                                        ; preds = %melded
  %n = call i32 @counts(i32 %x)
  br label %join

join:                                             ; preds = %melded, %only.else
  %0 = phi i32 [ %x, %melded ], [ %n, %only.else ]
  %a1 = load i32, ptr %a, align 4
  %a2 = udiv i32 %a1, %0
  store i32 %a2, ptr %a, align 4
  call void @meet()
  %a3 = mul i32 %a2, %a1
  %a4 = udiv i32 %a3, 77
  store i32 %a4, ptr %a, align 4
  ret void
}

attributes #0 = { willreturn }
attributes #1 = { noinline }
