; A join laid out before its arms, and a loop torn apart by what follows it, come into topological order.
declare void @f(i32)

define void @torn(i1 %c, i32 %n) {
entry:
  br i1 %c, label %then, label %else
join:
  br label %header
then:
  call void @f(i32 1)
  br label %join
exit:
  ret void
header:
  %i = phi i32 [ 0, %join ], [ %next, %body ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %body, label %exit
else:
  call void @f(i32 2)
  br label %join
body:
  %next = add i32 %i, 1
  br label %header
}
