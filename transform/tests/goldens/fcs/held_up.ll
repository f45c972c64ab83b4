; Lanes that have a lock must not be held at a common call before they give it back, while others wait for it.
; Calls in front of the lock on one side, and of what takes no lock, are in the way of nothing.
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @f(i32)
declare void @note(i32)
@m = global i32 0
@flag = global i32 0

define void @in_sections(i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %t1 = call i32 @pthread_mutex_lock(ptr @m)
  %t2 = call i32 @f(i32 %x)
  %t3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %join

else:
  %e1 = call i32 @pthread_mutex_lock(ptr @m)
  %e2 = call i32 @f(i32 7)
  %e3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %join

join:
  ret void
}

define void @behind_a_loop(i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %wait

then:
  %t = call i32 @f(i32 %x)
  store atomic i32 1, ptr @flag release, align 4
  br label %join

wait:
  %is = load atomic i32, ptr @flag acquire, align 4
  %set = icmp ne i32 %is, 0
  br i1 %set, label %else, label %wait

else:
  %e = call i32 @f(i32 7)
  br label %join

join:
  ret void
}

define void @in_front_of_a_lock(i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %t2 = call i32 @f(i32 %x)
  %t1 = call i32 @pthread_mutex_lock(ptr @m)
  call void @note(i32 0)
  %t3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %join

else:
  %e2 = call i32 @f(i32 7)
  br label %join

join:
  ret void
}
