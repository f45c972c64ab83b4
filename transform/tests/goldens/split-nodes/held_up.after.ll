; split-nodes left: section: control flow at ?: lanes would be held here while others wait for what those do later: give a lock back, come to a barrier, or end a loop by what they write
; split-nodes taken: counts: control flow: 1 copies forward, 0 backward, 0 loops cut; 5 blocks became 7, 10 instructions 17

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
  br i1 %a, label %X, label %B

B:                                                ; preds = %0
  br i1 %b, label %X.copy, label %Y

X:                                                ; preds = %0
  %was = load atomic i32, ptr @flag acquire, align 4
  call void @note(i32 %was)
  br label %again

again:                                            ; preds = %again, %X
  %.0 = phi i32 [ %was, %X ], [ %found, %again ]
  %new = mul i32 %.0, 3
  %pair = cmpxchg ptr @flag, i32 %.0, i32 %new monotonic monotonic, align 4
  %found = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %Y, label %again

Y:                                                ; preds = %again.copy, %again, %B
  ret void

X.copy:                                           ; preds = %B
  %1 = load atomic i32, ptr @flag acquire, align 4
  call void @note(i32 %1)
  br label %again.copy

again.copy:                                       ; preds = %again.copy, %X.copy
  %.1 = phi i32 [ %1, %X.copy ], [ %4, %again.copy ]
  %2 = mul i32 %.1, 3
  %3 = cmpxchg ptr @flag, i32 %.1, i32 %2 monotonic monotonic, align 4
  %4 = extractvalue { i32, i1 } %3, 0
  %5 = extractvalue { i32, i1 } %3, 1
  br i1 %5, label %Y, label %again.copy
}
