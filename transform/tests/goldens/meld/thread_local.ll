; A thread-local variable is named where its address is asked for: these calls stay apart, the rest is one.
@one = thread_local global i32 0
@other = thread_local global i32 0

declare nonnull ptr @llvm.threadlocal.address.p0(ptr nonnull)

define i32 @count(i1 %c, i32 %by) {
entry:
  br i1 %c, label %then, label %else

then:
  %p = call ptr @llvm.threadlocal.address.p0(ptr @one)
  %x = load i32, ptr %p
  %x1 = udiv i32 %by, %x
  %x2 = mul i32 %x1, %by
  %x3 = xor i32 %x2, 77
  store i32 %x3, ptr %p
  br label %join

else:
  %q = call ptr @llvm.threadlocal.address.p0(ptr @other)
  %y = load i32, ptr %q
  %y1 = udiv i32 %by, %y
  %y2 = mul i32 %y1, %by
  %y3 = xor i32 %y2, 99
  store i32 %y3, ptr %q
  br label %join

join:
  %r = phi i32 [ %x3, %then ], [ %y3, %else ]
  ret i32 %r
}
