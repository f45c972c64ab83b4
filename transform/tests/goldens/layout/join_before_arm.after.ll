
declare void @f(i32)

define void @torn(i1 %c, i32 %n) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  call void @f(i32 1)
  br label %join

else:                                             ; preds = %entry
  call void @f(i32 2)
  br label %join

join:                                             ; preds = %else, %then
  br label %header

header:                                           ; preds = %body, %join
  %i = phi i32 [ 0, %join ], [ %next, %body ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %body, label %exit

body:                                             ; preds = %header
  %next = add i32 %i, 1
  br label %header

exit:                                             ; preds = %header
  ret void
}
