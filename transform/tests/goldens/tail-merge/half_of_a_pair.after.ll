; tail-merge taken: torn: arms that end alike at ? and ?: 2 instructions in common
; tail-merge taken: both: arms that end alike at ? and ?: 2 instructions in common

define i32 @torn(i1 %c, i32 %p, i32 %q, ptr %to) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %x = add i32 %p, 1
  %y = mul i32 %q, 3
  br label %tail

else:                                             ; preds = %entry
  %x2 = add i32 %p, 1
  %y2 = mul i32 %q, 3
  br label %tail

tail:                                             ; preds = %then, %else
  %0 = phi i32 [ %y2, %else ], [ %x, %then ]
  store i32 1, ptr %to, align 4
  store i32 2, ptr %to, align 4
  br label %join

join:                                             ; preds = %tail
  %1 = phi i32 [ %0, %tail ]
  ret i32 %1
}

define i32 @both(i1 %c, i32 %p, i32 %q) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  br label %tail

else:                                             ; preds = %entry
  br label %tail

tail:                                             ; preds = %then, %else
  %x2 = add i32 %p, 1
  %y2 = mul i32 %q, 3
  br label %join

join:                                             ; preds = %tail
  %0 = phi i32 [ %y2, %tail ]
  %1 = phi i32 [ %x2, %tail ]
  %t = sub i32 %1, %0
  ret i32 %t
}
