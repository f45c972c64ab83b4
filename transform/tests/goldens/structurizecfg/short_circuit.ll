; if (a || b) x; y: one block before x takes both of its ways.
declare void @x(i32)

define void @f(i1 %a, i1 %b, i32 %n) {
entry:
  br i1 %a, label %x, label %second
second:
  %m = add i32 %n, 1
  br i1 %b, label %x, label %y
x:
  %p = phi i32 [ %n, %entry ], [ %m, %second ]
  call void @x(i32 %p)
  br label %y
y:
  ret void
}
