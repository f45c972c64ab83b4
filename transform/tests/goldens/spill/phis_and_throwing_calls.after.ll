; spill taken: f: the registers: 9 registers; 2 stores to local memory, 0 to shared; uses: 4 loads from local memory, 0 of constants, 0 uniform from shared, 0 computed again, 0 both; 1 values cannot be spilled; 0 bytes shared

declare i64 @source()

declare void @use(i64)

declare i32 @__gxx_personality_v0(...)

define i64 @f(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %g, i64 %h, i64 %n) personality ptr @__gxx_personality_v0 {
entry:
  %0 = alloca i64, align 8
  %1 = alloca i64, align 8
  store volatile i64 %b, ptr %0, align 4
  %thrown = invoke i64 @source()
          to label %loop unwind label %pad

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i64 [ %a, %entry ], [ %more, %loop ]
  store volatile i64 %sum, ptr %1, align 4
  %next = add i64 %i, 1
  %2 = load volatile i64, ptr %1, align 4
  %more = add i64 %2, %i
  call void @use(i64 %thrown)
  %3 = load volatile i64, ptr %0, align 4
  call void @use(i64 %3)
  %again = icmp ult i64 %next, %n
  br i1 %again, label %loop, label %end

end:                                              ; preds = %loop
  %x1 = add i64 %c, %d
  %x2 = add i64 %e, %g
  %x3 = add i64 %x1, %h
  %x4 = add i64 %x2, %x3
  %4 = load volatile i64, ptr %1, align 4
  %x5 = add i64 %x4, %4
  ret i64 %x5

pad:                                              ; preds = %entry
  %lp = landingpad { ptr, i32 }
          cleanup
  %5 = load volatile i64, ptr %0, align 4
  call void @use(i64 %5)
  resume { ptr, i32 } %lp
}
