; A function that must not be optimised is left alone, whatever could be gained.
define i32 @f(i1 %c, i32 %a, i32 %b, ptr %p) optnone noinline {
entry:
  br i1 %c, label %then, label %else
join:
  %r = phi i32 [ %x1, %then ], [ %y1, %else ]
  ret i32 %r
then:
  %x1 = sdiv i32 %a, 7
  store i32 %x1, ptr %p
  br label %join
else:
  %y1 = sdiv i32 %b, 7
  store i32 %y1, ptr %p
  br label %join
}
