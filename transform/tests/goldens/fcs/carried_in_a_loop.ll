; A value is carried past the fused call without being carried around the loop.
define internal i32 @work(i32 %a, i32 %b) noinline {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ %a, %entry ], [ %more, %loop ]
  %more = add i32 %sum, %b
  %next = add i32 %i, 1
  %done = icmp eq i32 %next, 20
  br i1 %done, label %end, label %loop
end:
  ret i32 %more
}

define i32 @rounds(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %latch ]
  %sum = phi i32 [ 0, %entry ], [ %total, %latch ]
  %odd = trunc i32 %i to i1
  br i1 %odd, label %then, label %else
then:
  %kept = mul i32 %i, %i
  %r1 = call i32 @work(i32 %kept, i32 1)
  %s1 = add i32 %r1, %kept
  br label %latch
else:
  %r2 = call i32 @work(i32 %i, i32 2)
  br label %latch
latch:
  %r = phi i32 [ %s1, %then ], [ %r2, %else ]
  %total = add i32 %sum, %r
  %next = add i32 %i, 1
  %done = icmp eq i32 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret i32 %total
}
