; One call is in a loop that does not contain the branch: it stays, or the other side would enter the loop.
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

define i32 @looped(i1 %c, i32 %n) {
entry:
  br i1 %c, label %then, label %loop
then:
  %r1 = call i32 @work(i32 1, i32 2)
  br label %join
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %r2 = call i32 @work(i32 %i, i32 3)
  %next = add i32 %i, 1
  %done = icmp eq i32 %next, %n
  br i1 %done, label %join, label %loop
join:
  %r = phi i32 [ %r1, %then ], [ %r2, %loop ]
  ret i32 %r
}
