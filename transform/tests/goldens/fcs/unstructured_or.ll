; In if (a || b) one arm is entered by two edges, so a phi tells where to go after the call.
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

define i32 @either(i1 %a, i1 %b) {
entry:
  br i1 %a, label %then, label %second
second:
  br i1 %b, label %then, label %else
then:
  %r1 = call i32 @work(i32 1, i32 3)
  %s1 = add i32 %r1, 1
  br label %join
else:
  %r2 = call i32 @work(i32 2, i32 3)
  br label %join
join:
  %r = phi i32 [ %s1, %then ], [ %r2, %else ]
  ret i32 %r
}
