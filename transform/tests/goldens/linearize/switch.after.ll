; linearize taken: f: control flow at ?: 1 unstructured edges: 1 regions with 4 parts behind 2 guards, and 0 at the ends of loops; 1 switches are branches; +2 blocks, +4 comparisons, +3 branches, +1 choices, +1 phis

declare void @one()

declare void @two()

define void @f(i32 %n) {
entry:
  %0 = sub i32 %n, 3
  %1 = icmp ult i32 %0, 2
  %2 = icmp eq i32 %n, 7
  %3 = or i1 %1, %2
  br i1 %3, label %one, label %case

one:                                              ; preds = %entry
  call void @one()
  br label %guard

case:                                             ; preds = %entry
  %4 = icmp eq i32 %n, 9
  %5 = select i1 %4, i32 3, i32 4
  br label %guard

guard:                                            ; preds = %one, %case
  %.0 = phi i32 [ 3, %one ], [ %5, %case ]
  %6 = icmp eq i32 %.0, 3
  br i1 %6, label %two, label %out

two:                                              ; preds = %guard
  call void @two()
  br label %out

out:                                              ; preds = %two, %guard
  ret void
}
