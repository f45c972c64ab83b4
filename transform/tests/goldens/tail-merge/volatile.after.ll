
define void @ends(i1 %c, ptr %p, ptr %q) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  store i32 1, ptr %p, align 4
  store volatile i32 1, ptr %q, align 4
  br label %join

else:                                             ; preds = %entry
  store i32 2, ptr %p, align 4
  store volatile i32 1, ptr %q, align 4
  br label %join

join:                                             ; preds = %else, %then
  ret void
}
