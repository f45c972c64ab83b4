; A loop that is left to two places is cut: it ends in one block, and branches behind it lead on.
declare i1 @test(i32)
declare void @found(i32)
declare void @other()

define i32 @f(i32 %n) {
entry:
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %next, %latch ]
  %more = icmp ult i32 %i, %n
  br i1 %more, label %body, label %none
body:
  %hit = call i1 @test(i32 %i)
  br i1 %hit, label %one, label %latch
latch:
  %next = add i32 %i, 1
  br label %head
one:
  call void @found(i32 %i)
  ret i32 %i
none:
  call void @other()
  ret i32 -1
}
