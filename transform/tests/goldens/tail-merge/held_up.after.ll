; tail-merge taken: sections: arms that end alike at ? and ?: 2 instructions in common
; tail-merge left: sections: arms that end alike at ? and ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write

@m = global i32 0
@flag = global i32 0

declare i32 @pthread_mutex_lock(ptr)

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @f(i32)

declare void @note(i32)

define void @sections(i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %t1 = call i32 @pthread_mutex_lock(ptr @m)
  %t2 = call i32 @f(i32 %x)
  %t3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %tail

else:                                             ; preds = %entry
  %e1 = call i32 @pthread_mutex_lock(ptr @m)
  %e2 = call i32 @f(i32 7)
  %e3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %tail

tail:                                             ; preds = %then, %else
  call void @note(i32 1)
  call void @note(i32 2)
  br label %join

join:                                             ; preds = %tail
  ret void
}
