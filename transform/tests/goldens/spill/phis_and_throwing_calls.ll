; A spilled phi is stored behind all phis, a value that a phi takes is loaded where control leaves for it, and the result of an invoke is stored where it goes on.
declare i64 @source()
declare void @use(i64)
declare i32 @__gxx_personality_v0(...)

define i64 @f(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %g, i64 %h, i64 %n) personality ptr @__gxx_personality_v0 {
entry:
  %thrown = invoke i64 @source() to label %loop unwind label %pad
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i64 [ %a, %entry ], [ %more, %loop ]
  %next = add i64 %i, 1
  %more = add i64 %sum, %i
  call void @use(i64 %thrown)
  call void @use(i64 %b)
  %again = icmp ult i64 %next, %n
  br i1 %again, label %loop, label %end
end:
  %x1 = add i64 %c, %d
  %x2 = add i64 %e, %g
  %x3 = add i64 %x1, %h
  %x4 = add i64 %x2, %x3
  %x5 = add i64 %x4, %sum
  ret i64 %x5
pad:
  %lp = landingpad { ptr, i32 } cleanup
  call void @use(i64 %b)
  resume { ptr, i32 } %lp
}
