; linearize taken: f: control flow at ?: 1 unstructured edges: 1 regions with 3 parts behind 2 guards, and 0 at the ends of loops; 0 switches are branches; +1 blocks, +1 comparisons, +1 branches, +1 choices, +1 phis

declare void @x(i32)

define void @f(i1 %a, i1 %b, i32 %n) {
entry:
  br i1 %a, label %guard, label %second

second:                                           ; preds = %entry
  %m = add i32 %n, 1
  %0 = select i1 %b, i32 2, i32 3
  br label %guard

guard:                                            ; preds = %second, %entry
  %.01 = phi i32 [ %n, %entry ], [ %m, %second ]
  %.0 = phi i32 [ 2, %entry ], [ %0, %second ]
  %1 = icmp eq i32 %.0, 2
  br i1 %1, label %x, label %y

x:                                                ; preds = %guard
  call void @x(i32 %.01)
  br label %y

y:                                                ; preds = %x, %guard
  ret void
}
