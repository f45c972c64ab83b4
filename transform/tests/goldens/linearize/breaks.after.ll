; linearize taken: f: control flow: 1 regions with 5 parts behind 5 guards, and 1 at the ends of loops; 0 switches are branches

declare i1 @test(i32)

declare void @found(i32)

declare void @other()

define i32 @f(i32 %n) {
entry:
  br label %enter

enter:                                            ; preds = %entry
  br label %guard

guard:                                            ; preds = %enter, %back
  %.07 = phi i32 [ 0, %enter ], [ %.18, %back ]
  %.05 = phi i32 [ 0, %enter ], [ %.3, %back ]
  %.0 = phi i32 [ undef, %enter ], [ %.1, %back ]
  %0 = icmp eq i32 %.05, 0
  br i1 %0, label %head, label %guard1

head:                                             ; preds = %guard
  %more = icmp ult i32 %.07, %n
  %1 = select i1 %more, i32 1, i32 4
  br label %guard1

guard1:                                           ; preds = %head, %guard
  %.16 = phi i32 [ %1, %head ], [ %.05, %guard ]
  %.1 = phi i32 [ %.07, %head ], [ %.0, %guard ]
  %2 = icmp eq i32 %.16, 1
  br i1 %2, label %body, label %guard2

body:                                             ; preds = %guard1
  %hit = call i1 @test(i32 %.1)
  %3 = select i1 %hit, i32 3, i32 2
  br label %guard2

guard2:                                           ; preds = %body, %guard1
  %.2 = phi i32 [ %3, %body ], [ %.16, %guard1 ]
  %4 = icmp eq i32 %.2, 2
  br i1 %4, label %latch, label %back

latch:                                            ; preds = %guard2
  %next = add i32 %.1, 1
  br label %back

back:                                             ; preds = %latch, %guard2
  %.18 = phi i32 [ %next, %latch ], [ %.07, %guard2 ]
  %.3 = phi i32 [ 0, %latch ], [ %.2, %guard2 ]
  %5 = icmp eq i32 %.3, 0
  br i1 %5, label %guard, label %guard3

guard3:                                           ; preds = %back
  %6 = icmp eq i32 %.3, 3
  br i1 %6, label %one, label %guard4

one:                                              ; preds = %guard3
  call void @found(i32 %.1)
  br label %guard4

guard4:                                           ; preds = %one, %guard3
  %.4 = phi i32 [ 5, %one ], [ %.3, %guard3 ]
  %7 = icmp eq i32 %.4, 4
  br i1 %7, label %none, label %end

none:                                             ; preds = %guard4
  call void @other()
  br label %end

end:                                              ; preds = %none, %guard4
  %.110 = phi i32 [ -1, %none ], [ %.1, %guard4 ]
  ret i32 %.110
}
