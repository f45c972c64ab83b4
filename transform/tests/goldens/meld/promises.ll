; What two instructions promise is intersected: nuw, nsw, exact, fast-math, inbounds, alignment; aliases and ranges are widened.
define void @integers(i1 %c, ptr %p, ptr %q, i32 %n) {
entry:
  br i1 %c, label %then, label %else

then:
  %a0 = load i32, ptr %p, align 8, !tbaa !1, !range !4
  %a1 = mul nuw nsw i32 %a0, %n
  %a2 = add nsw i32 %a1, 17
  %a3 = lshr exact i32 %a2, 3
  %a4 = sub nuw i32 %a3, %n
  %a5 = sdiv exact i32 %a4, 5
  %a6 = zext nneg i32 %a5 to i64
  %a7 = getelementptr inbounds nuw i32, ptr %p, i64 %a6
  store i32 %a5, ptr %a7, align 4, !tbaa !1
  br label %join

else:
  %b0 = load i32, ptr %q, align 4, !tbaa !2, !range !5
  %b1 = mul nsw i32 %b0, %n
  %b2 = add nuw i32 %b1, 17
  %b3 = lshr i32 %b2, 3
  %b4 = sub nuw i32 %b3, %n
  %b5 = sdiv exact i32 %b4, 5
  %b6 = zext i32 %b5 to i64
  %b7 = getelementptr nuw i32, ptr %q, i64 %b6
  store i32 %b5, ptr %b7, align 16, !tbaa !1
  br label %join

join:
  ret void
}

define double @numbers(i1 %c, ptr %p, ptr %q, double %x) {
entry:
  br i1 %c, label %then, label %else

then:
  %a0 = load double, ptr %p
  %a1 = fmul fast double %a0, %x
  %a2 = fadd nnan ninf double %a1, 2.0
  %a3 = fsub nsz double %a2, %x
  %a4 = fdiv arcp double %a3, %a0
  %a5 = call nnan nsz double @llvm.sqrt.f64(double %a4)
  %at = fcmp nnan olt double %a5, %x
  br i1 %at, label %more, label %join

more:
  store double %a5, ptr %p
  br label %join

else:
  %b0 = load double, ptr %q
  %b1 = fmul contract double %b0, %x
  %b2 = fadd nnan double %b1, 2.0
  %b3 = fsub ninf double %b2, %x
  %b4 = fdiv arcp double %b3, %b0
  %b5 = call nsz double @llvm.sqrt.f64(double %b4)
  %bt = fcmp nnan ninf ogt double %x, %b5
  br i1 %bt, label %less, label %join

less:
  store double %b5, ptr %q
  br label %join

join:
  %r = phi double [ %a5, %then ], [ %a5, %more ], [ %b5, %else ], [ %b5, %less ]
  ret double %r
}

; A volatile access, an atomic one, and a convergent call are never one with another.
define void @alone(i1 %c, ptr %p, ptr %q) {
entry:
  br i1 %c, label %then, label %else

then:
  %a0 = load volatile i32, ptr %p
  %a1 = mul i32 %a0, 77
  %a2 = udiv i32 %a1, 11
  %a3 = atomicrmw add ptr %p, i32 %a2 seq_cst
  store atomic i32 %a3, ptr %p release, align 4
  %a4 = mul i32 %a3, 91
  %a5 = udiv i32 %a4, 13
  store i32 %a5, ptr %p
  br label %join

else:
  %b0 = load volatile i32, ptr %q
  %b1 = mul i32 %b0, 77
  %b2 = udiv i32 %b1, 11
  %b3 = atomicrmw add ptr %q, i32 %b2 seq_cst
  store atomic i32 %b3, ptr %q release, align 4
  %b4 = mul i32 %b3, 91
  %b5 = udiv i32 %b4, 13
  store i32 %b5, ptr %q
  br label %join

join:
  ret void
}

define void @together(i1 %c, ptr %p, ptr %q) {
entry:
  br i1 %c, label %then, label %else

then:
  %a0 = load i32, ptr %p
  %a1 = mul i32 %a0, 77
  %a2 = udiv i32 %a1, 11
  call void @barrier() convergent
  store i32 %a2, ptr %p
  br label %join

else:
  %b0 = load i32, ptr %q
  %b1 = mul i32 %b0, 77
  %b2 = udiv i32 %b1, 11
  call void @barrier() convergent
  store i32 %b2, ptr %q
  br label %join

join:
  ret void
}

declare void @barrier()
declare double @llvm.sqrt.f64(double)

!0 = !{!"tree"}
!1 = !{!6, !6, i64 0}
!2 = !{!7, !7, i64 0}
!3 = !{!"char", !0, i64 0}
!4 = !{i32 0, i32 10}
!5 = !{i32 5, i32 20}
!6 = !{!"int", !3, i64 0}
!7 = !{!"float", !3, i64 0}
