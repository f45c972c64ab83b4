; tail-merge left: f: arms that end alike at ? and ?: no profit: 1 instructions in common, 1 more jumps

declare i32 @g(i32)

declare void @h()

define i32 @f(i1 %c, i32 %p) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %x = call i32 @g(i32 %p)
  call void @h()
  br label %join

else:                                             ; preds = %entry
  %x2 = call i32 @g(i32 %p)
  call void @h()
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %x, %then ], [ 7, %else ]
  ret i32 %r
}
