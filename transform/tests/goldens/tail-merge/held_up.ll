; A lock that both arms take is given back by each for itself; what stands behind that is merged.
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @f(i32)
declare void @note(i32)
@m = global i32 0
@flag = global i32 0

define void @sections(i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:
  %t1 = call i32 @pthread_mutex_lock(ptr @m)
  %t2 = call i32 @f(i32 %x)
  %t3 = call i32 @pthread_mutex_unlock(ptr @m)
  call void @note(i32 1)
  call void @note(i32 2)
  br label %join

else:
  %e1 = call i32 @pthread_mutex_lock(ptr @m)
  %e2 = call i32 @f(i32 7)
  %e3 = call i32 @pthread_mutex_unlock(ptr @m)
  call void @note(i32 1)
  call void @note(i32 2)
  br label %join

join:
  ret void
}
