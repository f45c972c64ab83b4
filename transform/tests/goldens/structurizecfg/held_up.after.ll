; structurizecfg left: section: control flow at ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write
; structurizecfg taken: counts: control flow: 0 copies forward, 0 backward, 0 loops cut; 5 blocks became 8, 10 instructions 14

@m = global i32 0
@flag = global i32 0

declare i32 @pthread_mutex_lock(ptr)

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @f(i32)

declare void @note(i32)

define void @section(i1 %a, i1 %b) {
  br i1 %a, label %X, label %B

B:                                                ; preds = %0
  br i1 %b, label %X, label %Y

X:                                                ; preds = %B, %0
  %1 = call i32 @pthread_mutex_lock(ptr @m)
  call void @note(i32 1)
  %2 = call i32 @pthread_mutex_unlock(ptr @m)
  br label %Y

Y:                                                ; preds = %X, %B
  ret void
}

define void @counts(i1 %a, i1 %b) {
  %a.inv = xor i1 %a, true
  br i1 %a.inv, label %B, label %Flow1

B:                                                ; preds = %0
  br label %Flow1

Flow1:                                            ; preds = %B, %0
  %1 = phi i1 [ %b, %B ], [ %a, %0 ]
  br i1 %1, label %X, label %Flow2

X:                                                ; preds = %Flow1
  %was = load atomic i32, ptr @flag acquire, align 4
  call void @note(i32 %was)
  br label %again

Flow2:                                            ; preds = %Flow, %Flow1
  br label %Y

again:                                            ; preds = %X, %again
  %old = phi i32 [ %found, %again ], [ %was, %X ]
  %new = mul i32 %old, 3
  %pair = cmpxchg ptr @flag, i32 %old, i32 %new monotonic monotonic, align 4
  %found = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %Flow, label %again

Flow:                                             ; preds = %again
  br label %Flow2

Y:                                                ; preds = %Flow2
  ret void
}
