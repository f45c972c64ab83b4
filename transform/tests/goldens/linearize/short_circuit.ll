; The condition of `if (a || b)` is looked at in a row, so that X stands behind one guard; a phi in it becomes a variable.
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
