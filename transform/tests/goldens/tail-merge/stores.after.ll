; tail-merge taken: ends: arms that end alike at ? and ?: 3 instructions in common

declare void @note(i32)

define i32 @ends(i1 %c, i32 %x, ptr %p, ptr %q) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %a = mul i32 %x, 3
  call void @note(i32 1)
  br label %tail

else:                                             ; preds = %entry
  %b = sub i32 %x, 3
  br label %tail

tail:                                             ; preds = %then, %else
  %0 = phi i32 [ %b, %else ], [ %a, %then ]
  %t = add i32 %x, 7
  store i32 %t, ptr %p, align 4
  store i32 1, ptr %q, align 4
  br label %join

join:                                             ; preds = %tail
  %1 = phi i32 [ %t, %tail ]
  %2 = phi i32 [ %0, %tail ]
  %r = add i32 %2, %1
  ret i32 %r
}
