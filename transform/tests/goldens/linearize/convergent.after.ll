; linearize taken: apart: control flow at ?: 1 unstructured edges: 1 regions with 3 parts behind 2 guards, and 0 at the ends of loops; 0 switches are branches; +1 blocks, +1 comparisons, +1 branches, +1 choices, +1 phis
; linearize left: inside: control flow at ?: a call must not depend on more branches than before
; linearize taken: inside: control flow at ?: 2 unstructured edges: 1 regions with 3 parts behind 2 guards, and 0 at the ends of loops; 0 switches are branches; +1 blocks, +1 comparisons, +1 branches, +1 choices, +1 phis

; Function Attrs: convergent
declare void @barrier() #0

declare void @x()

declare void @y()

define void @apart(i1 %a, i1 %b) {
  br i1 %a, label %guard, label %also

also:                                             ; preds = %0
  %1 = select i1 %b, i32 2, i32 3
  br label %guard

guard:                                            ; preds = %also, %0
  %.0 = phi i32 [ 2, %0 ], [ %1, %also ]
  %2 = icmp eq i32 %.0, 2
  br i1 %2, label %x, label %y

x:                                                ; preds = %guard
  call void @x()
  br label %y

y:                                                ; preds = %x, %guard
  call void @y()
  call void @barrier()
  ret void
}

define void @inside(i1 %a, i1 %b) {
  br i1 %a, label %x, label %also

also:                                             ; preds = %0
  br i1 %b, label %x, label %y

x:                                                ; preds = %also, %0
  call void @barrier()
  br label %y

y:                                                ; preds = %x, %also
  call void @y()
  br i1 %b, label %guard, label %second

second:                                           ; preds = %y
  %1 = select i1 %a, i32 2, i32 3
  br label %guard

guard:                                            ; preds = %second, %y
  %.0 = phi i32 [ 2, %y ], [ %1, %second ]
  %2 = icmp eq i32 %.0, 2
  br i1 %2, label %z, label %end

z:                                                ; preds = %guard
  call void @x()
  br label %end

end:                                              ; preds = %z, %guard
  ret void
}

attributes #0 = { convergent }
