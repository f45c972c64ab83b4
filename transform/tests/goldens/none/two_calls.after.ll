
declare i32 @f(i32)

define i32 @pick(i1 %c) {
  br i1 %c, label %then, label %else

then:                                             ; preds = %0
  %r1 = call i32 @f(i32 1)
  br label %join

else:                                             ; preds = %0
  %r2 = call i32 @f(i32 2)
  br label %join

join:                                             ; preds = %else, %then
  %r = phi i32 [ %r1, %then ], [ %r2, %else ]
  ret i32 %r
}
