; A switch becomes branches, one for each target; an arm that falls through to the next makes it unstructured.
declare void @one()
declare void @two()

define void @f(i32 %n) {
entry:
  switch i32 %n, label %out [
    i32 3, label %one
    i32 4, label %one
    i32 7, label %one
    i32 9, label %two
  ]
one:
  call void @one()
  br label %two
two:
  call void @two()
  br label %out
out:
  ret void
}
