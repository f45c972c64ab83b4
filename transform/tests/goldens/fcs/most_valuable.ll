; Two pairs stand crosswise, so that only one can be fused: that of the callee with the most instructions, though the other's calls are nearer.
declare void @step(i32)
define internal void @light(i32 %a) noinline {
  call void @step(i32 %a)
  ret void
}
define internal void @heavy(i32 %a) noinline {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void @step(i32 %i)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %a
  br i1 %more, label %loop, label %end
end:
  ret void
}
define void @crossed(i1 %c, i32 %a, i32 %b) {
entry:
  br i1 %c, label %then, label %else
then:
  call void @light(i32 %a)
  br label %then.rest
then.rest:
  call void @heavy(i32 %b)
  br label %join
else:
  call void @heavy(i32 %a)
  br label %else.rest
else.rest:
  call void @light(i32 %b)
  br label %join
join:
  ret void
}
