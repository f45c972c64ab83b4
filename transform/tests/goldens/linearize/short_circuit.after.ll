; linearize taken: f: control flow: 1 regions with 3 parts behind 2 guards, and 0 at the ends of loops; 0 switches are branches

declare void @x(i32)

define void @f(i1 %a, i1 %b, i32 %n) {
entry:
  %0 = select i1 %a, i32 2, i32 1
  br label %guard

guard:                                            ; preds = %entry
  %1 = icmp eq i32 %0, 1
  br i1 %1, label %second, label %guard1

second:                                           ; preds = %guard
  %m = add i32 %n, 1
  %2 = select i1 %b, i32 2, i32 3
  br label %guard1

guard1:                                           ; preds = %second, %guard
  %.02 = phi i32 [ %m, %second ], [ %n, %guard ]
  %.0 = phi i32 [ %2, %second ], [ %0, %guard ]
  %3 = icmp eq i32 %.0, 2
  br i1 %3, label %x, label %y

x:                                                ; preds = %guard1
  call void @x(i32 %.02)
  br label %y

y:                                                ; preds = %x, %guard1
  ret void
}
