; Lanes that took a lock alone must not be held where both sides meet, before they give it back.
; Calls that both sides make, and one that returns whatever others do, are in the way of nothing.
declare void @lock(ptr)
declare void @unlock(ptr)
declare void @meet()
declare i32 @counts(i32) willreturn

define internal void @waits(ptr %m) noinline {
  call void @lock(ptr %m)
  ret void
}

define void @section(ptr %m, ptr %a, i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  call void @waits(ptr %m)
  %a1 = load i32, ptr %a, align 4
  %a2 = udiv i32 %a1, %x
  %a3 = mul i32 %a2, %a1
  store i32 %a3, ptr %a, align 4
  call void @unlock(ptr %m)
  br label %join

else:
  %b1 = load i32, ptr %a, align 4
  %b2 = udiv i32 %b1, %x
  %b3 = mul i32 %b2, %b1
  store i32 %b3, ptr %a, align 4
  br label %join

join:
  ret void
}

define void @phases(ptr %a, i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %a1 = load i32, ptr %a, align 4
  %a2 = udiv i32 %a1, %x
  store i32 %a2, ptr %a, align 4
  call void @meet()
  %a3 = mul i32 %a2, %a1
  %a4 = udiv i32 %a3, 77
  store i32 %a4, ptr %a, align 4
  br label %join

else:
  %n = call i32 @counts(i32 %x)
  %b1 = load i32, ptr %a, align 4
  %b2 = udiv i32 %b1, %n
  store i32 %b2, ptr %a, align 4
  call void @meet()
  %b3 = mul i32 %b2, %b1
  %b4 = udiv i32 %b3, 77
  store i32 %b4, ptr %a, align 4
  br label %join

join:
  ret void
}
