; linearize taken: never: control flow at ?: 2 unstructured edges: 1 regions with 3 parts behind 1 guards, and 0 at the ends of loops; 0 switches are branches; +2 blocks, +1 comparisons, +1 branches, +1 choices, +1 phis
; linearize taken: trap: control flow at ?: 2 unstructured edges: 1 regions with 4 parts behind 2 guards, and 1 at the ends of loops; 0 switches are branches; +4 blocks, +2 comparisons, +5 branches, +1 choices, +1 phis

declare i1 @one()

declare void @stop()

define void @never(i1 %c) {
entry:
  %0 = select i1 %c, i32 1, i32 2
  br label %guard

guard:                                            ; preds = %a, %entry
  %.0 = phi i32 [ %0, %entry ], [ 2, %a ]
  %1 = icmp eq i32 %.0, 2
  br i1 %1, label %b, label %a

b:                                                ; preds = %guard, %b
  %t = call i1 @one()
  br i1 %t, label %a, label %b

a:                                                ; preds = %b, %guard, %a
  %s = call i1 @one()
  br i1 %s, label %guard, label %a

nowhere:                                          ; No predecessors!
  unreachable
}

define void @trap(i1 %c) {
entry:
  br label %enter

enter:                                            ; preds = %entry
  br label %head

head:                                             ; preds = %enter, %back
  %s = call i1 @one()
  br i1 %s, label %back, label %goes

goes:                                             ; preds = %head
  %t = call i1 @one()
  %0 = select i1 %t, i32 0, i32 3
  br label %back

back:                                             ; preds = %goes, %head
  %.0 = phi i32 [ 1, %head ], [ %0, %goes ]
  %1 = icmp eq i32 %.0, 0
  br i1 %1, label %head, label %guard

guard:                                            ; preds = %back
  %2 = icmp eq i32 %.0, 1
  br i1 %2, label %fails, label %out

fails:                                            ; preds = %guard
  call void @stop()
  br label %end

out:                                              ; preds = %guard
  br label %end

end:                                              ; preds = %out, %fails
  ret void
}
