; A handler asks for the number of a type by its name: these calls stay apart, what is done with the numbers is one.
@one = external constant ptr
@other = external constant ptr
declare i32 @llvm.eh.typeid.for.p0(ptr)

define i32 @kind(i1 %c, i32 %by, ptr %to) {
entry:
  br i1 %c, label %then, label %else

then:
  %t = call i32 @llvm.eh.typeid.for.p0(ptr @one)
  %x = mul i32 %t, %by
  %x1 = udiv i32 %x, 7
  %x2 = xor i32 %x1, 77
  store i32 %x2, ptr %to
  br label %join

else:
  %u = call i32 @llvm.eh.typeid.for.p0(ptr @other)
  %y = mul i32 %u, %by
  %y1 = udiv i32 %y, 7
  %y2 = xor i32 %y1, 99
  store i32 %y2, ptr %to
  br label %join

join:
  %r = phi i32 [ %x2, %then ], [ %y2, %else ]
  ret i32 %r
}
