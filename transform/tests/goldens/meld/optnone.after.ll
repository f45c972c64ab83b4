
; Function Attrs: noinline optnone
define i32 @f(i1 %c, i32 %a, i32 %b, ptr %p) #0 {
entry:
  br i1 %c, label %then, label %else

join:                                             ; preds = %else, %then
  %r = phi i32 [ %x1, %then ], [ %y1, %else ]
  ret i32 %r

then:                                             ; preds = %entry
  %x1 = sdiv i32 %a, 7
  store i32 %x1, ptr %p, align 4
  br label %join

else:                                             ; preds = %entry
  %y1 = sdiv i32 %b, 7
  store i32 %y1, ptr %p, align 4
  br label %join
}

attributes #0 = { noinline optnone }
