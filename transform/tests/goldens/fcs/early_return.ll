; An arm that returns has its call fused with that of what comes after it.
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

define i32 @early(i1 %c, i32 %x) {
entry:
  br i1 %c, label %then, label %rest
then:
  %r1 = call i32 @work(i32 %x, i32 1)
  %s1 = add i32 %r1, 4
  ret i32 %s1
rest:
  %y = mul i32 %x, 3
  %r2 = call i32 @work(i32 %y, i32 2)
  ret i32 %r2
}
