; Loops of different numbers of turns become one, whose lanes leave it when their own side's loop ends; the exit's phi chooses.
define i32 @sum(ptr %in, ptr %other, i64 %n, i64 %m, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %i = phi i64 [ 0, %entry ], [ %i.next, %then ]
  %s = phi i32 [ 1, %entry ], [ %s.next, %then ]
  %p = getelementptr inbounds i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4, !tbaa !0
  %s.next = add nsw i32 %s, %v
  %i.next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %join, label %then

else:
  %j = phi i64 [ 0, %entry ], [ %j.next, %else ]
  %t = phi i32 [ 2, %entry ], [ %t.next, %else ]
  %q = getelementptr i32, ptr %other, i64 %j
  %w = load i32, ptr %q, align 4, !tbaa !3
  %t.next = add i32 %t, %w
  %j.next = add nuw nsw i64 %j, 1
  %end = icmp eq i64 %j.next, %m
  br i1 %end, label %join, label %else

join:
  %r = phi i32 [ %s.next, %then ], [ %t.next, %else ]
  ret i32 %r
}

!0 = !{!1, !1, i64 0}
!1 = !{!"int", !2, i64 0}
!2 = !{!"omnipotent char"}
!3 = !{!4, !4, i64 0}
!4 = !{!"float", !2, i64 0}
