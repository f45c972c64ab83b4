; Three sides of a switch, one with the call in a nested arm, are fused two by two, the innermost branch first.
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

define i32 @three(i32 %k, i1 %c) {
entry:
  switch i32 %k, label %join [
    i32 0, label %zero
    i32 1, label %one
  ]
zero:
  br i1 %c, label %yes, label %no
yes:
  %r1 = call i32 @work(i32 %k, i32 1)
  br label %join
no:
  %r2 = call i32 @work(i32 7, i32 2)
  br label %join
one:
  %r3 = call i32 @work(i32 9, i32 3)
  br label %join
join:
  %r = phi i32 [ 0, %entry ], [ %r1, %yes ], [ %r2, %no ], [ %r3, %one ]
  ret i32 %r
}
