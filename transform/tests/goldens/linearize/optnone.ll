; A function that is not to be optimised is left as it is.
declare void @x()

define void @f(i1 %a, i1 %b) noinline optnone {
entry:
  br i1 %a, label %x, label %second
second:
  br i1 %b, label %x, label %y
x:
  call void @x()
  br label %y
y:
  ret void
}
