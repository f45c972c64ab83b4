; split-nodes taken: f: control flow: 0 copies forward, 0 backward, 1 loops cut; 6 blocks became 12, 11 instructions 19

declare i1 @test(i32)

declare void @found(i32)

declare void @other()

define i32 @f(i32 %n) {
entry:
  br label %head

head:                                             ; preds = %cut, %entry
  %.03 = phi i32 [ 0, %entry ], [ %.1, %cut ]
  %more = icmp ult i32 %.03, %n
  br i1 %more, label %body, label %leads

body:                                             ; preds = %head
  %hit = call i1 @test(i32 %.03)
  br i1 %hit, label %leads1, label %latch

latch:                                            ; preds = %body
  %next = add i32 %.03, 1
  br label %leads2

one:                                              ; preds = %out
  call void @found(i32 %.03)
  br label %end

none:                                             ; preds = %out
  call void @other()
  br label %end

end:                                              ; preds = %none, %one
  %.04 = phi i32 [ %.03, %one ], [ -1, %none ]
  ret i32 %.04

cut:                                              ; preds = %leads2, %leads1, %leads
  %.1 = phi i32 [ %.03, %leads1 ], [ %next, %leads2 ], [ %.03, %leads ]
  %.0 = phi i32 [ 1, %leads1 ], [ 0, %leads2 ], [ 2, %leads ]
  %0 = icmp eq i32 %.0, 0
  br i1 %0, label %head, label %out

leads:                                            ; preds = %head
  br label %cut

leads1:                                           ; preds = %body
  br label %cut

leads2:                                           ; preds = %latch
  br label %cut

out:                                              ; preds = %cut
  %1 = icmp eq i32 %.0, 1
  br i1 %1, label %one, label %none
}
