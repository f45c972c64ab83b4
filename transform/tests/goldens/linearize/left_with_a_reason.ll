; Exceptions, jumps to addresses, calls that return twice and calls that must be jumps are left, with a reason each.
declare void @x()
declare void @may_throw()
declare i32 @setjmp(ptr) returns_twice
declare i32 @personality(...)

define void @throws(i1 %a, i1 %b) personality ptr @personality {
entry:
  br i1 %a, label %x, label %second
second:
  br i1 %b, label %x, label %y
x:
  invoke void @may_throw() to label %y unwind label %handler
handler:
  %e = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %e
y:
  ret void
}

define void @address(i1 %a, i1 %b, ptr %p) {
entry:
  br i1 %a, label %x, label %second
second:
  br i1 %b, label %x, label %y
x:
  indirectbr ptr %p, [label %y, label %z]
z:
  call void @x()
  br label %y
y:
  ret void
}

define i32 @twice(i1 %a, i1 %b, ptr %p) {
entry:
  %s = call i32 @setjmp(ptr %p) returns_twice
  br i1 %a, label %x, label %second
second:
  br i1 %b, label %x, label %y
x:
  call void @x()
  br label %y
y:
  ret i32 %s
}

define void @jump(i1 %a, i1 %b, ptr %p) {
entry:
  br i1 %a, label %x, label %second
second:
  br i1 %b, label %x, label %y
x:
  musttail call void @jump(i1 %b, i1 %a, ptr %p)
  ret void
y:
  ret void
}
