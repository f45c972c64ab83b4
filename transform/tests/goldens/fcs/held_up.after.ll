; fcs left: in_sections: pthread_mutex_lock at ? and ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write
; fcs left: in_sections: f at ? and ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write
; fcs left: in_sections: pthread_mutex_unlock at ? and ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write
; fcs left: behind_a_loop: f at ? and ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write
; fcs taken: in_front_of_a_lock: f at ? and ?: the callee costs about 40 instructions, the fusion 4; guarded by the branch's condition; lanes that stay together lose 4 each time

@m = global i32 0
@flag = global i32 0

declare i32 @pthread_mutex_lock(ptr)

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @f(i32)

declare void @note(i32)

define void @in_sections(i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %else

then:                                             ; preds = %entry
  %t1 = call i32 @pthread_mutex_lock(ptr @m)
  %t2 = call i32 @f(i32 %x)
  %t3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %join

else:                                             ; preds = %entry
  %e1 = call i32 @pthread_mutex_lock(ptr @m)
  %e2 = call i32 @f(i32 7)
  %e3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

define void @behind_a_loop(i32 %x, i1 %c) {
entry:
  br i1 %c, label %then, label %wait

then:                                             ; preds = %entry
  %t = call i32 @f(i32 %x)
  store atomic i32 1, ptr @flag release, align 4
  br label %join

wait:                                             ; preds = %wait, %entry
  %is = load atomic i32, ptr @flag acquire, align 4
  %set = icmp ne i32 %is, 0
  br i1 %set, label %else, label %wait

else:                                             ; preds = %wait
  %e = call i32 @f(i32 7)
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

define void @in_front_of_a_lock(i32 %x, i1 %c) {
entry:
  br i1 %c, label %before.call, label %before.call1

before.call:                                      ; preds = %entry
  br label %fused.f

then:                                             ; preds = %fused.f
  %t1 = call i32 @pthread_mutex_lock(ptr @m)
  call void @note(i32 0)
  %t3 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %join

before.call1:                                     ; preds = %entry
  br label %fused.f

fused.f:                                          ; preds = %before.call1, %before.call
  %0 = phi i32 [ %x, %before.call ], [ 7, %before.call1 ]
  %1 = call i32 @f(i32 %0) #0
  br i1 %c, label %then, label %else

else:                                             ; preds = %fused.f
  br label %join

join:                                             ; preds = %else, %then
  ret void
}

attributes #0 = { noduplicate }
