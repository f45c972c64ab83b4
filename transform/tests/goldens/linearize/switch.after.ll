; linearize taken: f: control flow: 1 regions with 4 parts behind 3 guards, and 0 at the ends of loops; 1 switches are branches

declare void @one()

declare void @two()

define void @f(i32 %n) {
entry:
  %0 = sub i32 %n, 3
  %1 = icmp ult i32 %0, 2
  %2 = icmp eq i32 %n, 7
  %3 = or i1 %1, %2
  %4 = select i1 %3, i32 2, i32 1
  br label %guard

guard:                                            ; preds = %entry
  %5 = icmp eq i32 %4, 2
  br i1 %5, label %one, label %guard1

one:                                              ; preds = %guard
  call void @one()
  br label %guard1

guard1:                                           ; preds = %one, %guard
  %.0 = phi i32 [ 3, %one ], [ %4, %guard ]
  %6 = icmp eq i32 %.0, 1
  br i1 %6, label %case, label %guard2

case:                                             ; preds = %guard1
  %7 = icmp eq i32 %n, 9
  %8 = select i1 %7, i32 3, i32 4
  br label %guard2

guard2:                                           ; preds = %case, %guard1
  %.1 = phi i32 [ %8, %case ], [ %.0, %guard1 ]
  %9 = icmp eq i32 %.1, 3
  br i1 %9, label %two, label %out

two:                                              ; preds = %guard2
  call void @two()
  br label %out

out:                                              ; preds = %two, %guard2
  ret void
}
