; Control that never leaves is structured as well.
declare i1 @one()
declare void @stop()

define void @never(i1 %c) {
entry:
  br i1 %c, label %a, label %b
a:
  %s = call i1 @one()
  br i1 %s, label %b, label %a
b:
  %t = call i1 @one()
  br i1 %t, label %a, label %b
}

define void @trap(i1 %c) {
entry:
  br label %head
head:
  %s = call i1 @one()
  br i1 %s, label %fails, label %goes
fails:
  call void @stop()
  unreachable
goes:
  %t = call i1 @one()
  br i1 %t, label %head, label %out
out:
  ret void
}
