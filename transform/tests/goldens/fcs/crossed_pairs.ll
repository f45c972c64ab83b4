; Two functions are called in opposite order: one pair can be fused, the other would make a loop.
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

declare i32 @other(i32)

define i32 @crossed(i1 %c, i32 %x) {
entry:
  br i1 %c, label %then, label %else
then:
  %a1 = call i32 @work(i32 %x, i32 1)
  %b1 = call i32 @other(i32 %a1)
  br label %join
else:
  %b2 = call i32 @other(i32 %x)
  %a2 = call i32 @work(i32 %b2, i32 2)
  br label %join
join:
  %r = phi i32 [ %b1, %then ], [ %a2, %else ]
  ret i32 %r
}
