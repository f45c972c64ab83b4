; The example of the paper: both arms compute other arguments for one function, and one goes on after the call.
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

declare void @note(i32)

define i32 @round(i32 %id) {
entry:
  %even = trunc i32 %id to i1
  br i1 %even, label %then, label %else
then:
  %m = mul i32 %id, 1000
  %q1 = call i32 @work(i32 %m, i32 1)
  br label %join
else:
  %n = mul i32 %id, 2000
  %product = mul i32 %n, %id
  %q2 = call i32 @work(i32 %n, i32 2)
  call void @note(i32 %product)
  br label %join
join:
  %q = phi i32 [ %q1, %then ], [ %q2, %else ]
  ret i32 %q
}
