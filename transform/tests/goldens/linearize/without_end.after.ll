; linearize taken: never: control flow: 1 regions with 3 parts behind 2 guards, and 1 at the ends of loops; 0 switches are branches
; linearize taken: trap: control flow: 1 regions with 4 parts behind 4 guards, and 1 at the ends of loops; 0 switches are branches

declare i1 @one()

declare void @stop()

define void @never(i1 %c) {
entry:
  %0 = select i1 %c, i32 1, i32 2
  br label %guard

guard:                                            ; preds = %entry, %back
  %.0 = phi i32 [ %0, %entry ], [ %.2, %back ]
  %1 = icmp eq i32 %.0, 2
  br i1 %1, label %b, label %guard1

b:                                                ; preds = %guard, %b
  %t = call i1 @one()
  br i1 %t, label %guard1, label %b

guard1:                                           ; preds = %b, %guard
  %.1 = phi i32 [ 1, %b ], [ %.0, %guard ]
  %2 = icmp eq i32 %.1, 1
  br i1 %2, label %a, label %back

a:                                                ; preds = %guard1, %a
  %s = call i1 @one()
  br i1 %s, label %back, label %a

back:                                             ; preds = %a, %guard1
  %.2 = phi i32 [ 2, %a ], [ %.1, %guard1 ]
  %3 = icmp eq i32 %.2, 2
  br i1 %3, label %guard, label %nowhere

nowhere:                                          ; preds = %back
  unreachable
}

define void @trap(i1 %c) {
entry:
  br label %enter

enter:                                            ; preds = %entry
  br label %guard

guard:                                            ; preds = %enter, %back
  %.0 = phi i32 [ 0, %enter ], [ %.2, %back ]
  %0 = icmp eq i32 %.0, 0
  br i1 %0, label %head, label %guard1

head:                                             ; preds = %guard
  %s = call i1 @one()
  %1 = select i1 %s, i32 1, i32 2
  br label %guard1

guard1:                                           ; preds = %head, %guard
  %.1 = phi i32 [ %1, %head ], [ %.0, %guard ]
  %2 = icmp eq i32 %.1, 2
  br i1 %2, label %goes, label %back

goes:                                             ; preds = %guard1
  %t = call i1 @one()
  %3 = select i1 %t, i32 0, i32 3
  br label %back

back:                                             ; preds = %goes, %guard1
  %.2 = phi i32 [ %3, %goes ], [ %.1, %guard1 ]
  %4 = icmp eq i32 %.2, 0
  br i1 %4, label %guard, label %guard2

guard2:                                           ; preds = %back
  %5 = icmp eq i32 %.2, 1
  br i1 %5, label %fails, label %guard3

fails:                                            ; preds = %guard2
  call void @stop()
  br label %guard3

guard3:                                           ; preds = %fails, %guard2
  %.3 = phi i32 [ 4, %fails ], [ %.2, %guard2 ]
  %6 = icmp eq i32 %.3, 3
  br i1 %6, label %out, label %end

out:                                              ; preds = %guard3
  br label %end

end:                                              ; preds = %out, %guard3
  ret void
}
