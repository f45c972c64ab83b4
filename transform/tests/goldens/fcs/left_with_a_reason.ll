; Calls that cannot be fused are named all the same: those that may unwind into a handler, those behind the join, and in one line those that do not return.
source_filename = "left.c"
declare void @work(i32)
declare void @fail(i32) noreturn
declare i32 @personality(...)
define void @unwinding(i1 %c) personality ptr @personality {
entry:
  br i1 %c, label %then, label %else
then:
  invoke void @work(i32 1) to label %join unwind label %handler
else:
  invoke void @work(i32 2) to label %join unwind label %handler
join:
  ret void
handler:
  %pad = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %pad
}
define void @behind(i1 %c) {
entry:
  br i1 %c, label %then, label %join
then:
  call void @work(i32 1)
  br label %join
join:
  call void @work(i32 2)
  ret void
}
define void @endless(i32 %c) {
entry:
  switch i32 %c, label %one [ i32 1, label %two
                              i32 2, label %three ]
one:
  call void @fail(i32 1)
  unreachable
two:
  call void @fail(i32 2)
  unreachable
three:
  call void @fail(i32 3)
  unreachable
}
