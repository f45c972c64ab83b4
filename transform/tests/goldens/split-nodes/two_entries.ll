; A loop that is entered at two blocks has its first turn copied for the second of them.
declare i1 @one(i32)
declare i1 @two(i32)

define i32 @f(i1 %c, i32 %n) {
entry:
  %k = mul i32 %n, 3
  br i1 %c, label %a, label %b
a:
  %x = phi i32 [ %n, %entry ], [ %y1, %b ]
  %x1 = add i32 %x, %k
  %s = call i1 @one(i32 %x1)
  br i1 %s, label %b, label %out
b:
  %y = phi i32 [ %k, %entry ], [ %x1, %a ]
  %y1 = xor i32 %y, 5
  %t = call i1 @two(i32 %y1)
  br i1 %t, label %a, label %out
out:
  %r = phi i32 [ %x1, %a ], [ %y1, %b ]
  ret i32 %r
}
