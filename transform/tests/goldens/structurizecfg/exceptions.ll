; A function with exceptions is left, and others are not.
declare void @throws()
declare void @x()
declare i32 @personality(...)

define void @handles(i1 %a, i1 %b) personality ptr @personality {
  br i1 %a, label %x, label %also
also:
  br i1 %b, label %x, label %y
x:
  invoke void @throws() to label %y unwind label %handler
y:
  ret void
handler:
  %pad = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %pad
}

define void @other(i1 %a, i1 %b) {
  br i1 %a, label %x, label %also
also:
  br i1 %b, label %x, label %y
x:
  call void @x()
  br label %y
y:
  ret void
}
