; meld taken: integers: subgraphs at ? and ?: blocks, score 50%: 9 pairs, 1 selects, 0 branches; lanes that part need about 33 instructions, melded 16, on a GPU; 2 accesses go to two places, as many transactions as before; 22 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 9 are lost, 0 more for each iteration of a loop
; meld taken: numbers: subgraphs at ? and ?: regions, score 50%: 8 pairs, 1 selects, 0 branches; lanes that part need about 79 instructions, melded 39, on a GPU; 2 accesses go to two places, as many transactions as before; 56 cycles are saved; 0 blocks in loops, 1 phis at the exit, 0 values carried; where lanes agree at most 10 are lost, 0 more for each iteration of a loop
; meld taken: alone: subgraphs at ? and ?: blocks, score 50%: 5 pairs, 1 selects, 2 branches; lanes that part need about 34 instructions, melded 26, on a GPU; 1 accesses go to two places, as many transactions as before; 17 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 23 are lost, 0 more for each iteration of a loop
; meld taken: together: subgraphs at ? and ?: blocks, score 50%: 3 pairs, 1 selects, 0 branches; lanes that part need about 18 instructions, melded 15, on a GPU; 1 accesses go to two places, as many transactions as before; 13 cycles are saved; 0 blocks in loops, 0 phis at the exit, 0 values carried; where lanes agree at most 9 are lost, 0 more for each iteration of a loop
; meld left: together: subgraphs at ? and ?: a part of an arm holds what cannot be moved: a switch, an alloca, a convergent call, or one that may unwind

define void @integers(i1 %c, ptr %p, ptr %q, i32 %n) {
entry:
  %0 = select i1 %c, ptr %p, ptr %q
  br label %join

join:                                             ; preds = %entry
  %a0 = load i32, ptr %0, align 4, !tbaa !0, !range !3
  %a1 = mul nsw i32 %a0, %n
  %a2 = add i32 %a1, 17
  %a3 = lshr i32 %a2, 3
  %a4 = sub nuw i32 %a3, %n
  %a5 = sdiv exact i32 %a4, 5
  %a6 = zext i32 %a5 to i64
  %a7 = getelementptr nuw i32, ptr %0, i64 %a6
  store i32 %a5, ptr %a7, align 4, !tbaa !4
  ret void
}

define double @numbers(i1 %c, ptr %p, ptr %q, double %x) {
entry:
  %0 = select i1 %c, ptr %p, ptr %q
  br label %melded

melded:                                           ; preds = %entry
  %a0 = load double, ptr %0, align 8
  %a1 = fmul contract double %a0, %x
  %a2 = fadd nnan double %a1, 2.000000e+00
  %a3 = fsub double %a2, %x
  %a4 = fdiv arcp double %a3, %a0
  %a5 = call nsz double @llvm.sqrt.f64(double %a4)
  %at = fcmp nnan olt double %a5, %x
  br i1 %at, label %melded2, label %join

melded2:                                          ; preds = %melded
  store double %a5, ptr %0, align 8
  br label %join

join:                                             ; preds = %melded, %melded2
  ret double %a5
}

define void @alone(i1 %c, ptr %p, ptr %q) {
entry:
  %0 = select i1 %c, ptr %p, ptr %q
  br label %melded

melded:                                           ; preds = %entry
  br i1 %c, label %only.then, label %only.else

only.then:                                        ; preds = %melded
  %a0 = load volatile i32, ptr %p, align 4
  br label %next

only.else:                                        ; preds = %melded
  %b0 = load volatile i32, ptr %q, align 4
  br label %next

next:                                             ; preds = %only.else, %only.then
  %1 = phi i32 [ %a0, %only.then ], [ %b0, %only.else ]
  %a1 = mul i32 %1, 77
  %a2 = udiv i32 %a1, 11
  br i1 %c, label %only.then3, label %only.else4

only.then3:                                       ; preds = %next
  %a3 = atomicrmw add ptr %p, i32 %a2 seq_cst, align 4
  store atomic i32 %a3, ptr %p release, align 4
  br label %join

only.else4:                                       ; preds = %next
  %b3 = atomicrmw add ptr %q, i32 %a2 seq_cst, align 4
  store atomic i32 %b3, ptr %q release, align 4
  br label %join

join:                                             ; preds = %only.else4, %only.then3
  %2 = phi i32 [ %a3, %only.then3 ], [ %b3, %only.else4 ]
  %a4 = mul i32 %2, 91
  %a5 = udiv i32 %a4, 13
  store i32 %a5, ptr %0, align 4
  ret void
}

define void @together(i1 %c, ptr %p, ptr %q) {
entry:
  %0 = select i1 %c, ptr %p, ptr %q
  br label %left

then:                                             ; preds = %left
  call void @barrier() #1
  store i32 %a2, ptr %p, align 4
  br label %join

left:                                             ; preds = %entry
  %a0 = load i32, ptr %0, align 4
  %a1 = mul i32 %a0, 77
  %a2 = udiv i32 %a1, 11
  br i1 %c, label %then, label %else

else:                                             ; preds = %left
  call void @barrier() #1
  store i32 %a2, ptr %q, align 4
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

declare void @barrier()

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare double @llvm.sqrt.f64(double) #0

attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #1 = { convergent }

!0 = !{!1, !1, i64 0}
!1 = !{!"char", !2, i64 0}
!2 = !{!"tree"}
!3 = !{i32 0, i32 20}
!4 = !{!5, !5, i64 0}
!5 = !{!"int", !1, i64 0}
