; structurizecfg taken: f: control flow: 0 copies forward, 0 backward, 0 loops cut; 6 blocks became 11, 11 instructions 18

declare i1 @test(i32)

declare void @found(i32)

declare void @other()

define i32 @f(i32 %n) {
entry:
  br label %head

head:                                             ; preds = %Flow1, %entry
  %i = phi i32 [ 0, %entry ], [ %0, %Flow1 ]
  %more = icmp ult i32 %i, %n
  br i1 %more, label %body, label %Flow1

body:                                             ; preds = %head
  %hit = call i1 @test(i32 %i)
  %hit.inv = xor i1 %hit, true
  br i1 %hit.inv, label %latch, label %Flow2

Flow1:                                            ; preds = %Flow2, %head
  %0 = phi i32 [ %7, %Flow2 ], [ undef, %head ]
  %1 = phi i1 [ false, %Flow2 ], [ true, %head ]
  %2 = phi i32 [ %8, %Flow2 ], [ %i, %head ]
  %3 = phi i1 [ %9, %Flow2 ], [ true, %head ]
  br i1 %3, label %loop.exit.guard, label %head

latch:                                            ; preds = %body
  %next = add i32 %i, 1
  br label %Flow2

one:                                              ; preds = %loop.exit.guard
  call void @found(i32 %2)
  br label %Flow

Flow:                                             ; preds = %one, %loop.exit.guard
  %4 = phi i32 [ %2, %one ], [ undef, %loop.exit.guard ]
  %5 = phi i1 [ false, %one ], [ true, %loop.exit.guard ]
  br i1 %5, label %none, label %end

none:                                             ; preds = %Flow
  call void @other()
  br label %end

end:                                              ; preds = %none, %Flow
  %6 = phi i32 [ %4, %Flow ], [ -1, %none ]
  ret i32 %6

Flow2:                                            ; preds = %latch, %body
  %7 = phi i32 [ %next, %latch ], [ undef, %body ]
  %8 = phi i32 [ undef, %latch ], [ %i, %body ]
  %9 = phi i1 [ false, %latch ], [ true, %body ]
  br label %Flow1

loop.exit.guard:                                  ; preds = %Flow1
  %Guard.none.inv = xor i1 %1, true
  br i1 %Guard.none.inv, label %one, label %Flow
}
