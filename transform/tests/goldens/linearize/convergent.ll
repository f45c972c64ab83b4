; A region with a call that must not depend on other branches is left, one without is not.
declare void @barrier() convergent
declare void @x()
declare void @y()

define void @apart(i1 %a, i1 %b) {
  br i1 %a, label %x, label %also
also:
  br i1 %b, label %x, label %y
x:
  call void @x()
  br label %y
y:
  call void @y()
  call void @barrier()
  ret void
}

define void @inside(i1 %a, i1 %b) {
  br i1 %a, label %x, label %also
also:
  br i1 %b, label %x, label %y
x:
  call void @barrier()
  br label %y
y:
  call void @y()
  br i1 %b, label %z, label %second
second:
  br i1 %a, label %z, label %end
z:
  call void @x()
  br label %end
end:
  ret void
}
