; Loops that wait for a lock are not melded, nor is what stands behind them while they have it.
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @f(i32)
declare void @note(i32)
@m = global i32 0
@flag = global i32 0

define void @sections(ptr %a, i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %t1 = atomicrmw xchg ptr @flag, i32 1 acquire
  %t2 = icmp eq i32 %t1, 0
  br i1 %t2, label %one, label %then

one:
  %a1 = load i32, ptr %a, align 4
  %a2 = udiv i32 %a1, %x
  %a3 = mul i32 %a2, %a1
  store i32 %a3, ptr %a, align 4
  store atomic i32 0, ptr @flag release, align 4
  br label %join

else:
  %e1 = atomicrmw xchg ptr @flag, i32 1 acquire
  %e2 = icmp eq i32 %e1, 0
  br i1 %e2, label %other, label %else

other:
  %b1 = load i32, ptr %a, align 4
  %b2 = udiv i32 %b1, 3
  %b3 = mul i32 %b2, %b1
  store i32 %b3, ptr %a, align 4
  store atomic i32 0, ptr @flag release, align 4
  br label %join

join:
  ret void
}
