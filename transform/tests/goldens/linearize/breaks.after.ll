; linearize taken: f: control flow at ?: 2 unstructured edges: 1 regions with 5 parts behind 3 guards, and 1 at the ends of loops; 0 switches are branches; +4 blocks, +2 comparisons, +5 branches, +0 choices, +3 phis

declare i1 @test(i32)

declare void @found(i32)

declare void @other()

define i32 @f(i32 %n) {
entry:
  br label %enter

enter:                                            ; preds = %entry
  br label %head

head:                                             ; preds = %enter, %back
  %.01 = phi i32 [ 0, %enter ], [ %.1, %back ]
  %more = icmp ult i32 %.01, %n
  br i1 %more, label %body, label %back

body:                                             ; preds = %head
  %hit = call i1 @test(i32 %.01)
  br i1 %hit, label %back, label %latch

latch:                                            ; preds = %body
  %next = add i32 %.01, 1
  br label %back

back:                                             ; preds = %latch, %body, %head
  %.1 = phi i32 [ %.01, %body ], [ %next, %latch ], [ %.01, %head ]
  %.0 = phi i32 [ 3, %body ], [ 0, %latch ], [ 4, %head ]
  %0 = icmp eq i32 %.0, 0
  br i1 %0, label %head, label %guard

guard:                                            ; preds = %back
  %1 = icmp eq i32 %.0, 3
  br i1 %1, label %one, label %none

one:                                              ; preds = %guard
  call void @found(i32 %.01)
  br label %end

none:                                             ; preds = %guard
  call void @other()
  br label %end

end:                                              ; preds = %none, %one
  %.02 = phi i32 [ %.01, %one ], [ -1, %none ]
  ret i32 %.02
}
