; A value of one arm goes to the phi, the other arm brings a constant: the calls stay where they are, or the result would be lost.
declare i32 @g(i32)
declare void @h()
define i32 @f(i1 %c, i32 %p) {
entry:
  br i1 %c, label %then, label %else
then:
  %x = call i32 @g(i32 %p)
  call void @h()
  br label %join
else:
  %x2 = call i32 @g(i32 %p)
  call void @h()
  br label %join
join:
  %r = phi i32 [ %x, %then ], [ 7, %else ]
  ret i32 %r
}
